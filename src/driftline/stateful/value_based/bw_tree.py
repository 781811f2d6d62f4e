"""The BW-tree: those with one radius in a circle, by labels. [VALUE §4.3]

By their centres, subscriptions with one radius stand in a circle whose order no event changes. The
tree has them by their labels, which are that order cut open somewhere; `boundary` is the label of
the lowest centre, from where on centres rise, round to the label before it:

    labels     10  20  30  40  50  60
    centres    20  23  24  24  14  17      boundary 50
    value 24 → 26, radius 11: up to 15 are told, label 50; its centre is 26, the boundary 60

A node knows the least and the largest centre below it, and by its reset bit that all below were
told at once, so that a whole arc is written in O(log n). It is weight-balanced: a node of height h
has at most 8^(h + 1) below it and is split by their number. Where two labels have no room between
them for a third, the lowest node above that has room enough spreads those below it evenly.

We differ: a node that the boundary cuts is looked into, where the paper keeps two pairs of centres
in it. `classes` does without the tree.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TypeAlias

from driftline.errors import InvalidValue
from driftline.model.value import show
from driftline.stateful.value_based.label_tree import (
    Node,
    Test,
    anything,
    assign,
    check_node,
    child_at,
    first_label,
    ids_between,
    insert,
    last_label,
    relabel,
    remove,
)
from driftline.stateful.value_based.plain import Plain
from driftline.stateful.value_based.reference import DEFAULT
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.span import LABELS, Address, Span
from driftline.stateful.value_based.structure import admit_held

_GAP = 16
"""Where labels are spread, so much room is between two of them, and twice as much a level up."""

Arc: TypeAlias = tuple[int, int]


class Circle:
    """Those with one radius: by label in a tree, by id in a dictionary."""

    def __init__(self) -> None:
        self._root = Node()
        self._boundary = 0
        self.labels: dict[int, int] = {}
        self.relabelled = 0

    @property
    def least(self) -> float:
        return self._root.least

    @property
    def most(self) -> float:
        return self._root.most

    def rises(self, told: Test, value: float) -> Arc | None:
        """The value rose: who is told, from the boundary on. Some are, but not all."""
        behind = self._next(lambda centre: not told(centre), self._boundary)
        if behind is None or behind == self._boundary:
            return None if behind is not None else self._all(value)
        arc = self._boundary, (behind - 1) % LABELS
        self._assign(arc, value)
        self._boundary = behind
        return arc

    def falls(self, told: Test, value: float) -> Arc | None:
        """The value fell: who is told, from before the boundary back."""
        before = self._previous(lambda centre: not told(centre), self._boundary)
        if before is None:
            return self._all(value)
        first = self._successor(before)
        if first == self._boundary:
            return None
        arc = first, (self._boundary - 1) % LABELS
        self._assign(arc, value)
        self._boundary = first
        return arc

    def collapse(self, centre: float) -> None:
        """All were told at once."""
        self._all(centre)

    def _all(self, value: float) -> Arc:
        self._assign((0, LABELS - 1), value)
        return self._boundary, (self._boundary - 1) % LABELS

    def insert(self, id: int, centre: float) -> None:
        """Put one where its centre belongs: before the first that has a higher one."""
        if not self.labels:
            self._root = Node([LABELS // 2], [centre], [id])
            self._root.refresh()
            self.labels[id] = self._boundary = LABELS // 2
            return
        behind = self._next(lambda other: other > centre, self._boundary)
        lowest = behind == self._boundary
        behind = self._boundary if behind is None else behind
        anchor = self._ids_between(behind, behind)[0]
        edge = self._ids_between(self._boundary, self._boundary)[0]
        label = self._label_before(anchor)
        self._add(label, centre, id)
        self.labels[id] = label
        # The boundary may have been given another label meanwhile.
        self._boundary = label if lowest else self.labels[edge]

    def delete(self, id: int) -> None:
        """Take one out."""
        label = self.labels.pop(id)
        if label == self._boundary and self.labels:
            self._boundary = self._successor(label)
        remove(self._root, label)
        while len(self._root.children) == 1:
            self._root.push()
            self._root = self._root.children[0]

    def centre(self, id: int) -> float:
        node, label = self._root, self.labels[id]
        while node.children and not node.reset:
            node = node.children[child_at(node, label)]
        return node.least if node.reset else node.centres[bisect_left(node.labels, label)]

    def ids(self, arc: Arc) -> list[int]:
        """Those from one label to another, round."""
        first, last = arc
        if first <= last:
            return self._ids_between(first, last)
        return self._ids_between(first, LABELS - 1) + self._ids_between(0, last)

    # Searches, from a label round.

    def _next(self, wanted: Test, start: int) -> int | None:
        """The first label from `start` on, round, whose centre is wanted; those before it are not.

        Centres rise from there on, so a subtree whose largest is not wanted has none.
        """
        found = first_label(self._root, start, LABELS - 1, wanted)
        return found if found is not None else first_label(self._root, 0, start - 1, wanted)

    def _previous(self, wanted: Test, start: int) -> int | None:
        """The mirror image: the last label before `start`."""
        found = last_label(self._root, 0, start - 1, wanted)
        return found if found is not None else last_label(self._root, start, LABELS - 1, wanted)

    def _successor(self, label: int) -> int:
        found = first_label(self._root, label + 1, LABELS - 1, anything)
        return self._root.first if found is None else found

    def _ids_between(self, first: int, last: int) -> list[int]:
        return ids_between(self._root, first, last)

    # Changes.

    def _assign(self, arc: Arc, value: float) -> None:
        first, last = arc
        if first <= last:
            assign(self._root, first, last, value)
        else:
            assign(self._root, first, LABELS - 1, value)
            assign(self._root, 0, last, value)

    def _label_before(self, anchor: int) -> int:
        """A label between that of one and the one before it; labels nearby may be spread for it."""
        while True:
            behind = self.labels[anchor]
            before = last_label(self._root, 0, behind - 1, anything)
            if before is None and behind == 0:
                # Nothing is below 0: go on behind the last, which is the same place in the circle.
                before, behind = self._root.last, LABELS
            low = -1 if before is None else before
            if behind - low > 1:
                return (low + behind) // 2
            self._spread(behind % LABELS)

    def _spread(self, label: int) -> None:
        """Give those around a label more room."""
        path = [self._root]
        while path[-1].children:
            path.append(path[-1].children[child_at(path[-1], label)])
        for node in reversed(path):
            before = last_label(self._root, 0, node.first - 1, anything)
            behind = first_label(self._root, node.last + 1, LABELS - 1, anything)
            low = -1 if before is None else before
            step = ((LABELS if behind is None else behind) - low) // (node.weight + 1)
            if step >= _GAP << node.height or node is self._root:
                break
        ids = ids_between(node, 0, LABELS - 1)
        edge = ids_between(self._root, self._boundary, self._boundary)[0]
        fresh = [low + step * (at + 1) for at in range(len(ids))]
        self.labels.update(zip(ids, fresh, strict=True))
        self.relabelled += len(ids)
        relabel(node, iter(fresh))
        for above in reversed(path[: path.index(node)]):
            above.first, above.last = above.children[0].first, above.children[-1].last
        self._boundary = self.labels[edge]

    def _add(self, label: int, centre: float, id: int) -> None:
        split = insert(self._root, label, centre, id)
        if split is not None:
            self._root = Node(children=[self._root, split], height=self._root.height + 1)
            self._root.refresh()

    def _check(self) -> None:
        ids = ids_between(self._root, 0, LABELS - 1)
        labels = [self.labels[id] for id in ids]
        assert len(ids) == len(self.labels) == self._root.weight
        assert labels == sorted(set(labels))
        check_node(self._root)
        if ids:
            edge = labels.index(self._boundary)
            centres = [self.centre(id) for id in ids[edge:] + ids[:edge]]
            assert centres == sorted(centres)


class BWTree(Plain):
    """See `Structure`: O(log n) an event. All have one radius: another is refused."""

    def __init__(self, value: float, rule: Rule = DEFAULT) -> None:
        super().__init__(value, rule)
        self._circle = Circle()

    def _takes(self, rule: Rule) -> bool:
        return rule.circular

    def _put(self, id: int, radius: float, centre: float) -> None:
        if radius != next((known for one, known in self._radii.items() if one != id), radius):
            raise InvalidValue("radius", "the one that all have", show(radius))
        circle = self._circle
        if circle.labels and not self.rule.fits(
            min(circle.least, centre), max(circle.most, centre), radius
        ):
            raise InvalidValue("centre", "one in the order of the circle", show(centre))
        circle.insert(id, centre)

    def _take(self, id: int, radius: float) -> None:
        self._circle.delete(id)

    def _move(self, value: float) -> list[Span]:
        radius = next(iter(self._radii.values()))
        arc = move_circle(self._circle, self.rule, radius, self.value, value)
        return [] if arc is None else [Span(radius, radius, arc=arc)]

    def _ids(self, spans: list[Span]) -> list[int]:
        return [id for span in spans if span.arc for id in self._circle.ids(span.arc)]

    def address(self, id: int) -> Address:
        """See `Structure`."""
        return Address(self._radii[id], 0, self._circle.labels[admit_held(self, id)])

    def centre(self, id: int) -> float:
        """See `Structure`."""
        return self._circle.centre(admit_held(self, id))

    def _check(self) -> None:
        super()._check()
        self._circle._check()
        assert self._circle.labels.keys() == self._radii.keys()


def move_circle(
    circle: Circle, rule: Rule, radius: float, before: float, value: float
) -> Arc | None:
    """Who of a circle is told that the value moved?"""

    def told(centre: float) -> bool:
        return rule.tells(centre, radius, value)

    return circle.rises(told, value) if value > before else circle.falls(told, value)
