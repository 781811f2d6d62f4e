"""How do columns become JSON, a text for each row, without a row being looked at?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from driftline.language.cloudevents import value_to
from driftline.model.expression import Attribute
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.recorded.told import values_text


def json_texts(rows: Iterable[Mapping[str, Value | None]]) -> pa.StringArray:
    """A JSON object for each row of named values."""
    return pa.array([values_text(row) for row in rows], pa.string())


def json_objects(
    statement: Subscription, columns: pa.RecordBatch, places: NDArray[np.int64]
) -> pa.StringArray | None:
    """What a subscription selects of some rows; None where that must be asked row by row."""
    names: list[str] = []
    parts: list[pa.Array | str] = []
    for column in statement.columns:
        expression = column.expression
        if not isinstance(expression, Attribute) or expression.name not in columns.schema.names:
            return None
        if column.name in names:
            return None
        found = columns.column(expression.name).take(pa.array(places))
        said = _said(found)
        if said is None:
            return None
        start = "," if names else "{"
        names.append(column.name)
        parts += [f"{start}{msgspec.json.encode(column.name).decode()}:", said]
    if not names:
        return None  # All of them, and which those are differs from row to row.
    return pc.binary_join_element_wise(*parts, "}", "")


def _said(column: pa.Array) -> pa.StringArray | None:
    """Each value as JSON; None for types whose values JSON cannot say."""
    kind = column.type
    if pa.types.is_floating(kind):
        # Encoded at once and cut at the commas, which no number has.
        numbers = column.to_pylist()
        texts = msgspec.json.encode(numbers)[1:-1].decode().split(",") if numbers else []
        return pa.array(texts, pa.string())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind):
        encoded = column.dictionary_encode()
        texts = [msgspec.json.encode(value_to(v)).decode() for v in encoded.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(encoded.indices).fill_null("null")
    return None
