"""What do many events have in common, so that it need be said only once?

A *form* is the type of an event and the names and kinds of its attributes, in their order. On a
connection it goes by a number.

    >>> form_of(Event("quote", {"firm": "IBM", "price": 9.5}))
    Form(type='quote', fields=(('firm', 16), ('price', 2)))
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from driftline.errors import InvalidValue
from driftline.model.event import ENVELOPE, Event
from driftline.model.value import show
from driftline.wire.limits import ATTRIBUTES_MAX
from driftline.wire.refusal import utf8
from driftline.wire.values import BOOLEAN, BYTES, FLOAT, INTEGER, STRING, TIME

NO_FORM = 0xFFFF
"""The number of an event that says its type and names itself."""
FORMS_SAID = 1000
"""So many forms a client says on a connection, without being told how many it may: further events
have none."""

_KIND_OF: dict[type, int] = {
    int: INTEGER,
    float: FLOAT,
    bool: BOOLEAN,
    datetime: TIME,
    str: STRING,
    bytes: BYTES,
}
_KINDS = frozenset(_KIND_OF.values())


class Form(NamedTuple):
    """The type of an event, and its attributes with the kinds of their values."""

    type: str
    fields: tuple[tuple[str, int], ...]

    @property
    def letters(self) -> int:
        """How many its names have."""
        return len(self.type) + sum(len(name) for name, _ in self.fields)


def form_of(event: Event) -> Form:
    """The form of an event."""
    kinds = _KIND_OF
    return Form(event.type, tuple([(name, kinds[type(v)]) for name, v in event.attributes.items()]))


def check_form(form: Form) -> Form:
    """The form, if an event can have it; `InvalidValue` otherwise."""
    names = [name for name, _ in form.fields]
    if len(names) > ATTRIBUTES_MAX or len(set(names)) < len(names):
        raise InvalidValue("form", f"up to {ATTRIBUTES_MAX} names, each once", f"{len(names)}")
    for text in (form.type, *names):
        utf8(text, "form")
        if not text:
            raise InvalidValue("form", "names that are not empty", "an empty one")
    for name, kind in form.fields:
        if name in ENVELOPE:
            raise InvalidValue("form", "names that are not the envelope's", show(name))
        if kind not in _KINDS:
            raise InvalidValue(f"form, {name}", "a kind of value", show(kind))
    return form
