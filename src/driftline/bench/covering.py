"""How long does it take to find the place of a filter among those that cover it?

Ours is `Poset`, which looks boxes up. Beside it the walk of the paper: down from the roots, below
every filter that covers the new one [SIENA §5.2.1], for a few more filters once all are there. Both
must find the same neighbours.

- *overlap*: `symbol = s AND price BETWEEN lo AND hi`, one of 100 symbols, widths log-uniform over
  five decades: filters nest some levels deep.
- *apart*: price bands of which none touches another: all are roots, and a walk looks at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from random import Random

from driftline.bench.report import Report, at_most
from driftline.matching.poset import Poset
from driftline.matching.relations import FEW, FilterNode, place_of
from driftline.model.constraint import Constraint, Operator
from driftline.model.expression import Literal
from driftline.model.filter import Filter

SEED = 5
SIZES = (1_000, 10_000)
SIZES_FULL = (1_000, 10_000, 100_000)
PROBES = 20
"""How many more filters are placed both ways: a walk over a hundred thousand takes a second."""

_SYMBOLS = 100
_PRICE_MAX = 1e6
_DECADES = 5


def run(full: bool, say: Callable[[str], None]) -> Report:
    """Measure; `full` goes to a hundred thousand filters."""
    say("compile")
    _poset(_apart(Random(SEED), 2 * FEW))
    sizes = SIZES_FULL if full else SIZES
    figures: dict[str, object] = {"seed": SEED}
    rows: list[tuple[object, ...]] = []
    costs: dict[tuple[str, int], float] = {}
    for name, make in (("overlap", _overlap), ("apart", _apart)):
        for size in sizes:
            say(f"{name}, {size:,} filters")
            found = _measured(make(Random(SEED), size + PROBES))
            figures[f"{name}_{size}"] = found
            costs[name, size] = found["add_us"]
            rows.append((name, f"{size:,}", *(f"{figure:,.0f}" for figure in found.values())))
    growth = max(
        costs[name, larger] / costs[name, smaller]
        for name in ("overlap", "apart")
        for smaller, larger in pairwise(sizes)
    )
    claims = [
        # A cost per filter that grows as fast as their number would be tenfold.
        at_most("add_growth_per_tenfold", 5.0, growth, "×"),
        at_most("add_overlap_100k_us", 1_000.0, costs.get(("overlap", 100_000)), "µs"),
        at_most("add_apart_100k_us", 1_000.0, costs.get(("apart", 100_000)), "µs"),
    ]
    columns = ("workload", "filters", "add µs", "discard µs", "walk µs", "roots", "edges")
    return Report("covering", figures, columns, rows, claims)


def _band(low: float, high: float, *more: Constraint) -> Filter:
    low_end = Constraint("price", Operator.GE, Literal(round(low, 2)))
    high_end = Constraint("price", Operator.LE, Literal(round(high, 2)))
    return Filter("quote", (*more, low_end, high_end))


def _overlap(draw: Random, count: int) -> list[Filter]:
    filters = []
    for _ in range(count):
        symbol = Constraint("symbol", Operator.EQ, Literal(f"S{draw.randrange(_SYMBOLS)}"))
        width = 10 ** draw.uniform(0, _DECADES)
        low = draw.uniform(0, _PRICE_MAX - width)
        filters.append(_band(low, low + width, symbol))
    return filters


def _apart(draw: Random, count: int) -> list[Filter]:
    return [_band(10 * at, 10 * at + 5) for at in draw.sample(range(count), count)]


def _measured(filters: Sequence[Filter]) -> dict[str, float]:
    """CPU microseconds per filter: all but the last few added, those walked for, half discarded."""
    filters, probes = filters[:-PROBES], filters[-PROBES:]
    start = time.process_time()
    poset = _poset(filters)
    add_s = time.process_time() - start
    roots, edges = len(poset.roots()), sum(len(node.successors) for node in poset._relations)
    walk_s = _walked(poset, probes)
    leaving = Random(SEED).sample(range(len(filters)), len(filters) // 2)
    start = time.process_time()
    for at in leaving:
        poset.discard(str(at))
    discard_s = time.process_time() - start
    return {
        "add_us": add_s / len(filters) * 1e6,
        "discard_us": discard_s / len(leaving) * 1e6,
        "walk_us": walk_s / PROBES * 1e6,
        "roots": roots,
        "edges": edges,
    }


def _poset(filters: Sequence[Filter]) -> Poset:
    poset = Poset()
    for at, one in enumerate(filters):
        poset.add(str(at), one)
    return poset


def _walked(poset: Poset, probes: Sequence[Filter]) -> float:
    """CPU seconds to find the places of these filters by the walk; ours must be the same."""
    walk_s = 0.0
    for at, probe in enumerate(probes):
        new = _node(probe)
        start = time.process_time()
        above = _walk_above(poset._relations.roots, new)
        below = _walk_below(poset._relations.roots, new, above)
        walk_s += time.process_time() - start
        poset.add(f"probe {at}", probe)
        node = poset._relations.node(probe)
        assert node is not None
        assert node.successors.keys() == {*above}
        assert node.predecessors.keys() == {*below}
    return walk_s


def _node(probe: Filter) -> FilterNode:
    place = place_of(probe)
    assert place is not None
    return FilterNode("", probe, *place)


def _walk_above(roots: Iterable[FilterNode], new: FilterNode) -> list[FilterNode]:
    """The nearest that cover it, from the roots down."""
    nearest = []
    queue = [root for root in roots if root.covers(new)]
    seen = set(queue)
    for node in queue:
        covering = [below for below in node.predecessors if below.covers(new)]
        if not covering:
            nearest.append(node)
        queue.extend(below for below in covering if below not in seen)
        seen.update(covering)
    return nearest


def _walk_below(
    roots: Iterable[FilterNode], new: FilterNode, above: Sequence[FilterNode]
) -> list[FilterNode]:
    """The nearest that it covers: below all that cover it, or anywhere if nothing does."""
    start = [one for node in above for one in node.predecessors] if above else roots
    queue = list(dict.fromkeys(start))
    seen = set(queue)
    found: dict[FilterNode, None] = {}
    for node in queue:
        if new.covers(node):
            found[node] = None
            continue
        further = [below for below in node.predecessors if below not in seen]
        seen.update(further)
        queue.extend(further)
    return [node for node in found if not any(top.covers(node) for top in found if top != node)]
