"""How long does it take to find the place of a filter among those that cover it?

Ours is `Poset`, which asks an index. Beside it the walk of the paper: down from the roots, below
every filter that covers the new one [SIENA §5.2.1]. Both must end with the same roots and the same
edges.

- *overlap*: `symbol = s AND price BETWEEN lo AND hi`, one of 100 symbols, widths log-uniform over
  five decades: filters nest some levels deep.
- *apart*: price bands of which none touches another: all are roots, and a walk looks at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from random import Random

from driftline.bench.report import Report, at_most
from driftline.matching.poset import Poset
from driftline.matching.relations import FEW, Node
from driftline.model.constraint import Constraint, Operator
from driftline.model.covering import domains_of
from driftline.model.expression import Literal
from driftline.model.filter import Filter

SEED = 5
SIZES = (1_000, 10_000)
SIZES_FULL = (1_000, 10_000, 100_000)

# A walk over filters that are all apart is quadratic: ten thousand take minutes.
WALK_MAX = 1_000
WALK_MAX_FULL = 10_000

_SYMBOLS = 100
_PRICE_MAX = 1e6
_DECADES = 5

Edges = set[tuple[Filter, Filter]]


def run(full: bool, say: Callable[[str], None]) -> Report:
    """Measure; `full` goes to a hundred thousand filters."""
    say("compile")
    _poset(_apart(Random(SEED), 2 * FEW))
    figures: dict[str, object] = {"seed": SEED}
    rows: list[tuple[object, ...]] = []
    costs: dict[tuple[str, int], float] = {}
    for name, make in (("overlap", _overlap), ("apart", _apart)):
        for size in SIZES_FULL if full else SIZES:
            say(f"{name}, {size:,} filters")
            filters = make(Random(SEED), size)
            found = _measured(filters, walked=size <= (WALK_MAX_FULL if full else WALK_MAX))
            figures[f"{name}_{size}"] = found
            costs[name, size] = found["add_us"] or 0.0
            rows.append((name, f"{size:,}", *map(_shown, found.values())))
    growth = max(
        costs[name, larger] / costs[name, smaller]
        for name in ("overlap", "apart")
        for smaller, larger in ((1_000, 10_000), (10_000, 100_000))
        if (name, larger) in costs
    )
    claims = [
        # A cost per filter that grows as fast as their number would be tenfold.
        at_most("add_growth_per_tenfold", 4.0, growth, "×"),
        at_most("add_overlap_100k_us", 1_000.0, costs.get(("overlap", 100_000)), "µs"),
        at_most("add_apart_100k_us", 1_000.0, costs.get(("apart", 100_000)), "µs"),
    ]
    columns = ("workload", "filters", "add µs", "discard µs", "walk add µs", "roots", "edges")
    return Report("covering", figures, columns, rows, claims)


def _shown(figure: float | None) -> str:
    return "" if figure is None else f"{figure:,.0f}"


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


def _measured(filters: Sequence[Filter], walked: bool) -> dict[str, float | None]:
    """CPU microseconds for each filter added and discarded, and what came out."""
    start = time.process_time()
    poset = _poset(filters)
    add_s = time.process_time() - start
    nodes = list(poset._relations)
    edges = _edges(nodes)
    walk_s = _walked(filters, edges) if walked else None
    leaving = Random(SEED).sample(range(len(filters)), len(filters) // 2)
    roots = len(poset.roots())
    start = time.process_time()
    for at in leaving:
        poset.discard(str(at))
    discard_s = time.process_time() - start
    return {
        "add_us": add_s / len(filters) * 1e6,
        "discard_us": discard_s / len(leaving) * 1e6,
        "walk_add_us": None if walk_s is None else walk_s / len(filters) * 1e6,
        "roots": roots,
        "edges": len(edges),
    }


def _poset(filters: Sequence[Filter]) -> Poset:
    poset = Poset()
    for at, one in enumerate(filters):
        poset.add(str(at), one)
    return poset


def _edges(nodes: Iterable[Node]) -> Edges:
    return {(above.filter, node.filter) for node in nodes for above in node.successors}


def _walked(filters: Sequence[Filter], edges: Edges) -> float:
    """CPU seconds of the walk, whose answer must be the same."""
    start = time.process_time()
    walk = _Walk()
    for one in filters:
        walk.add(one)
    taken = time.process_time() - start
    assert _edges(walk.nodes) == edges
    return taken


class _Walk:
    """The poset as the paper builds it, for filters of which no two say the same."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._roots: dict[Node, None] = {}

    def add(self, one: Filter) -> None:
        new = Node("", one, domains_of(one))
        above = self._nearest_above(new)
        below = self._nearest_below(new, above)
        for wider in above:
            for narrower in below:
                wider.predecessors.pop(narrower, None)
                narrower.successors.pop(wider, None)
            wider.predecessors[new] = new.successors[wider] = None
        for narrower in below:
            new.predecessors[narrower] = narrower.successors[new] = None
            self._roots.pop(narrower, None)
        if not above:
            self._roots[new] = None
        self.nodes.append(new)

    def _nearest_above(self, new: Node) -> list[Node]:
        nearest = []
        queue = [root for root in self._roots if root.covers(new)]
        seen = set(queue)
        for node in queue:
            covering = [below for below in node.predecessors if below.covers(new)]
            if not covering:
                nearest.append(node)
            queue.extend(below for below in covering if below not in seen)
            seen.update(covering)
        return nearest

    def _nearest_below(self, new: Node, above: Sequence[Node]) -> list[Node]:
        # What it covers is below all that cover it; without any, it may be anywhere.
        start = [one for node in above for one in node.predecessors] if above else self._roots
        queue = list(dict.fromkeys(start))
        seen = set(queue)
        found: dict[Node, None] = {}
        for node in queue:
            if new.covers(node):
                found[node] = None
                continue
            further = [below for below in node.predecessors if below not in seen]
            seen.update(further)
            queue.extend(further)
        return [node for node in found if not any(top.covers(node) for top in found if top != node)]
