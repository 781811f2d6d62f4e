"""How do values lie in a table that a fold dumps?

Values of one column may have any type, so a cell is bytes: the wire's layout of named values, in
which nothing is rounded and NULL is a name left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from driftline.model.value import Value
from driftline.stateful.news import Values
from driftline.wire.values import read_values, write_values

_ALONE = "value"


def cell_of(values: Values) -> bytes:
    """Named values as bytes."""
    present = {name: value for name, value in values.items() if value is not None}
    return b"".join(write_values(present))


def values_of(cell: bytes, names: Iterable[str]) -> Values:
    """The values of these names: the inverse of `cell_of`."""
    found = names_of(cell)
    return {name: found.get(name) for name in names}


def names_of(cell: bytes) -> dict[str, Value]:
    """The values that a cell has, by name."""
    return read_values(cell, "a dumped cell")


def cell_of_one(value: Value) -> bytes:
    """One value as bytes."""
    return cell_of({_ALONE: value})


def value_of_one(cell: bytes) -> Value:
    """The inverse of `cell_of_one`."""
    return read_values(cell, "a dumped cell")[_ALONE]
