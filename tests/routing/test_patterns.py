"""Does a monitor hold back only what no match can use? [SIENA §5.3]"""

from __future__ import annotations

import random

import pytest

from driftline import Event, parse
from driftline.model.filter import Filter
from driftline.model.pattern import Pattern, SequenceMatcher
from driftline.routing import patterns
from driftline.routing.patterns import Factor, Monitor, factored


def fitting(number: int) -> tuple[Filter, ...]:
    return parse(f"SELECT * WHERE x = {number}").filters()


def test_neighbouring_steps_with_one_provider_are_delegated_together() -> None:
    a, b, c, d = (fitting(number) for number in range(4))
    providers = {a: "n1", b: "n1", c: None, d: "n1"}
    assert factored((a, b, c, d), providers.get) == [
        Factor(0, (a, b), "n1"),
        Factor(2, (c,), None),
        Factor(3, (d,), None),  # It alone is no sequence.
    ]
    providers = {a: "n1", b: "n2", c: "n2", d: "n2"}
    assert factored((a, b, c, d), providers.get) == [
        Factor(0, (a,), None),
        Factor(1, (b, c, d), "n2"),
    ]


@pytest.mark.parametrize("seed", range(400))
def test_a_pattern_is_found_in_what_passes_as_in_all(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever steps are delegated, whenever that begins, and in whatever order events come."""
    draw = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(patterns, "REMEMBERED", 2)
    count = draw.randrange(2, 6)
    # Steps that have events in common, now and then.
    wanted = [set(draw.sample(range(6), draw.choice((1, 1, 2)))) for _ in range(count)]
    within = draw.choice((None, None, 3, 10))
    steps = tuple(parse("SELECT * WHERE TRUE") for _ in range(count))
    whole = SequenceMatcher(Pattern(steps, within))
    passed = SequenceMatcher(Pattern(steps, within))
    monitors: list[tuple[range, Monitor]] = []
    latest = 0
    lateness = draw.choice((0, 0, 2, 8))
    for at in range(300):
        if draw.random() < 0.05:
            # Somebody else looks after another part from now on.
            first = draw.randrange(count - 1)
            part = range(first, draw.randrange(first + 2, count + 1))
            monitors = [(part, Monitor(len(part), latest))]
        time = (at - draw.randrange(lateness + 1)) * 1_000_000
        event = Event("q", {"x": draw.randrange(6)}, time=time)
        fits = [step for step in range(count) if event.attributes["x"] in wanted[step]]
        latest = max(latest, time)
        found = whole.advance(event, fits)
        passes = True
        for part, monitor in monitors:
            asked = [step - part.start for step in fits if step in part]
            # An event goes by the monitor that a step without one wants.
            needed = bool(asked) and monitor.take(asked, time)
            passes = needed or any(step not in part for step in fits)
        if passes:
            assert passed.advance(event, fits) == found
        else:
            assert found is None
        assert passed.found == whole.found


def test_what_is_held_back_is_most_of_what_is_of_no_use() -> None:
    monitor = Monitor(3)
    passed = [
        monitor.take([step], time) for time, step in enumerate([1, 2, 2, 1, 0, 2, 1, 1, 2, 2])
    ]
    #           anything may have been before; then 2 after 1; …
    assert passed == [True, True, False, False, True, False, True, False, True, False]


def test_what_was_generated_before_is_held_back() -> None:
    monitor = Monitor(2)
    assert monitor.take([1], 1)
    assert monitor.take([0], 10)
    assert not monitor.take([1], 5)
    assert not monitor.take([1], 10)
    assert monitor.take([1], 11)


def test_a_match_that_waits_for_something_newer_is_not_given_up() -> None:
    monitor = Monitor(2, latest=50)
    # Whoever asked may have matched something of time 50; it is still waited for.
    assert monitor.take([1], 40)
    assert monitor.take([1], 45)
    assert monitor.take([1], 60)
    assert not monitor.take([1], 70)
