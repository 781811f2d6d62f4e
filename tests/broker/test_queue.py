"""What a subscriber that is slow was promised, promise by promise."""

from __future__ import annotations

import random

import pytest

from driftline.broker.items import Counts, Item, Told
from driftline.broker.policy import Policy
from driftline.broker.queue import MARK_AFTER_US, Outgoing
from driftline.broker.session import NEVER
from driftline.errors import InvalidValue

PLENTY = 1_000_000


class Connection:
    """Items of one byte with numbers, and what comes out of them as numbers."""

    def __init__(self, limit_bytes: int = PLENTY, **policies: Policy) -> None:
        self.out = Outgoing(limit_bytes)
        for handle, policy in policies.items():
            self.out.add(handle, policy)
        self.number = 0

    def offer(
        self, *handles: str, size: int = 1, key: str | None = None, now: int = 0, times: int = 1
    ) -> bool:
        taken = True
        for _ in range(times):
            self.number += 1
            keys = (key,) * len(handles) if key else ()
            taken = self.out.offer(Item(handles, b"", self.number, size, keys), now)
            self.out._check()
        return taken

    def take(self, now: int = 0, room: int = PLENTY) -> list[Told]:
        told = self.out.take(room, now)
        self.out._check()
        return told

    def numbers(self, now: int = 0, room: int = PLENTY) -> list[int]:
        return [told.item.number for told in self.take(now, room) if told.item is not None]


def gaps(told: list[Told]) -> list[tuple[int, int]]:
    return [(one.item.number, *one.lost) for one in told if one.item is not None]


# Dropping the oldest


def test_of_too_many_the_oldest_are_lost_and_the_next_says_how_many():
    connection = Connection(a=Policy(limit=2))
    connection.offer("a", times=5)
    assert gaps(connection.take()) == [(4, 3), (5, 0)]


def test_of_too_many_bytes_the_oldest_are_lost():
    connection = Connection(a=Policy(limit_bytes=10))
    for size in (4, 4, 1, 3):
        connection.offer("a", size=size)
    assert gaps(connection.take()) == [(2, 1), (3, 0), (4, 0)]


def test_what_is_lost_after_a_gap_was_told_is_another_gap():
    connection = Connection(a=Policy(limit=1))
    connection.offer("a", times=2)
    assert gaps(connection.take()) == [(2, 1)]
    connection.offer("a", times=3)
    assert gaps(connection.take()) == [(5, 2)]


def test_the_gap_of_one_subscription_is_not_that_of_another():
    connection = Connection(a=Policy(limit=1), b=Policy(limit=9))
    connection.offer("a", "b", times=2)
    first, second = connection.take()
    assert first == Told(("b",), (0,), first.item)
    assert second == Told(("a", "b"), (1, 0), second.item)


def test_one_that_is_larger_than_the_limit_waits_if_it_is_alone():
    connection = Connection(a=Policy(limit_bytes=10))
    connection.offer("a", size=50)
    assert gaps(connection.take()) == [(1, 0)]


def test_one_that_is_larger_than_the_limit_pushes_all_others_out():
    connection = Connection(a=Policy(limit_bytes=10))
    connection.offer("a", times=3)
    connection.offer("a", size=50)
    assert gaps(connection.take()) == [(4, 3)]


def test_one_that_is_larger_than_the_limit_makes_way_for_the_next():
    connection = Connection(a=Policy(limit_bytes=10))
    connection.offer("a", size=50)
    connection.offer("a")
    assert gaps(connection.take()) == [(2, 1)]


def test_a_gap_with_nothing_behind_it_is_told_alone_after_a_while():
    connection = Connection(limit_bytes=10, a=Policy(), b=Policy())
    connection.offer("a", size=6, now=50)
    connection.offer("b", size=6, now=70)
    assert connection.numbers(now=80) == [2]
    assert connection.out.wake_at() == 70 + MARK_AFTER_US
    assert connection.take(now=70 + MARK_AFTER_US - 1) == []
    assert connection.take(now=70 + MARK_AFTER_US) == [Told(("a",), (1,))]
    assert connection.out.wake_at() == NEVER


def test_a_gap_that_is_told_with_a_notification_is_not_told_alone():
    connection = Connection(limit_bytes=10, a=Policy(), b=Policy())
    connection.offer("a", size=6)
    connection.offer("b", size=6)
    connection.take()
    connection.offer("a", now=10)
    assert gaps(connection.take(now=10)) == [(3, 1)]
    assert connection.take(now=10 * MARK_AFTER_US) == []


