"""Is exactly everybody told whose value has moved far enough? [VALUE]

Few radii and steps that are often a radius, so that ties are everywhere: values that are an end
point, two that were told the same, one that is told what another was told before.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import inf, nan

import numpy as np
import pyarrow as pa
import pytest

from driftline.errors import InvalidValue
from driftline.model.subscription import Measure
from driftline.stateful.value_based.b2_tree import B2Tree
from driftline.stateful.value_based.ba_tree import BATree
from driftline.stateful.value_based.btree_c import BTreeC
from driftline.stateful.value_based.btree_lr import BTreeLR
from driftline.stateful.value_based.bw_tree import BWTree
from driftline.stateful.value_based.classes import Classes
from driftline.stateful.value_based.combined import Combined
from driftline.stateful.value_based.end_points import EndPoints
from driftline.stateful.value_based.packed import Packed
from driftline.stateful.value_based.reference import Reference
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.scan_r import ScanR
from driftline.stateful.value_based.structure import Structure

EVERY_RULE = tuple(Rule(measure, strict) for measure in Measure for strict in (False, True))
MONOTONE = tuple(rule for rule in EVERY_RULE if rule.measure is not Measure.PERCENT)
CIRCULAR = tuple(rule for rule in EVERY_RULE if rule.circular)


@dataclass(frozen=True)
class Kind:
    """A structure, and what it is for."""

    make: Callable[..., Structure]
    rules: tuple[Rule, ...] = EVERY_RULE
    radii: int | None = None
    """How many there may be."""
    shared: bool = False
    """Must those with one radius have one centre?"""
    exact: bool = False
    """Must sums be exact, as those of ticks are?"""
    names: bool = False
    """Does it say who is told by naming them, and not in spans?"""
    circles: bool = False
    """Is a radius refused that would part a circle?"""


KINDS = {
    "reference": Kind(Reference),
    "end points": Kind(EndPoints),
    "combined": Kind(Combined),
    "classes": Kind(Classes, CIRCULAR, radii=1),
    "B-tree(lr)": Kind(BTreeLR, names=True),
    "Scan(r)": Kind(ScanR),
    "BA-tree": Kind(BATree, (Rule(),), shared=True, exact=True),
    "narrow BA-tree": Kind(partial(BATree, fanout=3), (Rule(),), shared=True, exact=True),
    "B-tree(c)": Kind(BTreeC, MONOTONE, radii=1, names=True),
    "BW-tree": Kind(BWTree, CIRCULAR, radii=1),
    "B2-tree": Kind(B2Tree, (Rule(),), exact=True, circles=True),
    "narrow B2-tree": Kind(partial(B2Tree, fanout=3), (Rule(),), exact=True, circles=True),
}
OURS = ["end points", "combined", "classes"]


@dataclass
class Walk:
    """Random steps for a structure and for the reference, which must say the same."""

    kind: Kind
    draw: random.Random
    ids: int = 60

    def __post_init__(self) -> None:
        draw = self.draw
        self.rule = draw.choice(self.kind.rules)
        self.ticks = self.kind.exact or draw.random() < 0.5
        factor = self.rule.measure is Measure.FACTOR
        count = min(self.kind.radii or 99, draw.choice((1, 3, 40)))
        self.radii = [1 + draw.random() / 2 if factor else self._radius() for _ in range(count)]
        self.stride = draw.choice((1, 6, 30))
        start = self.rule.admit_value(100)
        self.fast, self.slow = self.kind.make(start, self.rule), Reference(start, self.rule)

    def _radius(self) -> float:
        if self.ticks or self.draw.random() < 0.5:
            return self.draw.randrange(1, 40)
        return self.draw.random() * 40 + 0.001

    def _value(self) -> float:
        draw, value = self.draw, self.slow.value
        if draw.random() < 0.2:
            value += draw.choice((-1, 1)) * draw.choice(self.radii)
        else:
            value += draw.gauss(0, self.stride)
        value = round(value) if self.ticks else value
        return max(value, 1) if self.rule.measure is Measure.FACTOR else value

    def step(self) -> None:
        draw, held = self.draw, [id for id in range(self.ids) if id in self.slow]
        what = draw.choices(("event", "insert", "delete", "change"), (9, 6, 3, 2))[0]
        if what == "event":
            self.event(self._value(), held)
        elif what == "insert" and len(held) < self.ids:
            id = draw.choice([id for id in range(self.ids) if id not in self.slow])
            radius, shared = draw.choice(self.radii), self.kind.shared or draw.random() < 0.3
            told = self.fast.insert(id, radius, shared=shared)
            assert told == self.slow.insert(id, radius, shared=shared)
        elif what == "delete" and held:
            id = draw.choice(held)
            self.fast.delete(id)
            self.slow.delete(id)
        elif what == "change" and held and not self.kind.shared and self.kind.radii is None:
            id, radius = draw.choice(held), draw.choice(self.radii)
            self.change(id, radius)
        assert len(self.fast) == len(self.slow)
        assert self.fast.value == self.slow.value

    def change(self, id: int, radius: float) -> None:
        try:
            told = self.fast.change(id, radius)
        except InvalidValue:
            assert self.kind.circles
        else:
            assert told == self.slow.change(id, radius)

    def event(self, value: float, held: list[int]) -> None:
        wanted = sorted(self.slow.tell(value))
        if self.draw.random() < 0.5:
            assert sorted(self.fast.tell(value)) == wanted, value
            return
        spans = self.fast.event(value)
        addresses = {id: self.fast.address(id) for id in held}
        told = [id for id in held for span in spans if span.has(addresses[id])]
        assert sorted(told) == wanted, (value, spans)
        assert self.kind.names or self._gaps(spans, addresses, set(told)), spans

    def _gaps(self, spans: list, addresses: dict, told: set[int]) -> bool:
        """Is there somebody who is not told between any two spans? Else one would do."""
        whole = [span for span in spans if span.arc is None]
        return all(
            any(
                one.high <= address.radius <= two.low and id not in told
                for id, address in addresses.items()
            )
            for one, two in pairwise(whole)
        )

    def check(self) -> None:
        self.fast._check()
        self.slow._check()
        for id in range(self.ids):
            assert (id in self.fast) == (id in self.slow)
            if id in self.slow:
                assert self.fast.centre(id) == self.slow.centre(id)


# One structure and the definition


@pytest.mark.parametrize("name", KINDS)
def test_exactly_those_concerned_are_told(name: str, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(30):
        walk = Walk(KINDS[name], draw, draw.choice((4, 30, 120)))
        for _ in range(10):
            for _ in range(20):
                walk.step()
            walk.check()


# Ours, many times


class Columns:
    """The definition again, for many at once."""

    def __init__(self, value: float, rule: Rule, ids: int) -> None:
        self.rule, self.value = rule, value
        self.radii, self.centres = np.full(ids, nan), np.full(ids, nan)

    def held(self) -> np.ndarray:
        return np.flatnonzero(self.radii == self.radii)

    def tell(self, value: float) -> np.ndarray:
        self.value = value
        told = np.flatnonzero(self.rule.tells_many(self.centres, self.radii, value))
        self.centres[told] = value
        return told


def random_values(draw: np.random.Generator, rule: Rule, value: float, radii: np.ndarray, ticks):
    steps = draw.normal(0, draw.choice((0.5, 5, 40)), draw.integers(1, 200))
    ties = draw.random(len(steps)) < 0.2
    steps[ties] = draw.choice(radii, ties.sum()) * draw.choice((-1, 1), ties.sum())
    values = value + np.cumsum(steps)
    values = np.round(values) if ticks else values
    return np.maximum(values, 1) if rule.measure is Measure.FACTOR else values


def check_batch(structure: Packed, columns: Columns, values: np.ndarray) -> None:
    told = structure.tell_many(values)
    listed = structure.ids_of(told)
    for at, value in enumerate(values):
        assert (np.sort(listed.of(at)) == columns.tell(value)).all()


def run_batches(name: str, seed: int, steps: int) -> None:
    draw, kind, done = np.random.default_rng(seed), KINDS[name], 0
    while done < steps:
        rule = kind.rules[draw.integers(len(kind.rules))]
        ids, ticks = int(draw.choice((30, 500, 4000))), draw.random() < 0.5
        radii = draw.integers(1, 50, kind.radii or int(draw.choice((1, 5, 3000)))).astype(float)
        if not ticks:
            radii = radii + draw.random(len(radii))
        if rule.measure is Measure.FACTOR:
            radii = 1 + radii / 100
        structure, columns = kind.make(100.0, rule), Columns(100.0, rule, ids)
        for _ in range(12):
            new = draw.permutation(np.flatnonzero(columns.radii != columns.radii))
            new = new[: draw.integers(0, len(new) + 1)]
            columns.radii[new] = draw.choice(radii, len(new))
            columns.centres[new] = structure.insert_many(new, columns.radii[new])
            assert (columns.centres[new] == columns.value).all()
            gone = columns.held()[draw.random(len(columns.held())) < draw.choice((0.1, 0.9))]
            structure.delete_many(gone)
            columns.radii[gone] = nan
            values = random_values(draw, rule, columns.value, radii, ticks)
            check_batch(structure, columns, values)
            if kind.radii is None:
                changed = columns.held()[draw.random(len(columns.held())) < 0.2]
                columns.radii[changed] = draw.choice(radii, len(changed))
                overdue = rule.tells_many(
                    columns.centres[changed], columns.radii[changed], columns.value
                )
                columns.centres[changed[overdue]] = columns.value
                assert (structure.change_many(changed, columns.radii[changed]) == overdue).all()
            done += len(values) + len(new) + len(gone)
        structure._check()
        assert len(structure) == len(columns.held())


@pytest.mark.parametrize("name", OURS)
def test_60_000_steps_in_batches(name: str, seed: int) -> None:
    run_batches(name, seed, 60_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_5_000_000_steps_in_batches(name: str, seed: int) -> None:
    run_batches(name, seed, 5_000_000)


def test_the_same_without_the_compiler() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", __file__, "-k", "exactly and (combined or classes)"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


# Labels


def test_labels_stay_in_order_where_gaps_are_used_up() -> None:
    """Each comes between the two that came last: every gap is half of the one before."""
    ring = Classes(0.0)
    low, high = -40.0, 40.0
    ring.insert(0, 100, low)
    ring.insert(1, 100, high)
    for id in range(2, 1000):
        middle = (low + high) / 2
        ring.event(middle)
        ring.insert(id, 100)
        low, high = (middle, high) if id % 2 else (low, middle)
        if high - low < 1e-9:
            low, high = high, high + 1e-3
    moved = ring.take_relabelled()
    assert moved
    assert ring.take_relabelled() == []
    ring._check()
    again = Classes.load(ring.dump())
    for value in (59.0, -30.0, 75.0, -41.5):
        assert sorted(again.tell(value)) == sorted(ring.tell(value))
    again._check()


def test_a_value_that_goes_on_and_on_uses_no_gap_up() -> None:
    for way in (1, -1):
        ring = Classes(0.0)
        for id in range(3000):
            ring.event(way * id / 100)
            ring.insert(id, 1000)
        assert ring.take_relabelled() == []
        ring._check()


def test_who_is_told_as_another_shares_its_label() -> None:
    ring = Classes(10.0)
    for id in range(3):
        ring.insert(id, 5)
    ring.event(12)
    ring.insert(3, 5)
    labels = [ring.address(id).label for id in range(4)]
    assert labels[0] == labels[1] == labels[2] != labels[3]


# What is large, and what is nearly nothing


def test_more_spans_than_there_is_room_for() -> None:
    """Every other radius is told: each is a span of its own."""
    count = 3000
    for make in (EndPoints, Combined):
        structure = make(0.0)
        radii = np.arange(count) + 10_000.0
        centres = np.where(np.arange(count) % 2, 5000.0, 0.0)
        structure.insert_many(np.arange(count), radii, centres)
        told = structure.tell_many([9000.0, 14_000.0, 14_000.0, -3000.0])
        assert np.diff(told.ends).tolist() == [0, count // 2, 0, 0] or len(told) > count // 2
        structure._check()
        reference = Reference.load(structure.dump())
        for value in (9000.0, 25_000.0, -9000.0):
            assert sorted(structure.tell(value)) == sorted(reference.tell(value))


@pytest.mark.parametrize("name", KINDS)
def test_nobody_and_somebody(name: str) -> None:
    structure = KINDS[name].make(1.0)
    assert structure.event(5) == []
    assert structure.tell(7) == []
    assert structure.insert(3, 2) == 7
    assert structure.tell(7) == []
    assert structure.tell(8.5) == []
    assert structure.tell(9) == [3]
    assert structure.tell(7) == [3]
    structure.delete(3)
    assert structure.tell(100) == []
    assert len(structure) == 0
    structure._check()


@pytest.mark.parametrize("name", KINDS)
def test_what_was_large_may_become_empty_and_grow_again(name: str) -> None:
    kind = KINDS[name]
    structure = kind.make(0.0)
    for _ in range(2):
        for id in range(300):
            structure.insert(id, 7 if kind.radii else 1 + id, shared=kind.shared)
        for id in range(300):
            structure.event(id / 10 if not kind.exact else id)
            structure.delete(id)
        structure._check()
        assert len(structure) == 0


@pytest.mark.parametrize("name", KINDS)
def test_a_radius_that_a_float_cannot_tell(name: str) -> None:
    """Nobody is told the same value again, and everybody of the next one."""
    if KINDS[name].exact:
        pytest.skip("sums are not exact")
    structure = KINDS[name].make(1.0)
    structure.insert(1, 0.5)
    assert structure.tell(2.0**60) == [1]
    assert structure.tell(2.0**60) == []
    assert structure.tell(2.0**60 + 256) == [1]
    assert structure.tell(2.0**60) == [1]


@pytest.mark.parametrize("name", ["reference", "combined", "classes", "end points", "BW-tree"])
@pytest.mark.parametrize("way", [1, -1])
def test_two_that_meet_by_a_rounded_bit(name: str, way: int) -> None:
    """1e-20 + 1 is 1: one is told of the value that the other was told before."""
    structure = KINDS[name].make(way * 1.0)
    structure.insert(1, 1)
    assert structure.tell(way * 1e-20) == []
    structure.insert(2, 1)
    assert structure.tell(way * 1.0) == [2]
    structure._check()
    structure.tell(way * 1.5)
    structure.insert(3, 1)
    assert sorted(structure.tell(way * 2.0)) == [1, 2]
    structure._check()


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
