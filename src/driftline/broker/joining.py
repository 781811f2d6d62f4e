"""Which messages that wait for a link can be said as one?

While what was told of interest is still on its way to a neighbour, what is to be told meanwhile
waits and is put together: one message then says what all of them would have said. It costs a busy
link the time that a message takes to be acknowledged, an idle one nothing, and spares both ends
what is done per message. (Nagle did the same for bytes, RFC 896.)

    >>> joined([Interest({}, ("a",)), Interest({}, ("b",))]).removed
    ('a', 'b')
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from driftline.model.filter import Filter
from driftline.model.message import Control, Home, Interest

Joinable: TypeAlias = Interest | Home

ENTRIES_MAX = 1024
"""What is put together has no more entries than this, unless one message had: events that are sent
on the same link should not have to wait long."""


def subject_of(message: Control) -> str | None:
    """What a message is about: those on one subject may be joined, those on none do not wait."""
    if isinstance(message, Interest):
        return ""
    return message.origin if isinstance(message, Home) else None


def groups(messages: Sequence[Joinable]) -> Iterator[list[Joinable]]:
    """The messages of one subject in the order they came, parted where they become too many."""
    group: list[Joinable] = []
    entries = 0
    for message in messages:
        count = len(message.added) + len(message.removed)
        if group and entries + count > ENTRIES_MAX:
            yield group
            group, entries = [], 0
        group.append(message)
        entries += count
    if group:
        yield group


def joined(messages: Sequence[Joinable]) -> Joinable:
    """One message that says what these, on one subject, say in turn.

    What is taken back is always said to be, even if one of them had added it: a member of a mesh
    may have heard of that by another way. Who hears it applies what is removed before what is
    added.
    """
    added: dict[str, Filter] = {}
    removed: dict[str, None] = {}
    before: Joinable | None = None
    for message in messages:
        if before is None or _begins_anew(message, before):
            added, removed, before = {}, {}, message
        elif isinstance(message, Home) and isinstance(before, Home):
            before = replace(message, base=min(before.base, message.base))
        for key in message.removed:
            added.pop(key, None)
            removed[key] = None
        added.update(message.added)
    assert before is not None
    return replace(before, added=added, removed=tuple(removed))


def _begins_anew(message: Joinable, before: Joinable) -> bool:
    """Does what was said before no longer count?"""
    if isinstance(message, Interest) or isinstance(before, Interest):
        return isinstance(message, Interest) and message.reset
    # Where something is missing between the two, the neighbour itself has told us of it: it knows
    # what came before, and to tell it again could undo what lies between.
    return message.base == 0 or message.base > before.version
