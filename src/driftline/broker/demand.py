"""Does anybody want messages of this type, and which of their flags? [DBNET §2.4.1]

A home makes messages for those who have asked. They go without a word: what they wanted is no
longer among what neighbours and local views want, and that is looked at when messages have gone in
vain.
"""

from __future__ import annotations

from collections.abc import Iterator

from driftline.broker.edge import Edge
from driftline.broker.links import Links
from driftline.broker.tables import Tables
from driftline.model.filter import Filter

IDLE = 1000
"""After so many changes in turn that nobody was told of it is asked whether anybody would be."""
FLAGS = 64
"""With so many flags it is asked which of them are wanted."""


class Demand:
    """What is wanted of the tables that are kept here."""

    __slots__ = ("_crowds", "_flags", "_idle", "_links", "_tables", "_views")

    def __init__(self, tables: Tables, edge: Edge, links: Links) -> None:
        self._tables = tables
        self._views = edge.views
        self._crowds = edge.crowds
        self._links = links
        # Of each type how many changes in turn went in vain, and with how many that is looked at.
        self._idle: dict[str, tuple[int, int]] = {}
        self._flags: dict[str, int] = {}

    def unwanted(self, table: str, taken: set[str]) -> list[str]:
        """A change of a table was said, and these types were taken: those that nobody wants."""
        home = self._tables.home
        found = []
        for type in home.types(table):
            if type in taken:
                self._idle.pop(type, None)
            elif self._in_vain(type) and not self._wanted(type):
                found.append(type)
            if len(home.flags(type)) >= self._flags.get(type, FLAGS):
                home.retain(type, self._wanted_flags(type))
                # To look is work, and is done ever more rarely.
                self._flags[type] = max(FLAGS, 2 * len(home.flags(type)))
        for type in found:
            self._idle.pop(type, None)
            self._flags.pop(type, None)
        return found

    def _in_vain(self, type: str) -> bool:
        count, most = self._idle.get(type, (0, IDLE))
        due = count + 1 >= most
        self._idle[type] = (0, 2 * most) if due else (count + 1, most)
        return due

    def _wanted(self, type: str) -> bool:
        local = self._views.want(type) or self._crowds.want(type)
        return local or any(one.type in (None, type) for one in self._filters())

    def _wanted_flags(self, type: str) -> set[str]:
        flags = self._views.flags(type)
        for one in self._filters():
            if one.type is None:
                return set(self._tables.home.flags(type))  # It takes whatever comes.
            if one.type == type:
                flags.update(part.attribute for part in one.constraints)
        return flags

    def _filters(self) -> Iterator[Filter]:
        return (one for _, one in self._links.subscriptions.wanted())
