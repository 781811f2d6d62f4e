"""Is exactly everybody told whose value has moved far enough? [VALUE]"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from math import nan

import numpy as np
import pytest

from driftline.model.subscription import Measure
from driftline.stateful.value_based.combined import Combined
from driftline.stateful.value_based.end_points import EndPoints
from driftline.stateful.value_based.packed import Packed
from driftline.stateful.value_based.reference import Reference
from driftline.stateful.value_based.rule import Rule
from tests.stateful.value_kinds import KINDS, OURS, Walk

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


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_40_000_steps(name: str, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(80):
        walk = Walk(KINDS[name], draw, draw.choice((4, 30, 120)))
        for _ in range(500):
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


def run_batches(name: str, seed: int, events: int) -> None:
    draw, kind, done = np.random.default_rng(seed), KINDS[name], 0
    while done < events:
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
            new = new[: draw.integers(0, len(new) // draw.choice((1, 4)) + 1)]
            columns.radii[new] = draw.choice(radii, len(new))
            columns.centres[new] = structure.insert_many(new, columns.radii[new])
            assert (columns.centres[new] == columns.value).all()
            # Often nobody goes or changes: then much of what was told is not yet written down.
            gone = columns.held()[draw.random(len(columns.held())) < draw.choice((0, 0, 0.1, 0.9))]
            structure.delete_many(gone)
            columns.radii[gone] = nan
            values = random_values(draw, rule, columns.value, radii, ticks)
            check_batch(structure, columns, values)
            if kind.radii is None and draw.random() < 0.3:
                changed = columns.held()[draw.random(len(columns.held())) < 0.2]
                columns.radii[changed] = draw.choice(radii, len(changed))
                overdue = rule.tells_many(
                    columns.centres[changed], columns.radii[changed], columns.value
                )
                columns.centres[changed[overdue]] = columns.value
                assert (structure.change_many(changed, columns.radii[changed]) == overdue).all()
            done += len(values)
        structure._check()
        assert len(structure) == len(columns.held())


@pytest.mark.parametrize("name", OURS)
def test_40_000_events_in_batches(name: str, seed: int) -> None:
    """And far more who come, go and change their radii between them."""
    run_batches(name, seed, 40_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_80_000_events_in_batches(name: str, seed: int) -> None:
    run_batches(name, seed, 80_000)


def test_radii_that_change_begin_circles_of_their_own(seed: int) -> None:
    """Centres that are near the value, but not near each other, are in no one circle."""
    draw, rings = random.Random(seed), 0
    for _ in range(20):
        combined, reference = Combined(0.0), Reference(0.0)
        for id in range(30):
            radius = draw.choice((5, 9, 20, 40))
            assert combined.insert(id, radius) == reference.insert(id, radius)
        for _ in range(150):
            value = reference.value + draw.gauss(0, 4)
            assert sorted(combined.tell(value)) == sorted(reference.tell(value))
            id, radius = draw.randrange(30), draw.choice((5, 9, 20, 40))
            assert combined.change(id, radius) == reference.change(id, radius)
        combined._check()
        rings = max(rings, *(combined.address(id).ring for id in range(30)))
    assert rings > 0


def test_the_same_without_the_compiler() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", __file__, "-k", "exactly and (combined or classes)"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


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


@pytest.mark.parametrize("make", [EndPoints, Combined])
def test_blocks_come_and_go_while_much_is_not_written_down(make: type[Packed]) -> None:
    """All were told at once, or those with large radii: that is noted far above them."""
    structure, columns = make(0.0), Columns(0.0, Rule(), 4000)
    columns.radii[:2000] = np.arange(2000) * 10 + 10.0
    columns.centres[:2000] = structure.insert_many(np.arange(2000), columns.radii[:2000])
    for at, value in enumerate((1e6, 1e6 + 9000, 0.0, -15_000.0)):
        check_batch(structure, columns, np.array([value]))
        new = np.arange(2000 + at * 200, 2200 + at * 200)
        columns.radii[new] = 15 + np.arange(200) / 100 + at
        columns.centres[new] = structure.insert_many(new, columns.radii[new])
        check_batch(structure, columns, np.array([value + 12, value - 300, value + 40_000]))
        gone = np.arange(at * 150, at * 150 + 150)
        structure.delete_many(gone)
        columns.radii[gone] = nan
        check_batch(structure, columns, np.array([value + 700, value - 2000, value]))
    structure._check()


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


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if not kind.exact])
def test_a_radius_that_a_float_cannot_tell(name: str) -> None:
    """Nobody is told the same value again, and everybody of the next one."""
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
