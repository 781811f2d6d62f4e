"""What happened to a row, and how is that one message?

    upsert stock {symbol: 'IBM', price: 10}    over    {symbol: 'IBM', price: 9}
    $rows:stock {KEY: 'IBM', OLD: TRUE, OLD_symbol: 'IBM', OLD_price: 9,
                 NEW: TRUE, NEW_symbol: 'IBM', NEW_price: 10, "CHANGED price, risk": TRUE}

`OLD` and `NEW` are there if the row was and is there: without them `price IS NULL` would be true of
a row that does not exist. Views say which attributes they read; for each such set of names there is
a flag if the row came or went, or one of them is not the very same value as before. So a view that
reads others asks for one flag, which an index finds, and is spared the rest. The envelope of the
rows is carried alike (`OLD_ce_time`), so that conditions over it hold, and a row can be had back as
it was.

Every attribute of a row gets one of the prefixes and all else has none, so no two collide whatever
a publisher calls its attributes. That leaves the type: one that begins with `$` is nobody's but the
system's, and must be refused where events, tables and subscriptions come in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from driftline.errors import InvalidValue
from driftline.model.event import ENVELOPE, RESERVED, Event
from driftline.model.text import identifier
from driftline.model.value import Value, same, show

ROWS = "$rows:"
OLD, NEW, CHANGED = "OLD", "NEW", "CHANGED "
KEYS = ("KEY", "KEY_2")
"""A row has one key, a pair of rows (see `join`) two."""

NO_FLAGS: Mapping[str, frozenset[str]] = {}
_IDENTIFIER = re.compile(r'"(?:[^"]|"")*"|[^", ]+')


@dataclass(frozen=True, slots=True)
class Change:
    """A row before and after; None where there is none. `type` is that of its messages."""

    type: str
    keys: tuple[Value, ...]
    old: Event | None
    new: Event | None

    @property
    def table(self) -> str:
        """The table whose row it is."""
        return self.type.partition(":")[2]


def changed(table: str, key: Value, old: Event | None, new: Event | None) -> Change:
    """The change of a table's row."""
    return Change(ROWS + table, (key,), old, new)


def is_derived(type: str) -> bool:
    """Is it the type of a message the system made, which no publisher may use?"""
    return type.startswith(RESERVED)


def check_published(event: Event) -> None:
    """InvalidValue if no publisher may publish it."""
    if is_derived(event.type):
        wanted = f"one that does not begin with {RESERVED}"
        raise InvalidValue("event type", wanted, show(event.type))


def flag_of(names: Iterable[str]) -> str:
    """The flag of views that read attributes of these names.

    >>> flag_of({"risk", "price"}), flag_of(["a b"])
    ('CHANGED price, risk', 'CHANGED "a b"')
    """
    return CHANGED + ", ".join(map(identifier, sorted(set(names))))


def names_of(flag: str) -> frozenset[str]:
    """The names that a flag stands for: the inverse of `flag_of`."""
    found = _IDENTIFIER.findall(flag.removeprefix(CHANGED))
    return frozenset(one[1:-1].replace('""', '"') if one.startswith('"') else one for one in found)


def message_of(change: Change, at: int, flags: Mapping[str, frozenset[str]] = NO_FLAGS) -> Event:
    """The change as one event with this stamp."""
    return Event.of_admitted(change.type, attributes_of(change, flags), at)


def attributes_of(
    change: Change, flags: Mapping[str, frozenset[str]] = NO_FLAGS
) -> dict[str, Value]:
    """What a message says of the change, with those of the flags that are true of it."""
    attributes: dict[str, Value] = dict(zip(KEYS, change.keys, strict=False))
    before = _side(change.old, OLD, attributes)
    after = _side(change.new, NEW, attributes)
    if change.old is None or change.new is None:
        attributes.update(dict.fromkeys(flags, True))
        return attributes
    for flag, names in flags.items():
        if any(not same(before.get(name), after.get(name)) for name in names):
            attributes[flag] = True
    return attributes


def change_of(message: Event) -> Change:
    """The change that a message says: the inverse of `message_of`."""
    keys = tuple(message.attributes[name] for name in KEYS if name in message.attributes)
    if not is_derived(message.type) or not keys:
        raise InvalidValue("message", "a change of a row", message.type)
    return Change(message.type, keys, _row(message, OLD), _row(message, NEW))


def _side(row: Event | None, side: str, attributes: dict[str, Value]) -> dict[str, Value]:
    """Write one side of the change into the message's attributes, and give it back."""
    if row is None:
        return {}
    values = dict(_values(row))
    attributes[side] = True
    for name, value in values.items():
        attributes[f"{side}_{name}"] = value
    return values


def _values(row: Event) -> Iterator[tuple[str, Value]]:
    yield from row.attributes.items()
    for name in ENVELOPE:
        value = row.envelope(name)
        if value is not None:
            yield name, value


def _row(message: Event, side: str) -> Event | None:
    if side not in message.attributes:
        return None
    prefix = side + "_"
    found = {
        name[len(prefix) :]: value
        for name, value in message.attributes.items()
        if name.startswith(prefix)
    }
    kind, id, source, time, entered = (found.pop(name, None) for name in ENVELOPE)
    texts = (one is None or type(one) is str for one in (id, source))
    times = (one is None or isinstance(one, datetime) for one in (time, entered))
    if type(kind) is not str or not all(texts) or not all(times):
        raise InvalidValue("message", "the envelope of a row", message.type)
    return Event(kind, found, time=time, id=id, source=source, entered=entered)  # type: ignore[arg-type]
