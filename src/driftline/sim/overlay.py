"""What happens, and when? Brokers, parties and links on one heap of (time, sequence).

A crash may come between any two effects of a broker: what comes after is never done, and what was
stored before is what the next life begins with, or nothing where the journal is lost too. A party
asks again after a crash when it got no reply, and passes over what it has been told before.

A party may be away from its broker by some time, over a connection that keeps the order and ends
with the broker: what it has asked then never arrives, and what the broker had said does.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

import numpy as np

from driftline.broker.effects import (
    Deliver,
    DeliverMany,
    Effect,
    Key,
    Reply,
    SendBytes,
    Store,
    WakeAt,
)
from driftline.broker.links import Role
from driftline.broker.requests import Publish, PublishMany, Request, Told
from driftline.broker.settings import Settings
from driftline.broker.station import Station
from driftline.sim.faults import GOOD, SECOND
from driftline.sim.notices import deliveries
from driftline.sim.party import Party
from driftline.sim.trace import described
from driftline.wire.compact import write_record
from driftline.wire.forms import form_of

# What the other end of a link is to whoever is at this one.
OTHER_END = {
    Role.PEER: Role.PEER,
    Role.MESH: Role.MESH,
    Role.MASTER: Role.CLIENT,
    Role.CLIENT: Role.MASTER,
}


class Restless(AssertionError):
    """More has happened than can be, unless it goes round in circles."""


@dataclass(slots=True)
class _Place:
    """Where a broker lives: its station while it is up, and its journal."""

    name: str
    station: Station | None
    incarnation: int = 1
    journal: dict[Key, object] = field(default_factory=dict)
    skew: int = 0
    paused: int = 0
    behind: deque[Callable[[Station, int], list[Effect]]] = field(default_factory=deque)
    wakes: int = 1 << 62


class Overlay:
    """Brokers and the links between them; `run` goes on until nothing is left to happen."""

    def __init__(
        self,
        seed: int = 0,
        settings: Settings | None = None,
        trace: Callable[[str], None] | None = None,
    ) -> None:
        self.now = 0
        self.parties: dict[str, Party] = {}
        self.frames = 0
        self.bytes = 0
        self.happened = 0
        self.most = 1 << 62
        self.lost_journals = 0
        self.faults = GOOD
        # A chance per effect that its broker crashes just before it.
        self.crashes = 0.0
        self.journal_lost = 0.0
        # Do parties publish events as records, as clients of real brokers do? Only with an index.
        self.as_records = False
        self._settings = settings
        self._draw = random.Random(seed)
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = count()
        self._places: dict[str, _Place] = {}
        # When the last frame arrives that was sent so far, and until when a link is busy.
        self._links: dict[tuple[str, str], int] = {}
        self._busy: dict[tuple[str, str], int] = {}
        self._roles: dict[tuple[str, str], Role] = {}
        self._cut: set[tuple[str, str]] = set()
        self._trace = trace

    # Building

    def broker(self, name: str, skew: int = 0) -> None:
        """A new broker, whose clock is wrong by so much."""
        self._places[name] = _Place(name, Station(name, 1, self._settings), skew=skew)

    def link(self, here: str, there: str, role: Role) -> None:
        """Connect two brokers; `role` is what `there` is to `here`."""
        self._links[here, there] = self._links[there, here] = self.now
        self._roles[here, there], self._roles[there, here] = role, OTHER_END[role]
        self._connect(here, there)
        self._connect(there, here)

    def unlink(self, here: str, there: str) -> None:
        """End a link; what is on its way is lost."""
        for end, other in ((here, there), (there, here)):
            del self._links[end, other], self._roles[end, other]
            self._cut.discard((end, other))
            self._busy.pop((end, other), None)
            self._disconnect(end, other)

    def _connect(self, here: str, there: str) -> None:
        role = self._roles[here, there]
        self._do(here, lambda station, now: station.connect(there, role, now))

    def _disconnect(self, here: str, there: str) -> None:
        self._do(here, lambda station, now: station.disconnect(there, now))

    def journal(self, name: str) -> dict[Key, object]:
        """What a broker has stored."""
        return dict(self._places[name].journal)

    @property
    def at_rest(self) -> bool:
        """Is nothing left to happen?"""
        return not self._heap

    def names(self) -> list[str]:
        """The brokers, up or not."""
        return list(self._places)

    def station(self, name: str) -> Station:
        """A broker that is up."""
        station = self._places[name].station
        assert station is not None
        return station

    def up(self, name: str) -> bool:
        """Is a broker there now?"""
        return self._places[name].station is not None

    def links(self) -> Iterable[tuple[str, str]]:
        """All links, in both directions."""
        return list(self._links)

    def role(self, here: str, there: str) -> Role:
        """What `there` is to `here`."""
        return self._roles[here, there]

    def clock(self, name: str, time: int) -> int:
        """What a broker's clock says at a time."""
        return time + self._places[name].skew

    def around(self, name: str) -> list[str]:
        """The brokers that one has a link to."""
        return [there for here, there in self._links if here == name]

    # Faults

    def cut(self, here: str, there: str, *, healed: bool = False) -> None:
        """Let nothing pass from here to there, until it is healed."""
        if healed:
            self._cut.discard((here, there))
        elif (here, there) in self._links:
            self._cut.add((here, there))

    def crash(self, name: str, *, lost: bool = False, down: int = SECOND) -> None:
        """End a broker now, perhaps with its journal; it comes back after a while."""
        place = self._places[name]
        if place.station is None:
            return
        self._say(f"{name} crashes" + (" and loses its journal" if lost else ""))
        self.lost_journals += lost
        place.station = None
        place.behind.clear()  # What it has not seen yet it never will.
        if lost:
            place.journal.clear()
            for party in self.at(name):
                party.unanswered.clear()  # Nobody knows what became of it.
        self._later(self.now + down, lambda: self._restart(place, lost))

    def pause(self, name: str, time: int) -> None:
        """Let a broker do nothing for a while; what comes meanwhile it sees afterwards."""
        place = self._places[name]
        if not place.behind:
            self._say(f"{name} pauses for {time / SECOND:.3f} s")
            place.paused = self.now + time

    def _restart(self, place: _Place, lost: bool) -> None:
        place.incarnation += 1
        place.paused = 0
        place.wakes = 1 << 62
        self._say(f"{place.name} is back")
        station = Station(place.name, place.incarnation, self._settings, dict(place.journal))
        place.station = station
        self._do(place.name, lambda station, now: station.begin(now))
        # It is configured with the links there are now, whatever it remembers.
        known = station.broker.roles()
        configured = [there for here, there in self._roles if here == place.name]
        for there in configured:
            if known.get(there) is not self._roles[place.name, there]:
                self._connect(place.name, there)
        for there in known:
            if there not in configured:
                self._disconnect(place.name, there)
        for party in self.at(place.name):
            if lost:
                party.begin_anew(place.incarnation)
            self.ask_again(party)

    def at(self, name: str) -> list[Party]:
        """The parties at a broker."""
        return [party for party in self.parties.values() if party.broker == name]

    # Running

    def party(self, name: str, broker: str, away: int = 0) -> Party:
        """A party at a broker, new or known."""
        return self.parties.setdefault(name, Party(name, broker, away))

    def ask(self, party: Party, asked: Request) -> int:
        """A party asks its broker for something, now, and again if it crashes before it replies.

        Its requests are numbered, from 1.
        """
        self._ask(party, party.ask(asked))
        return party.asked

    def ask_again(self, party: Party) -> None:
        """A party asks again for all that it has had no reply to."""
        for asked in list(party.unanswered.values()):
            self._ask(party, asked)

    def _ask(self, party: Party, asked: Request) -> None:
        self._say(f"{party.name}@{party.broker} asks: {asked}")
        place = self._places[party.broker]
        self._over(party, partial(self._hear, place, place.incarnation, party, asked))

    def _hear(self, place: _Place, incarnation: int, party: Party, asked: Request) -> None:
        if place.incarnation == incarnation:  # Or the connection it came by is no more.
            self._do(place.name, partial(self._asked, party.name, asked))

    def _asked(self, party: str, asked: Request, station: Station, now: int) -> list[Effect]:
        if self.as_records and isinstance(asked, Publish):
            form = form_of(asked.event)
            forms = np.array([station.broker.publishing.forms.number(form)], np.int64)
            record = write_record(asked.event, 0, form)
            asked = PublishMany(asked.request, record, forms, asked.number, asked.life)
        return station.ask(party, asked, now)

    def _over(self, party: Party, happen: Callable[[], None]) -> None:
        """Let something happen when it has come from a broker to a party, or the other way."""
        if party.away:
            self._later(self.now + party.away, happen)
        else:
            happen()

    def run(self, until: int | None = None) -> None:
        """Let everything happen, up to a time or until nothing is left."""
        while self._heap and (until is None or self._heap[0][0] <= until):
            self.now, _, happen = heapq.heappop(self._heap)
            self.happened += 1
            if self.happened > self.most:
                raise Restless(f"it does not come to rest: {self.most} things have happened")
            happen()
        if until is not None:
            self.now = max(self.now, until)

    def _do(self, name: str, what: Callable[[Station, int], list[Effect]]) -> None:
        place = self._places[name]
        if place.station is None:
            return
        if place.paused > self.now or place.behind:
            # In order, also behind what waited until this very moment.
            place.behind.append(what)
            if len(place.behind) == 1:
                self._later(place.paused, lambda: self._catch_up(place))
        else:
            self._perform(place, what(place.station, self.now + place.skew))

    def _catch_up(self, place: _Place) -> None:
        while place.behind and place.station is not None:
            what = place.behind.popleft()
            self._perform(place, what(place.station, self.now + place.skew))
        place.behind.clear()

    def _perform(self, place: _Place, effects: list[Effect]) -> None:
        station = place.station
        for effect in effects:
            if place.station is not station:
                return
            if self.crashes and self._draw.random() < self.crashes:
                self.crash(place.name, lost=self._draw.random() < self.journal_lost)
                return
            self._one(place, effect)

    def _one(self, place: _Place, effect: Effect) -> None:
        if isinstance(effect, SendBytes):
            self._send(place.name, effect)
        elif isinstance(effect, Store):
            for key, value in effect.values.items():
                if value is None:
                    place.journal.pop(key, None)
                else:
                    place.journal[key] = value
        elif isinstance(effect, Deliver):
            party = self.parties[effect.party]
            self._over(party, partial(self._tell, party, effect))
        elif isinstance(effect, DeliverMany):
            assert place.station is not None
            forms = place.station.broker.publishing.forms.known
            for run in effect.runs:
                party = self.parties[run.party]
                for deliver in deliveries(effect, run, forms, party.handles, place.name):
                    self._over(party, partial(self._tell, party, deliver))
        elif isinstance(effect, Reply):
            party = self.parties[effect.party]
            self._over(party, partial(self._answer, party, effect))
        elif isinstance(effect, WakeAt):
            self._wake_at(place, effect.time - place.skew)

    def _answer(self, party: Party, reply: Reply) -> None:
        if reply.problems:
            # Of the only one there was.
            reply = replace(reply, refused=reply.problems[0][1])
        party.answer(reply, self.now)

    def _tell(self, party: Party, deliver: Deliver) -> None:
        if party.tell(deliver, self.now):
            self._say(f"{party.name} is told of {deliver.event} for {deliver.subscriptions}")
        self._later(self.now, lambda: self._ask(party, Told(party.had)))

    def _wake_at(self, place: _Place, time: int) -> None:
        if time < place.wakes:
            place.wakes = time
            self._later(max(time, self.now), lambda: self._wake(place, time))

    def _wake(self, place: _Place, time: int) -> None:
        if place.wakes == time:
            place.wakes = 1 << 62
            self._do(place.name, lambda station, now: station.wake(now))

    def _send(self, here: str, effect: SendBytes) -> None:
        link = (here, effect.peer)
        if link not in self._links or link in self._cut:
            return
        size = len(effect.data)
        left = self._busy[link] = self.faults.leaves(self.now, self._busy.get(link, 0), size)
        for arrival in self.faults.arrivals(left, self._links[link], self._draw):
            self._links[link] = arrival
            data = self.faults.harmed(effect.data, self._draw)
            self._later(arrival, partial(self._arrive, here, SendBytes(effect.peer, data)))

    def _arrive(self, sender: str, effect: SendBytes) -> None:
        if (sender, effect.peer) not in self._links:
            return
        self.frames += 1
        self.bytes += len(effect.data)
        if self._trace is not None:
            self._say(f"{sender} -> {effect.peer}: {described(effect.data)}")
        self._do(effect.peer, lambda station, now: station.receive(sender, effect.data, now))

    def _later(self, time: int, happen: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (time, next(self._sequence), happen))

    def _say(self, line: str) -> None:
        if self._trace is not None:
            self._trace(f"{self.now / SECOND:.6f} {line}")
