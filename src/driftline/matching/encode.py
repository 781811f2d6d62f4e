"""How does a batch of typed columns become keys?

For each axis that some filter names and the batch has, one row of keys; row 0 is all zeros, the
column of what every event has. The bytes of texts are only gathered where a filter looks into them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftline.errors import InvalidValue
from driftline.kernels import layout
from driftline.kernels.keys import hash_keys, number_keys, plain_keys, text_keys
from driftline.kernels.types import Bytes, Words
from driftline.matching.axes import Axes
from driftline.matching.columns import Column, Columns, Texts
from driftline.model.value import Kind

_ALL_VALID = np.zeros(0, np.bool_)
_TEXT_BYTES_MAX = 2**31


@dataclass(frozen=True, slots=True)
class Encoded:
    """A batch as kernels take it: the column per axis, the keys per column, and the texts."""

    columns: Words
    keys: Words
    present: Words
    texts: Bytes


def encode(batch: Columns, axes: Axes) -> Encoded:
    """The keys of a batch on all axes that it has values on."""
    wanted = [
        (column, axis)
        for column in batch
        if (reader := axes.readers.get(column.attribute)) is not None
        for axis in reader.axes(column.kind)
    ]
    presence = {
        reader.presence: column.attribute
        for column in batch
        if (reader := axes.readers.get(column.attribute)) is not None and reader.presence >= 0
    }
    keys = np.empty((1 + len(wanted) + len(presence), len(batch)), np.int64)
    keys[0] = 0
    columns = axes.columns.copy()
    texts, bases = _gathered(
        [column for column, axis in wanted if _kind(axes, axis) == layout.SPAN]
    )
    row = 1
    for column, axis in wanted:
        _write(column, _kind(axes, axis), bases.get(column.attribute, 0), keys[row])
        columns[axis] = row
        row += 1
    for axis, attribute in presence.items():
        keys[row] = 0
        for column in batch:
            if column.attribute == attribute:
                keys[row] |= 1 if column.valid is None else column.valid
        columns[axis] = row
        row += 1
    present = np.array([axis for _, axis in wanted], np.int64)
    return Encoded(columns, keys, present, texts)


def _kind(axes: Axes, axis: int) -> int:
    return axes.names[axis][2]


def _write(column: Column, kind: int, base: int, keys: Words) -> None:
    valid = _ALL_VALID if column.valid is None else unlocked(column.valid)
    values = column.values
    if isinstance(values, Texts):
        if kind == layout.TEXT:
            text_keys(unlocked(values.data), values.starts, values.lengths, valid, keys)
        elif kind == layout.HASH:
            hash_keys(unlocked(values.data), values.starts, values.lengths, valid, keys)
        else:
            plain_keys(((values.starts + base) << 32) | values.lengths, valid, keys)
    elif column.kind is Kind.NUMBER:
        number_keys(unlocked(values.astype(np.float64, copy=False).view(np.int64)), valid, keys)
    else:
        plain_keys(unlocked(values.astype(np.int64, copy=False)), valid, keys)


def _gathered(columns: list[Column]) -> tuple[Bytes, dict[str, int]]:
    """The bytes of some columns in one run, and where each begins in it."""
    bases: dict[str, int] = {}
    runs: list[NDArray[np.uint8]] = []
    size = 0
    for column in columns:
        assert isinstance(column.values, Texts)
        bases[column.attribute] = size
        runs.append(column.values.data)
        size += len(column.values.data)
    if size >= _TEXT_BYTES_MAX:
        raise InvalidValue("batch", f"fewer than {_TEXT_BYTES_MAX:,} bytes of text", f"{size:,}")
    if not runs:
        return np.zeros(1, np.uint8), bases
    return unlocked(runs[0]) if len(runs) == 1 else np.concatenate(runs), bases


class _Unlocked:
    """An array's memory, said to be writable, and the array, so that the memory stays."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def unlocked(array: NDArray[Any]) -> NDArray[Any]:
    """The same memory as an array that may be written to, though no kernel does.

    Arrow's memory is read-only, and for arrays of another type kernels would be compiled again.
    """
    return array if array.flags.writeable else np.asarray(_Unlocked(array))
