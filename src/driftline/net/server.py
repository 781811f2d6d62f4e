"""A broker as a process: connections, links, a journal, and the station behind them.

Everything happens on one loop. A turn of it reads what has come on all connections, lets the
station have it, and then writes once to each connection that has something to be told.
"""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from driftline.broker.broker import Broker
from driftline.broker.edge import Edge
from driftline.broker.effects import Deliver, DeliverMany, Reply, Run
from driftline.broker.formed import Forms
from driftline.broker.identity import ANYONE, guest_of, identity_of
from driftline.broker.kept import Kept
from driftline.broker.requests import Leave
from driftline.broker.settings import Settings
from driftline.broker.station import Station
from driftline.errors import (
    DriftlineError,
    FileRefused,
    InvalidValue,
    LimitReached,
    NotAuthenticated,
    NotSupported,
    Unreachable,
)
from driftline.model.value import show
from driftline.net.address import Address
from driftline.net.certified import check_certificate
from driftline.net.clock import BrokerClock
from driftline.net.config import Config, role_of
from driftline.net.connection import READ_BYTES, Connection, Service
from driftline.net.driver import Driver
from driftline.net.durables import Durables
from driftline.net.flushing import Flushing
from driftline.net.gathering import Gathering
from driftline.net.guest import Guest
from driftline.net.holding import Holding
from driftline.net.identities import Identities
from driftline.net.inside import Door, Handling, proven_by
from driftline.net.interest import Watching
from driftline.net.journal import open_journal
from driftline.net.journal.group import GroupCommit
from driftline.net.link import Link
from driftline.net.listening import Listening, bound
from driftline.net.logs import Log, without_secrets
from driftline.net.reading import Reading
from driftline.net.renewing import check_renewable
from driftline.net.sampling import Sampling
from driftline.net.serving import Serving
from driftline.net.sight import Seen, Sight, sight_of
from driftline.net.status import Counters, status_of
from driftline.net.stranger import Stranger
from driftline.net.turns import Turns
from driftline.net.warm import warm
from driftline.wire import asking
from driftline.wire.refusal import refused
from driftline.wire.stream import HEAD_BYTES, Kind, frame

if TYPE_CHECKING:
    from driftline.net.health import Health

_TICK = 2_000_000
"""Microseconds of one incarnation, where it is told by the clock."""
_ROOM = 20
"""Of all strangers, where the system has no room for another connection, one in so many goes."""
PUBLISHER_REMEMBERED = 60.0
"""So long, in seconds, after a client has gone it may come back and not be heard twice."""


