"""Is everybody whose minimum changes told once, and nobody else? [DBNET]

Few values of x and y, so that ties are everywhere: several tuples at one x, the same y on both
sides, tuples that are equal. Ranges begin and end at every x, between them and nowhere.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from itertools import combinations_with_replacement
from math import inf, nan

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from driftline.errors import InvalidValue
from driftline.kernels.jit import COMPILED
from driftline.kernels.range_min import change_tuples
from driftline.stateful.range_min import marginals
from driftline.stateful.range_min.a2b_tree import A2BTree
from driftline.stateful.range_min.blocks import Blocks, Messages
from driftline.stateful.range_min.change import HIGHEST, LOWEST, Change
from driftline.stateful.range_min.maxima import Maxima
from driftline.stateful.range_min.reference import Reference, changed_minima, minimum_over
from driftline.stateful.range_min.structure import Point, Structure

KINDS = {
    "reference": Reference,
    "tree": A2BTree,
    "narrow tree": lambda: A2BTree(fanout=4),
    "blocks": Blocks,
}


def every_range(xs: int) -> list[tuple[float, float]]:
    ends = [-inf, *(half / 2 for half in range(-1, 2 * xs)), inf]
    return list(combinations_with_replacement(ends, 2))


def drawn(draw: random.Random, points: dict[int, Point], ids: int, xs: int, ys: int) -> tuple:
    """An id and its new point: often one that is there, moved in y alone, or nothing."""
    id = draw.randrange(ids)
    if id in points and draw.random() < 0.4:
        return id, (points[id][0], draw.randrange(ys))
    if draw.random() < 0.2:
        return id, None
    return id, (draw.randrange(xs), draw.randrange(ys))


def apply(points: dict[int, Point], id: int, new: Point | None) -> None:
    points.pop(id, None)
    if new is not None:
        points[id] = new


def assert_told(told: list[Change], wanted: dict, ranges: list, context: object) -> None:
    for one in ranges:
        hit = [change.minimum for change in told if change.affects(*one)]
        assert hit == ([wanted[one]] if one in wanted else []), (one, told, context)


# One structure and the definition


@pytest.mark.parametrize("kind", KINDS)
def test_exactly_those_affected_are_told(kind: str, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(12):
        ids, xs, ys = draw.choice((2, 8, 30)), draw.choice((1, 4, 7)), draw.choice((1, 3, 20))
        structure, points, ranges = KINDS[kind](), {}, every_range(xs)
        for _ in range(50):
            id, new = drawn(draw, points, ids, xs, ys)
            wanted = changed_minima(points, id, new, ranges)
            told = structure.change(id, new)
            assert_told(told, wanted, ranges, (points, id, new))
            apply(points, id, new)
            assert len(structure) == len(points)
        structure._check()
        for one in ranges:
            assert structure.minimum(*one) == minimum_over(points.values(), *one)


@pytest.mark.parametrize("kind", KINDS)
def test_maxima_are_minima_upside_down(kind: str, seed: int) -> None:
    draw = random.Random(seed)
    structure, points, ranges = Maxima(KINDS[kind]()), {}, every_range(5)
    for _ in range(100):
        id, new = drawn(draw, points, 12, 5, 6)
        flipped = {key: (x, -y) for key, (x, y) in points.items()}
        flipped_new = None if new is None else (new[0], -new[1])
        least = changed_minima(flipped, id, flipped_new, ranges)
        wanted = {one: None if now is None else -now for one, now in least.items()}
        assert_told(structure.change(id, new), wanted, ranges, (points, id, new))
        apply(points, id, new)
    structure._check()
    assert structure.maximum(-inf, inf) == max((y for _, y in points.values()), default=None)
    assert structure.dump().to_pylist() == [
        {"id": id, "x": x, "y": y} for id, (x, y) in sorted(points.items())
    ]
    again = Maxima.load(Blocks, structure.dump())
    assert again.maximum(1, 3) == structure.maximum(1, 3)


def test_the_rule_says_what_the_definitions_say(seed: int) -> None:
    """Mar, Hull and EMar, with updates told apart as good and bad: the same messages."""
    draw = random.Random(seed)
    table = Reference()
    for _ in range(3000):
        id, new = drawn(draw, table.points, 15, 8, 6)
        old = table.points.get(id)
        if old and new:
            new = old[0], new[1]
        others = [point for key, point in table.points.items() if key != id]
        told = table.change(id, new)
        if old or new:
            (x, _), was, now = new or old, old[1] if old else inf, new[1] if new else inf
            assert told == marginals.messages(others, x, was, now), (others, old, new)


def test_who_is_affected_contains_x_and_lies_within_mar(seed: int) -> None:
    """Theorem 1."""
    draw = random.Random(seed)
    ranges = every_range(6)
    for _ in range(200):
        points = {id: (draw.randrange(6), draw.randrange(5)) for id in range(draw.randrange(1, 12))}
        (x, old), new = points[0], draw.randrange(5)
        reach = marginals.mar([points[id] for id in points if id], x, min(old, new))
        within = {
            (low, high)
            for low, high in ranges
            if old != new and reach and low <= x <= high
            if reach[0] < max(low, LOWEST) and min(high, HIGHEST) < reach[1]
        }
        assert set(changed_minima(points, 0, (x, new), ranges)) == within


# The fast one, many times


def assert_batch(
    x: NDArray[np.float64], y: NDArray[np.float64], messages: Messages, xs: int
) -> None:
    """All ranges at once, after each of many changes, given the x and y of all ids."""
    least = np.stack([np.where(x == at, y, inf).min(axis=1) for at in range(xs)], axis=1)
    ranges = np.array(every_range(xs))
    inside = (ranges[:, :1] <= np.arange(xs)) & (np.arange(xs) <= ranges[:, 1:])
    minima = np.stack([least[:, row].min(axis=1, initial=inf) for row in inside], axis=1)
    before, after = minima[:-1], minima[1:]
    low, high = ranges.clip(LOWEST, HIGHEST).T
    _, inner_left, inner_right, outer_left, outer_right = messages.rows.T[..., None]
    hit = (outer_left < low) & (low <= inner_left) & (inner_right <= high) & (high < outer_right)
    message, at = np.nonzero(hit)
    change = np.repeat(np.arange(len(before)), np.diff(messages.ends))[message]
    times = np.zeros(before.shape, int)
    np.add.at(times, (change, at), 1)
    assert (times == (before != after)).all()
    assert (after[change, at] == messages.rows[message, 0]).all()


def random_batch(draw: np.random.Generator, x: NDArray, y: NDArray, size: int, xs: int, ys: int):
    """Changes, and the state before the first and after each."""
    ids = draw.integers(0, len(x), size)
    points = np.stack((draw.integers(0, xs, size), draw.integers(0, ys, size)), axis=1).astype(
        float
    )
    present = draw.random(size) > draw.choice((0.1, 0.3, 0.9))
    stays = draw.random(size) < 0.4
    all_x, all_y = np.repeat(x[None], size + 1, axis=0), np.repeat(y[None], size + 1, axis=0)
    for i, id in enumerate(ids):
        if stays[i] and y[id] < inf:
            points[i, 0], present[i] = x[id], True
        x[id], y[id] = points[i] if present[i] else (-1, inf)
        all_x[i + 1], all_y[i + 1] = x, y
    return ids, points, present, all_x, all_y


def run_batches(seed: int, changes: int, size: int = 1000) -> None:
    draw = np.random.default_rng(seed)
    done = 0
    while done < changes:
        count, xs, ys = (int(draw.choice(few)) for few in ((20, 150, 400), (1, 5, 8), (2, 6, 500)))
        blocks, x, y = Blocks(), np.full(count, -1.0), np.full(count, inf)
        for _ in range(5):
            ids, points, present, all_x, all_y = random_batch(draw, x, y, size, xs, ys)
            messages = blocks.change_many(ids, points, present)
            assert_batch(all_x, all_y, messages, xs)
            blocks._check()
            assert len(blocks) == np.count_nonzero(y < inf)
            done += size


def test_200_000_changes(seed: int) -> None:
    run_batches(seed, 200_000)


@pytest.mark.slow
def test_a_million_changes(seed: int) -> None:
    run_batches(seed, 1_000_000)


def test_the_same_without_the_compiler() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", __file__, "-k", "exactly and blocks"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_blocks_and_tree_say_the_same_of_a_large_table(seed: int) -> None:
    """Many blocks, which are split and packed; with ties, and with none."""
    draw = random.Random(seed)
    for ids, xs, ys in ((6000, 10**6, 10**6), (3000, 40, 1000), (3000, 900, 12)):
        blocks, tree, points = Blocks(), A2BTree(), {}
        for _ in range(12_000):
            id, new = drawn(draw, points, ids, xs, ys)
            assert blocks.change(id, new) == tree.change(id, new), (id, new)
            apply(points, id, new)
        blocks._check()
        for id in draw.sample(sorted(points), len(points) - 50):
            assert blocks.change(id, None) == tree.change(id, None), id
        blocks._check()
        tree._check()
        for low, high in ((0, xs), (xs / 3, xs / 2), (-inf, xs / 4), (xs / 2, inf)):
            assert blocks.minimum(low, high) == tree.minimum(low, high)


# What is large, and what is nearly nothing


def test_as_many_messages_as_there_are_steps() -> None:
    """A valley between stairs: whoever fills it exposes every step on both sides."""
    steps, blocks, tree = 1000, Blocks(), A2BTree()
    for structure in (blocks, tree):
        structure.change(0, (0, -1))
        for step in range(1, steps + 1):
            structure.change(2 * step, (step, 2 * (steps - step)))
            structure.change(2 * step + 1, (-step, 2 * (steps - step) + step % 2))
    told = blocks.change(0, None)
    assert len(told) == 2 * steps + 1
    assert told == tree.change(0, None)
    blocks._check()
    # In the middle of a batch, and more than there is room for.
    again = np.zeros(40, np.int64), np.zeros((40, 2)) - [0, 1], np.arange(40) % 2 == 0
    messages = blocks.change_many(*again)
    assert messages.of(0) == [Change(-1, 0, 0, -inf, inf)]
    assert all(messages.of(at) == told for at in range(1, 40, 2))
    blocks._check()


def test_a_tuple_may_go_far_and_expose_many() -> None:
    """Both kinds of message from one change, where the second does not fit at first."""
    blocks, reference = Blocks(), Reference()
    for structure in (blocks, reference):
        for step in range(200):
            structure.change(step, (step, 400 - step))
        structure.change(200, (-1, 0))
    assert blocks.change(200, (500, -1)) == reference.change(200, (500, -1))
    assert blocks.change(200, (-1, 0)) == reference.change(200, (-1, 0))
    blocks._check()


def test_all_at_one_x() -> None:
    blocks, tree = Blocks(), A2BTree()
    for id in range(3000):
        assert blocks.change(id, (5, id)) == tree.change(id, (5, id))
    assert blocks.change(9999, (4, 7)) == tree.change(9999, (4, 7)) == [Change(7, 4, 4, -inf, 5)]
    for id in range(2990):
        assert blocks.change(id, None) == tree.change(id, None)
        assert blocks.minimum(5, 5) == id + 1
    blocks._check()


def test_the_first_and_the_last_tuple() -> None:
    for make in KINDS.values():
        structure = make()
        assert structure.minimum(-inf, inf) is None
        assert structure.change(3, None) == []
        assert structure.change(3, (1, 2)) == [Change(2, 1, 1, -inf, inf)]
        assert structure.change(3, (1, 2)) == []
        assert structure.minimum(-inf, inf) == 2
        assert structure.minimum(2, 1) is None
        assert structure.change(3, None) == [Change(None, 1, 1, -inf, inf)]
        assert len(structure) == 0
        structure._check()


def test_what_was_large_may_become_empty_and_grow_again() -> None:
    for make in KINDS.values():
        structure = make()
        for _ in range(2):
            for id in range(300):
                structure.change(id, (id, id))
            for id in range(300):
                structure.change(id, None)
                structure._check()
            assert len(structure) == 0


def test_there_is_one_zero() -> None:
    for make in KINDS.values():
        structure = make()
        assert str(structure.change(1, (-0.0, -0.0))[0]) == str(Change(0.0, 0.0, 0.0, -inf, inf))
    messages = Blocks().change_many(np.array([1]), np.array([[-0.0, -0.0]]))
    assert str(messages.of(0)[0]) == str(Change(0.0, 0.0, 0.0, -inf, inf))
    upside_down = Maxima(Blocks())
    assert str(upside_down.change(1, (0, 0))[0]) == str(Change(0.0, 0.0, 0.0, -inf, inf))


@pytest.mark.parametrize("kind", [np.int64, np.int16, np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_batch_of_any_numbers_is_taken_as_floats(kind: type, order: str) -> None:
    """However they lie in memory: a kernel is compiled for one kind of array."""
    ids = np.arange(20, dtype=np.int32)[::10]
    points = np.array([[3, 7], [4, -7]], dtype=kind, order=order)
    blocks = Blocks()
    assert blocks.change_many(ids, points, np.ones(2, bool)).of(1) == [Change(-7, 4, 4, -inf, inf)]
    assert blocks.minimum(3, 3) == 7
    assert len(blocks.change_many(np.array([]), np.zeros((0, 2)))) == 0
    if COMPILED:
        assert len(change_tuples.signatures) == 1


def test_numbers_at_the_ends_of_what_floats_can_say() -> None:
    ends = [LOWEST, -5e-324, 0.0, 5e-324, HIGHEST]
    for make in KINDS.values():
        structure = make()
        points: dict[int, Point] = {}
        for id, (x, y) in enumerate((x, y) for x in ends for y in reversed(ends)):
            ranges = list(combinations_with_replacement(ends, 2))
            wanted = changed_minima(points, id, (x, y), ranges)
            assert_told(structure.change(id, (x, y)), wanted, ranges, (x, y))
            points[id] = (x, y)
        for id in list(points):
            wanted = changed_minima(points, id, None, ranges)
            assert_told(structure.change(id, None), wanted, ranges, id)
            del points[id]


# Tables, and what is refused


@pytest.mark.parametrize("kind", [Reference, A2BTree, Blocks])
def test_what_is_dumped_is_loaded(kind: type[Structure], seed: int) -> None:
    draw = random.Random(seed)
    one, points = kind(), {}
    for _ in range(500):
        id, new = drawn(draw, points, 300, 50, 50)
        one.change(id, new)
        apply(points, id, new)
    table = one.dump()
    assert table.to_pylist() == [
        {"id": id, "x": x, "y": y} for id, (x, y) in sorted(points.items())
    ]
    for other in (Reference, A2BTree, Blocks):
        again = other.load(table)
        again._check()
        assert again.dump() == table
        id, new = drawn(draw, points, 300, 50, 50)
        assert again.change(id, new) == kind.load(table).change(id, new)
    assert len(kind.load(kind().dump())) == 0


REFUSED = [nan, inf, -inf, 2**53 + 1, -(2**53) - 1, "7", None, True, 1j, b"7"]


@pytest.mark.parametrize("value", REFUSED, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_number_is_refused_and_nothing_changes(kind: str, value: object) -> None:
    structure = KINDS[kind]()
    structure.change(1, (2, 3))
    for bad in ((value, 1), (1, value)):
        with pytest.raises(InvalidValue):
            structure.change(1, bad)
    assert structure.dump().to_pylist() == [{"id": 1, "x": 2.0, "y": 3.0}]


@pytest.mark.parametrize("id", [-1, 2**31, 1.0, "1", True, None], ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_id_is_refused(kind: str, id: object) -> None:
    with pytest.raises(InvalidValue, match="id"):
        KINDS[kind]().change(id, (1, 2))


@pytest.mark.parametrize(
    ("ids", "points"),
    [
        ([1, 2], [[0.0, 0.0], [nan, 1.0]]),
        ([1, 2], [[0.0, inf], [1.0, 1.0]]),
        ([1, 2], [[0, 2**53 + 1], [1, 1]]),
        ([1, -2], [[0.0, 0.0], [1.0, 1.0]]),
        ([1, 2], [[0.0, 0.0]]),
        ([1, 2], [["0", "0"], ["0", "0"]]),
        ([1, 2], [0.0, 1.0]),
        ([1, 2], [[0, -(2**63)], [1, 1]]),
        ([1, 2.5], [[0.0, 0.0], [1.0, 1.0]]),
        (["1", "2"], [[0.0, 0.0], [1.0, 1.0]]),
        ([1, 2**32], [[0.0, 0.0], [1.0, 1.0]]),
    ],
)
def test_a_batch_is_refused_as_a_whole(ids: list, points: list) -> None:
    blocks = Blocks()
    with pytest.raises(InvalidValue):
        blocks.change_many(np.array(ids), np.array(points))
    assert len(blocks) == 0
    # Of what is deleted nobody asks where it goes.
    gone = np.zeros(2, bool)
    assert len(blocks.change_many(np.array([1, 2]), np.full((2, 2), nan), gone)) == 0


@pytest.mark.parametrize(
    "columns",
    [
        {"id": [1, 1], "x": [1.0, 2.0], "y": [1.0, 2.0]},
        {"id": [1, 2], "x": [1.0, None], "y": [1.0, 2.0]},
        {"id": [1, 2], "x": [1.0, nan], "y": [1.0, 2.0]},
        {"id": [1, 2], "x": [1, 2**53 + 1], "y": [1.0, 2.0]},
        {"id": [1, 2], "x": ["a", "b"], "y": [1.0, 2.0]},
        {"id": [1, 2], "x": [1.0, 2.0]},
    ],
)
@pytest.mark.parametrize("kind", [Reference, A2BTree, Blocks])
def test_a_table_that_cannot_be(kind: type[Structure], columns: dict) -> None:
    with pytest.raises(InvalidValue):
        kind.load(pa.table(columns))
