"""What of an event may a party see? The rest is left out where it is told, and only there.

A form of which it may see everything is looked up once and then told as it came, which is how
notices that kernels have written stay as quick as they are. Of the others notices are written anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from driftline.broker.access import Access, Anyone
from driftline.broker.formed import Forms
from driftline.broker.grants import Names
from driftline.model.event import Event
from driftline.model.value import Value
from driftline.wire.compact import split_records
from driftline.wire.forms import NO_FORM, Form
from driftline.wire.notices import read_notice, reduced, write_notice


class Sight:
    """What one party may see."""

    __slots__ = ("_access", "_clear", "_forms", "_party", "_reduced")

    def __init__(self, access: Access, party: str, forms: Forms) -> None:
        self._access = access
        self._party = party
        self._forms = forms
        self._clear: set[int] = set()
        self._reduced: dict[int, tuple[int, tuple[bool, ...]]] = {}

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

    def is_clear(self, low: int, high: int) -> bool:
        """May it see everything in notices of forms from one number to another, for sure?"""
        return low == high and (low in self._clear or self._look(low) is None)

    def _look(self, number: int) -> tuple[int, tuple[bool, ...]] | None:
        """None: it sees all of this form; else the form that is left, and which fields it has."""
        if number in self._clear:
            return None
        found = self._reduced.get(number)
        if found is not None:
            return found
        if number == NO_FORM:
            return NO_FORM, ()
        form = self._forms.known[number]
        names = self.names(form.type)
        seen = tuple(name in names for name, _ in form.fields)
        if all(seen):
            self._clear.add(number)
            return None
        fields = tuple(field for field, is_seen in zip(form.fields, seen, strict=True) if is_seen)
        found = self._reduced[number] = self._forms.number(Form(form.type, fields)), seen
        return found

    def notices(self, notices: bytes | memoryview) -> bytes | memoryview:
        """Notices without what it may not see; the very same if there is no such thing."""
        changed = False
        parts: list[bytes | memoryview] = []
        for notice in split_records(notices):
            number = notice[4] | notice[5] << 8
            found = self._look(number)
            if found is not None:
                changed = True
                parts.append(self._without(notice, number, *found))
            else:
                parts.append(notice)
        return b"".join(parts) if changed else notices

    def _without(self, notice: memoryview, number: int, left: int, seen: tuple[bool, ...]) -> bytes:
        if left != NO_FORM:
            return reduced(notice, self._forms.known[number], seen, left)
        # It says its names itself, or will: there are more forms than are counted.
        told = read_notice(notice, self._forms.known)
        told = told._replace(event=self.event(told.event))
        return write_notice(told, NO_FORM, Form(told.event.type, ()))


def sight_of(access: Access, party: str, forms: Forms) -> Sight | None:
    """What a party may see; None: everything there is."""
    return None if isinstance(access, Anyone) else Sight(access, party, forms)
