"""Do the matchers answer every case, and every other pair of a case's text and another's event?"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from driftline.language.records import Record
from driftline.matching.columns import Columns
from driftline.matching.lazy import Lazy
from driftline.matching.matcher import Matcher
from tests.conformance.loader import Run, runs
from tests.matching.makers import each_matcher

RUNS = runs()
each_run = pytest.mark.parametrize(
    "number", range(len(RUNS)), ids=lambda number: f"env {dict(RUNS[number].env)}"
)


@cache
def read(number: int) -> tuple[Run, list[Record], list[list[str]]]:
    """A run, its subscriptions, and by the definition who is told of each of its events."""
    run = RUNS[number]
    records = run.records
    told = [
        [record.id for record in records if record.standing.matches(event, run.env)]
        for event in run.events
    ]
    return run, records, told


def filled(make: Callable[[], Matcher], records: list[Record]) -> Lazy:
    made = Lazy(make())
    for record in records:
        made.add(record.id, record.standing)
    made._check()
    return made


@each_matcher
@each_run
def test_each_case_is_answered_as_specified(make: Callable[[], Matcher], number: int) -> None:
    run, records, _ = read(number)
    made = filled(make, records)
    wrong = [
        f"{case.id}: wanted {case.expect}"
        for case in run.cases
        if (case.id in made.match(case.event, run.env)) is not case.matches
    ]
    assert not wrong, "\n".join(wrong)


@each_matcher
@each_run
def test_each_event_is_answered_as_defined_alone_and_in_a_batch(
    make: Callable[[], Matcher], number: int
) -> None:
    run, records, told = read(number)
    made = filled(make, records)
    batch = made.match_batch(Columns.of_events(run.events), run.env)
    for at, event in enumerate(run.events):
        assert made.match(event, run.env) == told[at], event
        assert batch.ids(at) == told[at], event


@each_matcher
@each_run
def test_what_is_discarded_is_told_no_more(make: Callable[[], Matcher], number: int) -> None:
    run, records, told = read(number)
    made = filled(make, records)
    gone = {record.id for record in records[::2]}
    for id in gone:
        made.discard(id)
    made._check()
    for event, ids in zip(run.events, told, strict=True):
        assert made.match(event, run.env) == [id for id in ids if id not in gone], event
