"""How is the largest y told? [DBNET §4]

As the least -y: a structure is asked for minima of what is negated, and its answers are negated.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from driftline.stateful.range_min.change import Change
from driftline.stateful.range_min.structure import Ids, Point, Points, Structure, admit_point

if TYPE_CHECKING:
    from driftline.stateful.range_min.blocks import Messages

S = TypeVar("S", bound=Structure)


class Maxima(Generic[S]):
    """A structure seen upside down; what a message calls `minimum` is the new maximum."""

    def __init__(self, below: S) -> None:
        self.below = below

    def change(self, id: int, new: Point | None) -> list[Change]:
        """Like `Structure.change`, for the largest y."""
        new = admit_point(new)
        told = self.below.change(id, None if new is None else (new[0], -new[1]))
        return [replace(one, minimum=_negated(one.minimum)) for one in told]

    def change_many(
        self, ids: Ids, points: Points, present: NDArray[np.bool_] | None = None
    ) -> Messages:
        """Like `Blocks.change_many`, for the largest y; there must be blocks below."""
        from driftline.stateful.range_min.blocks import Blocks, Messages

        assert isinstance(self.below, Blocks)
        told = self.below.change_many(ids, points * (1.0, -1.0), present)
        rows = told.rows
        rows[:, 0] = np.where(rows[:, 0] == math.inf, math.inf, 0.0 - rows[:, 0])
        return Messages(rows, told.ends)

    def maximum(self, low: float, high: float) -> float | None:
        """The largest y of the tuples with x in [low, high]; None if there are none."""
        return _negated(self.below.minimum(low, high))

    def dump(self) -> pa.Table:
        """All tuples by id, as they are."""
        return _turned(self.below.dump())

    @classmethod
    def load(cls, kind: type[S], table: pa.Table) -> Self:
        """These tuples in a structure of this kind."""
        return cls(kind.load(_turned(table)))

    def __len__(self) -> int:
        return len(self.below)

    def _check(self) -> None:
        self.below._check()


def _negated(y: float | None) -> float | None:
    return None if y is None else 0.0 - y  # not -0.0


def _turned(table: pa.Table) -> pa.Table:
    at = table.schema.get_field_index("y")
    return table.set_column(at, "y", pc.subtract(0.0, table.column("y")))
