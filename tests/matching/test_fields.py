"""Are filters that are points to an event found, whatever comes, moves and goes?

`il >= :l AND ol < :l AND ir <= :r AND xr > :r`: the event has the bounds and the filter the values.
"""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from driftline import Event, parse
from driftline.kernels import layout
from driftline.matching.columns import Columns
from driftline.matching.index import Index
from driftline.matching.scan import Scan
from driftline.model.filter import Filter
from tests.matching.test_index import without_compiler

CLOSED = "il >= :l AND ol < :l AND ir <= :r AND xr > :r"
OPEN = "il > :l AND ol <= :l AND ir < :r AND xr >= :r"
SHUT = "ol <= :l AND il >= :l AND ir <= :r AND xr >= :r"
NAMES = ("ol", "il", "ir", "xr")


def filters(condition: str) -> tuple[Filter, ...]:
    return parse(f"SELECT * FROM q WHERE {condition}").filters()


def fields(index: Index) -> list[int]:
    """How many points each field has."""
    m = index._memory.words.tolist()
    found = []
    for shard in range(layout.SHARDS_AT, layout.SHARDS_AT + 2 * layout.SHARDS, 2):
        for slot in range(m[shard], m[shard] + 2 * (m[shard + 1] >> 32), 2):
            record = m[slot + 1]
            if record and m[record + layout.TAG] == layout.IS_FIELD:
                found.append(m[record + layout.FIELD_POINTS + layout.N_COUNT])
    return sorted(found)


