"""What does it cost when subscriptions come and go, and how much memory do they take?

*Arrivals* [VALUE §7.2]: one radius, and for each event so many new subscriptions, each with one of
the last few hundred values as its centre. *Relabelling* [VALUE §4.2]: how often there is no label
between two, and how many labels become others, with few bits of a label and with many. *Items*: a
million of them, with one subscription each.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

import numpy as np

from driftline.bench.memory import resident_bytes
from driftline.bench.value_peers import scanned
from driftline.bench.value_workloads import ONE_RADIUS, START, built, walk
from driftline.stateful.value_based.bw_tree import BWTree
from driftline.stateful.value_based.items import Items
from driftline.stateful.value_based.packed import Packed
from driftline.stateful.value_based.rule import Floats, Rule
from driftline.stateful.value_based.structure import Ids

TOGETHER = 500
"""So many events are told in a call, and those who came meanwhile come in another."""
_BATCH = 10_000
_REPEATS = 3


@dataclass(frozen=True, slots=True)
class Arrivals:
    """CPU microseconds an event and an arrival, in the median call; what was said of an event."""

    event_us: float
    insert_us: float | None
    spans: float
    told: float


@dataclass(frozen=True, slots=True)
class Relabelled:
    """Of each insert, how many shifts there were, and how many labels became others."""

    shifts: float
    labels: float


def arrivals(size: int, step: float, rate: float, events: int) -> Arrivals:
    """One radius, with so many arrivals an event; a scan must tell the same."""
    draw = np.random.default_rng(size)
    made = built("same", size, step, events)
    structure = made.structure
    before = structure.dump().column("centre").to_numpy()
    rounds = np.array_split(made.values, max(1, events // TOGETHER))
    new = [_recent(draw, some, int(rate * len(some))) for some in rounds]
    told_us, insert_us = [], []
    spans, there = 0, size
    for some, centres in zip(rounds, new, strict=True):
        ids, radii = there + np.arange(len(centres)), np.full(len(centres), ONE_RADIUS)
        start = time.process_time()
        found = structure.tell_many(some)
        told = time.process_time()
        structure.insert_many(ids, radii, centres)
        done = time.process_time()
        told_us.append((told - start) / len(some) * 1e6)
        if len(ids):
            insert_us.append((done - told) / len(ids) * 1e6)
        spans += len(found)
        there += len(ids)
    # Only now: a scan would leave nothing in the caches.
    told_all = _scanned(structure, before, rounds, new)
    inserted = median(insert_us) if insert_us else None
    return Arrivals(median(told_us), inserted, spans / events, told_all / events)


def _scanned(structure: Packed, centres: Floats, rounds: list[Floats], new: list[Floats]) -> int:
    """How many a scan tells, which must come to the same centres."""
    told = 0
    for some, more in zip(rounds, new, strict=True):
        centres = centres.copy()
        expected, _ = scanned(np.full(len(centres), ONE_RADIUS), centres, some)
        told += sum(map(len, expected))
        centres = np.concatenate((centres, more))
    now = structure.dump().column("centre").to_numpy()
    assert np.array_equal(now, centres), "not whom the scan tells"
    return told


def _recent(draw: np.random.Generator, values: Floats, count: int) -> Floats:
    """What some who came lately were told; the last value, if they would be overdue."""
    centres: Floats = draw.choice(values, count)
    overdue = Rule().tells_many(centres, np.full(count, ONE_RADIUS), float(values[-1]))
    centres[overdue] = values[-1]
    return centres


def deleted_and_inserted(structure: Packed, radii: Floats) -> tuple[float, float]:
    """CPU microseconds to delete one of a batch, and to insert it again; the best of a few."""
    draw = np.random.default_rng(len(radii))
    batch = min(_BATCH, len(radii) // 2)
    times = []
    for _ in range(_REPEATS):
        ids = draw.choice(len(radii), batch, replace=False)
        start = time.process_time()
        structure.delete_many(ids)
        gone = time.process_time()
        structure.insert_many(ids, radii[ids])
        times.append((gone - start, time.process_time() - gone))
    assert len(structure) == len(radii)
    deleted, inserted = (min(one) / batch * 1e6 for one in zip(*times, strict=True))
    return deleted, inserted


def relabelled(size: int, step: float, count: int, label_bits: int) -> Relabelled:
    """One radius; after each event one comes."""
    made = built("same", size, step, count, label_bits)
    structure = made.structure
    shifts = labels = 0
    before = _places(structure, size)
    for at, value in enumerate(made.values.tolist()):
        structure.tell_many([value])
        structure.insert(size + at, ONE_RADIUS)
        some = len(structure.take_shifts())
        shifts += some
        after = _places(structure, size + at + 1) if some else None
        if after is not None:
            labels += int((after[: len(before)] != before).sum())
        before = np.append(before, _places_of(structure, size + at)) if after is None else after
    return Relabelled(shifts / count, labels / count)


def _places(structure: Packed, count: int) -> Ids:
    return structure.addresses(np.arange(count))[1]


def _places_of(structure: Packed, id: int) -> Ids:
    return structure.addresses(np.array([id]))[1]


def relabelled_in_paper(size: int, step: float, count: int) -> float:
    """The same for the BW-tree: how many labels become others."""
    made = built("same", size, step, count)
    tree = BWTree.load(made.structure.dump())
    before = tree._circle.relabelled
    for at, value in enumerate(made.values.tolist()):
        tree.event(value)
        tree.insert(size + at, ONE_RADIUS)
    return (tree._circle.relabelled - before) / count


def bytes_of_items(count: int) -> int | None:
    """What so many items with one subscription each take, and that they are told."""
    before = resident_bytes()
    items: Items[str] = Items()
    for number in range(count):
        items.insert(f"item {number}", number, 1.0 + number % 7)
    for number in range(count):
        items.event(f"item {number}", START)
    after = resident_bytes()
    values = walk(np.random.default_rng(1), 3, 1_000)
    for number, value in enumerate(values.tolist()):
        told = items.tell(f"item {number}", value)
        assert told == [number] * Rule().tells(START, 1.0 + number % 7, value), "another is told"
    return None if before is None or after is None else after - before
