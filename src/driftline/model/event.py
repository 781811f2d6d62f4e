"""What was published?

An event has a type, any number of typed attributes, and an envelope: publication time, source and
id (the CloudEvents names), and the stamp it got where it entered the system. The envelope can be
read in a filter as `ce_type`, `ce_id`, `ce_source`, `ce_time` and `ce_entered`; but for the trace
that the event belongs to (`trace`): what is told must not depend on who is watching.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType

from driftline.errors import InvalidValue
from driftline.model.trace import admit_trace
from driftline.model.value import (
    Value,
    admit,
    identity,
    items_of,
    microseconds_of,
    show,
    time_of,
    type_name,
)

ENVELOPE = ("ce_type", "ce_id", "ce_source", "ce_time", "ce_entered")

RESERVED = "$"
"""What the types of the system's own messages begin with: nobody else may publish them."""

# The years 1 to 9999, which is what a time can say: microseconds since 1970.
EARLIEST_US = -62_135_596_800_000_000
LATEST_US = 253_402_300_799_999_999


class Event:
    """One published fact. Immutable; `None` for an attribute means it is missing.

    `time` is when the publisher says it happened, `entered` when the system first saw it (what
    `now()` reads). Both are integer microseconds since 1970; an aware datetime is accepted.

    >>> Event("quote", {"firm": "IBM", "price": 9.5, "note": None})
    Event('quote', {'firm': 'IBM', 'price': 9.5})
    """

    __slots__ = ("attributes", "entered", "id", "source", "time", "trace", "type")

    type: str
    attributes: Mapping[str, Value]
    time: int | None
    id: str | None
    source: str | None
    entered: int | None
    trace: str | None

    def __init__(
        self,
        type: str,
        attributes: Mapping[str, object] | None = None,
        *,
        time: int | datetime | None = None,
        id: str | None = None,
        source: str | None = None,
        entered: int | datetime | None = None,
        trace: str | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "type", _name(type, "event type"))
        put(
            self,
            "attributes",
            MappingProxyType(dict(_admitted(items_of(attributes, "attributes")))),
        )
        put(self, "time", stamp_of(time, "event time"))
        put(self, "id", None if id is None else _name(id, "event id"))
        put(self, "source", None if source is None else _name(source, "event source"))
        put(self, "entered", stamp_of(entered, "event entry stamp"))
        put(self, "trace", None if trace is None else admit_trace(trace))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an event does not change (tried to set {name})")

    def envelope(self, name: str) -> Value | None:
        """The value of an envelope attribute, None where the envelope has no such thing."""
        if name == "ce_type":
            return self.type
        if name == "ce_id":
            return self.id
        if name == "ce_source":
            return self.source
        stamp = {"ce_time": self.time, "ce_entered": self.entered}.get(name)
        return None if stamp is None else time_of(stamp)

    @property
    def stamp(self) -> int | None:
        """What `now()` reads: when it entered the system, else when its publisher says it was."""
        return self.time if self.entered is None else self.entered

    def entering(self, now: int) -> Event:
        """This event as it enters the system; one that did before (a replay) keeps its stamp."""
        if self.entered is not None and self.time is not None:
            return self
        return self.stamped(now if self.entered is None else self.entered)

    def stamped(self, now: int) -> Event:
        """This event with the entry stamp `now`; without a time of its own it gets that too."""
        event = object.__new__(Event)
        put = object.__setattr__
        put(event, "type", self.type)
        put(event, "attributes", self.attributes)
        put(event, "time", now if self.time is None else self.time)
        put(event, "id", self.id)
        put(event, "source", self.source)
        put(event, "entered", now)
        put(event, "trace", self.trace)
        return event

    def with_trace(self, trace: str | None) -> Event:
        """This event as one of another trace."""
        parts = (self.type, dict(self.attributes), self.time, self.id, self.source, self.entered)
        return _rebuild(*parts, admit_trace(trace))

    def with_attribute(self, name: str, value: Value) -> Event:
        """This event with another value, that was admitted before, of one of its attributes."""
        event = object.__new__(Event)
        for slot in ("type", "time", "id", "source", "entered", "trace"):
            object.__setattr__(event, slot, getattr(self, slot))
        attributes = {**self.attributes, name: value}
        object.__setattr__(event, "attributes", MappingProxyType(attributes))
        return event

    def with_only(self, names: Container[str]) -> Event:
        """This event without the attributes that are not among these."""
        event = object.__new__(Event)
        for slot in ("type", "time", "id", "source", "entered", "trace"):
            object.__setattr__(event, slot, getattr(self, slot))
        attributes = {name: value for name, value in self.attributes.items() if name in names}
        object.__setattr__(event, "attributes", MappingProxyType(attributes))
        return event

    @classmethod
    def of_admitted(
        cls,
        type: str,
        attributes: Mapping[str, Value],
        stamp: int,
        id: str | None = None,
        source: str | None = None,
        time: int | None = None,
        entered: int | None = None,
    ) -> Event:
        """An event of values that were admitted before; its time and its entry are the stamp, where
        it does not say.
        """
        event = object.__new__(cls)
        put = object.__setattr__
        put(event, "type", type)
        put(event, "attributes", MappingProxyType(attributes))
        put(event, "entered", stamp if entered is None else entered)
        put(event, "time", event.entered if time is None else time)
        put(event, "id", id)
        put(event, "source", source)
        put(event, "trace", None)
        return event

    @classmethod
    def of_parts(
        cls,
        type: str,
        attributes: dict[str, Value],
        time: int | None,
        id: str | None,
        source: str | None,
        entered: int | None,
        trace: str | None = None,
    ) -> Event:
        """An event of parts that were all admitted before."""
        return _rebuild(type, attributes, time, id, source, entered, trace)

    def _key(self) -> tuple[object, ...]:
        attributes = {name: identity(value) for name, value in self.attributes.items()}
        rest = (self.time, self.id, self.source, self.entered, self.trace)
        return (self.type, attributes, *rest)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Event) else NotImplemented

    def __hash__(self) -> int:
        attributes = frozenset((name, identity(value)) for name, value in self.attributes.items())
        return hash((self.type, attributes, self.time, self.id, self.source))

    def __reduce__(self) -> tuple[object, ...]:
        rest = (self.time, self.id, self.source, self.entered, self.trace)
        return (_rebuild, (self.type, dict(self.attributes), *rest))

    def __repr__(self) -> str:
        rest = "".join(
            f", {name}={getattr(self, name)!r}"
            for name in ("time", "id", "source", "entered", "trace")
            if getattr(self, name) is not None
        )
        return f"Event({self.type!r}, {dict(self.attributes)!r}{rest})"


