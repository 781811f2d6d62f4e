"""What of an event may a party see? The rest is left out where it is told, and only there.

What may be seen of a form is looked up once. Notices of which all may be seen are told as they lie,
which is how those that kernels have written stay as quick as they are; the others are copied by a
kernel without the rest (`kernels.sight`), and in the few cases that it does not know one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from driftline.broker.access import Access, Anyone
from driftline.broker.formed import Forms
from driftline.broker.grants import Names
from driftline.broker.identity import identity_of
from driftline.kernels.sight import CLEAR, FROM, HIGH, LOW, SPAN_WORDS, TO, UNKNOWN, leave_out
from driftline.model.event import Event
from driftline.model.value import Value
from driftline.wire.compact import split_records
from driftline.wire.forms import NO_FORM, Form
from driftline.wire.notices import read_notice, reduced, write_notice
from driftline.wire.stream import HEAD_BYTES, NOTICES_WORD, Kind, frame


class Seen(NamedTuple):
    """Notices that are to be told, and the least and the greatest form in them."""

    notices: bytes | memoryview
    low: int
    high: int


class Sight:
    """What one party may see, or all that are the same person's."""

    __slots__ = (
        "__weakref__",
        "_access",
        "_forms",
        "_left",
        "_party",
        "_plans",
        "_used",
        "_words",
        "identity",
    )

    def __init__(self, access: Access, party: str, forms: Forms) -> None:
        self._access = access
        self._party = party
        self.identity = identity_of(party)
        """Whose it is."""
        self._forms = forms
        self._left: dict[int, tuple[int, tuple[bool, ...]] | None] = {}
        """By form, see `_look`."""
        self._plans = np.full(8, UNKNOWN, np.int32)
        self._words = np.zeros(16, np.int64)
        self._used = 0

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
        """Notices of forms from one number to another without what it may not see."""
        if self.is_clear(low, high):
            return Seen(notices, low, high)
        (seen,) = self._runs(notices, [(0, len(notices))], 0)
        return seen

    def frames(self, raw: bytes, runs: list[tuple[int, int]]) -> list[Seen]:
        """The same for runs of notices in a buffer, from where to where; each is a whole frame."""
        return self._runs(raw, runs, NOTICES_WORD)

    def is_clear(self, low: int, high: int) -> bool:
        """May all be seen of notices of forms from one number to another, for sure?"""
        return low == high and self._look(low) is None

    def _runs(self, raw: bytes | memoryview, runs: list[tuple[int, int]], head: int) -> list[Seen]:
        whole, at = np.frombuffer(raw, np.uint8), np.array(runs, np.int64)
        size = int((at[:, 1] - at[:, 0]).sum()) + len(runs) * HEAD_BYTES
        out = np.empty(size, np.uint8)
        spans = np.empty((len(runs), SPAN_WORDS), np.int64)
        for _ in range(2):
            if leave_out(whole, at, head, self._plans, self._words, out, spans) >= 0:
                data = out.data
                return [
                    Seen(data[one[FROM] : one[TO]], one[LOW], one[HIGH]) for one in spans.tolist()
                ]
            # Some of the forms are new to the kernel, or of those that it does not know.
            for start, end in runs:
                for notice in split_records(memoryview(raw)[start:end]):
                    self._look(_form_of(notice))
        slowly = (self.one_by_one(memoryview(raw)[start:end]) for start, end in runs)
        return [Seen(frame(Kind.NOTICES, one) if head else one, 0, NO_FORM) for one in slowly]

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
            found = self._forms.number(Form(form.type, tuple(fields)), self.identity), seen
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
