"""Which messages do many changes of rows make at once? The home's side, in columns.

What one row after the other says (`reformulate`), for changes that are all known beforehand: the
structure makes their messages in one call, and they stay arrays until somebody is told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftline.matching.columns import Columns
from driftline.model.event import Event
from driftline.model.value import Value
from driftline.stateful.entering import Items, Numbers, Places
from driftline.stateful.range_min.maxima import Maxima
from driftline.stateful.range_min.structure import EXACT_MAX, Ids, Points
from driftline.stateful.range_min.subscription import ENDS, NEW_MIN, Shape

if TYPE_CHECKING:  # Compiled code is loaded by those who need it.
    from driftline.stateful.range_min.blocks import Blocks

Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class SaidMany:
    """Messages: message i is said of the row at `of[i]` of a batch.

    A row of `rows` is what a structure says (see `Messages`); `floats` tells whether the value is
    said as a float.
    """

    shape: Shape
    of: Places
    rows: NDArray[np.float64]
    floats: Bools

    def columns(self, numbers: Mapping[str, NDArray[np.int64]], at: int) -> Columns:
        """All of them, with these numbers, said at this instant."""

        def event(place: int) -> Event:
            said = self._said(place)
            said.update((name, int(values[place])) for name, values in numbers.items())
            return Event.of_admitted(self.shape.type, said, at)

        arrays = {NEW_MIN: np.ma.masked_equal(self.rows[:, 0], math.inf), **numbers}
        if self.shape.x is not None:
            arrays |= dict(zip(ENDS, self.rows.T[1:], strict=True))
        return Columns.of_numbers(self.shape.type, arrays, event)

    def _said(self, place: int) -> dict[str, Value]:
        least, *ends = self.rows[place].tolist()
        said: dict[str, Value] = {}
        if least != math.inf:
            said[NEW_MIN] = least if self.floats[place] else int(least)
        if self.shape.x is not None:
            said.update(zip(ENDS, ends, strict=True))
        return said

    def __len__(self) -> int:
        return len(self.of)


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Changes of points, one after the other, each of the row at `of` of a batch.

    `present`: is the point there after it? `floats`: is its value said as a float?
    """

    shape: Shape
    structure: Blocks | Maxima[Blocks]
    of: Places
    ids: Ids
    points: Points
    present: Bools
    floats: Bools

    def say(self, start: int, end: int) -> SaidMany:
        """Make some of them, which come next: their messages."""
        some = slice(start, end)
        told = self.structure.change_many(self.ids[some], self.points[some], self.present[some])
        which = np.repeat(np.arange(start, start + len(told.ends) - 1), np.diff(told.ends))
        return SaidMany(self.shape, self.of[which], told.rows, self.floats[which])

    def __len__(self) -> int:
        return len(self.ids)


def are_exact(numbers: Numbers) -> bool:
    """Is each of them a float?"""
    if numbers.values.dtype.kind == "f":
        return True
    known = numbers.values[numbers.known]
    return bool(((known <= EXACT_MAX) & (known >= -EXACT_MAX)).all())


def before_each(now: Bools, first: Bools, items: Items) -> Bools:
    """What was so of a row's item before it, where `first` was so of each item before all rows."""
    sorted_ = np.empty(len(now), np.bool_)
    sorted_[1:] = now[items.order[:-1]]
    sorted_[items.ends[:-1]] = first
    found = np.empty(len(now), np.bool_)
    found[items.order] = sorted_
    return found
