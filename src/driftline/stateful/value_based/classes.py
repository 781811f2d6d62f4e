"""Ours for one radius: a queue of classes in place of the BW-tree. [VALUE §4]

Those who were last told the same value are a class and are told together for ever. In the order of
their centres, classes are taken from one end of a queue and put back at the other, as one:

    value 19 → 24, radius 11     12 13 | 14 17 20 23   →   14 17 20 23 24

So an event costs as much as there are classes that become one, which happens to each once, after it
began: O(1), amortised. `driftline.kernels.moved_rings` says more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from driftline.errors import InvalidValue
from driftline.kernels import moved_events as events
from driftline.kernels import moved_layout as at
from driftline.model.value import show
from driftline.stateful.value_based.circle import Arranged
from driftline.stateful.value_based.packed import Packed
from driftline.stateful.value_based.reference import DEFAULT
from driftline.stateful.value_based.rule import Floats, Rule
from driftline.stateful.value_based.structure import Ids


class Classes(Packed):
    """See `Structure`: O(1) an event, amortised. All have one radius: another is refused.

    So is a centre that is not in the order of the circle, which no history can bring about.
    """

    _joins = True

    def __init__(self, value: float, rule: Rule = DEFAULT) -> None:
        if not rule.circular:
            raise InvalidValue("rule", "one that keeps a circle in order", show(rule))
        super().__init__(value, rule)

    @property
    def radius(self) -> float | None:
        """The radius of all; None if there is nobody."""
        return float(self._f[self._entry() + at.B_RADIUS]) if len(self) else None

    def _entry(self) -> int:
        return int(at.block(self._m, self._n, 0))

    def _kernel(self) -> Callable[..., int]:
        # Whoever is alone is no ring, and the tree is small.
        return events.tell_ring if self._ring() is not None else events.tell_many

    def _ring(self) -> int | None:
        ref = int(self._n[2 * self._entry() + at.B_REF])
        return -(1 + ref) if len(self) and ref < 0 else None

    def _insert(self, ids: Ids, radii: Floats, centres: Floats, shared: bool) -> None:
        if not len(ids):
            return
        radius = self.radius or float(radii[0])
        if (radii != radius).any():
            raise InvalidValue("radius", f"{radius!r}, as all have it", "another")
        known = centres[centres == centres].tolist()
        if len(self):
            entry = self._entry()
            known += self._f[[entry + at.B_LEAST, entry + at.B_MOST]].tolist()
        if known and not self.rule.fits(min(known), max(known), radius):
            raise InvalidValue("centre", "one in the order of the circle", "another")
        super()._insert(ids, radii, centres, shared)

    def change_many(self, ids: object, radii: object) -> NDArray[np.bool_]:
        """See `Packed`: only one who is alone can have another radius."""
        wanted = self.rule.admit_radii(radii)
        if len(self) > 1 and (wanted != self.radius).any():
            raise InvalidValue("radius", f"{self.radius!r}, as all have it", "another")
        return super().change_many(ids, radii)

    def _pack(self, all_: Arranged, value: float, ids_cap: int) -> None:
        if len(all_.ids) and ((all_.radii != all_.radii[0]).any() or all_.rings.any()):
            raise InvalidValue("table", "one radius, and one circle", "several")
        super()._pack(all_, value, ids_cap)
