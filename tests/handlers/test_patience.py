"""Is something tried again at the right times, and given up at last?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from driftline.handlers.patience import Patience
from driftline.net.webhooks import Webhooks

ALLOW = ("https://hooks.example.org/",)


def patience(random: float = 1.0, now: list[float] | None = None, **said) -> Patience:
    return Patience(Webhooks(ALLOW, **said), lambda: (now or [0.0])[0], lambda: random)


def delays(one: Patience, times: int) -> list[float | None]:
    found = []
    for _ in range(times):
        one.begin("7")
        found.append(one.failed("it answered 500"))
    return found


def test_twice_as_long_each_time_up_to_a_bound_and_so_often():
    one = patience(first=1.0, longest=6.0, attempts=5)
    assert delays(one, 5) == [1.0, 2.0, 4.0, 6.0, None]
    assert (one.attempts, one.why) == (5, "it answered 500")
    one.succeeded()
    assert (one.attempts, one.why) == (0, "")
    assert delays(one, 2) == [1.0, 2.0]
    # Another one is tried from the beginning.
    one.begin("8")
    assert one.failed("no answer") == 1.0


def test_at_random_it_is_at_least_half_of_it():
    assert delays(patience(0.0, first=1.0, longest=6.0), 4) == [0.5, 1.0, 2.0, 3.0]


def test_after_some_time_it_is_given_up_however_seldom_it_was_tried():
    now = [0.0]
    one = patience(now=now, first=10.0, longest=100.0, give_up=60.0)
    one.begin("7")
    assert one.failed("it answered 500") == 10.0
    now[0] = 45.0
    one.begin("7")
    assert one.failed("it answered 500") is None


@given(
    st.integers(1, 1000),
    st.floats(0.01, 86_400.0),
    st.floats(0.01, 86_400.0),
    st.none() | st.floats(0, 1e12),
    st.floats(0, 1),
)
def test_no_delay_is_longer_than_the_longest(attempts, first, longest, after, random):
    one = patience(random, first=first, longest=longest, attempts=1000, give_up=2_592_000.0)
    one.begin("7")
    one.attempts = attempts
    delay = one.failed("it answered 500", after)
    if delay is not None:
        assert 0 < delay <= longest
        assert after is None or delay >= min(after, longest)
