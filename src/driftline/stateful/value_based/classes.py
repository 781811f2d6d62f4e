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

    A centre that is not in the order of the circle, or finds no label left in it, begins another:
    then an event is as in `Combined`.
    """

    _joins = True

    def __init__(self, value: float, rule: Rule = DEFAULT, label_bits: int = 64) -> None:
        if not rule.circular:
            raise InvalidValue("rule", "one that keeps a circle in order", show(rule))
        super().__init__(value, rule, label_bits)

    @property
    def radius(self) -> float | None:
        """The radius of all; None if there is nobody."""
        return float(self._f[self._entry() + at.B_RADIUS]) if len(self) else None

    def _entry(self) -> int:
        return int(at.block(self._m, self._n, 0))

    def _kernel(self) -> Callable[..., int]:
        # Whoever is alone is no ring, and the tree is small.
        return events.tell_ring if self._is_one_ring() else events.tell_many

    def _is_one_ring(self) -> bool:
        entry = self._entry()
        if self._m[at.BLOCKS] > 1 or self._m[entry + at.B_COUNT] != 1:
            return False
        return bool(self._n[2 * entry + at.B_REF] < 0)

    def _insert(self, ids: Ids, radii: Floats, centres: Floats, shared: bool) -> None:
        if not len(ids):
            return
        radius = self.radius or float(radii[0])
        if (radii != radius).any():
            raise InvalidValue("radius", f"{radius!r}, as all have it", "another")
        super()._insert(ids, radii, centres, shared)

    def change_many(self, ids: object, radii: object) -> NDArray[np.bool_]:
        """See `Packed`: only one who is alone can have another radius."""
        wanted = self.rule.admit_radii(radii)
        if len(self) > 1 and (wanted != self.radius).any():
            raise InvalidValue("radius", f"{self.radius!r}, as all have it", "another")
        return super().change_many(ids, radii)

    def _pack(self, all_: Arranged, value: float, ids_cap: int) -> None:
        if len(all_.ids) and (all_.radii != all_.radii[0]).any():
            raise InvalidValue("table", "one radius", "several")
        super()._pack(all_, value, ids_cap)
