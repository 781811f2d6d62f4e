"""What can be asked of a structure, and what may be put into it?

Tuples go by an id, which the caller gives: small integers, each used again when its tuple is gone,
for a structure may have a place for every id up to the largest. Both attributes are finite
floats. Integers are taken as far as floats tell them apart, so that no two numbers become one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.errors import InvalidValue
from driftline.model.value import show
from driftline.stateful.range_min.change import Change

Point: TypeAlias = tuple[float, float]
"""The x and y of a tuple."""

Ids: TypeAlias = NDArray[np.int64]
Points: TypeAlias = NDArray[np.float64]
"""Rows of x and y."""

EXACT_MAX = 2**53
"""Up to here every integer is a float of its own."""

ID_MAX = 2**31 - 1

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("y", pa.float64())])


class Structure(Protocol):
    """A table of points, and the messages that each change of it makes."""

    def change(self, id: int, new: Point | None) -> list[Change]:
        """Insert, move or (with None) delete a tuple; whose minimum is another now, and which.

        Each range whose minimum changes is affected by exactly one of the messages, all others by
        none. InvalidValue for what is no point; nothing has changed then.
        """

    def minimum(self, low: float, high: float) -> float | None:
        """The least y of the tuples with x in [low, high], which may be open; None if none is."""

    def dump(self) -> pa.Table:
        """All tuples by id, as `load` takes them."""

    @classmethod
    def load(cls, table: pa.Table) -> Self:
        """A structure with these tuples."""

    def __len__(self) -> int: ...

    def _check(self) -> None:
        """Assert the invariants."""


def admit_point(new: Point | None) -> Point | None:
    """Both numbers as floats, or InvalidValue."""
    if new is None:
        return None
    x, y = new
    return admit_number(x, "x"), admit_number(y, "y")


def admit_number(value: object, where: str) -> float:
    """A finite float, and there is only one zero.

    >>> admit_number(2**53 + 1, "x")
    Traceback (most recent call last):
    driftline.errors.InvalidValue: x: wanted an integer of at most 53 bits, came 9007199254740993
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        if not -EXACT_MAX <= value <= EXACT_MAX:
            raise InvalidValue(where, "an integer of at most 53 bits", show(value))
        return float(value)
    if isinstance(value, float | np.floating) and math.isfinite(value):
        return float(value) + 0.0  # -0.0 becomes 0.0
    raise InvalidValue(where, "a finite number", show(value))


def admit_id(id: object) -> int:
    """An integer that an array can have a place for."""
    if not isinstance(id, int | np.integer) or isinstance(id, bool) or not 0 <= id <= ID_MAX:
        raise InvalidValue("id", f"an integer from 0 to {ID_MAX}", show(id))
    return int(id)


def admit_range(low: float, high: float) -> tuple[float, float]:
    """The ends of a closed range; an infinite one is open."""
    for end, where in ((low, "low"), (high, "high")):
        if not math.isinf(end):
            admit_number(end, where)
    return float(low), float(high)


def write_table(rows: Iterable[tuple[int, Point]]) -> pa.Table:
    """Tuples as a table, by id."""
    flat = sorted((id, x, y) for id, (x, y) in rows)
    columns = zip(*flat, strict=True) if flat else ((), (), ())
    return pa.table([list(column) for column in columns], SCHEMA)


def read_table(table: pa.Table) -> list[tuple[int, Point]]:
    """The tuples in a table; InvalidValue if one may not be there."""
    ids, points = read_arrays(table)
    return [(id, (x, y)) for id, (x, y) in zip(ids.tolist(), points.tolist(), strict=True)]


def read_arrays(table: pa.Table) -> tuple[Ids, Points]:
    """The same as arrays: ids, and rows of x and y."""
    try:
        table = table.select(SCHEMA.names).cast(SCHEMA).combine_chunks()
    except (KeyError, pa.ArrowInvalid) as problem:
        raise InvalidValue("table", "columns id, x and y of numbers", str(problem)) from None
    if any(column.null_count for column in table.columns):
        raise InvalidValue("table", "a number in every place", "null")
    ids, xs, ys = (column.to_numpy() for column in table.columns)
    if len(np.unique(ids)) < len(ids):
        raise InvalidValue("table", "each id once", "one that is there twice")
    return admit_ids(ids), admit_points(np.column_stack((xs, ys)))


def admit_ids(ids: NDArray[Any]) -> Ids:
    """Many ids at once."""
    if ids.ndim != 1 or (len(ids) and ids.dtype.kind not in "iu"):
        raise InvalidValue("ids", "a column of integers", f"{ids.dtype} {ids.shape}")
    if len(ids) and not 0 <= ids.min() <= ids.max() <= ID_MAX:
        raise InvalidValue("ids", f"integers from 0 to {ID_MAX}", f"{ids.min()} to {ids.max()}")
    return np.ascontiguousarray(ids, np.int64)


def admit_points(points: NDArray[Any]) -> Points:
    """Many points at once: rows of x and y. A copy, laid out as kernels want it."""
    kind = points.dtype.kind
    if kind not in "fiu" or points.ndim != 2 or points.shape[1] != 2:
        raise InvalidValue("points", "rows of two numbers", f"{points.dtype} {points.shape}")
    if kind != "f" and ((points > EXACT_MAX).any() or (points < -EXACT_MAX).any()):
        raise InvalidValue("points", "integers of at most 53 bits", "a larger one")
    if not np.isfinite(points).all():
        raise InvalidValue("points", "finite numbers", "one that is not")
    floats: Points = np.add(points, 0.0, dtype=np.float64, order="C")
    return floats
