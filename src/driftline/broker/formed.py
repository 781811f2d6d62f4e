"""Which forms of events are known here, and how do kernels read each?

A form goes by one number for all connections of a broker, which is journalled. What kernels need to
know of it depends on which attributes some filter looks at. That changes often, and forms are many:
so it is found out of a form when the next event of it comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from driftline.broker.effects import Key
from driftline.errors import InvalidValue
from driftline.kernels import intake, layout
from driftline.kernels.keys import text_hash, text_key
from driftline.matching.axes import TYPE, Axes, Reader
from driftline.wire.forms import NO_FORM, Form, check_form
from driftline.wire.values import BOOLEAN, BYTES, FLOAT, INTEGER, STRING, TIME

LONGEST, TYPE_LONGEST = 1 << 15, 1 << 10
"""A form whose names have more letters, or its type, is not for kernels, nor for all to know."""
LETTERS_MAX = 1 << 26
"""So many letters have all forms that are known."""
FORMS_MAX = 16_384
"""So many are known; events of others say their names themselves."""
SHARE = 8
"""This part of all may come from one who is known by name, until the broker begins anew."""
ASK, HARD = -2, -1
"""Of a form nothing is known yet; it is not for kernels."""
_FIRST = 64
_NO_READER = Reader()
_NOTHING = (-1, -1, -1, -1, -1)


class Forms:
    """The forms of one broker, by their numbers."""

    __slots__ = ("_letters", "_numbers", "_of", "_put", "_spans", "known", "types")

    def __init__(self, put: Callable[[Key, object], None]) -> None:
        self.known: dict[int, Form] = {}
        self.types = bytearray()
        """The types of all forms, one behind the other: they lie before the records in a buffer."""
        self._spans: dict[str, tuple[int, int]] = {}
        self._numbers: dict[Form, int] = {}
        self._letters = 0
        self._of: Counter[str] = Counter()
        self._put = put

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept: notices that wait name forms."""
        for key, value in stored.items():
            if key[0] == "form":
                assert isinstance(value, Form)
                self._know(int(key[1]), value)

    def number(self, form: Form, owner: str = "") -> int:
        """The number of a form, new or known; `NO_FORM` if there are too many, also too many that
        came from one owner, if it has a name.
        """
        found = self._numbers.get(form)
        if found is not None:
            return found
        try:
            check_form(form)
        except InvalidValue:
            return NO_FORM
        size = form.letters
        if size > LONGEST or len(form.type) > TYPE_LONGEST:
            return NO_FORM
        if len(self.known) >= FORMS_MAX or self._letters + size > LETTERS_MAX:
            return NO_FORM
        if owner:
            # By letters too: what is counted is at least one in so many of them.
            weight = max(1, -(-size * FORMS_MAX // LETTERS_MAX))
            if self._of[owner] + weight > FORMS_MAX // SHARE:
                return NO_FORM
            self._of[owner] += weight
        number = len(self.known)
        self._know(number, form)
        self._put(("form", str(number)), form)
        return number

    def _know(self, number: int, form: Form) -> None:
        self.known[number] = form
        self._numbers[form] = number
        self._letters += form.letters
        if form.type not in self._spans:
            raw = form.type.encode()
            self._spans[form.type] = len(self.types), len(raw)
            self.types += raw

    def span(self, type: str) -> tuple[int, int]:
        """Where a type lies among the types, and how long it is."""
        return self._spans[type]

    def __len__(self) -> int:
        return len(self.known)


def readable(axes: Axes) -> bool:
    """Can kernels match records by these? Not if somebody looks at what is around an event."""
    return not axes.envelope and axes.readers[TYPE].presence < 0


class Plan:
    """How kernels read forms, as one index wants them: the rows of keys by axis, and words.

    What is said of a form holds until some filter looks at other attributes: then there is another
    plan. `form_at` says where a form lies in `words`, `HARD`, or `ASK`.
    """

    __slots__ = (
        "_axes",
        "_defaults",
        "_place",
        "_present",
        "_row_of",
        "_used",
        "columns",
        "defaults",
        "form_at",
        "present",
        "version",
        "words",
    )

    def __init__(self, axes: Axes) -> None:
        self.version = axes.version
        self._axes = axes
        self._row_of: dict[int, int] = {}
        self._present: list[int] = []
        self._defaults: list[int] = [0]
        self._place: dict[int, int] = {}
        self._used = 0
        self.columns = axes.columns.copy()
        self.present = np.array(self._present, np.int64)
        self.defaults = np.array(self._defaults, np.int64)
        self.form_at: NDArray[np.int64] = np.full(_FIRST, ASK, np.int64)
        self.words: NDArray[np.int64] = np.zeros(_FIRST, np.int64)

    def forget(self) -> None:
        """Ask of each form anew whether it is for kernels."""
        self.form_at.fill(ASK)

    def room(self, forms: int) -> None:
        """There are so many forms by now."""
        more = max(0, forms - len(self.form_at))
        if more:
            more = max(more, len(self.form_at))
            self.form_at = np.concatenate([self.form_at, np.full(more, ASK, np.int64)])

    def read(self, number: int, form: Form, span: tuple[int, int]) -> None:
        """Let kernels read a form, whose type lies there."""
        place = self._place.get(number)
        if place is None:
            place = self._place[number] = self._written(self._form(form, span))
        self.form_at[number] = place

    def _written(self, words: list[int]) -> int:
        place, self._used = self._used, self._used + len(words)
        if self._used > len(self.words):
            self.words = np.concatenate([self.words, np.zeros(self._used, np.int64)])
        self.words[place : self._used] = words
        self.present = np.array(self._present, np.int64)
        self.defaults = np.array(self._defaults, np.int64)
        return place

    def _row(self, axis: int) -> int:
        if axis < 0:
            return -1
        row = self._row_of.get(axis)
        if row is None:
            row = self._row_of[axis] = len(self._defaults)
            is_presence = self._axes.names[axis][2] == layout.PRESENCE
            self._defaults.append(0 if is_presence else layout.MISSING)
            self.columns[axis] = row
            if not is_presence:
                self._present.append(axis)
        return row

    def _form(self, form: Form, span: tuple[int, int]) -> list[int]:
        """The words of a form."""
        raw = form.type.encode()
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
            span[0] << 32 | span[1],
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
