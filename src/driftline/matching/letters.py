"""How is a filter written so that kernels can read it?

A letter is a row of words: flags, the number of parts, and per part an operation, an axis and a raw
operand (the bits of a number, or where a text lies among the bytes that go with the letters). What
cannot be said in a letter is left out and the letter flagged: the index then finds too much, and
the definition decides.

A filter with IN and no equality becomes one letter per value, so that each can be found by it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from driftline.kernels import layout
from driftline.kernels.keys import TEXT_EXACT, member_keys
from driftline.kernels.types import Words
from driftline.matching.axes import TYPE, Axes
from driftline.matching.matcher import Bounds
from driftline.model.constraint import Constraint, Operator
from driftline.model.expression import Expression, Literal, Parameter
from driftline.model.filter import Filter
from driftline.model.like import LikePattern
from driftline.model.scope import Scope
from driftline.model.truth import Unknown
from driftline.model.value import KIND_OF, Kind, Value, microseconds_of
from driftline.model.variables import variables_of

# Integers from here on are not all floats.
INEXACT = 2**53
# And beyond here there are none, so that comparing floats is exact again.
_BEYOND = 2.0**63

_OPERATIONS = {
    "=": layout.EQ,
    "!=": layout.NE,
    "<": layout.LT,
    "<=": layout.LE,
    ">": layout.GT,
    ">=": layout.GE,
}
# Bounds that are not exact are taken in, and the definition decides.
_WIDENED = [*range(12)]
_WIDENED[layout.LT], _WIDENED[layout.GT] = layout.LE, layout.GE


class Never(Exception):
    """Nothing satisfies the filter."""


class Letter:
    """One letter in the making; texts go to the bytes that all letters of a call share."""

    __slots__ = ("doubt", "format", "keyed", "parts", "text")

    def __init__(self, text: bytearray) -> None:
        self.parts: list[int | float] = []
        self.format = ""
        self.text = text
        self.doubt = False
        self.keyed = False

    def number(self, operation: int, axis: int, value: float) -> None:
        """A part whose operand is a number."""
        self.parts += (operation, axis, value, 0)
        self.format += "qqdq"

    def plain(self, operation: int, axis: int, value: int) -> None:
        """A part whose operand is a key as it is."""
        self.parts += (operation, axis, value, 0)
        self.format += "qqqq"

    def texts(self, operation: int, axis: int, raw: bytes) -> None:
        """A part whose operand is a text."""
        self.parts += (operation, axis, len(self.text), len(raw))
        self.format += "qqqq"
        self.text += raw

    def copy(self) -> Letter:
        """Another letter that says the same so far."""
        other = Letter(self.text)
        other.parts, other.format = self.parts.copy(), self.format
        other.doubt, other.keyed = self.doubt, self.keyed
        return other

    def pack_into(self, row: memoryview, multi: bool) -> None:
        """Write the words of the letter into a row."""
        flags = (layout.DOUBT if self.doubt else 0) | (layout.MULTI if multi else 0)
        _struct(self.format).pack_into(row, 0, flags, len(self.parts) >> 2, *self.parts)


@lru_cache(maxsize=4096)
def _struct(format: str) -> struct.Struct:
    return struct.Struct("=qq" + format)


def _is_exact(value: float) -> bool:
    """Do keys say how every number compares with this one? Not if it is NaN."""
    return -INEXACT < value < INEXACT or (type(value) is float and abs(value) > _BEYOND)


def never(text: bytearray) -> Letter:
    """The letter that nothing satisfies."""
    letter = Letter(text)
    letter.plain(layout.EQ, layout.ALWAYS, layout.MISSING)
    return letter


class Slot(NamedTuple):
    """Where in a letter the operand of a parameter stands."""

    letter: Letter
    place: int
    name: str


class Writer:
    """Writes filters as letters, with the axes of one index.

    A list given as `slots` gets a slot per parameter, if each is compared with as it is; otherwise
    it becomes None.
    """

    __slots__ = ("_axes", "_bounds", "_m", "slots", "text")

    def __init__(
        self, axes: Axes, m: Words, bounds: Bounds, slots: list[Slot] | None = None
    ) -> None:
        self._axes = axes
        self._m = m
        self._bounds = bounds
        self.text = bytearray()
        self.slots = slots

    def letters(self, filters: Sequence[Filter]) -> list[Letter]:
        """The letters of all alternatives that something satisfies; one that says so if none is.

        KeyError for a parameter without a value, TypeError for one that is no plain value.
        """
        found: list[Letter] = []
        for one in filters:
            try:
                found += self._alternative(one)
            except Never:
                continue
        return found or [never(self.text)]

    def _alternative(self, one: Filter) -> list[Letter]:
        letter = Letter(self.text)
        letter.doubt = bool(one.conditions)
        if one.type is not None:
            raw = one.type.encode()
            if len(raw) <= TEXT_EXACT:
                letter.texts(layout.EQ, layout.TYPE_TEXT, raw)
            else:
                self._compare_text(letter, layout.EQ, TYPE, Kind.STRING, raw)
        members: list[tuple[str, list[Value]]] = []
        for constraint in one.constraints:
            self._write(letter, constraint, members)
        if not members:
            return [letter]
        # The shortest list is what the filter can be found by, if nothing else is.
        members.sort(key=lambda found: len(found[1]))
        spread = None if letter.keyed else members.pop(0)
        for attribute, values in members:
            self._write_members(letter, attribute, values)
        if spread is None:
            return [letter]
        if self.slots:
            self.slots = None
        letters = []
        for value in spread[1]:
            other = letter.copy()
            self._compare(other, layout.EQ, spread[0], value)
            letters.append(other)
        return letters

    def _write(
        self, letter: Letter, constraint: Constraint, members: list[tuple[str, list[Value]]]
    ) -> None:
        operand = constraint.operand
        name = constraint.attribute
        operator = constraint.operator
        if operand is None:
            axis = self._axes.of(self._m, name, None, layout.PRESENCE)
            letter.plain(layout.IS, axis, int(operator is Operator.EXISTS))
        elif isinstance(operand, LikePattern):
            self._write_pattern(letter, name, operator, operand)
        elif isinstance(operand, tuple):
            values = self._values(letter, operand)
            if values is not None:
                members.append((name, values))
        else:
            value = self._value(letter, operand)
            if value is not None:
                self._compare(letter, _OPERATIONS[operator._value_], name, value)
                if self.slots is not None and type(operand) is Parameter:
                    self.slots.append(Slot(letter, len(letter.parts) - 2, operand.name))

    def _values(self, letter: Letter, items: Sequence[Expression]) -> list[Value] | None:
        """What to look for, each once; None where only the definition can tell."""
        if not all(type(item) is Literal for item in items):
            self.slots = None
        known: dict[tuple[Kind, Value], Value] = {}
        for item in items:
            try:
                value = self._value(letter, item)
            except Never:
                continue
            if value is None:
                return None
            if value == value:
                known[(KIND_OF[type(value)], value)] = value
        if not known:
            raise Never
        return list(known.values())

    def _value(self, letter: Letter, operand: Expression) -> Value | None:
        """What to compare with; None where only the definition can tell."""
        if type(operand) is Literal:
            if operand.value is None:
                raise Never
            return operand.value
        if type(operand) is Parameter:
            value = self._bounds[operand.name]
        else:
            variables = variables_of(operand)
            if variables.parameters:
                self.slots = None
            if variables.evolving:
                letter.doubt = True
                return None
            given = {name: self._bounds[name] for name in variables.parameters}
            outcome = operand.evaluate(Scope(None, given))
            if isinstance(outcome, Unknown):
                raise Never
            value = outcome
        if type(value) not in KIND_OF or value != value:
            raise TypeError
        return value

    def _compare(self, letter: Letter, operation: int, name: str, value: Value) -> None:
        kind = type(value)
        if kind is int or kind is float:
            axis = self._axes.of(self._m, name, Kind.NUMBER, layout.NUMBER)
            if _is_exact(value):  # type: ignore[arg-type]
                letter.number(operation, axis, value)  # type: ignore[arg-type]
            elif value != value:
                raise Never
            elif operation == layout.NE:
                letter.doubt = True
                letter.plain(layout.ANY, axis, 0)
            else:
                letter.doubt = True
                letter.number(_WIDENED[operation], axis, value)  # type: ignore[arg-type]
        elif kind is str:
            self._compare_text(letter, operation, name, Kind.STRING, value.encode())  # type: ignore[union-attr]
        elif kind is bytes:
            self._compare_text(letter, operation, name, Kind.BYTES, value)  # type: ignore[arg-type]
        else:
            of = KIND_OF[kind]
            key = microseconds_of(value) if isinstance(value, datetime) else int(value)
            letter.plain(operation, self._axes.of(self._m, name, of, layout.PLAIN), key)
        letter.keyed = letter.keyed or operation == layout.EQ

    def _compare_text(
        self, letter: Letter, operation: int, name: str, kind: Kind, raw: bytes
    ) -> None:
        if len(raw) <= TEXT_EXACT:
            letter.texts(operation, self._axes.of(self._m, name, kind, layout.TEXT), raw)
        elif operation == layout.EQ:
            letter.texts(layout.EQ, self._axes.of(self._m, name, kind, layout.HASH), raw)
            letter.texts(layout.EQ, self._axes.of(self._m, name, kind, layout.SPAN), raw)
        elif operation == layout.NE:
            letter.texts(layout.NE, self._axes.of(self._m, name, kind, layout.SPAN), raw)
        else:
            letter.doubt = True
            axis = self._axes.of(self._m, name, kind, layout.TEXT)
            letter.texts(_WIDENED[operation], axis, raw)

    def _write_pattern(
        self, letter: Letter, name: str, operator: Operator, pattern: LikePattern
    ) -> None:
        letter.doubt = letter.doubt or operator in (Operator.LIKE, Operator.NOT_LIKE)
        axis = self._axes.of(self._m, name, Kind.STRING, layout.TEXT)
        if operator is Operator.NOT_LIKE:
            letter.plain(layout.ANY, axis, 0)
            return
        prefix = pattern.prefix.encode()
        whole = [(layout.LIKE_SUFFIX, pattern.suffix.encode())]
        if operator is Operator.SUBSTRING:
            whole.append((layout.LIKE_SUBSTRING, "".join(pattern.substrings).encode()))
        if len(prefix) > TEXT_EXACT:
            whole.append((layout.LIKE_PREFIX, prefix))
        whole = [(operation, raw) for operation, raw in whole if raw]
        for operation, raw in whole:
            span = self._axes.of(self._m, name, Kind.STRING, layout.SPAN)
            letter.texts(operation, span, raw)
        if prefix:
            letter.texts(layout.LIKE_PREFIX, axis, prefix)
        elif not whole:
            letter.plain(layout.ANY, axis, 0)

    def _write_members(self, letter: Letter, name: str, values: list[Value]) -> None:
        """IN as a check, where all its values have exact keys of one kind."""
        kinds = {KIND_OF[type(value)] for value in values}
        if len(kinds) > 1:
            letter.doubt = True
            return
        (kind,) = kinds
        if kind is Kind.NUMBER:
            exact = all(-INEXACT < value < INEXACT for value in values)  # type: ignore[operator]
            key = layout.NUMBER
        elif kind in (Kind.STRING, Kind.BYTES):
            raws = [value.encode() if isinstance(value, str) else value for value in values]
            exact = all(len(raw) <= TEXT_EXACT for raw in raws)  # type: ignore[arg-type]
            values, key = raws, layout.TEXT  # type: ignore[assignment]
        else:
            values = [
                microseconds_of(value) if isinstance(value, datetime) else int(value)
                for value in values
            ]
            exact, key = True, layout.PLAIN
        if not exact:
            letter.doubt = True
            return
        keys = member_keys(values, key)
        axis = self._axes.of(self._m, name, kind, key)
        letter.texts(layout.IN, axis, keys.tobytes())
