"""How is what was told written in a table, one row for many where many are told the same?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from driftline.language.cloudevents import event_to, value_to
from driftline.model.notification import Notification
from driftline.model.value import Value

TOLD = pa.schema(
    [
        # The number of what led to it in the recorded sequence, and the how manyth of that it is.
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("nth", pa.int32(), nullable=False),
        pa.field("subscriptions", pa.list_(pa.field("element", pa.string(), nullable=False))),
        pa.field("kind", pa.string()),
        # The selected columns as a JSON object, and for a view what was told before.
        pa.field("values", pa.string()),
        pa.field("old", pa.string()),
        # The row's key as JSON, two in a list for a join.
        pa.field("key", pa.string()),
        # The events of a pattern, as a JSON list.
        pa.field("events", pa.string()),
        pa.field("epoch", pa.int64()),
        pa.field("time", pa.timestamp("us", tz="UTC")),
        # The end of a snapshot.
        pa.field("last", pa.bool_()),
        # Why a change or an event was refused, which is then all that the row says.
        pa.field("problem", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Row:
    """One thing told to some subscriptions; or why what stands there was refused."""

    seq: int
    nth: int
    ids: Sequence[str]
    told: Notification | None = None
    problem: str | None = None

    def cells(self) -> tuple[object, ...]:
        """What stands in the columns."""
        told = self.told
        if told is None:
            return (self.seq, self.nth, None, *(None for _ in range(8)), self.problem)
        return (
            self.seq,
            self.nth,
            list(self.ids),
            str(told.kind),
            values_text(told.values),
            None if told.old is None else values_text(told.old),
            key_text(told.key),
            _text([event_to(event) for event in told.events]) if told.events else None,
            told.epoch,
            told.time,
            told.last,
            None,
        )


def table_of(rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows as columns."""
    columns = zip(*(row.cells() for row in rows), strict=True) if rows else [[] for _ in TOLD]
    arrays = [pa.array(one, field.type) for one, field in zip(columns, TOLD, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=TOLD)


def values_text(values: Mapping[str, Value | None]) -> str:
    """Named values as a JSON object."""
    return _text({name: value_to(value) for name, value in values.items()})


def key_text(key: Value | tuple[Value, ...] | None) -> str | None:
    """The key of a row as JSON, a list for the two of a join."""
    if key is None:
        return None
    return _text([value_to(one) for one in key] if isinstance(key, tuple) else value_to(key))


def _text(what: object) -> str:
    return msgspec.json.encode(what).decode()
