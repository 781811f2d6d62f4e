"""Who is told that a value moved, how fast, and how much shorter than a list can it be said?

Four workloads [VALUE §7.1], each with a value that walks at random. The paper gives neither its
steps nor the moments of its radii: these are ours, and steps are swept.

- *different*: radii of a normal distribution between 1 and 200,000, all different; all come first.
- *arriving*: the same, but they come while the value moves: neighbours have different centres, so
  that there are many more ranges, until they have been told together.
- *same*: one radius; subscriptions come while the value moves, so that they have many centres.
- *any*: a tenth at random between $0.01 and $100, in cents; the others at whole dollars around $20.
  They come while the value moves too, by $1 a step.

The peer is a scan with NumPy, and its answers are what ours are compared with; the paper's own
structures, in Python, run at a size that they can bear. Times are CPU microseconds an event, in
batches, the best of a few runs from the same state.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from driftline.bench.report import Claim, Report, Table, at_least, at_most
from driftline.stateful.value_based.b2_tree import B2Tree
from driftline.stateful.value_based.ba_tree import BATree
from driftline.stateful.value_based.btree_c import BTreeC
from driftline.stateful.value_based.btree_lr import BTreeLR
from driftline.stateful.value_based.bw_tree import BWTree
from driftline.stateful.value_based.choice import structure_for
from driftline.stateful.value_based.packed import Packed
from driftline.stateful.value_based.rule import Floats, Rule
from driftline.stateful.value_based.scan_r import ScanR
from driftline.stateful.value_based.structure import Structure

SEED = 7
SIZES = {
    "different": (10_000, 100_000),
    "arriving": (100_000,),
    "same": (5_000, 50_000, 1_000_000),
    "any": (50_000, 200_000),
}
FULL = {
    "different": (10_000, 100_000, 1_000_000),
    "arriving": (100_000, 1_000_000),
    "same": (5_000, 50_000, 1_000_000),
    "any": (50_000, 200_000, 1_000_000),
}
STEPS = {
    "different": (100.0, 1_000.0, 10_000.0),
    "arriving": (1_000.0,),
    "same": (10.0, 300.0),
    "any": (100.0,),
}
EVENTS = 2_000
_SETTLED = 5_000
"""So many events come before those that are measured: nobody has its first centre any more."""
_COMPARED = 20
_PAPER_SIZE = 2_000
_PAPER_EVENTS = 200
_REPEATS = 5
_ROUNDS = 100
"""In so many parts subscriptions come while the value moves."""
_ONE_RADIUS = 1_000.0
_START = 10_000.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What one workload costs, and what is said."""

    event_us: float
    scan_us: float
    spans: float
    told: float
    list_ns: float
    insert_us: float

    def as_data(self) -> dict[str, float]:
        """The figures as JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def run(full: bool, say: Callable[[str], None]) -> Report:
    """Measure all workloads; an answer that is not the scan's is an AssertionError."""
    found: dict[tuple[str, int, float], Measured] = {}
    for workload, sizes in (FULL if full else SIZES).items():
        for size in sizes:
            for step in STEPS[workload]:
                say(f"{workload} radii, {size:,} subscriptions, steps of {step:g}")
                found[workload, size, step] = _measured(workload, size, step)
    say("the paper's structures")
    paper = _paper()
    figures: dict[str, object] = {
        f"{workload}_{size}_step_{step:g}": one.as_data()
        for (workload, size, step), one in found.items()
    }
    rows: list[tuple[object, ...]] = [
        (
            workload,
            f"{size:,}",
            f"{step:g}",
            f"{one.event_us:.2f}",
            f"{one.scan_us / one.event_us:,.0f}×",
            f"{one.spans:.1f}",
            f"{one.told:,.0f}",
            f"{one.list_ns:.2f}",
            f"{one.insert_us:.2f}",
        )
        for (workload, size, step), one in found.items()
    ]
    columns = ("radii", "n", "step", "event µs", "scan", "spans", "told", "ns an id", "insert µs")
    title = f"one event at a time, {_PAPER_SIZE:,} subscriptions"
    more = Table(title, ("radii", "structure", "event µs"), paper)
    figures["one_at_a_time_us"] = {f"{row[0]} {row[1]}": float(str(row[2])) for row in paper}
    return Report("value-based", figures, columns, rows, _claims(found), [more])


def _claims(found: dict[tuple[str, int, float], Measured]) -> list[Claim]:
    def most(workload: str, size: int) -> float | None:
        taken = (one.event_us for key, one in found.items() if key[:2] == (workload, size))
        return max(taken, default=None)

    ratios = [
        one.scan_us / one.event_us
        for (workload, size, _), one in found.items()
        if size == 1_000_000 and workload != "arriving"
    ]
    lists = [one.list_ns for key, one in found.items() if key[0] == "different" and one.told > 1e3]
    same = max((one.event_us for key, one in found.items() if key[0] == "same"), default=None)
    return [
        at_most("different_100k_us", 2.0, most("different", 100_000), "µs"),
        at_most("different_1m_us", 3.5, most("different", 1_000_000), "µs"),
        at_most("same_us", 0.3, same, "µs"),
        at_most("any_50k_us", 8.0, most("any", 50_000), "µs"),
        at_most("any_200k_us", 15.0, most("any", 200_000), "µs"),
        at_most("any_1m_us", 25.0, most("any", 1_000_000), "µs"),
        at_least("scan_1m_times", 300.0, min(ratios, default=None), "×"),
        at_most("list_ns", 0.8, min(lists, default=None), "ns"),
    ]


