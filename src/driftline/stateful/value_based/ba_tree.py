"""The BA-tree: an augmented B-tree on radii. [VALUE §3.2]

An entry says by how much the value must fall, or rise, until the first and until the last of all
below it is told; `lookup` is Algorithm 1. Where nobody below an entry is told, the move is added to
its drift and goes no further; where all are, that is noted by its reset bit:

    radii 2, 4, 6, all told at 100:      left 2..6, right 2..6
    value 100 → 101.5: nobody            left 3.5..7.5, right 0.5..4.5, drift 1.5
    value 101.5 → 102: radius 2          goes down with 1.5 + 0.5

All who have one radius have one centre [VALUE §3], so entries of leaves have ids. An entry's fields
are right as of the last move that went to its node; whoever wants to know more of it must go there
(`_way`), and takes what waits on the way along.

Moves are added up, so on floats that round it may say something else than the definition: it is
here for values in ticks, and for comparison. `end_points` needs no drift.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import TypeAlias

from driftline.errors import InvalidValue
from driftline.model.value import show
from driftline.stateful.value_based.plain import Plain
from driftline.stateful.value_based.reference import DEFAULT
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.span import Address, Span
from driftline.stateful.value_based.structure import admit_held

FANOUT = 16

Fields: TypeAlias = tuple[float, float, float, float]
"""How far to the left and to the right until the first is told, and until the last is."""


@dataclass(slots=True)
class Entry:
    """An entry of a node; one of a leaf has no child. The names of the paper are in brackets."""

    low: float  # [rmin]
    high: float  # [rmax]
    left_min: float  # [Lmin]
    right_min: float  # [Rmin]
    left_max: float  # [Lmax]
    right_max: float  # [Rmax]
    drift: float = 0.0  # [γ]
    reset: bool = False  # [ρ]
    child: list[Entry] | None = None
    ids: set[int] = field(default_factory=set)

    def set(self, fields: Fields) -> None:
        self.left_min, self.right_min, self.left_max, self.right_max = fields

    def recentre(self) -> None:
        """All below were told: the value is the centre of all."""
        self.set((self.low, self.low, self.high, self.high))
        self.reset, self.drift = True, 0.0

    def shift(self, move: float) -> None:
        """The value moved, and nobody below was told."""
        self.left_min += move
        self.right_min -= move
        self.left_max += move
        self.right_max -= move
        self.drift += move


def new_entry(radius: float, least: float, most: float, value: float) -> Entry:
    """An entry of a leaf, for centres between two."""
    return Entry(radius, radius, *fields_of(radius, least, most, value))


def fields_of(radius: float, least: float, most: float, value: float) -> Fields:
    return (
        value - (most - radius),
        least + radius - value,
        value - (least - radius),
        most + radius - value,
    )


class BATree(Plain):
    """See `Structure`: O(ranges log n) an event."""

    def __init__(self, value: float, rule: Rule = DEFAULT, fanout: int = FANOUT) -> None:
        super().__init__(value, rule)
        assert fanout >= 3, "half of a node that is split must be more than one entry"
        self._fanout = fanout
        self._root: list[Entry] = []
        self._spans: list[Span] = []
        self._running = False

    def _takes(self, rule: Rule) -> bool:
        return rule == DEFAULT

    # Algorithm 1.

    def _move(self, value: float) -> list[Span]:
        self._spans, self._running = [], False
        self._lookup(self._root, value - self.value, False, value)
        return self._spans

    def _lookup(self, node: list[Entry], move: float, reset: bool, value: float) -> Fields:
        """Algorithm 1. The numbers of its lines are in brackets."""
        found: Fields = (inf, inf, 0.0, 0.0)  # [2]
        for entry in node:
            if reset:  # [4]
                entry.recentre()
            if -entry.left_min < move < entry.right_min:  # [7] nobody
                entry.shift(move)
                self._running = False
            elif -entry.left_max < move < entry.right_max:  # [13] some
                self._some(entry, move, value)
            else:  # [16] all
                entry.recentre()
                self._extend(entry.low, entry.high)
            found = (  # [20]
                min(found[0], entry.left_min),
                min(found[1], entry.right_min),
                max(found[2], entry.left_max),
                max(found[3], entry.right_max),
            )
        return found

    def _some(self, entry: Entry, move: float, value: float) -> None:
        """[14]; an entry of a leaf has one centre, so it is never told in part."""
        assert entry.child is not None
        entry.set(self._lookup(entry.child, entry.drift + move, entry.reset, value))
        entry.reset, entry.drift = False, 0.0

    def _extend(self, low: float, high: float) -> None:
        """Make the last range longer, if nobody has come between: so ranges are maximal."""
        if self._running:
            self._spans[-1] = self._spans[-1]._replace(high=high)
        else:
            self._spans.append(Span(low, high))
        self._running = True

    # Inserts and deletes: those of a B-tree.

    def _put(self, id: int, radius: float, centre: float) -> None:
        entry = self._leaf(radius)
        if entry is None:
            entry = new_entry(radius, centre, centre, self.value)
            self._grow(entry)
        elif self._centre_of(entry) != centre:
            raise InvalidValue("centre", f"that of radius {radius!r}", show(centre))
        entry.ids.add(id)

    def _take(self, id: int, radius: float) -> None:
        entry = self._leaf(radius)
        assert entry is not None
        entry.ids.remove(id)
        if not entry.ids:
            self._shrink(radius)

    def _grow(self, entry: Entry) -> None:
        """Put an entry into a leaf; nodes that become too large are split."""
        split = self._insert(self._root, entry)
        if split is not None:
            self._root = [_above(self._root), _above(split)]

    def _insert(self, node: list[Entry], entry: Entry) -> list[Entry] | None:
        at = bisect_left(node, entry.low, key=_high)
        if node and node[0].child is not None:
            at = min(at, len(node) - 1)
            push(node[at])
            child = node[at].child
            assert child is not None
            split = self._insert(child, entry)
            node[at] = _above(child)
            if split is not None:
                node.insert(at + 1, _above(split))
        else:
            node.insert(at, entry)
        if len(node) <= self._fanout:
            return None
        half = len(node) // 2
        behind = node[half:]
        del node[half:]
        return behind

    def _shrink(self, radius: float) -> None:
        """Take the entry of a radius out, and what becomes empty by that."""
        self._remove(self._root, radius)
        while len(self._root) == 1 and self._root[0].child is not None:
            push(self._root[0])
            self._root = self._root[0].child

    def _remove(self, node: list[Entry], radius: float) -> None:
        at = bisect_left(node, radius, key=_high)
        child = node[at].child
        if child is None:
            del node[at]
            return
        push(node[at])
        self._remove(child, radius)
        if child:
            node[at] = _above(child)
        else:
            del node[at]

    def _leaf(self, radius: float) -> Entry | None:
        """The entry of a radius, to which nothing waits."""
        node = self._root
        while True:
            at = bisect_left(node, radius, key=_high)
            if at == len(node):
                return None
            entry = node[at]
            if entry.child is None:
                return entry if entry.low == radius else None
            push(entry)
            node = entry.child

    # What is asked.

    def _centre_of(self, entry: Entry) -> float:
        return self.value - entry.left_min + entry.low

    def _leaves(self, node: list[Entry], low: float, high: float) -> list[Entry]:
        """The entries of leaves with radii from one to another."""
        found: list[Entry] = []
        first, last = bisect_left(node, low, key=_high), bisect_right(node, high, key=_low)
        for entry in node[first:last]:
            found += [entry] if entry.child is None else self._leaves(entry.child, low, high)
        return found

    def _ids(self, spans: list[Span]) -> list[int]:
        return [
            id
            for span in spans
            for leaf in self._leaves(self._root, span.low, span.high)
            for id in leaf.ids
        ]

    def address(self, id: int) -> Address:
        """See `Structure`."""
        return Address(self._radii[admit_held(self, id)])

    def centre(self, id: int) -> float:
        """See `Structure`."""
        entry = self._leaf(self._radii[admit_held(self, id)])
        assert entry is not None
        return self._centre_of(entry)

    def _check(self) -> None:
        super()._check()
        leaves = self._leaves(self._root, -inf, inf)
        assert sorted(id for leaf in leaves for id in leaf.ids) == sorted(self._radii)
        assert all(self._radii[id] == leaf.low == leaf.high for leaf in leaves for id in leaf.ids)
        check_node(self._root, self._fanout)


def _low(entry: Entry) -> float:
    return entry.low


def _high(entry: Entry) -> float:
    return entry.high


def push(entry: Entry) -> None:
    """Let what waits at an entry go to its child: Algorithm 1 with a move that concerns nobody."""
    for below in entry.child or ():
        if entry.reset:
            below.recentre()
        below.shift(entry.drift)
    entry.reset, entry.drift = False, 0.0


def _above(node: list[Entry]) -> Entry:
    """An entry for a node, to which nothing waits."""
    return Entry(
        node[0].low,
        node[-1].high,
        min(entry.left_min for entry in node),
        min(entry.right_min for entry in node),
        max(entry.left_max for entry in node),
        max(entry.right_max for entry in node),
        child=node,
    )


def check_node(node: list[Entry], fanout: int) -> int:
    """Check what is below; how many levels there are."""
    assert len(node) <= fanout
    assert all(one.high < two.low for one, two in pairwise(node))
    depths = {0}
    for entry in node:
        if entry.child is None:
            depths.add(1)
            continue
        push(entry)
        assert entry.child
        there = _above(entry.child)
        assert (entry.low, entry.high) == (there.low, there.high)
        assert (entry.left_min, entry.right_min) == (there.left_min, there.right_min)
        assert (entry.left_max, entry.right_max) == (there.left_max, there.right_max)
        depths.add(1 + check_node(entry.child, fanout))
    assert len(depths) <= 2
    return max(depths)
