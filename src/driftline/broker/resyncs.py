"""Who has said that something may be missing, and who must still hear of it?

What is said of that must reach everybody, though links come and go and brokers crash on the way: so
it is known, journaled, and said on each link whenever a session begins there. The newest of each
origin, for all tables and for one, is all that counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from driftline.broker.effects import Effect, Key, Send
from driftline.broker.links import Role
from driftline.model.message import EVENTS, Resync

ORIGINS_MAX = 10_000
"""Of so many origins and tables it is known; beyond, the oldest is forgotten."""


class Resyncs:
    """What is known of that. `put` journals."""

    __slots__ = ("_known", "_put")

    def __init__(self, put: Callable[[Key, object], None]) -> None:
        self._put = put
        # The number, and whether members of the mesh know it by themselves.
        self._known: dict[tuple[str, str], tuple[int, bool]] = {}

    def hear(self, said: Resync, *, meshed: bool = False) -> bool:
        """Somebody has said it; is it news? Members of a mesh know that its ways have changed."""
        about = (said.origin, said.table)
        known, _ = self._known.get(about, (0, False))
        if said.number <= known:
            return False
        self._known[about] = said.number, meshed
        if len(self._known) > ORIGINS_MAX:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._put(("resync", *oldest), None)
        self._put(("resync", *about), (said.number, meshed))
        return True

    def again(self, link: str, role: Role, *, new: bool) -> list[Effect]:
        """All of it, on a link where a session has begun.

        What is said of events has nothing to do with who is new.
        """
        return [
            Send(link, Resync(origin, number, table))
            for (origin, table), (number, meshed) in self._known.items()
            if not (meshed and role is Role.MESH)
            if not (new and table == EVENTS)
        ]

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept."""
        for key, value in stored.items():
            if key[0] == "resync":
                assert isinstance(value, tuple)
                self._known[key[1], key[2]] = value
