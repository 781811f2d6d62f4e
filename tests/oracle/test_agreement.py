"""Do the definition, the matchers and SQLite agree on random subscriptions and events?

What this catches that written cases cannot: a mistake that their author and ours would both make.
Set DRIFTLINE_SEED to another number for other subscriptions and events.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from driftline import Engine, ManualClock
from driftline.language.cloudevents import event_to
from driftline.language.records import Record, record_from, record_to
from driftline.matching.lazy import Lazy
from driftline.matching.matcher import Matcher
from driftline.model.event import Event
from driftline.model.subscription import Subscription
from driftline.model.truth import Unknown
from tests.matching.makers import each_matcher
from tests.oracle.generate import COLUMNS, EVENTS, FILTERS, pairs
from tests.oracle.sqlite import Sqlite

SEED = int(os.environ.get("DRIFTLINE_SEED", "2001"))
SHARE_MIN = 0.1
"""Fewer true or unknown answers than this would leave a kind of mistake unseen."""


@dataclass(frozen=True, slots=True)
class Population:
    """The subscriptions, the events, and SQLite's answer to each pair."""

    records: list[Record]
    events: list[Event]
    truths: list[list[bool | None]]

    def told(self, n: int) -> list[str]:
        """The ids that SQLite says event n satisfies."""
        return [
            one.id
            for one, truths in zip(self.records, self.truths, strict=True)
            if truths[n] is True
        ]

    def disagreement(self, record: Record, n: int, ours: object, theirs: object) -> str:
        return (
            f"seed {SEED}: {record.standing.statement} with {dict(record.standing.params)}"
            f" on {self.events[n]}: {ours} here, {theirs} in SQLite"
        )


@pytest.fixture(scope="module")
def population() -> Population:
    print(f"seed {SEED}")
    records, events = pairs(SEED)
    sqlite = Sqlite(COLUMNS, events)
    return Population(records, events, [sqlite.truths(one.standing) for one in records])


def statement(record: Record) -> Subscription:
    assert isinstance(record.standing.statement, Subscription)
    return record.standing.statement


def test_matches_agrees_with_sqlite(population: Population) -> None:
    for record, truths in zip(population.records, population.truths, strict=True):
        subscription, params = statement(record), record.standing.params
        for n, (event, truth) in enumerate(zip(population.events, truths, strict=True)):
            ours = subscription.matches(event, params)
            assert ours is (truth is True), population.disagreement(record, n, ours, truth)


def test_truth_agrees_with_sqlite_on_false_and_unknown_too(population: Population) -> None:
    for record, truths in zip(population.records, population.truths, strict=True):
        subscription, standing = statement(record), record.standing
        for n, (event, truth) in enumerate(zip(population.events, truths, strict=True)):
            ours = subscription.truth(standing.scope(event, {}))
            agreed = isinstance(ours, Unknown) if truth is None else ours is truth
            assert agreed, population.disagreement(record, n, ours, truth)


def test_the_filters_of_a_condition_agree_with_sqlite(population: Population) -> None:
    for record, truths in zip(population.records, population.truths, strict=True):
        filters = statement(record).filters(record.standing.params)
        for n, (event, truth) in enumerate(zip(population.events, truths, strict=True)):
            scope = record.standing.scope(event, {})
            ours = any(one.matches(scope) for one in filters)
            assert ours is (truth is True), population.disagreement(record, n, ours, truth)


@each_matcher
def test_a_matcher_agrees_with_sqlite(population: Population, make: Callable[[], Matcher]) -> None:
    made = Lazy(make())
    for record in population.records:
        made.add(record.id, record.standing)
    for n, event in enumerate(population.events):
        ours, theirs = made.match(event, {}), population.told(n)
        assert ours == theirs, f"seed {SEED}: {event}: {sorted({*ours} ^ {*theirs}, key=int)}"


def test_there_are_enough_pairs_of_each_answer(population: Population) -> None:
    counts = Counter(truth for truths in population.truths for truth in truths)
    total = counts.total()
    assert total == FILTERS * EVENTS
    shares = {answer: counts[answer] / total for answer in (True, False, None)}
    print(f"seed {SEED}: {shares}")
    assert min(shares.values()) >= SHARE_MIN, shares


def test_every_random_subscription_survives_a_file(population: Population) -> None:
    for record in population.records:
        assert record_from(record_to(record), "") == record, f"seed {SEED}"


def test_one_seed_gives_the_same_subscriptions_and_events_again() -> None:
    assert pairs(SEED, 20, 20) == pairs(SEED, 20, 20)


def test_the_engine_tells_what_sqlite_finds_true(population: Population) -> None:
    engine = Engine(clock=ManualClock())
    handles = {
        one.id: engine.subscribe(one.standing.statement, one.standing.params)
        for one in population.records
    }
    for n, event in enumerate(population.events):
        engine.publish(event)
        assert [id for id, handle in handles.items() if handle.pending()] == population.told(n)


@pytest.mark.spark
def test_spark_finds_what_sqlite_finds_true(population: Population, spark) -> None:
    from driftline.spark.match import mark
    from driftline.spark.subscriptions import pack

    texts = [json.dumps(event_to(event)) for event in population.events]
    rows = spark.createDataFrame([(text,) for text in texts], "value string")
    found = rows.transform(mark(pack(population.records))).collect()
    told = {row.value: row.subscriptions or [] for row in found}
    assert [told[text] for text in texts] == [population.told(n) for n in range(len(texts))]