class Plane:
    """Points that are held by an index and in arrays."""

    def __init__(self, condition: str, count: int, top: int, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.top = top
        self.is_open = condition.startswith(OPEN)
        self.is_shut = condition.startswith(SHUT)
        self.ids = [f"s{at}" for at in range(count)]
        self.points = self.drawn(count)
        self.alive = np.ones(count, bool)
        self.index = Index()
        self.index.add_batch(self.ids, filters(condition), self.bounds(range(count)))

    def drawn(self, count: int):
        return self.draw.integers(0, self.top, (count, 2))

    def bounds(self, which) -> dict[str, object]:
        return {"l": self.points[which, 0], "r": self.points[which, 1]}

    def some(self, share: float):
        alive = np.nonzero(self.alive)[0]
        return self.draw.choice(alive, int(share * len(alive)), replace=False)

    def move(self, share: float) -> None:
        moved = self.some(share)
        self.points[moved] = self.drawn(len(moved))
        self.index.change_batch([self.ids[at] for at in moved], self.bounds(moved))

    def discard(self, share: float) -> None:
        gone = self.some(share)
        self.alive[gone] = False
        self.index.discard_batch([self.ids[at] for at in gone])

    def compare(self, asked: int) -> None:
        self.index._check()
        left, low = self.draw.integers(-2, self.top, (2, asked))
        widths = self.draw.choice([0, 1, self.top // 9, self.top], (2, asked))
        ends = {"ol": left, "il": left + widths[0], "ir": low, "xr": low + widths[1]}
        batch = Columns.of_arrays("q", ends)
        found = self.index.match_batch(batch)
        x, y = self.points.T
        for at in range(asked):
            ol, il, ir, xr = (ends[name][at] for name in NAMES)
            if self.is_shut:
                inside = self.alive & (ol <= x) & (x <= il) & (ir <= y) & (y <= xr)
            elif self.is_open:
                inside = self.alive & (ol <= x) & (x < il) & (ir < y) & (y <= xr)
            else:
                inside = self.alive & (ol < x) & (x <= il) & (ir <= y) & (y < xr)
            wanted = [self.ids[number] for number in np.nonzero(inside)[0]]
            assert sorted(found.ids(at)) == sorted(wanted)
            assert self.index.match(batch.event(at)) == wanted


@pytest.mark.parametrize("condition", [CLOSED, OPEN, SHUT])
@pytest.mark.parametrize("top", [3, 60, 10_000])
def test_points_that_move_are_found_by_rectangles(condition: str, top: int) -> None:
    """Few values: thousands of points are the same one, and fill slabs of their own."""
    plane = Plane(condition, 8_000, top, seed=3)
    assert fields(plane.index) == [8_000]
    for share in (0.1, 0.5, 0.9):
        plane.compare(12)
        plane.move(0.4)
        plane.compare(12)
        plane.discard(share)
    plane.compare(12)
    plane.discard(1)
    plane.index._check()


def test_the_axis_of_the_other_pair_may_be_the_first_to_be_told_apart() -> None:
    """Whichever attributes are named first."""
    plane = Plane("ir <= :r AND xr > :r AND il >= :l AND ol < :l", 3_000, 100, seed=4)
    plane.compare(40)


SHAPES = [
    CLOSED,
    OPEN,
    SHUT,
    "ol <= :l AND il >= :l",
    "il >= :l AND ol <= :l AND ir <= :r AND xr > :r",
    "il >= :l AND ol <= :l AND ir < :l",
    f"{CLOSED} AND sector = 'tech'",
    f"{CLOSED} AND v != 3 AND w BETWEEN 2 AND 4",
    f"{OPEN} AND x + y > 3",
    "il >= :l AND ol < :l AND xr > 1.7976931348623157e308",
    "ol < -1.7976931348623157e308 AND ir < :r AND xr >= :r",
    "il >= :l AND ol < :l",
    "il >= :l AND ol < :l AND ir <= :l AND xr > :l",
    f"il >= 5 AND ol < 5 OR {CLOSED}",
    "il >= :l + 1 AND ol < :l + 1",
]
VALUES = [0, 1, 2, 3, 2.5, -0.0, inf, -inf, 2**53, 2**53 + 1, 2**63 - 1, 1e308]


@pytest.mark.parametrize("condition", SHAPES)
def test_a_crowd_of_any_shape_is_found_as_scan_finds_it(condition: str, seed: int) -> None:
    """Ties, open ends, values that are missing, strings in the place of numbers."""
    draw = np.random.default_rng(seed)
    said = filters(condition)
    index, scan = Index(), Scan()

    def value() -> float:
        number = draw.integers(0, 9) if draw.random() < 0.9 else draw.choice(VALUES)
        return number.item() if isinstance(number, np.generic) else number

    def bounds() -> dict[str, float]:
        return {name: value() for name in "lr" if f":{name}" in condition}

    for id in map(str, range(300)):
        given = bounds()
        index.add(id, said, given)
        scan.add(id, said, given)
    assert sum(fields(index)) > 200
    for step in range(400):
        id = str(draw.integers(0, 300))
        if id in scan and bounds():
            given = bounds()
            index.change(id, given)
            scan.change(id, given)
        if step % 4 == 0:
            index.discard(id)
            scan.discard(id)
    index._check()
    events = []
    for _ in range(60):
        attributes: dict[str, object] = {name: value() for name in ("v", "w", "x", "y")}
        attributes["sector"] = draw.choice(["tech", "food"]).item()
        attributes.update(zip(NAMES, sorted(value() for _ in NAMES), strict=True))
        for name in NAMES:
            chance = draw.random()
            if chance < 0.05:
                del attributes[name]
            elif chance < 0.1:
                attributes[name] = "1"
            elif chance < 0.2:
                attributes[name] = -inf if name in ("ol", "ir") else inf
        events.append(Event("q", attributes))
    batch = index.match_batch(Columns.of_events(events))
    for at, event in enumerate(events):
        wanted = scan.match(event)
        assert index.match(event) == wanted, event
        assert sorted(batch.ids(at)) == sorted(wanted), event


def test_an_open_end_needs_no_second_look() -> None:
    """No integer is beyond 2^63, so the bound is exact whatever the event has."""
    index = Index()
    index.add("open", filters("xr > 1.7976931348623157e308"))
    index.add("moving", filters("xr >= :r"), {"r": 1e19})
    index.add("near", filters("xr >= :r"), {"r": 2.0**63})
    assert len(index._doubted) == 1
    assert index.match(Event("q", {"xr": inf})) == ["open", "moving", "near"]
    assert index.match(Event("q", {"xr": 2**63 - 1})) == []
    assert index.match(Event("q", {"xr": 2.0**63})) == ["near"]


PATCHED = (
    "from driftline.kernels import changes, slabs\n"
    "changes.SMALL_CLUSTER = 0\n"
    "slabs.SLAB_FIRST, slabs.SLAB_WORDS = 12, 24\n"
    "from driftline.kernels import layout\n"
    "layout.SLAB_FIRST, layout.SLAB_WORDS = 12, 24\n"
)


def test_tiny_slabs_are_exact_without_the_compiler_too() -> None:
    """Slabs of up to six are split and joined all the time."""
    without_compiler(
        "-c",
        PATCHED + "from tests.matching.test_fields import CLOSED, OPEN, SHUT, Plane\n"
        "for top, shape in ((3, CLOSED), (20, SHUT), (1000, OPEN)):\n"
        "    plane = Plane(shape, 400, top, seed=7)\n"
        "    for share in (0.3, 0.6, 1):\n"
        "        plane.compare(8)\n"
        "        plane.move(0.4)\n"
        "        plane.compare(8)\n"
        "        plane.discard(share)\n"
        "    plane.index._check()\n",
    )


def test_any_program_is_exact_in_fields_without_the_compiler_too() -> None:
    """Where no cluster is small, every pair of comparisons is a point."""
    without_compiler(
        "-c",
        PATCHED + "from hypothesis import settings\n"
        "from driftline.matching.index import Index\n"
        "from driftline.testing.checks import check_matcher\n"
        "check_matcher(Index, settings(max_examples=40, stateful_step_count=40, deadline=None))",
    )