def _rebuild(
    type: str,
    attributes: dict[str, Value],
    time: int | None,
    id: str | None,
    source: str | None,
    entered: int | None,
    trace: str | None = None,
) -> Event:
    """An event as `__reduce__` has written it: all of it was admitted before."""
    event = object.__new__(Event)
    put = object.__setattr__
    put(event, "type", type)
    put(event, "attributes", MappingProxyType(attributes))
    put(event, "time", time)
    put(event, "id", id)
    put(event, "source", source)
    put(event, "entered", entered)
    put(event, "trace", trace)
    return event


def _admitted(items: Iterable[tuple[object, object]]) -> Iterable[tuple[str, Value]]:
    for name, value in items:
        if value is None:
            continue
        admitted = _name(name, "attribute name")
        if admitted in ENVELOPE:
            raise InvalidValue(
                f"attribute {admitted}", "a name that is not the envelope's", repr(admitted)
            )
        yield admitted, admit(value, f"attribute {admitted}")


def _name(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidValue(where, "a string that is not empty", show(value))
    return str(admit(value, where))


def stamp_of(value: object, where: str) -> int | None:
    """Microseconds since 1970 from themselves or from a time, within the calendar."""
    if value is None:
        return None
    admitted = admit(value, where)
    if isinstance(admitted, datetime):
        return microseconds_of(admitted)
    if type(admitted) is not int:
        raise InvalidValue(where, "integer microseconds or a time with a zone", type_name(admitted))
    if not EARLIEST_US <= admitted <= LATEST_US:
        raise InvalidValue(where, "microseconds between the years 1 and 9999", show(admitted))
    return admitted
