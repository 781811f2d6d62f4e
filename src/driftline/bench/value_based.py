"""Who is told that a value moved, how fast, and how much shorter than a list can it be said?

`value_workloads` says which radii and steps there are. Times are CPU microseconds an event, of one
core, in batches, the best of a few runs from the same state; k are those told, m the ranges that
say so. Peers are a compiled scan, NumPy and a SortedList, whose answers must be ours, and the
paper's own structures, in Python, at the sizes that they can bear.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from driftline.bench import value_changes as changes
from driftline.bench import value_servers, value_told
from driftline.bench.report import Claim, Report, Table, at_least, at_most
from driftline.bench.value_peers import PAPER, Peers, compared, one_by_one
from driftline.bench.value_workloads import START, built
from driftline.stateful.value_based.choice import structure_for
from driftline.stateful.value_based.classes import Classes
from driftline.stateful.value_based.combined import Combined
from driftline.stateful.value_based.end_points import EndPoints
from driftline.stateful.value_based.packed import Packed
from driftline.stateful.value_based.rule import Floats
from driftline.stateful.value_based.structure import Structure

K, M = 1_000, 1_000_000
SIZES = {
    "different": (10 * K, 100 * K, M),
    "arriving": (100 * K, M),
    "same": (5 * K, 100 * K, M),
    "any": (10 * K, 50 * K, 100 * K, 200 * K, M),
}
STEPS = {
    "different": (100.0, 1_000.0, 10_000.0),
    "arriving": (1_000.0,),
    "same": (10.0, 300.0),
    "any": (10.0, 100.0, 1_000.0),
}
DOLLAR = 100.0
RATES = (0.0, 0.5, 1.0, 2.0)
"""Arrivals an event."""
EVENTS = 10_000
ARRIVAL_EVENTS = 2_000
PAPER_SIZES = (10 * K, 100 * K)
"""With a million, loading one of the paper's structures takes minutes in Python."""
PAPER_EVENTS = 200
LABEL_BITS = (12, 24, 40)
RELABELLED = 2_000
ITEMS = M
MEMBERS = 200 * K
SERVED = 20 * K
_OURS: dict[str, list[type[Packed]]] = {
    "different": [EndPoints, Combined],
    "same": [Classes, Combined],
    "any": [Combined],
}
_COMPARED = 20
_LISTED = 50
_REPEATS = 5

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one workload costs, and what is said."""

    event_us: float
    ranges: float
    told: float
    list_ns: float
    build_us: float
    insert_us: float
    delete_us: float
    bytes_per_subscription: float
    peers: Peers

    def as_data(self) -> dict[str, object]:
        """The figures as JSON."""
        data = asdict(self)
        return {**data, **data.pop("peers")}


Found = dict[tuple[str, int, float], Measured]


def run(full: bool, say: Say) -> Report:
    """Measure all workloads; an answer that is not the scan's is an AssertionError.

    With `full` every step is measured with a million subscriptions, too.
    """
    found: Found = {}
    for workload, sizes in SIZES.items():
        for size in sizes:
            steps = STEPS[workload]
            if size >= M and workload == "any" and not full:
                steps = (DOLLAR,)
            for step in steps:
                say(f"{workload} radii, {size:,} subscriptions, steps of {step:g}")
                found[workload, size, step] = _measured(workload, size, step)
    arriving = _arriving(say)
    structures = _structures(say)
    relabelled = _relabelled(say)
    say("a primary server and secondary ones")
    servers = value_servers.measured(SERVED, ARRIVAL_EVENTS, DOLLAR)
    say(f"{ITEMS:,} items")
    items = changes.bytes_of_items(ITEMS)
    say(f"a crowd of {MEMBERS:,} in an engine")
    told = value_told.measured(MEMBERS, DOLLAR)
    figures: dict[str, object] = {
        f"{workload}_{size}_step_{step:g}": one.as_data()
        for (workload, size, step), one in found.items()
    }
    figures["arrivals"] = {name: asdict(one) for name, one in arriving.items()}
    figures["structures"] = structures
    figures["relabelled"] = relabelled
    figures["servers"] = asdict(servers)
    figures["items"] = {"count": ITEMS, "bytes": items}
    figures["told"] = told.as_data()
    claims = _claims(found, arriving, structures, items, told)
    more = [*_tables(arriving, structures, relabelled), _served(servers)]
    return Report("value-based", figures, _COLUMNS, _rows(found), claims, more)


# What is measured.


def _measured(workload: str, size: int, step: float) -> Measured:
    made = built(workload, size, step, EVENTS)
    structure = made.structure
    peers = compared(structure, made.radii, made.values[:_COMPARED])
    values = made.values[_COMPARED:]
    event_us, ranges = _batched(structure, values)
    few = structure.tell_many(values[:_LISTED])
    list_s = np.inf
    for _ in range(_REPEATS):
        start = time.process_time()
        listed = structure.ids_of(few)
        list_s = min(list_s, time.process_time() - start)
    delete_us, insert_us = changes.deleted_and_inserted(structure, made.radii)
    return Measured(
        event_us,
        ranges,
        told=len(listed.ids) / _LISTED,
        list_ns=list_s / max(1, len(listed.ids)) * 1e9,
        build_us=made.insert_us,
        insert_us=insert_us,
        delete_us=delete_us,
        bytes_per_subscription=structure.nbytes / size,
        peers=peers,
    )


def _batched(structure: Packed, values: Floats) -> tuple[float, float]:
    """CPU microseconds and ranges an event; the structure is as it was."""
    before = structure._m.copy()
    spent = np.inf
    for _ in range(_REPEATS):
        structure._m[:] = before
        start = time.process_time()
        told = structure.tell_many(values)
        spent = min(spent, time.process_time() - start)
    structure._m[:] = before
    return spent / len(values) * 1e6, len(told) / len(values)


def _arriving(say: Say) -> dict[str, changes.Arrivals]:
    found = {}
    for size in SIZES["same"]:
        for step in STEPS["same"]:
            for rate in RATES:
                say(f"one radius, {size:,} subscriptions, {rate:g} arrivals an event")
                name = f"{size}_step_{step:g}_rate_{rate:g}"
                found[name] = changes.arrivals(size, step, rate, ARRIVAL_EVENTS)
    return found


def _structures(say: Say) -> dict[str, dict[str, float]]:
    """By workload and size, microseconds an event: in batches for ours, and one at a time."""
    found = {}
    for workload, paper in PAPER.items():
        for size in PAPER_SIZES:
            say(f"{workload} radii, {size:,} subscriptions, the paper's structures")
            step = STEPS[workload][1]
            made = built(workload, size, step, PAPER_EVENTS)
            ours = made.structure
            if workload == "different":
                # In ticks, and one centre to a radius, as the BA-tree wants it.
                radii = np.unique(np.round(made.radii))
                ours = structure_for(START, radii)
                ours.insert_many(np.arange(len(radii)), radii)
                ours.tell_many(made.values[:1])
            table = ours.dump()
            kinds: list[type[Structure]] = [*paper, *_OURS[workload]]
            times = one_by_one(kinds, table, made.values)
            for kind in _OURS[workload]:
                batched, _ = _batched(kind.load(table), made.values)
                times[f"{kind.__name__} in batches"] = batched
            found[f"{workload}_{size}"] = times
    return found


def _relabelled(say: Say) -> dict[str, dict[str, float]]:
    """By bits of a label, and for the BW-tree: shifts and labels that become others an insert."""
    found = {}
    size = PAPER_SIZES[0]
    for step in STEPS["same"]:
        for bits in LABEL_BITS:
            say(f"relabelling, {bits} bits")
            one = changes.relabelled(size, step, RELABELLED, bits)
            found[f"step_{step:g}_bits_{bits}"] = {"shifts": one.shifts, "labels": one.labels}
        labels = changes.relabelled_in_paper(size, step, RELABELLED)
        found[f"step_{step:g}_BWTree"] = {"labels": labels}
    return found


# What is said of it.

_COLUMNS = (
    "radii",
    "n",
    "step",
    "event µs",
    "m",
    "k",
    "scan",
    "NumPy",
    "SortedList",
    "ns an id",
    "build",
    "insert",
    "delete",
    "bytes",
)


def _rows(found: Found) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for (workload, size, step), one in found.items():
        peers = (one.peers.scan_us, one.peers.numpy_us, one.peers.sorted_us)
        rows.append(
            (
                workload,
                f"{size:,}",
                f"{step:g}",
                f"{one.event_us:.2f}",
                f"{one.ranges:.1f}",
                f"{one.told:,.0f}",
                *("-" if us is None else f"{us / one.event_us:,.0f}×" for us in peers),
                f"{one.list_ns:.1f}",
                f"{one.build_us:.2f}",
                f"{one.insert_us:.2f}",
                f"{one.delete_us:.2f}",
                f"{one.bytes_per_subscription:.0f}",
            )
        )
    return rows


def _tables(
    arriving: dict[str, changes.Arrivals],
    structures: dict[str, dict[str, float]],
    relabelled: dict[str, dict[str, float]],
) -> list[Table]:
    came: list[tuple[object, ...]] = [
        (
            name,
            f"{one.event_us:.2f}",
            "-" if one.insert_us is None else f"{one.insert_us:.2f}",
            f"{one.spans:.2f}",
            f"{one.told:,.0f}",
        )
        for name, one in arriving.items()
    ]
    kinds: list[tuple[object, ...]] = [
        (case, name, f"{us:,.2f}")
        for case, times in structures.items()
        for name, us in times.items()
    ]
    labels: list[tuple[object, ...]] = [
        (name, f"{one['shifts']:.3f}" if "shifts" in one else "-", f"{one['labels']:.2f}")
        for name, one in relabelled.items()
    ]
    return [
        Table("one radius, with arrivals", ("case", "event µs", "insert µs", "m", "k"), came),
        Table("structures", ("case", "structure", "event µs"), kinds),
        Table("labels, an insert", ("case", "shifts", "labels"), labels),
    ]


def _served(one: value_servers.Servers) -> Table:
    row: tuple[object, ...] = (
        f"{one.subscriptions:,}",
        *(f"{count:.2f}" for count in (one.ranges, one.reached, one.arcs, one.boxes)),
    )
    heads = ("n", "ranges", "secondaries", "arcs", "boxes of one place")
    return Table("primary and secondary servers, an event", heads, [row])


def _claims(
    found: Found,
    arriving: dict[str, changes.Arrivals],
    structures: dict[str, dict[str, float]],
    items: int | None,
    told: value_told.Told,
) -> list[Claim]:
    def most(workload: str, size: int, step: float | None = None) -> float | None:
        taken = (
            one.event_us
            for key, one in found.items()
            if key[:2] == (workload, size) and step in (None, key[2])
        )
        return max(taken, default=None)

    scans = [
        one.peers.scan_us / one.event_us
        for (workload, size, _), one in found.items()
        if size == M and workload == "different"
    ]
    same = [one.event_us for key, one in found.items() if key[0] == "same"]
    same += [one.event_us for one in arriving.values()]
    moved = [max(one.insert_us, one.delete_us) for key, one in found.items() if key[1] == 100 * K]
    engine = told.events_per_s if told.members == 200 * K else None
    held = None if items is None or ITEMS < M else items / 1e9
    return [
        at_most("diff_100k", 2.0, most("different", 100 * K), "µs"),
        at_most("diff_1m", 3.5, most("different", M), "µs"),
        at_most("same_any", 0.3, max(same) if M in SIZES["same"] else None, "µs"),
        at_most("all_50k", 8.0, most("any", 50 * K, DOLLAR), "µs"),
        at_most("all_200k", 15.0, most("any", 200 * K, DOLLAR), "µs"),
        at_most("all_1m", 25.0, most("any", M, DOLLAR), "µs"),
        at_least("scan_ratio", 300.0, min(scans, default=None), "×"),
        at_least("paper_structures", 1.0, min(map(_ahead, structures.values())), "×"),
        at_most("insert_delete", 3.0, max(moved, default=None), "µs"),
        at_most("million_items", 1.0, held, "GB"),
        at_least("told_engine", 20_000.0, engine, "events/s"),
    ]


def _ahead(times: dict[str, float]) -> float:
    """How many times ours is as fast, in batches, as the best of the paper's."""
    ours = min(us for name, us in times.items() if name.endswith(" in batches"))
    names = {kind.__name__ for some in PAPER.values() for kind in some}
    return min(us for name, us in times.items() if name in names) / ours
