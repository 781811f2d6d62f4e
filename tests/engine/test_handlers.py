"""Handlers: suspended, resumed and redirected, with what came meanwhile [SIENA §3]."""

from __future__ import annotations

import pytest

import driftline as dl
from driftline.errors import InvalidValue

ANY = "SELECT * FROM q"


@pytest.fixture
def engine() -> dl.Engine:
    return dl.Engine(clock=dl.ManualClock())


def event(x: int) -> dl.Event:
    return dl.Event("q", {"x": x})


def seen(handle: dl.Handle) -> list[object]:
    return [n.values.get("x", n.kind.value) for n in handle.pending()]


def test_what_comes_while_a_party_is_suspended_is_told_when_it_resumes(engine) -> None:
    mine, other = (engine.subscribe(ANY, party=party) for party in ("alice", "bob"))
    engine.suspend("alice")
    assert engine.publish(event(1)) == 2
    engine.publish(event(2))
    assert (seen(mine), seen(other)) == ([], [1, 2])
    engine.resume("alice")
    engine.publish(event(3))
    assert (seen(mine), seen(other)) == ([1, 2, 3], [3])
    engine.resume("alice")
    assert seen(mine) == []


def test_of_more_than_is_kept_the_oldest_is_forgotten_and_said_to_be(engine) -> None:
    mine = engine.subscribe(ANY, party="alice")
    engine.suspend("alice")
    for x in range(1005):
        engine.publish(event(x))
    engine.resume("alice")
    assert seen(mine) == ["gap", *range(5, 1005)]


def test_a_row_set_waits_too(engine) -> None:
    engine.table("q", key="x")
    rows = engine.subscribe(ANY, party="alice", rows=True)
    engine.suspend("alice")
    engine.publish(event(1))
    engine.delete("q", 1)
    assert rows.pending() == []
    engine.resume("alice")
    assert [(n.kind, n.key) for n in rows.pending()] == [("enter", 1), ("leave", 1)]
    engine.suspend("alice")
    for x in range(1005):
        engine.publish(event(x))
    engine.resume("alice")
    told = rows.pending()
    assert (told[0].kind, told[1].key) == ("gap", 5)
    # What was forgotten of a set of rows is not to be had from the rest: it is told anew.
    assert [one.kind for one in told[1001:]] == ["gap", *["snapshot"] * 1005]


def test_what_was_kept_is_told_as_it_was(engine) -> None:
    """With the parameters it was matched under, also when the subscription has ended since."""
    mine = engine.subscribe("SELECT x + :p AS y FROM q WHERE x < :p", {"p": 10}, party="alice")
    engine.suspend("alice")
    engine.publish(event(1))
    mine.set(p=1)
    engine.publish(event(0))
    mine.cancel()
    engine.publish(event(0))
    engine.resume("alice")
    assert [(n.values["y"], n.epoch) for n in mine.pending()] == [(11, 0), (1, 1)]


def test_a_party_is_told_through_the_handler_it_has(engine) -> None:
    mine = engine.subscribe(ANY, party="alice")
    told: list[tuple[dl.Handle, object]] = []
    engine.publish(event(1))
    engine.redirect("alice", lambda handle, n: told.append((handle, n.values["x"])))
    engine.publish(event(2))
    assert (told, seen(mine)) == ([(mine, 2)], [1])
    engine.suspend("alice")
    engine.publish(event(3))
    assert len(told) == 1
    # What was kept goes to the handler there is then.
    again: list[object] = []
    engine.redirect("alice", lambda handle, n: again.append(n.values["x"]))
    engine.resume("alice")
    assert (len(told), again) == (1, [3])
    engine.redirect("alice", None)
    engine.publish(event(4))
    assert (again, seen(mine)) == ([3], [4])


def test_a_handler_may_publish_and_is_then_called_after_the_others(engine) -> None:
    order: list[object] = []

    def first(handle: dl.Handle, notification: dl.Notification) -> None:
        x = notification.values["x"]
        order.append(("first", x))
        if x < 3:
            engine.publish(event(x + 1))

    engine.subscribe(ANY, party="alice")
    engine.subscribe(ANY, party="bob")
    engine.redirect("alice", first)
    engine.redirect("bob", lambda handle, n: order.append(("second", n.values["x"])))
    engine.publish(event(1))
    assert order == [(who, x) for x in (1, 2, 3) for who in ("first", "second")]


def test_a_handler_that_fails_keeps_nobody_from_being_told(engine) -> None:
    told: list[object] = []

    def fails(handle: dl.Handle, notification: dl.Notification) -> None:
        raise RuntimeError("no")

    engine.subscribe(ANY, party="alice")
    engine.subscribe(ANY, party="bob")
    engine.redirect("alice", fails)
    engine.redirect("bob", lambda handle, n: told.append(n.values["x"]))
    with pytest.raises(RuntimeError, match="no"):
        engine.publish(event(1))
    assert told == [1]
    engine.redirect("alice", None)
    engine.publish(event(2))
    assert told == [1, 2]


def test_a_handler_that_suspends_or_redirects_its_party_is_not_called_again(engine) -> None:
    told: list[object] = []

    def once(handle: dl.Handle, notification: dl.Notification) -> None:
        told.append(notification.values["x"])
        engine.suspend("alice")

    mine, also = (engine.subscribe(ANY, party="alice") for _ in range(2))
    engine.redirect("alice", once)
    engine.publish(event(1))
    assert told == [1]
    engine.redirect("alice", lambda handle, n: engine.redirect("alice", None))
    engine.resume("alice")
    engine.publish(event(2))
    assert (told, seen(mine), seen(also)) == ([1], [2], [2])


def test_a_handler_is_called_with_the_snapshot_when_it_is_taken(engine) -> None:
    engine.table("q", key="x")
    engine.publish(event(1))
    told: list[str] = []
    engine.redirect("alice", lambda handle, n: told.append(n.kind.value))
    engine.subscribe(ANY, party="alice", rows=True)
    assert told == ["snapshot"]


def test_a_handler_that_fails_leaves_subscriptions_as_they_are(engine) -> None:
    engine.table("q", key="x")
    engine.publish(event(1))

    def fails(handle: dl.Handle, notification: dl.Notification) -> None:
        raise RuntimeError("no")

    engine.redirect("alice", fails)
    with pytest.raises(RuntimeError):
        engine.subscribe(ANY, party="alice", rows=True)
    engine.redirect("alice", None)
    engine._check()
    other = engine.subscribe(ANY, party="bob")
    engine.publish(event(2))
    assert seen(other) == [2]
    engine._check()


@pytest.mark.parametrize("bad", [7, "print"])
def test_a_handler_is_a_function(engine, bad) -> None:
    with pytest.raises(InvalidValue, match="handler"):
        engine.redirect("alice", bad)


def test_half_a_pattern_without_within_is_a_gap_after_thirty_days() -> None:
    engine = dl.Engine(clock=dl.ManualClock())
    pattern = engine.subscribe("SELECT * WHERE x = 1 THEN SELECT * WHERE x = 2")
    day = 86_400_000_000
    engine.publish(dl.Event("q", {"x": 1}, time=0))
    engine.publish(dl.Event("q", {"x": 2}, time=30 * day + 1))
    (gap,) = pattern.pending()
    assert gap.kind == "gap"
    engine.publish(dl.Event("q", {"x": 1}, time=40 * day))
    engine.publish(dl.Event("q", {"x": 2}, time=70 * day))
    (whole,) = pattern.pending()
    assert whole.kind == "pattern"
