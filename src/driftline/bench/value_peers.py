"""What would one do instead, to find who is told that a value moved? Timed, and its answer kept.

- *scan*: a compiled loop over everybody; *NumPy*: the same in whole arrays;
- *SortedList*: both end points of everybody in order, as the B-tree(lr) of [VALUE §2.3], with the
  container that Python has for it, if it is installed;
- the paper's structures, in Python, one event at a time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from driftline.kernels.moved_scan import scan
from driftline.stateful.value_based.b2_tree import B2Tree
from driftline.stateful.value_based.ba_tree import BATree
from driftline.stateful.value_based.btree_c import BTreeC
from driftline.stateful.value_based.btree_lr import BTreeLR
from driftline.stateful.value_based.bw_tree import BWTree
from driftline.stateful.value_based.packed import Packed
from driftline.stateful.value_based.rule import Floats, Rule
from driftline.stateful.value_based.scan_r import ScanR
from driftline.stateful.value_based.structure import Ids, Structure

PAPER: dict[str, list[type[Structure]]] = {
    "different": [BTreeLR, ScanR, BATree],
    "same": [BTreeLR, BTreeC, BWTree],
    "any": [BTreeLR, B2Tree],
}
SORTED_MAX = 200_000
"""With more than these, end points in a SortedList take minutes, and gigabytes."""
_SECONDS = 2.0
"""No longer does one of the paper's structures get for its events."""
_FEW = 3


@dataclass(frozen=True, slots=True)
class Peers:
    """CPU microseconds an event."""

    scan_us: float
    numpy_us: float
    sorted_us: float | None


def compared(structure: Packed, radii: Floats, values: Floats) -> Peers:
    """Let all of them say who is told of some values, and ours say the same."""
    centres: Floats = structure.dump().column("centre").to_numpy().copy()
    wanted, scan_us = scanned(radii, centres.copy(), values)
    numpy_us = _with_numpy(radii, centres.copy(), values, wanted)
    sorted_us = None
    if len(radii) <= SORTED_MAX:
        with suppress(ImportError):
            sorted_us = _with_sorted_list(radii, centres, structure.value, values, wanted)
    listed = structure.ids_of(structure.tell_many(values))
    for at, told in enumerate(wanted):
        assert np.array_equal(np.sort(listed.of(at)), told), "not whom the scan tells"
    return Peers(scan_us, numpy_us, sorted_us)


def scanned(radii: Floats, centres: Floats, values: Floats) -> tuple[list[Ids], float]:
    """Who is told of each value by a compiled scan, and what that costs."""
    ids = np.zeros(len(radii), np.int32)
    scan(radii[:0], centres[:0], 0.0, ids)
    spent, found = 0.0, []
    for value in values.tolist():
        start = time.process_time()
        told = scan(radii, centres, value, ids)
        spent += time.process_time() - start
        found.append(ids[:told].astype(np.int64))
    return found, spent / len(values) * 1e6


def _with_numpy(radii: Floats, centres: Floats, values: Floats, wanted: list[Ids]) -> float:
    spent = 0.0
    for value, expected in zip(values.tolist(), wanted, strict=True):
        start = time.process_time()
        told = np.flatnonzero(Rule().tells_many(centres, radii, value))
        centres[told] = value
        spent += time.process_time() - start
        assert np.array_equal(told, expected), "not whom the scan tells"
    return spent / len(values) * 1e6


def _with_sorted_list(
    radii: Floats, centres: Floats, before: float, values: Floats, wanted: list[Ids]
) -> float:
    from sortedcontainers import SortedList

    lows = SortedList(zip((centres - radii).tolist(), range(len(radii)), strict=True))
    highs = SortedList(zip((centres + radii).tolist(), range(len(radii)), strict=True))
    told_last, reach = centres.tolist(), radii.tolist()
    spent = 0.0
    for value, expected in zip(values[:_FEW].tolist(), wanted, strict=False):
        start = time.process_time()
        if value > before:
            told = [id for _, id in highs.irange(maximum=(value, len(reach)))]
        else:
            told = [id for _, id in lows.irange(minimum=(value, -1))]
        for id in told:
            lows.remove((told_last[id] - reach[id], id))
            highs.remove((told_last[id] + reach[id], id))
            lows.add((value - reach[id], id))
            highs.add((value + reach[id], id))
            told_last[id] = value
        spent += time.process_time() - start
        before = value
        assert sorted(told) == expected.tolist(), "not whom the scan tells"
    return spent / min(_FEW, len(values)) * 1e6


def one_by_one(
    kinds: Sequence[type[Structure]], table: pa.Table, values: Floats
) -> dict[str, float]:
    """CPU microseconds an event for structures with these subscriptions; all tell the same."""
    found: dict[str, float] = {}
    centres: dict[int, pa.ChunkedArray] = {}
    for kind in kinds:
        structure = kind.load(table)
        start = time.process_time()
        done = 0
        for value in values.tolist():
            structure.event(value)
            done += 1
            if time.process_time() - start > _SECONDS and done >= _FEW:
                break
        found[kind.__name__] = (time.process_time() - start) / done * 1e6
        now = structure.dump().column("centre")
        assert centres.setdefault(done, now) == now, "not the same were told"
    return found
