"""How are those who are told of many values said in boxes, as columns? `boxes_of`, all at once.

Most rows are whole rings between two radii, or an arc of one ring; one that goes round past the
last label becomes two boxes, and rings other than 0 at one end of a range make up to three.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftline.kernels import moved_events as row
from driftline.kernels import moved_layout as at
from driftline.matching.columns import Columns
from driftline.stateful.value_based.address import BOX, LABEL_BITS, PLACE_MAX, Box
from driftline.stateful.value_based.packed import Told
from driftline.stateful.value_based.rule import Floats
from driftline.stateful.value_based.structure import Ids

_LAST = (1 << LABEL_BITS) - 1
_DROPPED = np.uint64(64 - LABEL_BITS)


class Boxes(NamedTuple):
    """Many boxes: `of` says of which value each is, and is in order."""

    of: Ids
    radius_l: Floats
    radius_r: Floats
    low: Ids
    high: Ids

    @classmethod
    def of_each(cls, boxes: Iterable[Box], of: Iterable[int]) -> Boxes:
        """These boxes, each of its value."""
        rows = np.array([*boxes], np.float64).reshape(-1, 4)
        places = np.array([(box.low, box.high) for box in boxes], np.int64).reshape(-1, 2)
        return cls(np.array([*of], np.int64), rows[:, 0], rows[:, 1], places[:, 0], places[:, 1])

    def messages(self, type: str) -> Columns:
        """They as messages that say no more."""
        return Columns.of_numbers(type, dict(zip(BOX, self[1:], strict=True)))


def boxes_of_many(told: Told, *, ranked: bool) -> Boxes:
    """Who is told of many values, as boxes; `ranked`: there are rings other than 0."""
    of = np.repeat(np.arange(len(told.ends) - 1), np.diff(told.ends))
    is_arc = told.rows[:, row.SLOTS_TOLD] != at.NONE
    parts = [*_arcs(of[is_arc], told.rows[is_arc])]
    parts += _ranges(of[~is_arc], told.rows[~is_arc], ranked)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Boxes(*(column[order] for column in columns))


def _arcs(of: Ids, rows: Ids) -> Iterable[Sequence[NDArray[np.generic]]]:
    radius = np.ascontiguousarray(rows).view(np.float64)[:, row.LOW]
    ring = rows[:, row.FIRST_RING] << LABEL_BITS
    first, last = (_shortened(rows[:, label]) for label in (row.FIRST_LABEL, row.LAST_LABEL))
    goes_round = first > last
    yield of, radius, radius, ring | first, ring | np.where(goes_round, _LAST, last)
    some = goes_round
    yield of[some], radius[some], radius[some], ring[some], ring[some] | last[some]


def places_of(rings: Ids, labels: Ids) -> Ids:
    """Rings and labels as one number each: see `place_of`."""
    return rings << LABEL_BITS | _shortened(labels)


def _shortened(labels: Ids) -> Ids:
    return (np.ascontiguousarray(labels).view(np.uint64) >> _DROPPED).astype(np.int64)


def _ranges(of: Ids, rows: Ids, ranked: bool) -> Iterable[Sequence[NDArray[np.generic]]]:
    """Whole rings from one to another, in the order of radius and ring: see `between`."""
    radii = np.ascontiguousarray(rows).view(np.float64)
    left, right = radii[:, row.LOW], radii[:, row.HIGH]
    none, top = np.zeros_like(of), np.full_like(of, PLACE_MAX)
    if not ranked:
        yield of, left, right, none, top
        return
    low = rows[:, row.FIRST_RING] << LABEL_BITS
    high = (rows[:, row.LAST_RING] << LABEL_BITS) + _LAST
    one = left == right
    yield of[one], left[one], right[one], low[one], high[one]
    begins = ~one & (low > 0)
    yield of[begins], left[begins], left[begins], low[begins], top[begins]
    yield of[~one], right[~one], right[~one], none[~one], high[~one]
    first = np.where(begins, np.nextafter(left, np.inf), left)
    last = np.nextafter(right, -np.inf)
    inner = ~one & (first <= last)
    yield of[inner], first[inner], last[inner], none[inner], top[inner]
