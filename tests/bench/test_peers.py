"""Whatever the matching benchmark is compared with gives the definition's answer."""

from __future__ import annotations

import pytest

from driftline.bench import peers
from driftline.bench.peers.shape import joins_of, stacked
from driftline.model.event import Event
from driftline.model.scope import Scope
from driftline.workload.matching import WORKLOADS

COUNT = 1_500
EVENTS = 200


@pytest.fixture(params=list(WORKLOADS), scope="module")
def question(request):
    """Filters, events, and the pairs that the definition finds."""
    workload = WORKLOADS[request.param]
    groups = workload.groups(COUNT)
    batch = workload.events(EVENTS)
    scopes = [Scope(Event(workload.type, row)) for row in batch.to_pylist()]
    pairs = set()
    for group in groups:
        for row, number in enumerate(group.numbers.tolist()):
            filters = group.bound(row)
            pairs |= {
                (at, number)
                for at, scope in enumerate(scopes)
                if any(one.matches(scope) for one in filters)
            }
    return groups, batch, pairs


@pytest.mark.parametrize("name", peers.PEERS)
def test_every_formulation_finds_the_pairs_of_the_definition_once(question, name):
    groups, events, pairs = question
    engine = peers.peer(name, groups)
    if engine is None:
        pytest.skip(f"{name} is not installed")
    engine.take(events)
    for formulation, ask in engine.formulations().items():
        found = ask()
        assert len(found.events) == len(pairs), formulation
        assert set(zip(found.events.tolist(), found.numbers.tolist(), strict=True)) == pairs


def test_joins_of_one_form_are_stacked_and_lose_nothing():
    joins = joins_of(WORKLOADS["W1"].groups(COUNT))
    (stack,) = stacked(joins)
    assert len(stack.shapes) == len(joins)
    assert sorted(stack.numbers.tolist()) == list(range(COUNT))
    assert stack.order == ("shape", "lo0")


def test_an_engine_that_is_not_installed_is_none(monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    assert peers.peer("duckdb", []) is None
