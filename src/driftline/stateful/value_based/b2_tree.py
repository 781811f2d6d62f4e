"""The B2-tree: a BA-tree on radii whose leaves are BW-trees. [VALUE §5]

A radius is told as a whole, not at all, or in part; only in the last case its circle is asked, and
the entry says anew how far it is to the first and to the last of it. A circle that was told as a
whole does not know it: what it was told follows from the entry, and is written when it is needed.

Like the BA-tree it adds moves up, and is for values in ticks; `combined` is for any.
"""

from __future__ import annotations

from driftline.errors import InvalidValue
from driftline.model.value import show
from driftline.stateful.value_based.ba_tree import FANOUT, BATree, Entry, fields_of, new_entry
from driftline.stateful.value_based.bw_tree import Circle, move_circle
from driftline.stateful.value_based.reference import DEFAULT
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.span import Address, Span
from driftline.stateful.value_based.structure import admit_held


class B2Tree(BATree):
    """See `Structure`: O(ranges log n) an event."""

    def __init__(self, value: float, rule: Rule = DEFAULT, fanout: int = FANOUT) -> None:
        super().__init__(value, rule, fanout)
        self._circles: dict[float, Circle] = {}

    def _some(self, entry: Entry, move: float, value: float) -> None:
        if entry.child is not None:
            super()._some(entry, move, value)
            return
        radius, circle = entry.low, self._circles[entry.low]
        arc = move_circle(circle, self.rule, radius, self.value, value)
        assert arc is not None
        entry.set(fields_of(radius, circle.least, circle.most, value))
        entry.reset = False
        self._spans.append(Span(radius, radius, arc=arc))
        self._running = False

    def _put(self, id: int, radius: float, centre: float) -> None:
        entry = self._leaf(radius)
        if entry is None:
            self._circles[radius] = Circle()
            entry = new_entry(radius, centre, centre, self.value)
            self._grow(entry)
        circle = self._settled(entry)
        if circle.labels:
            least, most = min(circle.least, centre), max(circle.most, centre)
            if not self.rule.fits(least, most, radius):
                raise InvalidValue("centre", "one in the order of the circle", show(centre))
        circle.insert(id, centre)
        entry.ids.add(id)
        self._refresh(radius, circle)

    def _take(self, id: int, radius: float) -> None:
        entry = self._leaf(radius)
        assert entry is not None
        circle = self._settled(entry)
        circle.delete(id)
        entry.ids.remove(id)
        if entry.ids:
            self._refresh(radius, circle)
        else:
            self._shrink(radius)
            del self._circles[radius]

    def _settled(self, entry: Entry) -> Circle:
        """The circle of an entry, which knows what it was told."""
        circle = self._circles[entry.low]
        if entry.reset and circle.labels:
            circle.collapse(self._centre_of(entry))
        entry.reset = False
        return circle

    def _refresh(self, radius: float, circle: Circle) -> None:
        """Say anew, from the root down, how far it is to those of a radius."""
        entry = self._leaf(radius)
        assert entry is not None
        ids = entry.ids
        self._shrink(radius)
        again = new_entry(radius, circle.least, circle.most, self.value)
        again.ids = ids
        self._grow(again)

    def _ids(self, spans: list[Span]) -> list[int]:
        whole = super()._ids([span for span in spans if span.arc is None])
        arcs = ((self._circles[span.low], span.arc) for span in spans if span.arc)
        return whole + [id for circle, arc in arcs for id in circle.ids(arc)]

    def address(self, id: int) -> Address:
        """See `Structure`."""
        radius = self._radii[admit_held(self, id)]
        return Address(radius, 0, self._circles[radius].labels[id])

    def centre(self, id: int) -> float:
        """See `Structure`."""
        entry = self._leaf(self._radii[admit_held(self, id)])
        assert entry is not None
        return self._settled(entry).centre(id)

    def _check(self) -> None:
        super()._check()
        assert self._circles.keys() == set(self._radii.values())
        for circle in self._circles.values():
            circle._check()
