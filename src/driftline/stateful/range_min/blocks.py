"""The fast structure: blocks of tuples by x, and a tree of their least y.

Finding the nearest tuple with a small enough y is a look into its own block, a way up and down the
tree, and a look into one more block. To change y moves nothing; to change x moves up to 64
tuples. `driftline.kernels` has the layout (`range_blocks`) and the rule (`range_min`). A call can
do many changes, so that what a call costs is paid once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.errors import InvalidValue
from driftline.kernels import range_blocks as at
from driftline.kernels.range_min import DONE, MESSAGE, NO_ROOM, change_tuples
from driftline.kernels.types import Words
from driftline.stateful.range_min.change import Change
from driftline.stateful.range_min.structure import (
    SCHEMA,
    Ids,
    Point,
    Points,
    admit_id,
    admit_ids,
    admit_point,
    admit_points,
    admit_range,
    read_arrays,
)

_FIRST_IDS = 64
_FIRST_MESSAGES = 64
_DELETED = (0.0, math.inf)


@dataclass(frozen=True, slots=True)
class Messages:
    """What many changes make: those of change i are the rows from ends[i] to ends[i + 1].

    A row is the minimum (+inf: none), inner left and right, outer left and right.
    """

    rows: NDArray[np.float64]
    ends: NDArray[np.int64]

    def of(self, change: int) -> list[Change]:
        """The messages of one change."""
        rows = self.rows[self.ends[change] : self.ends[change + 1]].tolist()
        return [Change(None if least == math.inf else least, *span) for least, *span in rows]

    def __len__(self) -> int:
        return len(self.rows)


class Blocks:
    """See `Structure`: a microsecond or two for a change, and for each message."""

    def __init__(self) -> None:
        self._pack(np.zeros(0, np.int64), np.zeros((0, 2)), _FIRST_IDS)
        self._make_scratch()

    def _make_scratch(self) -> None:
        self._out = np.zeros((_FIRST_MESSAGES, MESSAGE))
        # For a single change: made once, as that costs as much as the change.
        self._id, self._point = np.zeros(1, np.int64), np.zeros((1, 2))
        self._ends = np.zeros(2, np.int64)

    def change(self, id: int, new: Point | None) -> list[Change]:
        """See `Structure`."""
        id, new = admit_id(id), admit_point(new)
        self._id[0] = id
        self._point[0, 0], self._point[0, 1] = _DELETED if new is None else new
        self._change(self._id, self._point, self._ends, id)
        return Messages(self._out, self._ends).of(0) if self._ends[1] else []

    def change_many(
        self, ids: Ids, points: Points, present: NDArray[np.bool_] | None = None
    ) -> Messages:
        """Make changes one after the other: rows of x and y, or deletes where not present.

        InvalidValue if any of them may not be; nothing has changed then.
        """
        ids = admit_ids(np.asarray(ids))
        if present is None:
            points = admit_points(np.asarray(points))
        else:
            points = admit_points(np.where(present[:, None], points, 0))
            points[~present] = _DELETED
        if len(points) != len(ids):
            raise InvalidValue("points", f"one for each of {len(ids)} ids", str(len(points)))
        ends = np.zeros(len(ids) + 1, np.int64)
        self._change(ids, points, ends, int(ids.max(initial=0)))
        return Messages(self._out[: ends[-1]].copy(), ends)

    def minimum(self, low: float, high: float) -> float | None:
        """See `Structure`; O(log n)."""
        low, high = admit_range(low, high)
        least = at.least_within(self._m, self._f, low, high) if low <= high else math.inf
        return None if least == math.inf else float(least)

    def dump(self) -> pa.Table:
        """See `Structure`."""
        ids, points = self._unpack()
        order = np.argsort(ids)
        columns = (ids[order], points[order, 0], points[order, 1])
        return pa.table([pa.array(column) for column in columns], SCHEMA)

    @classmethod
    def load(cls, table: pa.Table) -> Self:
        """See `Structure`."""
        ids, points = read_arrays(table)
        order = np.lexsort((ids, points[:, 0]))
        made = cls()
        made._pack(ids[order], points[order], int(ids.max(initial=0)) + 1)
        return made

    def __len__(self) -> int:
        return int(self._m[at.COUNT])

    def _change(self, ids: Ids, points: Points, ends: NDArray[np.int64], id_max: int) -> None:
        """Call the kernel until all changes are made, giving it room where it asks for it."""
        if id_max >= self._ids_cap:
            self._pack(*self._unpack(), 2 * id_max + 1)
        start = 0
        while True:
            said = change_tuples(self._m, self._f, ids, points, self._out, ends, start)
            if said == DONE:
                return
            start = int(self._m[at.STOPPED])
            if said == NO_ROOM:
                self._out = np.concatenate((self._out, np.zeros_like(self._out)))
            else:
                self._pack(*self._unpack(), self._ids_cap)

    def _unpack(self) -> tuple[Ids, Points]:
        ids, points = np.zeros(len(self), np.int64), np.zeros((len(self), 2))
        at.unpack(self._m, self._f, ids, points)
        return ids, points

    def _pack(self, ids: Ids, points: Points, ids_cap: int) -> None:
        """Take fresh memory and put these tuples there, which are in the order of x."""
        self._hold(at.make_room(len(ids), ids_cap), ids_cap)
        at.pack(self._m, self._f, ids, points)

    def _hold(self, m: Words, ids_cap: int) -> None:
        self._m, self._f, self._ids_cap = m, m.view(np.float64), ids_cap

    def __getstate__(self) -> tuple[Words, int]:
        # One array: its view would become an array of its own.
        return self._m, self._ids_cap

    def __setstate__(self, state: tuple[Words, int]) -> None:
        self._hold(*state)
        self._make_scratch()

    def _check(self) -> None:
        m, f = self._m, self._f
        blocks, lows, tree, leaves = (m[one] for one in (at.BLOCKS, at.LOWS, at.TREE, at.LEAVES))
        # It is packed before a change, which then may add a block or take a tuple away.
        assert blocks <= at.SPARE + (len(self) + 1) // at.SPARSE + 1
        assert f[lows] == -math.inf
        assert sum(self._check_block(p) for p in range(blocks)) == len(self)
        assert np.count_nonzero(m[m[at.HOMES] :][: self._ids_cap]) == len(self)
        nodes = f[tree : tree + 2 * leaves]
        assert (nodes[leaves + blocks :] == math.inf).all()
        assert (nodes[1:leaves] == np.minimum(nodes[2::2], nodes[3::2])).all()
        assert not m[at.PENDING]

    def _check_block(self, p: int) -> int:
        """Check the block at a position; how many tuples it has."""
        m, f = self._m, self._f
        number = m[m[at.AT] + p]
        assert m[m[at.POSITIONS] + number] == p
        b = m[at.DATA] + number * at.BLOCK_WORDS
        count = m[b + at.B_COUNT]
        assert 0 <= count <= at.SLOTS
        x, y, ids = f[b + at.B_X :][:count], f[b + at.B_Y :][:count], m[b + at.B_ID :][:count]
        high = f[m[at.LOWS] + p + 1] if p + 1 < m[at.BLOCKS] else math.inf
        edges = np.concatenate(([f[m[at.LOWS] + p]], x, [high]))
        assert (edges[:-1] <= edges[1:]).all()
        assert f[m[at.TREE] + m[at.LEAVES] + p] == y.min(initial=math.inf)
        assert (m[m[at.HOMES] + ids] == 1 + number).all()
        return int(count)
