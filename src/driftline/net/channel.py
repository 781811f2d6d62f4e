"""How is somebody told what is kept for a durable subscription?

From where they have come, in order, and no faster than their connection takes it. What is kept is
the broker's to keep and to limit; a few that are to be told next are at hand.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from driftline.broker.effects import Deliver
from driftline.broker.kept import Kept
from driftline.net.telling import framed, told
from driftline.wire.compact import split_records
from driftline.wire.stream import Kind, frame

if TYPE_CHECKING:
    from driftline.net.guest import Guest

_AT_HAND = 256


class Channel:
    """A durable subscription that a guest is attached to: up to which number it was sent what is
    kept, and up to which something is.
    """

    __slots__ = ("_at_hand", "_guest", "_sent", "_sight", "_stored", "handle", "party")

    def __init__(self, guest: Guest, handle: int, party: str, after: int) -> None:
        known = guest.server.edge.parties[party]
        self._guest = guest
        self._sight = guest.sight
        self.handle = handle
        self.party = party
        self._sent = max(after, known.had)
        self._stored = known.waiting[-1].last if known.waiting else self._sent
        self._at_hand: deque[Deliver | Kept] = deque()

    @property
    def sent(self) -> int:
        """Up to which number all was told, or was had before."""
        return self._sent

    def kept(self, one: Deliver | Kept) -> None:
        """Something more is kept, and may be told."""
        if one.last <= self._sent:
            return
        if self._sent >= self._stored:
            self._at_hand.append(one)
        self._stored = max(self._stored, one.last)
        self.catch_up()

    def catch_up(self) -> None:
        """Tell what was kept, as far as the connection takes it; nothing while it is suspended."""
        connection = self._guest.connection
        if self._is_suspended:
            return
        while not connection.stuffed and connection.is_open and self._is_more():
            one = self._at_hand.popleft()
            if one.last <= self._sent:
                continue
            self._send(one)
            self._sent = one.last
            connection.flush()

    @property
    def _is_suspended(self) -> bool:
        party = self._guest.server.edge.parties.get(self.party)
        return party is not None and party.suspended

    def _is_more(self) -> bool:
        """Is there something to be told next?"""
        if not self._at_hand and self._sent < self._stored:
            party = self._guest.server.edge.parties.get(self.party)
            kept = party.waiting if party is not None else ()
            left = (one for one in kept if self._sent < one.last <= self._stored)
            self._at_hand.extend(islice(left, _AT_HAND))
            if not self._at_hand:
                self._sent = self._stored
        return bool(self._at_hand)

    def _send(self, one: Deliver | Kept) -> None:
        guest, connection = self._guest, self._guest.connection
        head = self.handle.to_bytes(4, "little")
        tally = guest.server.durables.tally(self.party)
        tally.told = max(tally.told, one.last)
        if isinstance(one, Kept):
            guest.told += one.notices
            kept, low, high = one.after(self._sent), one.low, one.high
            some = one.notices if self._sent < one.number else sum(1 for _ in split_records(kept))
            tally.sent += some
            if self._sight is not None:
                kept, low, high = self._sight.notices(kept, low, high)
            guest.know(low, high, kept)
            for whole in framed(Kind.KEPT, head, kept):
                connection.send(whole)
            return
        guest.told += 1
        edge, forms = guest.server.edge, guest.server.forms
        news = sum(map(len, one.news.values()))
        for each in told(one, edge, forms, lambda id: self.handle, one.number, self._sight):
            guest.server.counters.gaps += each.is_gap
            tally.sent += not each.is_gap
            news -= not each.is_gap
            if each.is_notice:
                guest.know(each.form, each.form, b"")
                connection.send(frame(Kind.KEPT, head, each.data))
            else:
                connection.send(each.data)
        if one.news:
            tally.hidden += max(0, news)
