"""What is a table, and what are its rows now? [DBNET §2.1]

Events of a table's type are upserts: each replaces the row with its key. A table refuses what
could not be ordered or added up later: NaN, infinities, a missing key, and a value off its tick.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from driftline.errors import TableError
from driftline.model.event import ENVELOPE, RESERVED, Event
from driftline.model.value import KIND_OF, Kind, Value, admit, comparable, items_of, show


@dataclass(frozen=True, slots=True)
class TableDeclaration:
    """A table's name, the attribute that is its key, and the ticks of its money columns.

    A tick is a decimal step such as "0.01"; a value that is no whole number of ticks is refused,
    so that differences can be taken exactly, in integers.
    """

    name: str
    key: str
    ticks: Mapping[str, Decimal] = field(default_factory=dict)

    @classmethod
    def of(
        cls, name: object, key: object, ticks: Mapping[str, str | int] | None = None
    ) -> TableDeclaration:
        """Check and take in a declaration."""
        if not isinstance(name, str) or not name:
            raise TableError(show(name), "wanted a name that is not empty")
        if name.startswith(RESERVED):
            raise TableError(name, "names that begin with $ are the system's own")
        if not isinstance(key, str) or not key or key in ENVELOPE:
            raise TableError(name, f"wanted the name of a key attribute, came {show(key)}")
        return cls(
            name,
            key,
            {
                str(column): _tick(name, column, t)
                for column, t in items_of(ticks, f"ticks of {name}")
            },
        )

    def admit(self, event: Event) -> Value:
        """Check a row and give its key; refusing it changes nothing."""
        for name, value in event.attributes.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise TableError(self.name, f"{name}: wanted a finite number, came {value!r}")
        for column in self.ticks:
            value_or_none = event.attributes.get(column)
            if value_or_none is not None:
                self.check_tick(column, value_or_none)
        key = event.attributes.get(self.key)
        if key is None:
            raise TableError(self.name, f"wanted a value for the key {self.key}, came none")
        return key

    def check_tick(self, column: str, value: Value) -> None:
        """Raise if a value is not a whole number of its column's ticks."""
        tick = self.ticks[column]
        if KIND_OF[type(value)] is not Kind.NUMBER:
            raise TableError(self.name, f"{column}: wanted a number of ticks, came {show(value)}")
        # The shortest decimal that reads back as this float is what the publisher wrote.
        if Fraction(repr(value)) % Fraction(tick):
            raise TableError(self.name, f"{column}: wanted a multiple of {tick}, came {value!r}")


# Beyond a quintillion, or a quintillionth, nobody means it, and the arithmetic would be long.
_TICK_DIGITS_MAX = 18


class Table:
    """The current rows of one table, by key, in the order their keys first came."""

    __slots__ = ("_rows", "declaration")

    def __init__(self, declaration: TableDeclaration) -> None:
        self.declaration = declaration
        self._rows: dict[object, Event] = {}

    def get(self, key: Value) -> Event | None:
        """The row with this key. O(1)."""
        return self._rows.get(comparable(key))

    def put(self, row: Event) -> None:
        """Replace or insert a row, which has its key. O(1)."""
        self._rows[comparable(row.attributes[self.declaration.key])] = row

    def remove(self, key: object) -> Event | None:
        """Remove the row and give it back. O(1)."""
        return self._rows.pop(comparable(admit(key, f"key of {self.declaration.name}")), None)

    def items(self) -> Iterator[tuple[Value, Event]]:
        """Keys and rows."""
        key = self.declaration.key
        for row in self._rows.values():
            yield row.attributes[key], row

    def in_order(self, hashed: Container[object]) -> list[object]:
        """Those of some keys, as `comparable` gives them, that have rows. O(rows)."""
        return [one for one in self._rows if one in hashed]

    def __len__(self) -> int:
        return len(self._rows)

    def _check(self) -> None:
        for hashed, row in self._rows.items():
            assert comparable(self.declaration.admit(row)) == hashed


def _tick(table: str, column: object, text: object) -> Decimal:
    try:
        tick = Decimal(str(text))
    except InvalidOperation:
        raise TableError(table, f"{column}: wanted a tick such as '0.01', came {text!r}") from None
    sensible = tick.is_finite() and tick > 0 and abs(tick.adjusted()) <= _TICK_DIGITS_MAX
    if isinstance(text, float) or not sensible:
        raise TableError(table, f"{column}: wanted a tick above 0, as text, came {text!r}")
    return tick