# Conflating


def test_without_keys_the_latest_is_told():
    connection = Connection(a=Policy("conflate"))
    connection.offer("a", times=5)
    assert gaps(connection.take()) == [(5, 0)]
    assert connection.out.counts("a") == Counts(offered=5, sent=1, conflated=4)


def test_the_latest_of_each_key_is_told_in_the_order_they_came():
    connection = Connection(a=Policy("conflate", key="symbol"))
    for key in "xyxzy":
        connection.offer("a", key=key)
    assert gaps(connection.take()) == [(3, 0), (4, 0), (5, 0)]


def test_more_keys_than_the_limit_are_a_gap():
    connection = Connection(a=Policy("conflate", limit=2))
    for key in "xyzz":
        connection.offer("a", key=key)
    assert gaps(connection.take()) == [(2, 1), (4, 0)]
    assert connection.out.counts("a") == Counts(offered=4, sent=2, dropped=1, conflated=1)


def test_each_subscription_conflates_by_its_own_keys():
    connection = Connection(a=Policy("conflate"), b=Policy("conflate"))
    for number, keys in enumerate((("x", "p"), ("y", "p"), ("x", "q"))):
        connection.out.offer(Item(("a", "b"), b"", number, 1, keys), 0)
    assert [(one.handles, one.item.number) for one in connection.take()] == [
        (("a", "b"), 1),
        (("a", "b"), 2),
    ]


def test_a_key_that_changes_all_the_time_is_told_nevertheless():
    """It would always be put off, behind others that change less often than they are told."""
    connection = Connection(a=Policy("conflate", limit=200))
    told: dict[str, list[int]] = {}
    for turn in range(2000):
        connection.offer("a", key="hot")
        connection.offer("a", key=f"k{turn % 100}")
        for one in connection.take(room=1):
            key = one.item.keys[0]
            told.setdefault(key, []).append(turn)
            assert one.lost == (0,)
    assert len(told) == 101
    longest = max(b - a for a, b in zip(told["hot"], told["hot"][1:], strict=False))
    assert longest < 2 * 102


def test_whoever_takes_everything_at_the_end_knows_the_latest_of_each_key():
    draw = random.Random(7)
    connection = Connection(a=Policy("conflate", limit=50))
    latest: dict[str, int] = {}
    known: dict[str, int] = {}
    for _ in range(1000):
        key = draw.choice("abcdefgh")
        connection.offer("a", key=key)
        latest[key] = connection.number
        for one in connection.take(room=draw.choice((0, 0, 1, 3))):
            known[one.item.keys[0]] = one.item.number
    for one in connection.take():
        known[one.item.keys[0]] = one.item.number
    assert known == latest


# Blocking


def test_who_blocks_is_full_at_its_limit_and_loses_nothing():
    connection = Connection(a=Policy("block", limit=3))
    assert connection.offer("a", times=2)
    assert not connection.out.blocked
    assert connection.offer("a")
    assert connection.out.blocked
    assert not connection.offer("a")
    assert gaps(connection.take(room=1)) == [(1, 0)]
    assert not connection.out.blocked
    assert connection.offer("a")
    assert gaps(connection.take()) == [(2, 0), (3, 0), (5, 0)]
    assert connection.out.counts("a") == Counts(offered=4, sent=4)


def test_who_blocks_is_full_when_its_bytes_are_too_many_and_takes_one_that_goes_beyond():
    connection = Connection(a=Policy("block", limit_bytes=10))
    assert connection.offer("a", size=9)
    assert connection.offer("a", size=100)
    assert connection.out.blocked
    assert connection.numbers() == [1, 2]


def test_an_item_is_refused_whole_if_one_of_its_subscriptions_is_full():
    connection = Connection(a=Policy("block", limit=1), b=Policy())
    assert connection.offer("a")
    assert not connection.offer("a", "b")
    assert connection.offer("b")
    assert [(one.handles, one.item.number) for one in connection.take()] == [
        (("a",), 1),
        (("b",), 3),
    ]


# The bound of a connection


def test_the_largest_queue_gives_way_first():
    """The example in `budget`."""
    connection = Connection(limit_bytes=8, a=Policy(), b=Policy(), c=Policy("block"))
    for handle, size in (("a", 3), ("a", 3), ("b", 1)):
        connection.offer(handle, size=size)
    sizes = []
    for handle, size in (("b", 2), ("c", 4), ("c", 2)):
        assert not connection.out.blocked
        assert connection.offer(handle, size=size)
        sizes.append([connection.out.counts(one).waiting_bytes for one in "abc"])
    assert sizes == [[3, 3, 0], [0, 3, 4], [0, 2, 6]]
    assert connection.out.blocked
    assert not connection.offer("c")


