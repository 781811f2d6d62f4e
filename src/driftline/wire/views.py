"""How does a view look as bytes, when its subscriber asks the table's home for a snapshot?

MessagePack: `[columns, source, where, distinct, join, parameters, start]`, where a column is
`[alias or nil, aggregate function or "", expression or nil for COUNT(*)]`, join is nil or `[table,
condition]`, and parameters are `[name, value, …]`. Expressions look as `filters` says. HAVING does
not travel: whether a value is told is decided where the subscriber is.

    >>> from driftline.language.sql import parse
    >>> standing = Standing.of(parse("SELECT MIN(per) FROM stock WHERE risk < :r"), {"r": 3})
    >>> decode_view(encode_view(standing)) == standing
    True
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.msgpack import Decoder, Encoder

from driftline.model.event import EARLIEST_US, LATEST_US
from driftline.model.expression import Attribute, Literal
from driftline.model.standing import Standing
from driftline.model.subscription import Column
from driftline.model.value import Value
from driftline.model.view import Aggregate, AggregateFunction, Join, View
from driftline.model.wholeness import fault_of_view
from driftline.wire.filters import Array, Reader, Writer
from driftline.wire.refusal import described

_encode = Encoder().encode
_decode: Decoder[Any] = Decoder()

_FUNCTIONS = {function.value: function for function in AggregateFunction}


def encode_view(standing: Standing) -> bytes:
    """The bytes of a view as it stands; InvalidValue if it cannot be carried."""
    view, writer = standing.statement, Writer("a view")
    assert isinstance(view, View)
    params = [
        part
        for name, value in standing.params.items()
        for part in (name, writer.expression(Literal(value)))
    ]
    join = None if view.join is None else [view.join.table, writer.expression(view.join.on)]
    columns = [_column(column, writer) for column in view.columns]
    where = writer.expression(view.where)
    return _encode([columns, view.source, where, view.distinct, join, params, standing.start_us])


def _column(column: Column, writer: Writer) -> Array:
    expression = column.expression
    if not isinstance(expression, Aggregate):
        return [column.alias, "", writer.expression(expression)]
    argument = None if expression.argument is None else writer.expression(expression.argument)
    return [column.alias, expression.function.value, argument]


def decode_view(data: bytes) -> Standing:
    """The view of these bytes: the inverse of `encode_view`; FrameRefused if there is none."""
    reader = Reader("a view")
    try:
        found = _decode.decode(data)
    except msgspec.DecodeError as problem:
        raise reader.refused("MessagePack", str(problem)) from None
    match found:
        case [
            [*columns],
            str(source),
            where,
            bool(distinct),
            None | [str(), _] as join,
            [*params],
            int(start),
        ] if source and len(params) % 2 == 0 and EARLIEST_US <= start <= LATEST_US:
            view = View(
                tuple(_read_column(column, reader) for column in columns),
                source,
                reader.expression(where),
                distinct,
                None if join is None else Join(join[0], reader.expression(join[1])),
            )
            fault = fault_of_view(view)
            if fault is not None:
                raise reader.refused(fault, described(found))
            return Standing(view, _read_params(params, reader), start)
    raise reader.refused("a view of seven parts", described(found))


def _read_column(column: object, reader: Reader) -> Column:
    match column:
        case [None | str() as alias, "", expression]:
            return Column(reader.expression(expression), alias)
        case [None | str() as alias, str(name), argument] if name in _FUNCTIONS:
            read = None if argument is None else reader.expression(argument)
            if read is None or isinstance(read, Attribute):
                return Column(Aggregate(_FUNCTIONS[name], read), alias)
    raise reader.refused("a column: its alias, function and expression", described(column))


def _read_params(params: list[object], reader: Reader) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, item in zip(params[::2], params[1::2], strict=True):
        value = reader.expression(item)
        if not isinstance(name, str) or not isinstance(value, Literal) or value.value is None:
            raise reader.refused("parameters, each with a value", described(name))
        found[name] = value.value
    return found
