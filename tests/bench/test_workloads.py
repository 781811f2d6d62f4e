"""The workloads of the matching benchmark are what their docstrings promise."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pytest

from driftline.bench.peers.scan import NumPy
from driftline.model.constraint import Operator
from driftline.model.event import Event
from driftline.model.scope import Scope
from driftline.workload.draws import GRID
from driftline.workload.matching import WORKLOADS

COUNT = 20_000
EVENTS = 500

every_workload = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=list(WORKLOADS))


@every_workload
def test_every_number_occurs_once_and_a_seed_gives_the_same_again(workload):
    groups, again = workload.groups(3_000), workload.groups(3_000)
    numbers = np.concatenate([group.numbers for group in groups])
    assert np.array_equal(np.sort(numbers), np.arange(3_000))
    for one, other in zip(groups, again, strict=True):
        assert one.alternatives == other.alternatives
        assert all(
            np.array_equal(one.operands[name], other.operands[name]) for name in one.operands
        )
    assert workload.events(50).equals(workload.events(50))


@every_workload
def test_about_as_many_match_as_promised(workload):
    scan = NumPy(workload.groups(COUNT))
    scan.take(workload.events(EVENTS))
    (ask,) = scan.formulations().values()
    share = len(ask().events) / EVENTS / COUNT
    assert share == pytest.approx(workload.matches_share, rel=0.15)


@every_workload
def test_a_prepared_statement_with_its_bounds_is_the_filter_by_itself(workload):
    events = [Event(workload.type, row) for row in workload.events(300).to_pylist()]
    for group in workload.groups(400)[:12]:
        row_of = {int(number): row for row, number in enumerate(group.numbers)}
        for prepared in list(group.prepared())[:12]:
            number = int(prepared.numbers[0])
            bounds = {
                name: column[0].item() if isinstance(column, np.ndarray) else column[0].as_py()
                for name, column in prepared.bounds.items()
            }
            own = group.bound(row_of[number])
            for event in events:
                there = any(one.matches(Scope(event, bounds)) for one in prepared.filters)
                assert there == any(one.matches(Scope(event)) for one in own)


@every_workload
def test_the_prepared_statements_of_a_group_hold_each_of_its_rows_once(workload):
    for group in workload.groups(2_000)[:20]:
        numbers = np.concatenate([prepared.numbers for prepared in group.prepared()])
        assert np.array_equal(np.sort(numbers), np.sort(group.numbers))


def test_w1_has_three_different_attributes_a_tenth_each_and_popular_ones_first():
    asked: dict[str, int] = {}
    for group in WORKLOADS["W1"].groups(COUNT):
        attributes = {test.attribute for test in group.alternatives[0]}
        assert len(attributes) == 3
        for name in attributes:
            asked[name] = asked.get(name, 0) + len(group.numbers)
        for at in range(3):
            width = group.operands[f"hi{at}"] - group.operands[f"lo{at}"] + 1
            assert set(width.tolist()) == {GRID // 10}
    assert asked["a0"] > asked["a3"] > asked["a15"]


def test_w3_asks_a_fifth_for_a_prefix_of_one_to_three_letters():
    plain, prefixed = WORKLOADS["W3"].groups(COUNT)
    assert len(prefixed.numbers) / COUNT == pytest.approx(0.2, abs=0.02)
    assert not plain.patterns
    assert set(pc.utf8_length(prefixed.operands["prefix"]).to_pylist()) == {1, 2, 3}


def test_w4_has_every_awkward_operator_and_events_that_lack_half():
    groups = WORKLOADS["W4"].groups(COUNT)
    operators = {
        test.operator for group in groups for tests in group.alternatives for test in tests
    }
    assert operators >= {
        Operator.EQ,
        Operator.NE,
        Operator.IN,
        Operator.PREFIX,
        Operator.SUFFIX,
        Operator.SUBSTRING,
        Operator.EXISTS,
        Operator.ABSENT,
    }
    assert any(len(group.alternatives) > 1 for group in groups)
    events = WORKLOADS["W4"].events(2_000)
    for name in ("name", "venue", "volume"):
        assert events[name].null_count / 2_000 == pytest.approx(0.5, abs=0.05)
    assert not events["symbol"].null_count


def test_w5_events_carry_two_ranges_on_the_grid():
    events = WORKLOADS["W5"].events(2_000)
    for low, high in (("A", "B"), ("C", "D")):
        assert pc.all(pc.less(events[low], events[high])).as_py()
        assert pc.min(events[low]).as_py() >= 0
        assert pc.max(events[high]).as_py() < GRID