def _radii(draw: np.random.Generator, workload: str, size: int) -> Floats:
    if workload == "same":
        return np.full(size, _ONE_RADIUS)
    if workload != "any":
        return _normal(draw, 100_000, 50_000, 1, 200_000, size)
    anything = draw.integers(1, 10_001, size // 10).astype(float)
    dollars = np.round(_normal(draw, 20, 20, 1, 100, size - len(anything))) * 100
    return draw.permutation(np.concatenate((anything, dollars)))


def _normal(
    draw: np.random.Generator, mean: float, spread: float, low: float, high: float, size: int
) -> Floats:
    """Numbers of a normal distribution that is cut off at both ends."""
    found = np.zeros(0)
    while len(found) < size:
        more = draw.normal(mean, spread, size)
        found = np.concatenate((found, more[(low <= more) & (more <= high)]))
    return found[:size]


def _built(workload: str, size: int, step: float) -> tuple[Packed, Floats, Floats, float]:
    """A structure whose subscriptions came while the value moved; radii, values, seconds."""
    draw = np.random.default_rng(SEED)
    radii = _radii(draw, workload, size)
    walk = np.round(_START + np.cumsum(draw.normal(0, step, _ROUNDS + _SETTLED + EVENTS)))
    structure = structure_for(_START, radii)
    spent = 0.0
    rounds = 1 if workload == "different" else _ROUNDS
    for at, ids in enumerate(np.array_split(np.arange(size), rounds)):
        structure.tell(walk[at])
        start = time.process_time()
        structure.insert_many(ids, radii[ids])
        spent += time.process_time() - start
    structure.tell_many(walk[_ROUNDS : _ROUNDS + _SETTLED])
    return structure, radii, walk[_ROUNDS + _SETTLED :], spent


def _measured(workload: str, size: int, step: float) -> Measured:
    structure, radii, values, spent = _built(workload, size, step)
    scan_us = _compared(structure, radii, values[:_COMPARED])
    values = values[_COMPARED:]
    before = structure._m.copy()
    event_s = list_s = np.inf
    for _ in range(_REPEATS):
        structure._m[:] = before
        start = time.process_time()
        told = structure.tell_many(values)
        event_s = min(event_s, time.process_time() - start)
    few = 50
    structure._m[:] = before
    told_few = structure.tell_many(values[:few])
    for _ in range(_REPEATS):
        start = time.process_time()
        listed = structure.ids_of(told_few)
        list_s = min(list_s, time.process_time() - start)
    return Measured(
        event_us=event_s / len(values) * 1e6,
        scan_us=scan_us,
        spans=len(told) / len(values),
        told=len(listed.ids) / few,
        list_ns=list_s / max(1, len(listed.ids)) * 1e9,
        insert_us=spent / size * 1e6,
    )


def _compared(structure: Packed, radii: Floats, values: Floats) -> float:
    """Let a scan say who is told, and ours say the same; CPU microseconds of the scan an event."""
    table = structure.dump()
    centres: Floats = table.column("centre").to_numpy().copy()
    spent = 0.0
    wanted: list[NDArray[np.int64]] = []
    for value in values:
        start = time.process_time()
        told = np.flatnonzero(Rule().tells_many(centres, radii, value))
        centres[told] = value
        spent += time.process_time() - start
        wanted.append(told)
    listed = structure.ids_of(structure.tell_many(values))
    for at, told in enumerate(wanted):
        assert np.array_equal(np.sort(listed.of(at)), told), "not whom the scan tells"
    return spent / len(values) * 1e6


def _paper() -> list[tuple[object, ...]]:
    """Microseconds an event, one call each, for the paper's structures and ours."""
    kinds: dict[str, list[type[Structure]]] = {
        "different": [BTreeLR, ScanR, BATree],
        "same": [BTreeLR, BTreeC, BWTree],
        "any": [BTreeLR, B2Tree],
    }
    rows: list[tuple[object, ...]] = []
    for workload, some in kinds.items():
        step = STEPS[workload][-1]
        ours, radii, values, _ = _built(workload, _PAPER_SIZE, step)
        if workload == "different":
            # In ticks, and one centre to a radius, as the BA-tree wants it.
            radii = np.unique(np.round(radii))
            ours = structure_for(_START, radii)
            ours.insert_many(np.arange(len(radii)), radii)
        table = ours.dump()
        structures: list[Structure] = [*(kind.load(table) for kind in some), ours]
        for structure in structures:
            start = time.process_time()
            for value in values[:_PAPER_EVENTS].tolist():
                structure.event(value)
            spent = time.process_time() - start
            rows.append((workload, type(structure).__name__, f"{spent / _PAPER_EVENTS * 1e6:.1f}"))
        centres = [structure.dump().column("centre") for structure in structures]
        assert all(one == centres[0] for one in centres), "not the same were told"
    return rows
