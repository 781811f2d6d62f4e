"""The invented subscriptions are the same on every machine, and of a sensible kind."""

from __future__ import annotations

import json
from statistics import mean, median

from driftline.language.records import record_from, record_to
from driftline.matching.choice import make_matcher
from driftline.matching.lazy import Lazy
from driftline.workload.prices import quotes
from driftline.workload.subscriptions import subscriptions


def _written(seed: int, count: int = 500) -> str:
    return "\n".join(
        json.dumps(record_to(one)) for one in subscriptions(quotes(), count=count, seed=seed)
    )


def test_a_seed_gives_the_same_subscriptions_always():
    assert _written(1) == _written(1)
    assert _written(1) != _written(2)
    # A change here is a change of every measurement that names this workload.
    first = subscriptions(quotes(), count=3, seed=1)
    assert [(str(one.standing.statement), one.party) for one in first] == [
        ("SELECT * FROM quote WHERE symbol = 'IBM' AND price BETWEEN 89.5 AND 92.0", "party-1558"),
        ("SELECT * FROM quote WHERE symbol = 'GOOG' AND price < 100.2", "party-0058"),
        (
            "SELECT * FROM quote WHERE symbol = 'FB' AND price < 19.0 "
            "OR symbol = 'EBAY' AND price > 741.5",
            "party-0209",
        ),
    ]


def test_fewer_are_the_beginning_of_more():
    assert _written(1, 500).startswith(_written(1, 100))


def test_every_one_can_be_written_and_read_back():
    for record in subscriptions(quotes(), count=500):
        assert record_from(record_to(record), "") == record


def test_ids_are_unique_and_every_kind_occurs():
    found = subscriptions(quotes())
    assert len({record.id for record in found}) == 10_000
    texts = [str(record.standing.statement) for record in found]
    for part in ("<", ">", "BETWEEN", " IN ", "LIKE", " OR ", ":limit", "elapsed()", "hour(now())"):
        assert sum(part in text for text in texts) >= 70, part
    assert all("FROM quote" in text for text in texts)


def test_a_quote_satisfies_some_tens_of_ten_thousand():
    events = quotes()
    matcher = Lazy(make_matcher("auto"))
    for record in subscriptions(events):
        matcher.add(record.id, record.standing)
    counts = [len(matcher.match(event, {})) for event in events[::61]]
    assert 10 <= median(counts) <= 100
    assert 20 <= mean(counts) <= 200
