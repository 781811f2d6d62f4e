"""What of an event may a party see? The rest is left out where it is told, and only there.

What may be seen of a form is looked up once. Notices of which all may be seen are told as they lie,
which is how those that kernels have written stay as quick as they are; the others are copied by a
kernel without the rest (`kernels.sight`), and in the few cases that it does not know one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftline.broker.access import Access, Anyone
from driftline.broker.formed import Forms
from driftline.broker.grants import Names
from driftline.kernels.sight import CLEAR, HIGH, LOW, UNKNOWN, leave_out
from driftline.model.event import Event
from driftline.model.value import Value
from driftline.wire.compact import split_records
from driftline.wire.forms import NO_FORM, Form
from driftline.wire.notices import read_notice, reduced, write_notice


class Seen(NamedTuple):
    """Notices that are to be told, and the least and the greatest form in them."""

    notices: bytes | memoryview
    low: int
    high: int


class Sight:
    """What one party may see."""

    __slots__ = ("_access", "_forms", "_left", "_party", "_plans", "_span", "_used", "_words")

    def __init__(self, access: Access, party: str, forms: Forms) -> None:
        self._access = access
        self._party = party
        self._forms = forms
        self._left: dict[int, tuple[int, tuple[bool, ...]] | None] = {}
        """By form, see `_look`."""
        self._plans = np.full(8, UNKNOWN, np.int32)
        self._words = np.zeros(16, np.int64)
        self._used = 0
        self._span = np.zeros(2, np.int64)

    def names(self, type: str, *, kept: bool = False) -> Names:
        """The attributes that it may see of events of a type, or of what is kept of these."""
        return self._access.sight(self._party, type, kept=kept)

    def event(self, event: Event) -> Event:
        """An event without what it may not see."""
        names = self.names(event.type)
        if all(name in names for name in event.attributes):
            return event
        return event.with_only(names)

    def values(
        self, type: str, values: Mapping[str, Value | None], *, kept: bool = False
    ) -> dict[str, Value | None]:
        """The attributes of an event or a row without those it may not see."""
        names = self.names(type, kept=kept)
        return {name: value for name, value in values.items() if name in names}

    # Notices, as they lie

    def notices(self, notices: bytes | memoryview, low: int, high: int) -> Seen:
        """Notices of forms from one number to another without what it may not see; the very same
        if there is no such thing.
        """
        if low == high and self._look(low) is None:
            return Seen(notices, low, high)
        out = np.empty(len(notices), np.uint8)
        size = self._leave_out(notices, out)
        if size < 0:
            for notice in split_records(notices):
                self._look(_form_of(notice))
            size = self._leave_out(notices, out)
        if size < 0:
            return Seen(self.one_by_one(notices), 0, NO_FORM)
        left = notices if size == len(notices) else out.data[:size]
        return Seen(left, int(self._span[LOW]), int(self._span[HIGH]))

    def _leave_out(self, notices: bytes | memoryview, out: NDArray[np.uint8]) -> int:
        raw = np.frombuffer(notices, np.uint8)
        return leave_out(raw, self._plans, self._words, out, self._span)

    def one_by_one(self, notices: bytes | memoryview) -> bytes:
        """The same by the definition."""
        parts: list[bytes | memoryview] = []
        for notice in split_records(notices):
            number = _form_of(notice)
            left = self._look(number)
            parts.append(notice if left is None else self._without(notice, number, *left))
        return b"".join(parts)

    def _look(self, number: int) -> tuple[int, tuple[bool, ...]] | None:
        """None: it sees all of this form; else the form that is left, and which fields it has."""
        if number in self._left:
            return self._left[number]
        if number == NO_FORM:
            return NO_FORM, ()
        form = self._forms.known[number]
        names = self.names(form.type)
        seen = tuple(name in names for name, _ in form.fields)
        found = None
        if not all(seen):
            fields = (field for field, is_seen in zip(form.fields, seen, strict=True) if is_seen)
            found = self._forms.number(Form(form.type, tuple(fields))), seen
        self._left[number] = found
        self._plan(number, form, found)
        return found

    def _plan(self, number: int, form: Form, found: tuple[int, tuple[bool, ...]] | None) -> None:
        """Say it to the kernel."""
        if found is not None and found[0] == NO_FORM:
            return  # What is left must say its names itself.
        if number >= len(self._plans):
            more = np.full(2 * number + 1 - len(self._plans), UNKNOWN, np.int32)
            self._plans = np.concatenate([self._plans, more])
        if found is None:
            self._plans[number] = CLEAR
            return
        left, seen = found
        kinds = zip(form.fields, seen, strict=True)
        words = [left, len(seen), *(kind << 1 | is_seen for (_, kind), is_seen in kinds)]
        end = self._used + len(words)
        if end > len(self._words):
            self._words = np.concatenate([self._words, np.zeros(end, np.int64)])
        self._words[self._used : end] = words
        self._plans[number] = self._used
        self._used = end

    def _without(self, notice: memoryview, number: int, left: int, seen: tuple[bool, ...]) -> bytes:
        if left != NO_FORM:
            return reduced(notice, self._forms.known[number], seen, left)
        # It says its names itself, or will: there are more forms than are counted.
        told = read_notice(notice, self._forms.known)
        told = told._replace(event=self.event(told.event))
        return write_notice(told, NO_FORM, Form(told.event.type, ()))


def _form_of(notice: memoryview) -> int:
    return notice[4] | notice[5] << 8


def sight_of(access: Access, party: str, forms: Forms) -> Sight | None:
    """What a party may see; None: everything there is."""
    return None if isinstance(access, Anyone) else Sight(access, party, forms)
