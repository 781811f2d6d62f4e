"""Which durable subscriptions are there, whose, and who is told of each just now?

Each is a party by itself, which goes on while nobody is connected. At most one guest at a time is
attached to it and told.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from secrets import randbits
from typing import TYPE_CHECKING

from driftline.broker.effects import Reply
from driftline.broker.identity import durable_name, identity_of, mark_of
from driftline.broker.parties import SECRETS_EACH
from driftline.broker.requests import Leave
from driftline.errors import LimitReached
from driftline.model.standing import Standing
from driftline.net.counting import Tally
from driftline.wire import asking
from driftline.wire.stream import Kind, frame

if TYPE_CHECKING:
    from driftline.net.guest import Guest
    from driftline.net.server import Server

_BEGINNINGS_BITS = 42
"""Beside what a generation counts, as much as fits a number of the journal."""


class Durables:
    """Those of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._of: defaultdict[str, list[str]] = defaultdict(list)
        """The parties that those of each identity are, in order."""
        self._attached: dict[str, Guest] = {}
        self._tallies: dict[str, Tally] = {}

    def load(self) -> None:
        """Take in those that the journal has kept."""
        for party in sorted(self._server.edge.parties):
            if durable_name(party) is not None:
                self._of[identity_of(party)].append(party)

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    def of(self, identity: str, after: str = "", most: int | None = None) -> Sequence[str]:
        """The parties that those of an identity are, in order: all of them, or some behind one."""
        mine = self._of.get(identity, [])
        at = bisect_right(mine, after)
        return mine[at : None if most is None else at + most]

    def begin(self, party: str) -> None:
        """There is one more; raises if its identity has too many."""
        server, identity = self._server, identity_of(party)
        if len(self._of.get(identity, ())) >= server.limits.durable:
            raise LimitReached("durable subscriptions", server.limits.durable)
        mine = self._of[identity]
        at = bisect_left(mine, party)
        if mine[at : at + 1] != [party]:
            mine.insert(at, party)
        # Of one that had this name before somebody may know the secret.
        generation = SECRETS_EACH * randbits(_BEGINNINGS_BITS)
        server.broker.enter(party, durable=True, generation=generation)

    def end(self, party: str, done: Callable[[Reply], None]) -> None:
        """There is one less, and nothing is kept for it."""
        server, mine = self._server, self._of[identity_of(party)]
        at = bisect_left(mine, party)
        if mine[at : at + 1] == [party]:
            del mine[at]
        if not mine:
            del self._of[identity_of(party)]
        self._tallies.pop(party, None)
        server.driver.ask(party, Leave(server.await_reply(done)))
        for door in server.doors:
            door.routed(party)

    def mark(self, party: str) -> str:
        """By what one is known that no other ever was."""
        server = self._server
        return mark_of(server.broker.name, party, server.edge.parties[party].born)

    def tally(self, party: str) -> Tally:
        """What one was sent."""
        return self._tallies.setdefault(party, Tally())

    # Who is told

    @property
    def attached(self) -> int:
        """How many are told to somebody just now."""
        return len(self._attached)

    def guest(self, party: str) -> Guest | None:
        """To whom one is told just now."""
        return self._attached.get(party)

    def attach(self, party: str, guest: Guest) -> None:
        """From now on one is told to this guest, and no longer to another."""
        self.detach(party, "another connection has it now")
        self._attached[party] = guest

    def detach(self, party: str, why: str) -> None:
        """Tell one no longer to whom it is told, and say why."""
        before = self._attached.pop(party, None)
        if before is None:
            return
        channel = before.channels.pop(party)
        self._server.serving.forget(before, channel.handle)
        said = asking.Detached(channel.handle, why)
        before.connection.send(frame(Kind.TOLD, asking.encode(said)))

    def release(self, party: str, guest: Guest | None = None) -> None:
        """Nobody is told of one any more; or this guest is not, if it was."""
        if guest is None or self._attached.get(party) is guest:
            self._attached.pop(party, None)

    def moved(self, party: str, to: Standing) -> None:
        """Somebody else has moved one: whoever is told of it must know."""
        guest = self._attached.get(party)
        if guest is not None:
            handle = guest.channels[party].handle
            said = asking.Moved(handle, asking.pack_all(dict(to.params)), to.epoch)
            guest.connection.send(frame(Kind.TOLD, asking.encode(said)))
