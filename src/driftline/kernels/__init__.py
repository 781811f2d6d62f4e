"""ARRAYS IN, ARRAYS OUT: the only place that imports numba.

jit         one decorator, a few machine instructions
layout      what lies where: read this first
arena       blocks of words           table     records by hash
keys        values as ordered keys    entries   filters by number
programs    what a filter asks        rulers    where an axis is cut
clusters    by type and equality      grid      narrow intervals      tiles   wide ones
slabs       points by x and y         fields    filters that are points to an event
changes     enter, leave, move        match     which entries an event satisfies
motion      bounds that move with time
range_blocks, range_min               points (x, y), and whose minimum over a range of x changes
range_slabs                           the ranges that such a change affects
moved_layout, …_labels, …_rings, …_tree, …_events, …_listing, …_changes, …_packing
                                      who hears of a move
bench_tally, bench_nats               what a load driver received; compiled when it is first used
"""

from __future__ import annotations


def warm_up() -> None:
    """Compile every kernel, or load it from the cache: later calls are at full speed."""
    from driftline.kernels.warm import warm_up as warm

    warm()
