"""What is dumped, loaded, labelled and refused, where many wait for a value to move? [VALUE]"""

from __future__ import annotations

import random
from math import inf, nan

import numpy as np
import pyarrow as pa
import pytest

from driftline.errors import InvalidValue
from driftline.model.subscription import Measure
from driftline.stateful.value_based.bw_tree import BWTree
from driftline.stateful.value_based.classes import Classes
from driftline.stateful.value_based.combined import Combined
from driftline.stateful.value_based.end_points import EndPoints
from driftline.stateful.value_based.reference import Reference
from driftline.stateful.value_based.rule import Rule
from tests.stateful.value_kinds import KINDS, OURS, Walk

# Labels


def test_a_weight_balanced_tree_spreads_its_labels() -> None:
    """The same for the paper's tree: each comes just below the last one."""
    tree, classes = BWTree(0.0), Classes(0.0)
    for id in range(500):
        for structure in (tree, classes):
            structure.event(-id / 1000)
            structure.insert(id, 100)
    assert tree._circle.relabelled > 0
    tree._check()
    for value in (99.7, -30.0, 75.0, -41.5):
        assert sorted(tree.tell(value)) == sorted(classes.tell(value))


def test_a_value_that_goes_on_and_on_uses_no_gap_up() -> None:
    for way in (1, -1):
        ring = Classes(0.0)
        for id in range(3000):
            ring.event(way * id / 100)
            ring.insert(id, 1000)
        assert ring.take_shifts() == []
        ring._check()


def test_who_is_told_as_another_shares_its_label() -> None:
    ring = Classes(10.0)
    for id in range(3):
        ring.insert(id, 5)
    ring.event(12)
    ring.insert(3, 5)
    labels = [ring.address(id).label for id in range(4)]
    assert labels[0] == labels[1] == labels[2] != labels[3]


# Tables


