"""Which places of followers have become others, and what does a filter mean that does not know yet?

A relabelling travels like the values that it is about. Each broker on its way shifts what it has,
and knows it from then on: what a neighbour said before it heard of it comes with an older
generation, and is translated. Of what is too old to be translated no place is asked for at all:
that brings too much, never too little, and who is told is decided where the follower is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeAlias

from driftline.broker.effects import Key
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.text import literal
from driftline.model.value import Value, comparable
from driftline.stateful.value_based.address import (
    GROUP,
    KEY,
    Asked,
    Relabelling,
    asked_by,
    relabelling_of,
)

KNOWN_MAX = 256
"""Of each item so many relabellings are known."""
ITEMS_MAX = 100_000
"""Of so many items; beyond, the one that was first relabelled is forgotten."""

_About: TypeAlias = tuple[str, str, Hashable]


class Labels:
    """The relabellings that have come by. `put` journals."""

    __slots__ = ("_known", "_put", "heard")

    def __init__(self, put: Callable[[Key, object], None]) -> None:
        self._put = put
        # By type, group and item, with the key as it was said.
        self._known: dict[_About, tuple[Value, tuple[Relabelling, ...]]] = {}
        self.heard = 0
        """How many have come by in which places were shifted."""

    def hear(self, event: Event) -> Relabelling | None:
        """A message has come: is it a relabelling? Then it is known from now on."""
        said = event.attributes
        found = relabelling_of(said)
        if found is None:
            return None
        self.heard += found.by is not None
        key, group = said[KEY], str(said[GROUP])
        about = (event.type, group, comparable(key))
        # When all places are 0 it does not matter what they were.
        known = () if found.by is None else self._of(about)
        self._known[about] = key, (*known, found)[-KNOWN_MAX:]
        self._put(("labels", event.type, group, literal(key)), self._known[about])
        if len(self._known) > ITEMS_MAX:
            type, group, _ = oldest = next(iter(self._known))
            self._put(("labels", type, group, literal(self._known.pop(oldest)[0])), None)
        return found

    def _of(self, about: _About) -> tuple[Relabelling, ...]:
        return self._known[about][1] if about in self._known else ()

    def current(self, one: Filter) -> Filter:
        """What a filter asks for that may be older than what is known here."""
        if not self._known:
            return one
        asked = asked_by(one)
        if asked is None:
            return one
        assert one.type is not None
        known = self._of((one.type, asked.group, comparable(asked.key)))
        if len(known) == KNOWN_MAX and asked.generation < known[0].generation - 1:
            (wide,) = asked.anywhere(one.type).filters()
            return wide
        after = asked
        for relabelling in known:
            after = relabelling.of(after)
        return one if after == asked else after.filter(one.type)

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept."""
        for name, value in stored.items():
            if name[0] == "labels":
                assert isinstance(value, tuple)
                self._known[name[1], name[2], comparable(value[0])] = value


def relabelled(one: Filter, event: Event, by: Relabelling) -> Filter | None:
    """A filter whose place a relabelling makes another; None if it is none of these."""
    asked = asked_by(one)
    if asked is None or one.type != event.type or not _is_about(asked, event.attributes):
        return None
    after = by.of(asked)
    return None if after == asked else after.filter(event.type)


def _is_about(asked: Asked, said: Mapping[str, Value]) -> bool:
    return asked.group == said[GROUP] and comparable(asked.key) == comparable(said[KEY])
