"""Which forms of events are known here, and how do kernels read each?

A form goes by one number for all connections of a broker, which is journalled. What kernels need to
know of it depends on which attributes some filter looks at: it is written anew when that changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftline.broker.effects import Key
from driftline.errors import InvalidValue
from driftline.kernels import intake, layout
from driftline.kernels.keys import text_hash, text_key
from driftline.matching.axes import TYPE, Axes, Reader
from driftline.wire.forms import NO_FORM, Form, check_form
from driftline.wire.values import BOOLEAN, BYTES, FLOAT, INTEGER, STRING, TIME

LONGEST = 1 << 15
"""A form whose names have more letters is not for kernels, and not for all to know."""
LETTERS_MAX = 1 << 26
"""So many letters have all forms that are known."""
FORMS_MAX = 16_384
"""So many are known; events of others say their names themselves."""
_NO_READER = Reader()
_NOTHING = (-1, -1, -1, -1, -1)


class Plan(NamedTuple):
    """How kernels read the forms there are: the rows of keys by axis, and each form in words."""

    columns: NDArray[np.int64]
    present: NDArray[np.int64]
    defaults: NDArray[np.int64]
    form_at: NDArray[np.int64]
    words: NDArray[np.int64]
    types: bytes
    """The types of all forms, one behind the other: they lie before the records in a buffer."""


class Forms:
    """The forms of one broker, by their numbers."""

    __slots__ = ("_letters", "_numbers", "_put", "known")

    def __init__(self, put: Callable[[Key, object], None]) -> None:
        self.known: dict[int, Form] = {}
        self._numbers: dict[Form, int] = {}
        self._letters = 0
        self._put = put

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept: notices that wait name forms."""
        for key, value in stored.items():
            if key[0] == "form":
                assert isinstance(value, Form)
                self._know(int(key[1]), value)

    def number(self, form: Form) -> int:
        """The number of a form, new or known; `NO_FORM` if there are too many."""
        found = self._numbers.get(form)
        if found is not None:
            return found
        try:
            check_form(form)
        except InvalidValue:
            return NO_FORM
        size = form.letters
        if len(self.known) >= FORMS_MAX or size > LONGEST or self._letters + size > LETTERS_MAX:
            return NO_FORM
        number = len(self.known)
        self._know(number, form)
        self._put(("form", str(number)), form)
        return number

    def _know(self, number: int, form: Form) -> None:
        self.known[number] = form
        self._numbers[form] = number
        self._letters += form.letters

    def __len__(self) -> int:
        return len(self.known)

    def plainly(self, plainly: Callable[[str], bool]) -> frozenset[int]:
        """Those that kernels can match, by their types."""
        return frozenset(number for number, form in self.known.items() if plainly(form.type))

    def plan(self, axes: Axes, plain: frozenset[int]) -> Plan:
        """How kernels read them; those that are not plain are not for kernels."""
        rows = _Rows(axes)
        words: list[int] = []
        form_at = np.full(len(self.known), -1, np.int64)
        types = bytearray()
        for number, form in self.known.items():
            # All types, whoever is plain: while a batch is being taken they stay where they are.
            raw = form.type.encode()
            types += raw
            if number in plain:
                form_at[number] = len(words)
                words += rows.form(form, raw, len(types) - len(raw))
        return Plan(
            rows.columns,
            np.array(rows.present, np.int64),
            np.array(rows.defaults, np.int64),
            form_at,
            np.array(words or [0], np.int64),
            bytes(types),
        )


def readable(axes: Axes) -> bool:
    """Can kernels match records by these? Not if somebody looks at what is around an event."""
    return not axes.envelope and axes.readers[TYPE].presence < 0


class _Rows:
    """The rows of keys, given to axes as forms ask for them."""

    def __init__(self, axes: Axes) -> None:
        self._axes = axes
        self.columns = axes.columns.copy()
        self.present: list[int] = []
        self.defaults: list[int] = [0]
        self._row_of: dict[int, int] = {}

    def _row(self, axis: int) -> int:
        if axis < 0:
            return -1
        row = self._row_of.get(axis)
        if row is None:
            row = self._row_of[axis] = len(self.defaults)
            is_presence = self._axes.names[axis][2] == layout.PRESENCE
            self.defaults.append(0 if is_presence else layout.MISSING)
            self.columns[axis] = row
            if not is_presence:
                self.present.append(axis)
        return row

    def form(self, form: Form, raw: bytes, start: int) -> list[int]:
        """The words of a form, whose type lies there."""
        span = start << 32 | len(raw)
        text = np.frombuffer(raw, np.uint8)
        by = dict.fromkeys((layout.TEXT, layout.HASH, layout.SPAN), -1)
        for axis in self._axes.readers[TYPE].texts:
            by[self._axes.names[axis][2]] = self._row(axis)
        words = [
            len(form.fields),
            int(text_key(text, 0, len(raw))),
            by[layout.TEXT],
            int(text_hash(text, 0, len(raw))),
            by[layout.HASH],
            span,
            by[layout.SPAN],
        ]
        assert len(words) == intake.FORM_HEAD
        for name, kind in form.fields:
            words += (kind, *self._field(name, kind))
        return words

    def _field(self, name: str, kind: int) -> tuple[int, ...]:
        reader = self._axes.readers.get(name, _NO_READER)
        if reader is _NO_READER:
            return _NOTHING
        plain = {
            INTEGER: reader.number,
            FLOAT: reader.number,
            BOOLEAN: reader.boolean,
            TIME: reader.time,
        }
        by = dict.fromkeys((layout.TEXT, layout.HASH, layout.SPAN), -1)
        for axis in {STRING: reader.texts, BYTES: reader.raws}.get(kind, ()):
            by[self._axes.names[axis][2]] = self._row(axis)
        return (
            self._row(plain.get(kind, -1)),
            by[layout.TEXT],
            by[layout.HASH],
            by[layout.SPAN],
            self._row(reader.presence),
        )