def test_of_two_queues_of_one_size_the_one_gives_way_that_does_not_block():
    connection = Connection(limit_bytes=8, a=Policy(), c=Policy("block"))
    connection.offer("c", size=4)
    connection.offer("a", size=4)
    assert not connection.out.blocked
    assert connection.offer("c", size=1)
    assert gaps(connection.take()) == [(1, 0), (3, 0)]


def test_a_small_queue_is_not_pushed_out_by_a_large_one():
    connection = Connection(limit_bytes=100, quiet=Policy(), loud=Policy(limit=10_000))
    connection.offer("quiet", times=5)
    connection.offer("loud", times=1000)
    assert connection.out.counts("quiet") == Counts(offered=5, waiting=5, waiting_bytes=5)
    assert connection.out.pending_bytes == 100


def test_queues_that_block_hold_publishers_back_when_the_connection_is_full():
    connection = Connection(limit_bytes=100, a=Policy("block"), b=Policy("block"))
    while connection.offer("a"):
        assert connection.out.pending_bytes <= 100
    assert connection.out.blocked
    assert not connection.offer("b")
    assert connection.out.pending_bytes == 100


def test_what_waits_for_many_subscriptions_is_in_memory_once():
    connection = Connection(limit_bytes=100, **{f"s{n}": Policy() for n in range(50)})
    connection.offer(*(f"s{n}" for n in range(50)), size=60)
    assert connection.out.pending == 50
    assert connection.out.pending_bytes == 60
    assert len(connection.take()) == 1


def test_one_that_is_larger_than_the_connection_allows_waits_if_it_is_alone():
    connection = Connection(limit_bytes=10, a=Policy(), b=Policy())
    connection.offer("a", "b", size=50)
    assert [one.handles for one in connection.take()] == [("a", "b")]
    connection.offer("a")
    connection.offer("b", size=50)
    assert connection.numbers() == [2]


def test_memory_is_bounded_by_the_limit_and_one_item(seed):
    draw = random.Random(seed)
    words = ("drop_oldest", "conflate", "block")
    policies = {f"s{n}": Policy(words[n % 3], limit=draw.choice((3, 1000))) for n in range(9)}
    connection = Connection(limit_bytes=200, **policies)
    for turn in range(2000):
        handles = draw.sample(sorted(policies), draw.randint(1, 3))
        connection.offer(*handles, size=draw.randint(0, 30), key=draw.choice("pqrstu"))
        assert connection.out.pending_bytes <= 200 + 30
        connection.take(now=turn, room=draw.choice((0, 0, 0, 20)))


# Intervals


def test_the_first_goes_at_once_and_the_next_when_the_interval_ends():
    connection = Connection(a=Policy(min_interval_us=100))
    connection.offer("a", now=1000)
    assert connection.numbers(now=1000) == [1]
    connection.offer("a", now=1001, times=2)
    assert connection.out.wake_at() == 1100
    assert connection.numbers(now=1099) == []
    assert connection.numbers(now=1100) == [2]
    assert connection.numbers(now=1199) == []
    assert connection.numbers(now=1250) == [3]


def test_after_a_quiet_interval_the_next_goes_at_once():
    connection = Connection(a=Policy(min_interval_us=100))
    connection.offer("a", now=0)
    connection.take(now=0)
    connection.offer("a", now=500)
    assert connection.numbers(now=500) == [2]


def test_when_the_interval_ends_the_latest_of_each_key_is_told():
    connection = Connection(a=Policy("conflate", min_interval_us=100))
    connection.offer("a", key="x", now=0)
    assert connection.numbers(now=0) == [1]
    for key in "xyxy":
        connection.offer("a", key=key, now=50)
    assert connection.numbers(now=99) == []
    assert connection.numbers(now=100) == [4, 5]
    connection.offer("a", key="z", now=101)
    assert connection.numbers(now=199) == []
    assert connection.numbers(now=200) == [6]


