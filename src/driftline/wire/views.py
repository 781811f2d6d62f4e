"""How does a view look as bytes, when its subscriber asks the table's home for a snapshot?

MessagePack: `[columns, source, where, distinct, join, parameters, start, change]`. A column is
`[alias or nil, aggregate function or "", expression or nil for COUNT(*)]`, join is nil or `[table,
condition]`, parameters are `[name, value, …]`. Change is nil, `["moved", value, measure, radius,
may or nil, strict, shared]` or `["crossed", value, threshold, clear, above]`. Expressions look as
`filters` says. HAVING over aggregates does not travel: whether such a value is told is decided
where the subscriber is.

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
from driftline.model.subscription import Column, Crossed, Measure, Moved
from driftline.model.value import Value
from driftline.model.view import Aggregate, AggregateFunction, Join, View, ViewKind
from driftline.model.wholeness import fault_of_view
from driftline.wire.filters import Array, Reader, Writer
from driftline.wire.refusal import described

_encode = Encoder().encode
_decode: Decoder[Any] = Decoder()

_FUNCTIONS = {function.value: function for function in AggregateFunction}
_MEASURES = {measure.value: measure for measure in Measure}


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
    change = _change(view.having, writer) if view.of is ViewKind.MOVED else None
    parts = [columns, view.source, where, view.distinct, join, params, standing.start_us, change]
    return _encode(parts)


def _change(change: Moved | Crossed | None, writer: Writer) -> Array:
    assert change is not None
    value = writer.expression(change.value)
    if isinstance(change, Crossed):
        ends = [writer.expression(one) for one in (change.threshold, change.clear)]
        return ["crossed", value, *ends, change.above]
    may = None if change.may is None else writer.expression(change.may)
    radius = writer.expression(change.radius)
    return ["moved", value, change.measure.value, radius, may, change.strict, change.shared]


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
            None | [*_] as change,
        ] if source and len(params) % 2 == 0 and EARLIEST_US <= start <= LATEST_US:
            view = View(
                tuple(_read_column(column, reader) for column in columns),
                source,
                reader.expression(where),
                distinct,
                None if join is None else Join(join[0], reader.expression(join[1])),
                None if change is None else _read_change(change, reader),
            )
            fault = fault_of_view(view)
            if fault is not None:
                raise reader.refused(fault, described(found))
            return Standing(view, _read_params(params, reader), start)
    raise reader.refused("a view of eight parts", described(found))


def _read_change(change: object, reader: Reader) -> Moved | Crossed:
    match change:
        case ["moved", value, str(measure), radius, may, bool(strict), bool(shared)] if (
            measure in _MEASURES
        ):
            moves = _read_attribute(value, reader)
            least = None if may is None else reader.expression(may)
            how, far = _MEASURES[measure], reader.expression(radius)
            return Moved(moves, how, far, least, strict, shared)
        case ["crossed", value, threshold, clear, bool(above)]:
            ends = reader.expression(threshold), reader.expression(clear)
            return Crossed(_read_attribute(value, reader), *ends, above)
    raise reader.refused("moved or crossed, and its parts", described(change))


def _read_attribute(value: object, reader: Reader) -> Attribute:
    read = reader.expression(value)
    if not isinstance(read, Attribute):
        raise reader.refused("an attribute that moves", described(value))
    return read


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
