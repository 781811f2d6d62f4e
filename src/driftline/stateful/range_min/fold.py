"""What does a message tell a MIN or MAX view? The subscriber's side.

A message that its filter let through says what the value is from now on; nothing else is kept.
"""

from __future__ import annotations

import pyarrow as pa

from driftline.model.value import Value
from driftline.stateful.cells import cell_of, values_of
from driftline.stateful.fold import Message
from driftline.stateful.news import WHEN_DIFFERENT, Gate, News
from driftline.stateful.range_min.subscription import AGAIN, NEW_MIN
from driftline.stateful.told import Scalar, Told

SCHEMA = pa.schema([("value", pa.binary())])


class Extreme:
    """One subscription to the least or largest value in a range."""

    __slots__ = ("_name", "stale", "told")

    def __init__(self, name: str, value: Value | None, gate: Gate = WHEN_DIFFERENT) -> None:
        """Begin with the value of a snapshot, under the column's name."""
        self._name = name
        self.told = Told({name: value}, gate)
        self.stale = False

    def snapshot(self) -> list[News]:
        """The value, also when it is NULL."""
        return [self.told.snapshot()]

    def take(self, message: Message) -> News | None:
        """The new value, if that is told."""
        said = message.event.attributes
        if AGAIN in said:
            self.stale = True
            return None
        return self.told.tell({self._name: said.get(NEW_MIN)})

    def succeed(self, before: Scalar) -> list[News]:
        """The value under the new parameters, if it is another."""
        return self.told.succeed(before.told)

    def dump(self) -> pa.Table:
        """The value last told."""
        return pa.table({"value": [cell_of(self.told.values)]}, schema=SCHEMA)

    @classmethod
    def load(cls, name: str, table: pa.Table, gate: Gate = WHEN_DIFFERENT) -> Extreme:
        """The inverse of `dump`."""
        (row,) = table.to_pylist()
        return cls(name, values_of(row["value"], [name])[name], gate)