def test_the_latest_of_each_key_go_together_even_if_the_connection_takes_them_one_by_one():
    connection = Connection(a=Policy("conflate", min_interval_us=100))
    for key in "xyz":
        connection.offer("a", key=key)
    assert connection.numbers(now=0, room=1) == [1]
    connection.offer("a", key="x", now=1)
    assert connection.numbers(now=1, room=1) == [2]
    assert connection.numbers(now=2) == [3]
    assert connection.numbers(now=101) == []
    assert connection.numbers(now=102) == [4]


def test_what_is_lost_during_an_interval_is_told_with_what_goes_when_it_ends():
    connection = Connection(a=Policy(limit=1, min_interval_us=100))
    connection.offer("a")
    connection.take()
    connection.offer("a", times=3, now=1)
    assert gaps(connection.take(now=100)) == [(4, 2)]


def test_who_blocks_holds_publishers_back_during_its_interval():
    connection = Connection(a=Policy("block", limit=1, min_interval_us=100))
    connection.offer("a")
    connection.take()
    connection.offer("a")
    assert connection.out.blocked
    assert connection.numbers(now=100) == [2]
    assert not connection.out.blocked


def test_the_latest_is_told_again_when_nothing_came_for_long():
    connection = Connection(a=Policy(max_interval_us=100))
    assert connection.out.wake_at() == NEVER
    assert connection.take(now=10_000) == []
    connection.offer("a", now=20_000)
    (first,) = connection.take(now=20_000)
    assert not first.repeat
    assert connection.take(now=20_099) == []
    assert connection.out.wake_at() == 20_100
    assert connection.take(now=20_100) == [Told(("a",), (0,), first.item, repeat=True)]
    assert connection.out.wake_at() == 20_200
    connection.offer("a", now=20_150)
    assert connection.numbers(now=20_150) == [2]
    assert connection.out.wake_at() == 20_250
    assert connection.out.counts("a") == Counts(offered=2, sent=2, repeated=1)


def test_what_is_new_comes_before_what_is_told_again():
    connection = Connection(a=Policy(max_interval_us=100), b=Policy())
    connection.offer("a")
    connection.take()
    connection.offer("b", times=2)
    assert connection.numbers(now=100, room=1) == [2]
    assert [(one.item.number, one.repeat) for one in connection.take(now=100)] == [
        (3, False),
        (1, True),
    ]


# Order, room, and several subscriptions


def test_across_subscriptions_the_order_is_that_of_arrival():
    connection = Connection(a=Policy(), b=Policy("conflate"), c=Policy("block"))
    for handles in ("a", "cb", "a", "c", "ab"):
        connection.offer(*handles)
    told = [(one.item.number, "".join(one.handles)) for one in connection.take()]
    assert told == [(1, "a"), (2, "c"), (3, "a"), (4, "c"), (5, "ab")]


def test_one_in_its_interval_is_told_later_what_others_are_told_now():
    connection = Connection(a=Policy(), b=Policy(min_interval_us=100))
    connection.offer("a", "b")
    assert [one.handles for one in connection.take()] == [("a", "b")]
    connection.offer("a", "b", now=1)
    assert [one.handles for one in connection.take(now=1)] == [("a",)]
    assert [one.handles for one in connection.take(now=100)] == [("b",)]


def test_what_is_taken_fits_into_the_room():
    connection = Connection(a=Policy())
    for size in (4, 4, 4, 1):
        connection.offer("a", size=size)
    assert connection.numbers(room=0) == []
    assert connection.numbers(room=9) == [1, 2]
    assert connection.numbers(room=5) == [3, 4]


def test_one_that_is_larger_than_the_room_goes_alone():
    connection = Connection(a=Policy())
    connection.offer("a", size=50)
    connection.offer("a")
    assert connection.numbers(room=1) == [1]
    assert connection.numbers(room=1) == [2]


# Going past the queue


def test_plain_ones_go_straight_out_unless_something_is_before_them():
    connection = Connection(a=Policy(), b=Policy(), c=Policy(min_interval_us=100))
    assert connection.out.bypass(("a", "b"))
    assert not connection.out.bypass(("a", "c"))
    assert not connection.out.bypass(("a", "unknown"))
    connection.offer("b")
    assert not connection.out.bypass(("a",))
    connection.take()
    assert connection.out.bypass(("a",))
    assert connection.out.counts("a") == Counts(offered=2, sent=2)


def test_what_waits_for_an_interval_holds_nobody_up():
    connection = Connection(a=Policy(), c=Policy(min_interval_us=100))
    connection.offer("c", times=2)
    connection.take()
    assert connection.out.pending == 1
    assert connection.out.bypass(("a",))


