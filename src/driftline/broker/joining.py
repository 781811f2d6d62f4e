"""Which messages that wait for a link can be said as one?

While what was told of interest is still on its way to a neighbour, what is to be told meanwhile
waits and is put together: one message then says what all of them would have said. It costs a busy
link the time that a message takes to be acknowledged, an idle one nothing, and spares both ends
what is done per message. (Nagle did the same for bytes, RFC 896.)

    >>> joined([Interest({}, ("a",)), Interest({}, ("b",))]).removed
    ('a', 'b')
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as Series
from dataclasses import replace
from typing import Generic, TypeAlias, TypeVar

from driftline.model.advertisement import Advertisement
from driftline.model.filter import Filter
from driftline.model.message import Control, Home, Interest, Sequence
from driftline.moving.parametric.updates import Moved, updated

Joinable: TypeAlias = Interest | Home
T = TypeVar("T")

ENTRIES_MAX = 1024
"""What is put together has no more entries than this, unless one message had: events that are sent
on the same link should not have to wait long."""


def subject_of(message: Control) -> str | None:
    """What a message is about: those on one subject may be joined, those on none do not wait."""
    if isinstance(message, Interest):
        return ""
    return message.origin if isinstance(message, Home) else None


def groups(messages: Series[Joinable]) -> Iterator[list[Joinable]]:
    """The messages of one subject in the order they came, parted where they become too many."""
    group: list[Joinable] = []
    entries = 0
    for message in messages:
        count = len(message.added) + len(message.removed)
        count += len(message.updates)
        if isinstance(message, Home):
            count += len(message.offered) + len(message.withdrawn)
        else:
            count += len(message.sequences)
        if group and entries + count > ENTRIES_MAX:
            yield group
            group, entries = [], 0
        group.append(message)
        entries += count
    if group:
        yield group


def joined(messages: Series[Joinable]) -> Joinable:
    """One message that says what these, on one subject, say in turn.

    What is taken back is always said to be, even if one of them had added it: a member of a mesh
    may have heard of that by another way. Who hears it applies what is removed before what is
    added.
    """
    filters, offers = _Entries[Filter](), _Entries[Advertisement]()
    sequences: dict[str, Sequence] = {}
    updates: dict[str, Moved] = {}
    before: Joinable | None = None
    for message in messages:
        if before is None or _begins_anew(message, before):
            filters, offers, sequences, updates, before = _Entries(), _Entries(), {}, {}, message
        elif isinstance(message, Home) and isinstance(before, Home):
            before = replace(message, base=min(before.base, message.base))
        filters.change(message.added, message.removed)
        for key in message.removed:
            sequences.pop(key, None)
            updates.pop(key, None)
        for key, moved in message.updates.items():
            _update(filters.added, updates, key, moved)
        if isinstance(message, Home):
            offers.change(message.offered, message.withdrawn)
        else:
            sequences.update(message.sequences)
    removed = tuple(filters.removed)
    if isinstance(before, Home):
        withdrawn = tuple(offers.removed)
        return replace(
            before,
            added=filters.added,
            removed=removed,
            offered=offers.added,
            withdrawn=withdrawn,
            updates=updates,
        )
    assert before is not None
    return replace(
        before, added=filters.added, removed=removed, sequences=sequences, updates=updates
    )


def _update(added: dict[str, Filter], updates: dict[str, Moved], key: str, moved: Moved) -> None:
    """The newest value of a variable is all that counts [PARAM §7.1]."""
    if key in added:
        after = updated(added[key], moved)
        assert after is not None
        added[key] = after
    else:
        updates[key] = {**updates.get(key, {}), **moved}


class _Entries(Generic[T]):
    """What several changes come to."""

    __slots__ = ("added", "removed")

    def __init__(self) -> None:
        self.added: dict[str, T] = {}
        self.removed: dict[str, None] = {}

    def change(self, added: Mapping[str, T], removed: Iterable[str]) -> None:
        for key in removed:
            self.added.pop(key, None)
            self.removed[key] = None
        self.added.update(added)


def _begins_anew(message: Joinable, before: Joinable) -> bool:
    """Does what was said before no longer count?"""
    if isinstance(message, Interest) or isinstance(before, Interest):
        return isinstance(message, Interest) and message.reset
    # Where something is missing between the two, the neighbour itself has told us of it: it knows
    # what came before, and to tell it again could undo what lies between.
    return message.base == 0 or message.base > before.version