@pytest.mark.parametrize("name", KINDS)
def test_what_is_dumped_is_loaded(name: str, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(10):
        walk = Walk(KINDS[name], draw)
        for _ in range(150):
            walk.step()
        table = walk.fast.dump()
        again = type(walk.fast).load(table)
        again._check()
        assert again.dump() == table
        assert again.dump().schema.metadata == table.schema.metadata
        walk.fast = again
        for _ in range(50):
            walk.step()
        walk.check()


@pytest.mark.parametrize("name", KINDS)
def test_any_dump_is_loaded_by_the_reference_and_back(name: str, seed: int) -> None:
    """Without rings and labels, which are given anew."""
    draw = random.Random(seed)
    for _ in range(10):
        walk = Walk(KINDS[name], draw)
        for _ in range(150):
            walk.step()
        walk.slow = Reference.load(walk.fast.dump())
        walk.fast = type(walk.fast).load(walk.slow.dump())
        for _ in range(50):
            walk.step()
        walk.check()


def table_of(value: float, rows: list[dict], rule: Rule = Rule()) -> pa.Table:  # noqa: B008
    empty = Reference(value, rule).dump().schema
    return pa.Table.from_pylist(rows, empty)


def row(id: int, radius: float, centre: float, ring: int | None = None, label: int | None = None):
    return {"id": id, "radius": radius, "centre": centre, "ring": ring, "label": label}


@pytest.mark.parametrize(
    "rows",
    [
        [row(1, 5, 90.0)],
        [row(1, 5, 95.0)],
        [row(1, 5, 99.0), row(1, 6, 99.0)],
        [row(1, 0, 100.0)],
        [row(1, -3, 100.0)],
        [row(1, nan, 100.0)],
        [row(1, inf, 100.0)],
        [row(1, 5, nan)],
        [row(-1, 5, 100.0)],
        [{"id": 1, "radius": None, "centre": 100.0, "ring": None, "label": None}],
    ],
)
@pytest.mark.parametrize("name", KINDS)
def test_nobody_in_a_table_may_be_overdue_or_worse(name: str, rows: list[dict]) -> None:
    with pytest.raises(InvalidValue):
        type(KINDS[name].make(1.0)).load(table_of(100.0, rows))


@pytest.mark.parametrize(
    "rows",
    [
        # Up, down and up again, going round.
        [row(1, 9, 98, 0, 10), row(2, 9, 102, 0, 20), row(3, 9, 97, 0, 30), row(4, 9, 99, 0, 40)],
        # Farther apart than a radius.
        [row(1, 9, 92, 0, 10), row(2, 9, 108, 0, 20)],
        # One label, two centres.
        [row(1, 9, 98, 0, 10), row(2, 9, 102, 0, 10)],
    ],
)
def test_a_circle_out_of_order_is_refused(rows: list[dict]) -> None:
    for make in (Classes, Combined):
        with pytest.raises(InvalidValue, match="circle"):
            make.load(table_of(100.0, rows))
    without = [{**one, "ring": None, "label": None} for one in rows]
    assert len(Combined.load(table_of(100.0, without))) == len(rows)


# What is refused

NO_RADIUS = [0, -1, 0.0, -0.0, nan, inf, -inf, 2**53 + 1, "7", None, True]
NO_VALUE = [nan, inf, -inf, 2**53 + 1, "7", None, True, b"7"]


@pytest.mark.parametrize("name", KINDS)
def test_what_may_not_be_is_refused_and_nothing_changes(name: str) -> None:
    kind = KINDS[name]
    structure = kind.make(100.0)
    structure.insert(1, 5)
    structure.event(103)
    before = structure.dump()
    for radius in NO_RADIUS:
        with pytest.raises(InvalidValue):
            structure.insert(2, radius)
        with pytest.raises(InvalidValue):
            structure.change(1, radius)
    for value in NO_VALUE:
        with pytest.raises(InvalidValue):
            structure.event(value)
        with pytest.raises(InvalidValue):
            structure.tell(value)
        with pytest.raises(InvalidValue):
            kind.make(value)
    for id in (-1, 2**31, 1.0, "1", True, None, 1):
        with pytest.raises(InvalidValue):
            structure.insert(id, 5)
    for id in (-1, 2, 2**31, None):
        with pytest.raises(InvalidValue):
            structure.delete(id)
        with pytest.raises(InvalidValue):
            structure.change(id, 5)
    for centre in (95, 108, 200.0, nan, inf, "7"):
        with pytest.raises(InvalidValue):
            structure.insert(2, 5, centre)
    assert structure.dump() == before


def test_a_factor_is_above_1_and_of_what_is_above_0() -> None:
    for make in (Reference, EndPoints, Combined, Classes):
        structure = make(10.0, Rule(Measure.FACTOR))
        for radius in (1, 0.5, 0, -2):
            with pytest.raises(InvalidValue):
                structure.insert(1, radius)
        for value in (0, -1):
            with pytest.raises(InvalidValue):
                structure.event(value)


@pytest.mark.parametrize("name", OURS)
def test_a_batch_is_refused_as_a_whole(name: str) -> None:
    structure = KINDS[name].make(10.0)
    structure.insert(5, 3)
    for ids, radii, centres in (
        ([1, 2], [3.0, 0.0], None),
        ([1, 2], [3.0, nan], None),
        ([1, 2], [3.0], None),
        ([1, 1], [3.0, 3.0], None),
        ([1, 5], [3.0, 3.0], None),
        ([1, -2], [3.0, 3.0], None),
        ([1, 2], [3.0, 3.0], [10.0, 13.0]),
        ([1, 2], [3.0, 3.0], [10.0, nan]),
        ([1, 2], [3.0, 3.0], [10.0]),
        (["1", "2"], [3.0, 3.0], None),
    ):
        with pytest.raises(InvalidValue):
            structure.insert_many(np.array(ids), np.array(radii), centres)
    for ids in ([5, 6], [5, 5], [-1], [1.5]):
        with pytest.raises(InvalidValue):
            structure.delete_many(np.array(ids))
    for values in ([11.0, nan], [inf], ["1"], [[1.0]]):
        with pytest.raises(InvalidValue):
            structure.tell_many(np.array(values))
    assert len(structure) == 1
    assert structure.value == 10


def test_one_radius_is_one_radius() -> None:
    ring = Classes(10.0)
    ring.insert(1, 3)
    for refused in (lambda: ring.insert(2, 4), lambda: ring.insert_many([2, 3], [3.0, 4.0])):
        with pytest.raises(InvalidValue, match="radius"):
            refused()
    with pytest.raises(InvalidValue, match="circle"):
        Classes(10.0, Rule(strict=True))
    assert ring.radius == 3
    ring.delete(1)
    assert ring.insert(2, 4) == 10
