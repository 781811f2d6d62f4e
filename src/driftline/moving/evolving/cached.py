"""Bounds that are wide enough for a while, made when an event needs them [EVOLVE IV.C, CLEES].

Each row keeps its bounds for the interval after the event they were made for. What lies outside
them is not looked at again; what lies inside is looked at as it is now. So an event pays for every
row, but little, and time passing costs only what events come to see.

The paper keeps bounds as they were, and so tells of events up to an interval early or late. Here
they are widened by what the motion can do in that time, and the answer is exact.
"""

from __future__ import annotations

import numpy as np

from driftline.moving.evolving.arrays import Floats
from driftline.moving.evolving.family import Family, Moment, Sheet
from driftline.moving.evolving.ways import Found

_NEVER = -(1 << 62)


class Cached:
    """Keep bounds with the coefficients that they were made of, for so many microseconds."""

    name = "cached"
    __slots__ = ("_interval",)

    def __init__(self, interval: int) -> None:
        self._interval = interval

    def look(self, family: Family, sheet: Sheet, moment: Moment, x: Floats, first: bool) -> Found:
        """The rows whose bounds hold, for sure or perhaps."""
        from driftline.kernels.motion import look_cached

        if not len(sheet.since):
            capacity = len(family.starts)
            sheet.bounds = np.zeros((capacity, len(family.plan.bounds)))
            sheet.since = np.full(capacity, _NEVER)
        found, marks = family.room()
        plan = family.plan
        count = look_cached(
            sheet.coefficients,
            family.starts,
            len(family),
            plan.degree,
            moment.at,
            x,
            plan.sides,
            family.margin(sheet, x, moment.at + self._interval),
            self._interval,
            sheet.bounds,
            sheet.since,
            found,
            marks,
        )
        return found[:count], marks[:count]

    def touch(self, name: str) -> None:
        """The family marks its rows itself."""

    def forget(self, name: str) -> None:
        """The family moves its rows itself."""

    def _check(self, family: Family) -> None:
        for sheet in family.sheets.values():
            assert len(sheet.since) in (0, len(family.starts))