class Server:
    """One broker that is served. `await start()`, and `await drain()` to end."""

    def __init__(self, config: Config, doors: Sequence[Door] = ()) -> None:
        self.config = config
        self.doors = doors
        """Other ways in, beside the broker's own protocol."""
        self.log = Log("driftline.broker").bind(broker=config.name)
        self.handling = next((one for one in doors if isinstance(one, Handling)), None)
        """The one among them that tells through handlers."""
        self.limits = config.limits
        self.clock = BrokerClock()
        self.buffer = memoryview(bytearray(READ_BYTES))
        self.connections: set[Connection] = set()
        self.guests: dict[str, Guest] = {}
        self.links: dict[str, Link] = {}
        self.counters = Counters()
        self.draining = False
        self.incarnation = 0
        self.began_at = 0
        """Numbers above this are of this life."""
        self.trouble = ""
        """Why nothing can be stored now."""
        self.address = config.listen
        self.began = self.clock.now()
        self.serving = Serving(self)
        self.gathering = Gathering(config.limits.frame_bytes)
        self.durables = Durables(self)
        self.holding = Holding(self)
        self.watching = Watching(self)
        self.turns = Turns(self)
        self.reading = Reading(self)
        self._connected: Counter[str] = Counter()
        """How many connections each identity has."""
        self.strangers: dict[Stranger, None] = {}
        """Those who have not said who they are, the oldest first."""
        self._unfinished = 0
        self._sights: WeakValueDictionary[str, Sight] = WeakValueDictionary()
        self.sampling = Sampling(self.clock)
        self._awaited: dict[str, Callable[[Reply], None]] = {}
        self._counted = 0
        self.tls: ssl.SSLContext | None = None
        """By which those who connect get in now, at whatever door; another when it is read anew."""
        self._listening: Listening | None = None
        self.dialling: ssl.SSLContext | None = None
        """How neighbours are dialled: by what was read, whatever the files have become since."""
        self.commits: GroupCommit | None = None
        self._health: Health | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # Beginning and ending

    async def start(self) -> None:
        """Open the journal, take up where it ends, and listen."""
        self.loop = asyncio.get_running_loop()
        self.flushing = Flushing(self.loop, self.holding.check_journal)
        config = self.config
        self.identities = Identities(config)
        journal = open_journal(config.journal, config.name)
        try:
            await self.loop.run_in_executor(None, warm)
            self.incarnation = journal.incarnation(_by_clock(self.clock))
            stores = config.journal != "memory:"
            settings = Settings(
                matcher="index",
                advertised=config.advertised,
                keep=self.limits.kept,
                keep_bytes=self.limits.kept_bytes,
                dead=self.limits.dead,
                dead_bytes=self.limits.dead_bytes,
                once=self.limits.once,
                outbox=self.limits.outbox,
                outbox_bytes=self.limits.outbox_bytes,
                stores=stores,
                even=config.is_closed,
            )
            # All of what is loaded stays: looking for what may go takes half of the time.
            gc.disable()
            stored = await self.loop.run_in_executor(None, journal.load)
            moment = self.clock.now() % _TICK
            self.station = Station(config.name, self.incarnation, settings, stored, moment)
            self.began_at = self.broker.last_number
            self.broker.access = self.identities.access
            self.durables.load()
        except BaseException:
            journal.close()
            raise
        finally:
            gc.enable()
        self.commits = GroupCommit(journal, self._troubled) if stores else None
        if not stores:
            journal.close()
        self.driver = Driver(self.station, self.commits, self, self.clock, self.loop)
        try:
            await self._listen()
        except BaseException:
            # Nobody has been promised anything; the journal must be free for the next attempt.
            await self.drain(0.1)
            raise
        self.loop.call_later(self.limits.silence / 3, self._look_after)
        self.sampling.begin(self.loop)
        self.log.info("listens", address=str(self.address), incarnation=self.incarnation)

    async def _listen(self) -> None:
        """Be reachable, and only then reach out: whoever cannot listen must not disturb others."""
        config = self.config
        if config.tls is not None:
            self.tls, self.dialling = config.tls.server(), config.tls.client()
            try:
                check_certificate(config.tls)
            except FileRefused as problem:
                # Its clock may be wrong, and be set right; better to be there then.
                self.log.warning("will not be believed", problem=problem)
        self._listening = Listening(
            bound(config.listen),
            lambda: Connection(self),
            tls=self.tls,
            patience=self.limits.greeting,
            most=self.limits.strangers,
            unheard=self.unheard,
            crowded=self._make_room,
        )
        self.address = self._listening.address
        if config.health is not None:
            from driftline.net.health import Health

            self._health = Health(self)
            await self._health.start(config.health)
        self.driver.begin()
        known = self.broker.roles()
        for peer in config.peers:
            self._link(Link(self, peer.name, peer.role, peer.address, peer.certificate))
        for name in known.keys() - self.links.keys():
            # It was a peer once, and no longer is.
            self.driver.disconnect(name)
        self._listening.begin()
        for door in self.doors:
            await door.start(self)

    def reload(self, config: Config) -> None:
        """Let other certificates, keys of tokens and lists of access count from now on.

        Whoever is connected must come again: what they asked for was asked under the old ones.
        Raises if anything cannot be read, or cannot change while it runs; nothing has changed then.
        """
        check_renewable(self.config, config)
        identities = Identities(config)
        dialling = None if config.tls is None else config.tls.client()
        tls = None if config.tls is None else config.tls.server()
        if config.tls is not None:
            check_certificate(config.tls)
        doors = [door.renewed(config) for door in self.doors]
        # From here on nothing can fail.
        self.dialling = dialling
        self.tls = tls
        self.config = replace(
            self.config,
            tls=config.tls,
            tokens=config.tokens,
            access=config.access,
            webhooks=config.webhooks,
            email=config.email,
        )
        self.identities = identities
        self.broker.access = identities.access
        self._sights = WeakValueDictionary()
        for guest in [*self.guests.values()]:
            guest.goodbye("who may do what has changed", again=True)
            guest.connection.close("who may do what has changed")
            # Whoever does not read that is told nothing more, and lets nobody wait.
            self.gone(guest, "who may do what has changed")
        if config.tls is not None:
            # They were believed, or are about to be, by other certificates.
            for stranger in [*self.strangers]:
                stranger.turn_away("certificates have changed")
            if self._listening is not None:
                self._listening.renew(self.tls)
            for link in self.links.values():
                link.again("certificates have changed")
        for count in doors:
            count()
        self.log.info("has read its access anew")

    @property
    def health_address(self) -> Address | None:
        """Where /health answers."""
        return None if self._health is None else self._health.address

    @property
    def failure(self) -> DriftlineError | None:
        """Why nothing will ever be stored again: a reason to end."""
        return None if self.commits is None else self.commits.failure

    async def drain(self, within: float = 10.0) -> None:
        """Take nobody in any more, say goodbye to everybody, store everything, and end."""
        if self.draining:
            return
        self.draining = True
        if self._listening is not None:
            self._listening.close()
        deadline = self.loop.time() + within
        for door in self.doors:
            await door.stop()
        for guest in self.guests.values():
            guest.connection.hold("ends")
        # Who has published should hear that it is kept, and need not send it again elsewhere.
        while self.driver.waiting and not self.trouble and self.loop.time() < deadline:
            await asyncio.sleep(0.01)
        for link in self.links.values():
            link.end("the broker ends")
        for guest in [*self.guests.values()]:
            guest.goodbye("the broker ends", again=True)
            guest.connection.close("the broker ends")
        while (self.connections or self.driver.waiting) and self.loop.time() < deadline:
            await asyncio.sleep(0.01)
        for connection in [*self.connections]:
            connection.abort("the broker has ended")
        await asyncio.sleep(0)
        self.reading.end()
        self.driver.close()
        if self.commits is not None:
            left = max(0.1, deadline - self.loop.time())
            await self.loop.run_in_executor(None, self.commits.close, left)
        if self._health is not None:
            await self._health.stop()
        self.watching.end()
        self.sampling.end()
        self.log.own_up()
        self.log.info("has ended", published=self.counters.published, told=self.counters.told)

    @property
    def broker(self) -> Broker:
        """The broker that is served."""
        return self.station.broker

    @property
    def edge(self) -> Edge:
        """Its parties and their subscriptions."""
        return self.station.broker.edge

    @property
    def forms(self) -> Forms:
        """The forms of events that it knows."""
        return self.station.broker.publishing.forms

    def _troubled(self, problem: BaseException | None) -> None:
        """From the journal's thread: commits fail, or do so no longer."""
        self.loop.call_soon_threadsafe(self._note_trouble, problem)

    def _note_trouble(self, problem: BaseException | None) -> None:
        if problem is None:
            if self.trouble:
                self.log.warning("the journal can be written again")
            self.trouble = ""
        else:
            if not self.trouble:
                why = "nothing can be stored, and nothing is acknowledged"
                self.log.error(why, problem=problem)
            # It is shown to whoever asks whether the broker is ready.
            self.trouble = without_secrets(str(problem))
        for door in self.doors:
            door.troubled(self.trouble)

    # Connections

    def arrived(self, connection: Connection) -> Service | None:
        """See `Hub`."""
        if self.draining or len(self.connections) >= self.limits.connections:
            why = "it is ending" if self.draining else "there are too many connections"
            self.unheard(connection.peer, why)
            return None
        if connection.inside is None and not self._counts(connection):
            self.unheard(connection.peer, "certificates have changed")
            return None
        self.connections.add(connection)
        stranger = Stranger(self, connection)
        self.strangers[stranger] = None
        if len(self.strangers) > self.limits.strangers:
            next(iter(self.strangers)).turn_away("there are too many who do not say who they are")
        return stranger

    def _make_room(self) -> None:
        """Of those who have not said who they are some go, the oldest first."""
        for stranger in [*self.strangers][: max(1, self.limits.strangers // _ROOM)]:
            stranger.turn_away("there is no room for connections")

    def _counts(self, connection: Connection) -> bool:
        assert self._listening is not None
        return self._listening.counts(connection.information("sslcontext"))

    def unheard(self, peer: str, why: str) -> None:
        """Somebody was turned away before anything was said."""
        self.counters.turned_away += 1
        self.log.stranger("turned away", peer=peer, why=why)

    def left(self, connection: Connection) -> None:
        """See `Hub`."""
        if connection in self.connections:
            self.connections.discard(connection)
            self.counters.ended_in += connection.received
            self.counters.ended_out += connection.sent

    def unfinished(self, more: int) -> None:
        """See `Hub`."""
        self._unfinished += more
        if more > 0 and self._unfinished > self.limits.unfinished_bytes:
            most = max(self.connections, key=lambda one: one.unfinished)
            self.log.stranger("ended", peer=most.peer, why="too much is said and not finished")
            most.abort("too much is being said and not finished")

    def dirty(self, connection: Connection) -> None:
        """See `Hub`."""
        self.flushing.dirty(connection)

    def hurry(self) -> None:
        """See `Hub`."""
        self.flushing.hurry()

    def _look_after(self) -> None:
        """Ask those who are silent whether they are there; who is so for too long has gone."""
        self.log.own_up()
        if self.draining:
            return
        long_ago = self.loop.time() - self.limits.silence
        for connection in [*self.connections]:
            if connection.since is not None and connection.since < long_ago:
                connection.abort("it did not finish what it said")
        for guest in [*self.guests.values()]:
            if guest.connection.is_held and guest not in self.holding.blocking:
                guest.silent = 0  # It may have said something, and was not listened to.
            elif guest.connection.received == guest.heard:
                guest.silent += 1
                if guest.silent >= 3:
                    guest.connection.abort("it has been silent for too long")
                    continue
                guest.connection.send(frame(Kind.PING, b""))
            else:
                guest.silent = 0
            guest.heard = guest.connection.received
        self.loop.call_later(self.limits.silence / 3, self._look_after)

    def greet(self, connection: Connection, hello: asking.Hello) -> Service:
        """A client says who it is."""
        if hello.protocol != asking.PROTOCOL:
            raise refused("hello", f"protocol {asking.PROTOCOL}", f"{hello.protocol}")
        if not hello.client:
            raise refused("hello", "the name of a client", "an empty one")
        inside = connection.inside
        if inside is not None:
            if inside.believed not in (None, self.identities):
                # Nothing is wrong with whoever comes: they are to ask where it is known by now.
                raise Unreachable(self.config.name, "who may do what has changed")
            proven = inside.proven or proven_by(hello.token)
        else:
            certificate = connection.information("peercert")
            known = certificate if isinstance(certificate, dict) else None
            proven = self.identities.proven(hello.token, known)
        name = guest_of(proven.identity, hello.client)
        before = self.guests.get(name)
        if before is None and inside is None and proven.identity != ANYONE:
            most = self.limits.connections_each
            if self._connected[proven.identity] >= most:
                raise LimitReached("connections of one identity", most)
        if before is not None:
            # It is back before we noticed that it had gone.
            before.goodbye("there is another connection of this client", again=False)
            before.connection.close("there is another connection of this client")
            self.gone(before, "there is another connection of this client")
        self.broker.enter(name, durable=False)
        if self.broker.publishing.numbers.get(name, (hello.life, 0))[0] != hello.life:
            # It counts anew, by a clock that may be behind: what it says is not what came before.
            self.broker.publishing.leave(name)
        guest = self.guests[name] = Guest(self, connection, proven, name, hello.life)
        if inside is None:
            # What handlers and HTTP do for somebody turns nobody away who comes himself.
            self._connected[proven.identity] += 1
        guest.log.debug("client connected")
        self.holding.arrived(connection)
        said = asking.Welcome(
            self.broker.name,
            self.incarnation,
            asking.PROTOCOL,
            self.limits.frame_bytes,
            self.limits.subscriptions,
            self.clock.now(),
            self.limits.attributes,
        )
        connection.send(frame(Kind.HELLO, asking.encode(said)))
        return guest

    def note_unproven(self, peer: str, problem: NotAuthenticated) -> None:
        """Somebody did not prove who they are."""
        self.counters.unproven += 1
        self.log.stranger("not proven who it is", peer=peer, why=problem.why)

    def gone(self, guest: Guest, why: str) -> None:
        """A client is no longer connected."""
        if self.guests.get(guest.name) is not guest:
            return
        del self.guests[guest.name]
        if guest.connection.inside is None:
            self._connected[guest.identity] -= 1
        if not self._connected[guest.identity]:
            del self._connected[guest.identity]
        guest.log.debug("client gone", why=why, published=guest.incoming.published, told=guest.told)
        for handle in [*guest.handles]:
            self.serving.forget(guest, handle)
        for party in guest.channels:
            self.durables.release(party, guest)
        for id in guest.advertised:
            self.watching.unwatch(guest, id)
        for name in guest.asked:
            self._awaited.pop(name, None)
        self.holding.unblock(guest)
        self.driver.ask(guest.name, Leave(""))
        self.loop.call_later(PUBLISHER_REMEMBERED, self._forget_publisher, guest.name)

    def _forget_publisher(self, name: str) -> None:
        if name not in self.guests:
            self.broker.publishing.leave(name)

    def check_handler(self, handler: str) -> None:
        """Raise if nobody here can tell anything through such a handler."""
        for door in self.doors:
            if door.handles(handler):
                return
        is_mail = handler[:7].lower() == "mailto:"
        what, table = ("e-mail is", "email") if is_mail else ("webhooks are", "webhooks")
        raise NotSupported("handler", f"no {what} sent from this broker: it has no [{table}]")

    # For the driver

    def send(self, link: str, data: bytes) -> None:
        """See `World`."""
        known = self.links.get(link)
        if known is not None:
            known.send(data)

    def is_passing(self, party: str) -> bool:
        """See `World`."""
        return party in self.guests

    def deliver(self, deliver: Deliver) -> None:
        """See `World`."""
        guest = self.guests.get(deliver.party)
        self.counters.told += 1
        if guest is not None:
            guest.deliver(deliver)
            return
        guest = self.durables.guest(deliver.party)
        if guest is not None:
            guest.channels[deliver.party].kept(deliver)

    def deliver_many(self, deliver: DeliverMany) -> None:
        """See `World`."""
        raw = memoryview(deliver.raw)
        counters = self.counters
        if deliver.kept:
            for run in deliver.runs:
                counters.told += run.notices
                guest = self.durables.guest(run.party)
                if guest is not None:
                    kept = Kept.of_run(
                        deliver.raw[run.start : run.end], run.notices, run.low, run.high
                    )
                    guest.channels[run.party].kept(kept)
            return
        guests = self.guests
        self.sampling.told(raw[deliver.runs[0].start + HEAD_BYTES :])
        seen = self._seen(deliver)
        for run in deliver.runs:
            counters.told += run.notices
            guest = guests.get(run.party)
            if guest is not None:
                guest.notices(run, raw, seen.get(run.party))

    def _seen(self, deliver: DeliverMany) -> dict[str, Seen]:
        """What those may see who may not see all that they are to be told: for all whose sight is
        the same at once.
        """
        by_sight: dict[Sight, list[Run]] = {}
        for run in deliver.runs:
            guest = self.guests.get(run.party)
            sight = None if guest is None else guest.sight
            if sight is not None and not sight.is_clear(run.low, run.high):
                by_sight.setdefault(sight, []).append(run)
        found: dict[str, Seen] = {}
        for sight, runs in by_sight.items():
            places = [(run.start + HEAD_BYTES, run.end) for run in runs]
            each = sight.frames(deliver.raw, places)
            found |= zip((run.party for run in runs), each, strict=True)
        return found

    def sight_of(self, name: str) -> Sight | None:
        """What a guest may see; None: everything. All that are the same person's share it."""
        identity = identity_of(name)
        known = self._sights.get(identity)
        if known is None:
            known = sight_of(self.broker.access, name, self.forms)
            if known is not None:
                self._sights[identity] = known
        return known

    def reply(self, reply: Reply) -> None:
        """See `World`."""
        if reply.request[:1] == "e":
            guest = self.guests.get(reply.party)
            if guest is not None:
                guest.incoming.answered(reply)
            return
        done = self._awaited.pop(reply.request, None)
        if done is not None:
            done(reply)

    def await_reply(self, done: Callable[[Reply], None]) -> str:
        """The name of a request whose reply is to be handed on."""
        name = self.number("r")
        self._awaited[name] = done
        return name

    def number(self, kind: str) -> str:
        """A name for a request that no other has had."""
        self._counted += 1
        return f"{kind}{self._counted}"

    # Links

    def _link(self, link: Link) -> None:
        self.links[link.name] = link
        link.begin()

    def peer(self, name: str, address: str, role: str) -> None:
        """Be linked to a broker from now on."""
        if not name or name == self.config.name:
            raise InvalidValue("peer", "the name of another broker", show(name))
        link = Link(self, name, role_of(role), Address.of(address) if address else None)
        before = self.links.pop(name, None)
        if before is not None:
            before.end("it is configured anew")
        self._link(link)

    def unpeer(self, name: str) -> None:
        """Be linked to a broker no longer."""
        link = self.links.pop(name, None)
        if link is None:
            raise InvalidValue("peer", f"one of {', '.join(self.links) or 'none'}", show(name))
        link.end("the link is no more")
        self.driver.disconnect(name)

    def status(self) -> dict[str, object]:
        """What there is, and how busy it is."""
        return status_of(self)


def _by_clock(clock: BrokerClock) -> int:
    """An incarnation above any before: how often two seconds have passed since 2026 began.

    A broker that numbers more than 2^36 things in one life, or one without a journal, has no other
    way to begin above all that it numbered. It is enough until 2034, when a format with longer
    numbers must have come.
    """
    return max(1, clock.now() // _TICK - 1_767_225_600 // 2)
