"""How are those of a circle found by their labels, and all of an arc told at once? For `bw_tree`.

A weight-balanced B-tree [VALUE §4.3]: a node of height h has at most 8^(h + 1) below it, and is
split by their number. It knows the least and the largest centre below it, and by its reset bit that
all below were told at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

FANOUT = 8

Test: TypeAlias = Callable[[float], bool]
"""Is a centre wanted?"""


@dataclass(slots=True)
class Node:
    """A leaf has labels, centres and ids; others have children."""

    labels: list[int] = field(default_factory=list)
    centres: list[float] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)
    height: int = 0
    weight: int = 0
    least: float = inf
    most: float = -inf
    reset: bool = False
    first: int = 0
    last: int = 0

    def push(self) -> None:
        """Write that all were told at once one level down."""
        if self.reset:
            self.centres = [self.least] * len(self.centres)
            for child in self.children:
                child.least, child.most, child.reset = self.least, self.least, True
            self.reset = False

    def refresh(self) -> None:
        """Say anew what is below, to which nothing waits."""
        if self.children:
            self.weight = sum(child.weight for child in self.children)
            self.least = min(child.least for child in self.children)
            self.most = max(child.most for child in self.children)
            self.first, self.last = self.children[0].first, self.children[-1].last
        elif self.labels:
            self.weight = len(self.labels)
            self.least, self.most = min(self.centres), max(self.centres)
            self.first, self.last = self.labels[0], self.labels[-1]
        else:
            self.weight = 0


def anything(centre: float) -> bool:
    return True


def child_at(node: Node, label: int) -> int:
    """Which child has a label, or would have it."""
    return min(
        bisect_left(node.children, label, key=lambda child: child.last), len(node.children) - 1
    )


def first_label(node: Node, low: int, high: int, wanted: Test) -> int | None:
    if not node.weight or high < node.first or node.last < low:
        return None
    if low <= node.first and node.last <= high and not wanted(node.most):
        return None
    if node.reset and wanted(node.least):
        return _first_of_all(node, low, high)
    node.push()
    if node.children:
        for child in node.children:
            found = first_label(child, low, high, wanted)
            if found is not None:
                return found
        return None
    pairs = zip(node.labels, node.centres, strict=True)
    return next((label for label, c in pairs if low <= label <= high and wanted(c)), None)


def _first_of_all(node: Node, low: int, high: int) -> int | None:
    while node.children:
        node = node.children[child_at(node, max(low, node.first))]
    return next((label for label in node.labels if low <= label <= high), None)


def last_label(node: Node, low: int, high: int, wanted: Test) -> int | None:
    if not node.weight or high < node.first or node.last < low:
        return None
    if low <= node.first and node.last <= high and not wanted(node.least):
        return None
    node.push()
    if node.children:
        for child in reversed(node.children):
            found = last_label(child, low, high, wanted)
            if found is not None:
                return found
        return None
    pairs = zip(reversed(node.labels), reversed(node.centres), strict=True)
    return next((label for label, c in pairs if low <= label <= high and wanted(c)), None)


def ids_between(node: Node, low: int, high: int) -> list[int]:
    if not node.weight or high < node.first or node.last < low:
        return []
    if not node.children:
        return node.ids[bisect_left(node.labels, low) : bisect_left(node.labels, high + 1)]
    return [id for child in node.children for id in ids_between(child, low, high)]


def assign(node: Node, low: int, high: int, value: float) -> None:
    """All from one label to another were told: whole subtrees only note it."""
    if not node.weight or high < node.first or node.last < low:
        return
    if low <= node.first and node.last <= high:
        node.least, node.most, node.reset = value, value, True
        return
    node.push()
    for child in node.children:
        assign(child, low, high, value)
    for at, label in enumerate(node.labels):
        if low <= label <= high:
            node.centres[at] = value
    node.refresh()


def relabel(node: Node, fresh: Iterator[int]) -> None:
    for child in node.children:
        relabel(child, fresh)
    if not node.children:
        node.labels = [next(fresh) for _ in node.labels]
        node.first, node.last = node.labels[0], node.labels[-1]
    else:
        node.first, node.last = node.children[0].first, node.children[-1].last


def insert(node: Node, label: int, centre: float, id: int) -> Node | None:
    """Put one below a node; its right half, if it has become too heavy."""
    node.push()
    if node.children:
        at = child_at(node, label)
        split = insert(node.children[at], label, centre, id)
        if split is not None:
            node.children.insert(at + 1, split)
    else:
        at = bisect_left(node.labels, label)
        node.labels.insert(at, label)
        node.centres.insert(at, centre)
        node.ids.insert(at, id)
    node.refresh()
    return _split(node) if node.weight > FANOUT ** (node.height + 1) else None


def _split(node: Node) -> Node:
    """Halve a node by weight."""
    right = Node(height=node.height)
    if node.children:
        weight, at = 0, 0
        while at < len(node.children) - 1 and weight < node.weight // 2:
            weight += node.children[at].weight
            at += 1
        node.children, right.children = node.children[:at], node.children[at:]
    else:
        at = len(node.labels) // 2
        node.labels, right.labels = node.labels[:at], node.labels[at:]
        node.centres, right.centres = node.centres[:at], node.centres[at:]
        node.ids, right.ids = node.ids[:at], node.ids[at:]
    node.refresh()
    right.refresh()
    return right


def remove(node: Node, label: int) -> None:
    node.push()
    if node.children:
        at = child_at(node, label)
        remove(node.children[at], label)
        if not node.children[at].weight:
            del node.children[at]
    else:
        at = bisect_left(node.labels, label)
        del node.labels[at], node.centres[at], node.ids[at]
    node.refresh()


def check_node(node: Node) -> None:
    node.push()
    before = (node.weight, node.least, node.most, node.first, node.last)
    node.refresh()
    assert not node.weight or before == (
        node.weight,
        node.least,
        node.most,
        node.first,
        node.last,
    )
    assert node.weight <= FANOUT ** (node.height + 1)
    for child in node.children:
        assert child.weight
        assert child.height == node.height - 1
        check_node(child)
