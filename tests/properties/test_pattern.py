"""Does the sequence matcher find the sequences that [SIENA §3.3] defines?"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from driftline import Event, parse
from driftline.model.pattern import Pattern, SequenceMatcher
from driftline.model.scope import Scope
from driftline.model.subscription import Subscription

MICROSECONDS = 1_000_000


def naive(steps: tuple[Subscription, ...], within: float | None, seen: list[Event]) -> list:
    """All sequences, by looking anew from the first filter after each one found.

    The first event that matches the first filter, then the first later one (seen later and
    generated later) that matches the second, and so on. An event that fits the first step or the
    one at hand, and was generated more than `within` after the first, undoes what was found, and is
    looked at afresh.
    """
    found = []
    at = 0
    while at < len(seen):
        sequence, at, undone = _from(steps, within, seen, at)
        if sequence is not None:
            found.append(sequence)
        elif not undone:
            break
    return found


def _from(steps, within, seen, at):
    chosen: list[Event] = []
    while at < len(seen):
        event = seen[at]
        if any(step.matches(event) for step in (steps[0], steps[len(chosen)])):
            bound = float("inf") if within is None else within * MICROSECONDS
            if chosen and event.time - chosen[0].time > bound:
                return None, at, True
            later = not chosen or event.time > chosen[-1].time
            if later and steps[len(chosen)].matches(event):
                chosen.append(event)
        at += 1
        if len(chosen) == len(steps):
            return tuple(chosen), at, False
    return None, at, False


filters = st.sampled_from(
    [parse(f"SELECT * WHERE {where}") for where in ("x = 1", "x = 2", "x < 3", "y = 1", "TRUE")]
)
sequences = st.lists(
    st.builds(
        lambda x, y, time: Event("quote", {"x": x, "y": y}, time=time * MICROSECONDS // 2),
        st.integers(0, 4),
        st.sampled_from((None, 1)),
        st.integers(0, 12),
    ),
    max_size=14,
)


@settings(max_examples=1000)
@given(
    st.lists(filters, min_size=2, max_size=4).map(tuple),
    st.sampled_from((None, 1, 1.5, 3)),
    sequences,
    st.booleans(),
)
def test_the_matcher_finds_the_sequences_of_the_definition(steps, within, events, sort) -> None:
    if sort:  # mostly in the order they were generated, as events usually come
        events = sorted(events, key=lambda event: event.time)
    matcher = SequenceMatcher(Pattern(steps, within))
    found = []
    for event in events:
        complete = matcher.take(Scope(event))
        matcher._check()
        if complete is not None:
            found.append(complete)
    assert found == naive(steps, within, events)
