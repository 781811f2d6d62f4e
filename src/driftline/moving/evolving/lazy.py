"""Nothing is done until an event comes; then all rows are looked at [EVOLVE IV.B, LEES].

What time does to a subscription costs nothing, and every event pays for every row: best where
events are rare, or rows few.
"""

from __future__ import annotations

import numpy as np

from driftline.moving.evolving.arrays import Floats
from driftline.moving.evolving.family import Family, Moment, Rows, Sheet
from driftline.moving.evolving.ways import Found


class Lazy:
    """Look at every row."""

    name = "lazy"
    __slots__ = ()

    def look(self, family: Family, sheet: Sheet, moment: Moment, x: Floats, first: bool) -> Found:
        """The rows whose bounds hold, for sure or perhaps."""
        # Imported when it is used: it brings compiled code with it.
        from driftline.kernels.motion import look

        found, marks = family.room()
        count = look(
            sheet.coefficients,
            family.starts,
            len(family),
            family.plan.degree,
            moment.at,
            x,
            family.plan.sides,
            family.margin(sheet, x, moment.at),
            first,
            found,
            marks,
        )
        return found[:count], marks[:count]

    def look_at(self, family: Family, sheet: Sheet, moment: Moment, x: Floats, rows: Rows) -> Found:
        """Of these rows those whose bounds hold."""
        from driftline.kernels.motion import look_some

        found, marks = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int8)
        count = look_some(
            sheet.coefficients,
            family.starts,
            rows,
            family.plan.degree,
            moment.at,
            x,
            family.plan.sides,
            family.margin(sheet, x, moment.at),
            found,
            marks,
        )
        return found[:count], marks[:count]

    def touch(self, name: str) -> None:
        """Nothing is kept of a row."""

    def forget(self, name: str) -> None:
        """Nothing is kept of a row."""

    def _check(self, family: Family) -> None:
        pass
