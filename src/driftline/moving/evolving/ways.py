"""How are the rows of a family gone through?

All ways find the same rows: those that satisfy the definition at the event's own instant. They
differ in what they cost, and in whether events or time make them pay.

    lazy        looks at every row when an event comes
    cached      by bounds that are wide enough for a while, made when an event needs them
    versioned   by such bounds in an index, all made anew when the while is over
    adaptive    whichever is least work for what has been seen lately
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from driftline.moving.evolving.arrays import Floats
from driftline.moving.evolving.family import Family, Marks, Moment, Rows, Sheet

Found: TypeAlias = tuple[Rows, Marks]
"""Rows, and for each if it is sure or to be looked at by the definition (see `kernels.motion`)."""

WAYS = ("adaptive", "lazy", "cached", "versioned")


class Way(Protocol):
    """One of them, for one family."""

    @property
    def name(self) -> str: ...

    def look(self, family: Family, sheet: Sheet, moment: Moment, x: Floats, first: bool) -> Found:
        """The rows whose bounds hold, for sure or perhaps. With `first` one sure will do."""

    def touch(self, name: str) -> None:
        """A row is new or has other values."""

    def forget(self, name: str) -> None:
        """A row is gone."""

    def _check(self, family: Family) -> None:
        """Assert the invariants."""