def test_nothing_goes_past_a_gap_that_was_not_told():
    connection = Connection(limit_bytes=10, a=Policy(), b=Policy())
    connection.offer("a", size=6)
    connection.offer("b", size=6)
    connection.take()
    assert connection.out.pending == 0
    assert not connection.out.bypass(("a",))


# Subscriptions that come, change and go


def test_what_waits_is_gone_with_its_subscription():
    connection = Connection(a=Policy("block", limit=1), b=Policy(max_interval_us=5))
    connection.offer("a", "b")
    connection.out.remove("a")
    connection.out._check()
    assert not connection.out.blocked
    assert [one.handles for one in connection.take()] == [("b",)]
    connection.out.remove("b")
    assert connection.out.wake_at() == NEVER
    assert connection.offer("a", "b")
    assert (connection.out.pending, connection.out.pending_bytes) == (0, 0)


def test_a_smaller_limit_holds_at_once():
    connection = Connection(a=Policy())
    connection.offer("a", times=5)
    connection.out.change("a", Policy(limit=2), 0)
    assert gaps(connection.take()) == [(4, 3), (5, 0)]


def test_what_waits_is_conflated_when_that_is_the_policy_now():
    connection = Connection(a=Policy())
    for key in "xyx":
        connection.offer("a", key=key)
    connection.out.change("a", Policy("conflate"), 0)
    assert gaps(connection.take()) == [(2, 0), (3, 0)]


def test_who_blocks_from_now_on_keeps_what_waits_and_holds_publishers_back():
    connection = Connection(limit_bytes=4, a=Policy(), b=Policy())
    connection.offer("a", "b", times=4)
    connection.out.change("a", Policy("block", limit=2), 0)
    connection.out._check()
    assert connection.out.blocked
    assert connection.out.counts("a").waiting == 4
    assert connection.out.pending_bytes == 4


def test_an_interval_counts_from_what_was_told_before_it_was_asked_for():
    connection = Connection(a=Policy())
    connection.offer("a", times=2, now=10)
    connection.take(now=10, room=1)
    connection.out.change("a", Policy(min_interval_us=100), 20)
    assert connection.out.wake_at() == 110


@pytest.mark.parametrize("limit", [0, -1, 1.5, float("nan"), None, True])
def test_a_connection_has_a_limit(limit):
    with pytest.raises(InvalidValue, match="limit_bytes: wanted an integer, 1 or more"):
        Outgoing(limit)


def test_a_handle_is_taken_once():
    connection = Connection(a=Policy())
    with pytest.raises(InvalidValue, match="handle: wanted one that is not taken, came 'a'"):
        connection.out.add("a", Policy())


def test_who_is_unknown_cannot_be_changed_removed_or_counted():
    out = Outgoing(10)
    for act in (lambda: out.change("a", Policy(), 0), lambda: out.remove("a")):
        with pytest.raises(KeyError):
            act()
    with pytest.raises(KeyError):
        out.counts("a")


def test_whatever_is_lost_is_flagged_to_the_last_one(seed):
    """Who counts what it was told and what it was told it lost, knows how many there were."""
    draw = random.Random(seed)
    limits = {f"s{n}": Policy(limit=draw.randint(1, 5)) for n in range(5)}
    connection = Connection(limit_bytes=40, **limits)
    offered = dict.fromkeys(limits, 0)
    seen = dict.fromkeys(limits, 0)
    last = dict.fromkeys(limits, 0)
    expected: dict[str, list[int]] = {handle: [] for handle in limits}

    def hear(told: list[Told]) -> None:
        for one in told:
            for handle, lost in zip(one.handles, one.lost, strict=True):
                seen[handle] += lost
                if one.item is None:
                    assert lost
                    continue
                seen[handle] += 1
                missed = [n for n in expected[handle] if last[handle] < n < one.item.number]
                assert one.item.number > last[handle]
                # A gap that was told alone was before this; none is told twice.
                assert lost <= len(missed)
                last[handle] = one.item.number

    for turn in range(1500):
        handles = draw.sample(sorted(limits), draw.randint(1, 3))
        connection.offer(*handles, size=draw.randint(1, 15), now=turn)
        for handle in handles:
            offered[handle] += 1
            expected[handle].append(connection.number)
        hear(connection.take(now=turn, room=draw.choice((0, 0, 5, 30))))
    hear(connection.take(now=10 * MARK_AFTER_US))
    hear(connection.take(now=20 * MARK_AFTER_US))
    assert seen == offered
