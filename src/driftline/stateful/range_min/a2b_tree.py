"""The A2B-tree: the augmented two-tier B-tree of the paper [DBNET §3.1.1].

The upper tier is a B-tree on x; an entry of its leaves leads to a lower tier with all tuples of
that x, by y. Every entry of the upper tier also says the least y below it, so that the nearest x
with a small enough y is found by going up once and down once. An entry's key is the largest x below
it, as in the paper's Figure 5:

    upper   [110: 4 | 120: 1 | 200: 2]      the least y with x <= 110 is 4, then 1, then 2
                        |
            [112: 1 | 117: 3 | 120: 6]      a leaf: the least y at 112 is 1
               |
    lower   [(1, id 7), (5, id 2)]          the tuples at 112

We differ: FindR's listing drops a result (line 8 assigns one variable, line 18 returns another) and
counts entries from 0 and from 1; and it looks at x itself, where we look beyond it only. The lower
tier is a sorted list: that tells the same, and groups are small. A node is taken away when it is
empty and not before, which keeps the height within the logarithm of the most it ever held.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa

from driftline.stateful.range_min.change import Change
from driftline.stateful.range_min.rule import reformulate
from driftline.stateful.range_min.structure import (
    Point,
    admit_id,
    admit_point,
    admit_range,
    read_table,
    write_table,
)

FANOUT = 32


@dataclass(slots=True)
class _Leaf:
    """Entries to groups: for each x its tuples as (y, id), in order."""

    keys: list[float] = field(default_factory=list)
    least: list[float] = field(default_factory=list)
    groups: list[list[tuple[float, int]]] = field(default_factory=list)


@dataclass(slots=True)
class _Inner:
    """Entries to nodes one level down."""

    keys: list[float]
    least: list[float]
    nodes: list[_Node]


_Node = _Leaf | _Inner


class A2BTree:
    """See `Structure`: O(log n) to change a tuple, and for each message."""

    def __init__(self, fanout: int = FANOUT) -> None:
        self._fanout = fanout
        self._root: _Node = _Leaf()
        self._points: dict[int, Point] = {}

    def change(self, id: int, new: Point | None) -> list[Change]:
        """See `Structure`."""
        id, new = admit_id(id), admit_point(new)
        return reformulate(self, self._points.get(id), new, lambda: self._put(id, new))

    def minimum(self, low: float, high: float) -> float | None:
        """See `Structure`."""
        least = _least_within(self._root, *admit_range(low, high))
        return None if math.isinf(least) else least

    def least_at(self, x: float) -> float:
        """See `Table`."""
        return _least_within(self._root, x, x)

    def find_left(self, x: float, y: float, *, strict: bool) -> float:
        """FindL [§3.1.1]."""
        return _find_left(self._root, x, y, strict)

    def find_right(self, x: float, y: float, *, strict: bool) -> float:
        """FindR [§3.1.1]."""
        return _find_right(self._root, x, y, strict)

    def dump(self) -> pa.Table:
        """See `Structure`."""
        return write_table(self._points.items())

    @classmethod
    def load(cls, table: pa.Table) -> Self:
        """See `Structure`."""
        made = cls()
        for id, point in read_table(table):
            made._put(id, point)
        return made

    def __len__(self) -> int:
        return len(self._points)

    def _put(self, id: int, new: Point | None) -> None:
        old = self._points.pop(id, None)
        if old is not None:
            _remove(self._root, id, old)
            while isinstance(self._root, _Inner) and len(self._root.nodes) == 1:
                self._root = self._root.nodes[0]
        if new is not None:
            self._points[id] = new
            split = _insert(self._root, id, new, self._fanout)
            if split is not None:
                both = [self._root, split]
                self._root = _Inner([_key(n) for n in both], [min(n.least) for n in both], both)

    def _check(self) -> None:
        assert isinstance(self._root, _Leaf) or len(self._root.nodes) > 1
        held: list[tuple[int, Point]] = []
        _check(self._root, -math.inf, self._fanout, held)
        assert sorted(held) == sorted(self._points.items())


def _small(least: float, y: float, strict: bool) -> bool:
    return least < y or (least == y and not strict)


def _find_right(node: _Node, x: float, y: float, strict: bool) -> float:
    """The first entry beyond x that is small enough, below the one x leads to or behind it."""
    at = bisect_right(node.keys, x)
    if isinstance(node, _Inner) and at < len(node.keys) and _small(node.least[at], y, strict):
        found = _find_right(node.nodes[at], x, y, strict)
        if math.isfinite(found):
            return found
    return _search_right(node, at + isinstance(node, _Inner), y, strict)


def _search_right(node: _Node, first: int, y: float, strict: bool) -> float:
    """The first entry that is small enough, from one on: then down to the first x below it."""
    for at in range(first, len(node.keys)):
        if _small(node.least[at], y, strict):
            if isinstance(node, _Leaf):
                return node.keys[at]
            return _search_right(node.nodes[at], 0, y, strict)
    return math.inf


def _find_left(node: _Node, x: float, y: float, strict: bool) -> float:
    """The mirror image; the entry that x leads to may have some to its left too."""
    at = bisect_left(node.keys, x)
    if isinstance(node, _Inner) and at < len(node.keys) and _small(node.least[at], y, strict):
        found = _find_left(node.nodes[at], x, y, strict)
        if math.isfinite(found):
            return found
    return _search_left(node, at - 1, y, strict)


def _search_left(node: _Node, first: int, y: float, strict: bool) -> float:
    for at in range(first, -1, -1):
        if _small(node.least[at], y, strict):
            if isinstance(node, _Leaf):
                return node.keys[at]
            child = node.nodes[at]
            return _search_left(child, len(child.keys) - 1, y, strict)
    return -math.inf


def _least_within(node: _Node, low: float, high: float) -> float:
    """The least y with x in [low, high]: whole entries in between, and the ends looked into."""
    first, last = bisect_left(node.keys, low), bisect_right(node.keys, high)
    if isinstance(node, _Leaf):
        return min(node.least[first:last], default=math.inf)
    # Entries before `last` end within the range; the first of them may begin before it.
    ends = {first, last} & set(range(len(node.nodes)))
    least = min(node.least[first + 1 : last], default=math.inf)
    return min([least, *(_least_within(node.nodes[at], low, high) for at in ends)])


def _insert(node: _Node, id: int, point: Point, fanout: int) -> _Node | None:
    """Put a tuple below a node; the right half of the node if it had to be split."""
    x, y = point
    at = bisect_left(node.keys, x)
    if isinstance(node, _Leaf):
        if at == len(node.keys) or node.keys[at] != x:
            node.keys.insert(at, x)
            node.least.insert(at, math.inf)
            node.groups.insert(at, [])
        insort(node.groups[at], (y, id))
        node.least[at] = node.groups[at][0][0]
    else:
        at = min(at, len(node.nodes) - 1)
        split = _insert(node.nodes[at], id, point, fanout)
        _refresh(node, at)
        if split is not None:
            node.keys.insert(at + 1, _key(split))
            node.least.insert(at + 1, min(split.least))
            node.nodes.insert(at + 1, split)
    return _split(node) if len(node.keys) > fanout else None


def _split(node: _Node) -> _Node:
    half = len(node.keys) // 2
    right: _Node
    if isinstance(node, _Leaf):
        right = _Leaf(node.keys[half:], node.least[half:], node.groups[half:])
        del node.groups[half:]
    else:
        right = _Inner(node.keys[half:], node.least[half:], node.nodes[half:])
        del node.nodes[half:]
    del node.keys[half:], node.least[half:]
    return right


def _remove(node: _Node, id: int, point: Point) -> None:
    """Take a tuple away, and what becomes empty by that."""
    x, y = point
    at = bisect_left(node.keys, x)
    if isinstance(node, _Leaf):
        group = node.groups[at]
        del group[bisect_left(group, (y, id))]
        if group:
            node.least[at] = group[0][0]
        else:
            del node.keys[at], node.least[at], node.groups[at]
        return
    _remove(node.nodes[at], id, point)
    if node.nodes[at].keys:
        _refresh(node, at)
    else:
        del node.keys[at], node.least[at], node.nodes[at]


def _refresh(node: _Inner, at: int) -> None:
    node.keys[at] = _key(node.nodes[at])
    node.least[at] = min(node.nodes[at].least)


def _key(node: _Node) -> float:
    return node.keys[-1]


def _check(node: _Node, low: float, fanout: int, held: list[tuple[int, Point]]) -> int:
    """Check what is below a node, all of it beyond `low`; how many levels there are."""
    assert len(node.keys) <= fanout
    assert all(a < b for a, b in zip([low, *node.keys], node.keys, strict=False))
    if isinstance(node, _Leaf):
        for x, least, group in zip(node.keys, node.least, node.groups, strict=True):
            assert group == sorted(group)
            assert group[0][0] == least
            held += [(id, (x, y)) for y, id in group]
        return 1
    depths = set()
    for key, least, child in zip(node.keys, node.least, node.nodes, strict=True):
        assert (key, least) == (_key(child), min(child.least))
        depths.add(_check(child, low, fanout, held))
        low = key
    assert len(depths) == 1
    return 1 + depths.pop()
