"""One broker of an overlay: who asked for what, and what follows from each message.

Whoever is connected is an interface: a local party, or a link with a role. All roles are one rule:
an interface is told what the others want (`routing.table`), and sent what it wants.

    role     tells us its interest   is told ours   used in
    PEER     yes                     yes            acyclic peer-to-peer
    CLIENT   yes                     no             hierarchical: the server below
    MASTER   no: it wants all        yes            hierarchical: the server above
    MESH     through its homes       as our home    general peer-to-peer

A broker may have links of several roles: that makes the hybrids of the paper [SIENA §4.4], and a
broker without links is the centralised architecture.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import repeat

from driftline.broker.edge import Edge, routed
from driftline.broker.effects import Deliver, Effect, Reply, Send, SendParcels, Store
from driftline.broker.effects import Key as StoreKey
from driftline.broker.requests import (
    Advertise,
    Cancel,
    Confirm,
    Publish,
    Request,
    Resume,
    Subscribe,
    Suspend,
    Told,
    Unadvertise,
    Unsubscribe,
)
from driftline.broker.waves import Waves
from driftline.errors import InvalidValue, NotSupported
from driftline.matching.choice import make_matcher
from driftline.matching.relations import Relations
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.message import (
    Answer,
    Ask,
    Control,
    Home,
    Interest,
    Neighbours,
    Offer,
    Parcel,
)
from driftline.routing.mesh import Mesh
from driftline.routing.table import Change, Key, Table
from driftline.wire.codec import encode_control
from driftline.wire.events import decode_batch
from driftline.wire.records import encode_parcel

EVERYTHING = Filter(None)
# Interfaces that are no links; no link has such a name.
MESH, LOCAL = "\nmesh", "\nlocal"
_COUNTED_BITS = 40


class Role(StrEnum):
    """What a link is to us."""

    PEER = "peer"
    CLIENT = "client"
    MASTER = "master"
    MESH = "mesh"


@dataclass(frozen=True, slots=True)
class Settings:
    """What may differ from broker to broker."""

    matcher: str = "auto"
    keep: int = 1000
    """How much is kept for a suspended party."""
    hops: int = 64
    """An event that crossed so many links goes no further."""
    stores: bool = True
    """Is there a journal? Without one a broker that crashes begins empty."""


class Broker:
    """Messages in, effects out. `incarnation` is higher each time a broker of this name starts."""

    def __init__(
        self,
        name: str,
        incarnation: int = 1,
        settings: Settings | None = None,
        stored: Mapping[StoreKey, object] | None = None,
    ) -> None:
        self.name = name
        self.settings = settings or Settings()
        self._counter = incarnation << _COUNTED_BITS
        self._links: dict[str, Role] = {}
        self._table: Table[Filter] = Table(Relations())
        self._puts: dict[StoreKey, object] = {}
        self._edge = Edge(
            self.settings.matcher, self.settings.keep, self._puts.__setitem__, self._count
        )
        # What links and the mesh want, by a number of ours.
        self._remote = make_matcher(self.settings.matcher)
        self._numbers: dict[tuple[str, Key], str] = {}
        self._wanting: dict[str, tuple[str, Key]] = {}
        self._expected: dict[str, Role] = {}
        self._seen: dict[str, int] = {}
        self._published: dict[str, int] = {}
        self._mesh = Mesh(name)
        self._in_mesh = False
        # Of the members that can be reached, what the table holds of their interest.
        self._reached: dict[str, dict[str, Filter]] = {}
        self._home_version = 0
        self._waves = Waves()
        # What was sent to each link and is not known to have arrived, by position.
        self._outbox: dict[str, dict[int, Parcel]] = {}
        if stored:
            self._restore(stored)

    def _restore(self, stored: Mapping[StoreKey, object]) -> None:
        """Begin with what an earlier life has kept, as if it had only slept."""
        self._edge.restore(stored)
        for id, _, standing in self._edge:
            self._let(id, routed(standing))
        for key, value in stored.items():
            if key[0] == "seen":
                assert isinstance(value, int)
                self._seen[key[1]] = value
            elif key[0] == "published":
                assert isinstance(value, int)
                self._published[key[1]] = value
            elif key[0] == "want":
                assert isinstance(value, Filter)
                self._want(key[1], key[2], value)
            elif key[0] == "mesh":
                assert isinstance(value, Neighbours | Home)
                self._mesh.restore(value)
            elif key[0] == "link":
                assert isinstance(value, Role)
                self._open(key[1], value)
        outbox = [(key, value) for key, value in stored.items() if key[0] == "out"]
        for key, value in sorted(outbox, key=lambda one: int(one[0][2])):
            assert isinstance(value, Parcel)
            self._outbox.setdefault(key[1], {})[int(key[2])] = value
        self._reach()
        self._table.settle()  # Links are told everything when they come up.
        self._puts.clear()

    def begin(self) -> list[Effect]:
        """What to do first after a crash: tell parties again what they may not have had."""
        return self._out(self._edge.again())

    def roles(self) -> dict[str, Role]:
        """The links, and what each is."""
        return dict(self._links)

    def _out(self, effects: Sequence[Effect]) -> list[Effect]:
        """The effects, after a store of what must be kept before they are seen."""
        if not self._puts or not self.settings.stores:
            self._puts.clear()
            return list(effects)
        store = Store(dict(self._puts))
        self._puts.clear()
        return [store, *effects]

    def _count(self) -> int:
        """A number above all that this broker gave, in this life and before."""
        self._counter += 1
        return self._counter

    # Links

    def connect(self, link: str, role: Role) -> list[Effect]:
        """A session on a link has begun, the first or another: say everything on it.

        What the neighbour wanted before counts until it says what it wants now.
        """
        said: list[Effect] = []
        if self._links.get(link) is not role:
            if link in self._links:
                said += self._close(link)
            self._puts["link", link] = role
            self._open(link, role)
        if role is Role.MESH:
            state = self._mesh.link(link, self._count(), up=True)
            self._puts["mesh", "links", self.name] = state
            said += [*self._flood(state, link), *map(Send, repeat(link), self._mesh.known())]
            self._reach()
        elif role is not Role.CLIENT:
            self._table.open(link)
        said += self._tell(reset=link)
        if role is Role.MESH and not self._home_version:
            # The others may still believe what an earlier life of this broker has said.
            said += self._say_home(Change())
        waiting = self._outbox.get(link)
        if waiting:
            said.append(SendParcels(link, tuple(waiting.items())))
        return self._out(said)

    def disconnect(self, link: str) -> list[Effect]:
        """A link is gone for good: whatever came by it or went there is undone."""
        said = self._close(link)
        return self._out(said + self._tell())

    def expect(self, link: str, role: Role | None) -> None:
        """A link is configured, or no longer (None): whoever wants to be sure waits for it too."""
        if role is None:
            self._expected.pop(link, None)
        else:
            self._expected[link] = role

    def _open(self, link: str, role: Role) -> None:
        self._links[link] = role
        if role is Role.MESH:
            if not self._in_mesh:
                self._in_mesh = True
                self._table.open(MESH)
        elif role is Role.MASTER:
            self._want(link, "", EVERYTHING)

    def _close(self, link: str) -> list[Effect]:
        self._puts["link", link] = None
        for position in self._outbox.pop(link, ()):
            self._puts["out", link, str(position)] = None
        if self._links.pop(link) is Role.MESH:
            state = self._mesh.link(link, self._count(), up=False)
            self._puts["mesh", "links", self.name] = state
            self._reach()
            return self._flood(state, link)
        self._table.close(link)
        for key in self._table.keys(link):
            self._want(link, key, None)
        return []

    def _want(self, owner: str, key: Key, wanted: Filter | None) -> None:
        """A link, or the mesh, wants something under a key of its own; None: no longer."""
        if isinstance(key, str):  # What the mesh wants is kept with its homes.
            self._puts["want", owner, key] = wanted
        if wanted is None:
            self._table.drop(owner, key)
            number = self._numbers.pop((owner, key), None)
            if number is not None:
                self._remote.discard(number)
                del self._wanting[number]
            return
        self._table.put(owner, key, wanted)
        number = self._numbers.setdefault((owner, key), str(self._count()))
        self._wanting[number] = (owner, key)
        self._remote.add(number, wanted)

    def delivered(self, link: str, position: int) -> list[Effect]:
        """A neighbour has all that was sent to it up to a position."""
        outbox = self._outbox.get(link, {})
        # In order: the first ones are the oldest.
        while outbox and (sent := next(iter(outbox))) <= position:
            del outbox[sent]
            self._puts["out", link, str(sent)] = None
        return self._out([])

    # What neighbours say

    def handle(self, message: Control | Request, sender: str, now: int) -> list[Effect]:
        """What follows from one message of a neighbour, or one request of a party."""
        if isinstance(message, Interest):
            said = self._interest(message, sender)
        elif isinstance(message, Neighbours):
            if not self._mesh.hear_links(message):
                return []
            self._puts["mesh", "links", message.origin] = message
            self._reach()
            said = [*self._flood(message, sender), *self._tell()]
        elif isinstance(message, Home):
            if not self._mesh.hear_home(message):
                return []
            self._puts["mesh", "home", message.origin] = self._mesh.home(message.origin)
            self._reach(message)
            said = [*self._flood(message, sender), *self._tell()]
        elif isinstance(message, Ask):
            said = self._waves.ask(message, sender, self._listeners(), now)
        elif isinstance(message, Answer):
            said = self._waves.answer(message, sender)
        elif isinstance(message, Offer):
            raise NotSupported(type(message).__name__, "brokers do not exchange it yet")
        else:
            said = self._request(message, sender, now)
        return self._out(said)

    def _interest(self, said: Interest, link: str) -> list[Effect]:
        if self._links.get(link) not in (Role.PEER, Role.CLIENT):
            return []  # A master wants all, and members say what they want to the whole mesh.
        removed = self._table.keys(link) if said.reset else said.removed
        for key in [key for key in removed if key not in said.added]:
            self._want(link, key, None)
        for key, one in said.added.items():
            self._want(link, key, one)
        return self._tell()

    def _flood(self, message: Neighbours | Home, sender: str) -> list[Effect]:
        return [Send(link, message) for link in self._mesh.links() if link != sender]

    def _reach(self, said: Home | None = None) -> None:
        """Let the table hold what those members want that can be reached now."""
        for home in self._mesh.homes() if said is None else [said.origin]:
            if home == self.name:
                continue
            held = self._reached.setdefault(home, {})
            wanted = self._mesh.wants(home) if self._mesh.reaches(home) else {}
            # A change says what is different; only after other news must all be compared.
            changed = [*held, *wanted]
            if said is not None and said.base != 0 and held:
                changed = [*said.removed, *said.added]
            for key in dict.fromkeys(changed):  # in an order that is the same in every run
                if held.get(key) != wanted.get(key):
                    self._want(MESH, (home, key), wanted.get(key))
            self._reached[home] = dict(wanted)

    # What neighbours are told

    def _tell(self, reset: str | None = None) -> list[Effect]:
        """Settle the table: one message for each neighbour that must know."""
        effects: list[Effect] = []
        for out, change in self._table.settle().items():
            if out == MESH:
                effects += self._say_home(change)
            elif out != reset:
                effects.append(Send(out, Interest(change.added, tuple(change.removed))))
        if reset is not None and self._links[reset] in (Role.PEER, Role.MASTER):
            effects.append(Send(reset, Interest(self._table.told(reset), reset=True)))
        return effects

    def _say_home(self, change: Change[Filter]) -> list[Effect]:
        version, base = self._count(), self._home_version
        # Keys are of this life: the first time all is said.
        added = change.added if base else self._table.told(MESH)
        said = Home(self.name, version, base, added, tuple(change.removed) if base else ())
        self._home_version = version
        self._mesh.hear_home(said)
        return self._flood(said, self.name)

    def _listeners(self) -> list[str]:
        """The links on which interest is told: who must say that it has taken effect."""
        links = {**self._expected, **self._links}
        return [link for link, role in links.items() if role is not Role.CLIENT]

    def wake(self, now: int) -> list[Effect]:
        """Time has passed."""
        return self._out(self._waves.wake(now))

    def wake_at(self) -> int:
        """When `wake` has something to do."""
        return self._waves.wake_at()

    # What parties ask

    def _request(self, asked: Request, party: str, now: int) -> list[Effect]:
        said: list[Effect] = []
        if isinstance(asked, Advertise | Unadvertise):
            return [Reply(party, asked.request, refused="brokers take no advertisements yet")]
        if isinstance(asked, Publish):
            try:
                encode_parcel(Parcel(self.name, 0, asked.event.entering(now), party))
            except InvalidValue as problem:
                return [Reply(party, asked.request, refused=str(problem))]
            # A party that has not heard what became of it may ask again.
            if asked.number == 0 or asked.number > self._published.get(party, 0):
                if asked.number:
                    self._published[party] = asked.number
                    self._puts["published", party] = asked.number
                said += self._publish(asked.event, party, now)
        elif isinstance(asked, Subscribe):
            owner = self._edge.owner(asked.id)
            if owner is not None and owner != party:
                return [Reply(party, asked.request, refused=f"{asked.id} is another party's")]
            filters = routed(asked.standing)
            try:
                encode_control(Interest(dict(enumerate_keys(filters))))
            except InvalidValue as problem:
                return [Reply(party, asked.request, refused=str(problem))]
            if owner is None or self._edge.standing(asked.id) != asked.standing:
                if owner is not None:
                    self._cancel(asked.id)
                self._edge.subscribe(party, asked.id, asked.standing)
                self._let(asked.id, filters)
                said += self._tell()
        elif isinstance(asked, Cancel | Unsubscribe):
            if isinstance(asked, Unsubscribe):
                ended = self._edge.covered(party, asked.statement)
            else:
                ended = [asked.id] if self._edge.owner(asked.id) == party else []
            for id in ended:
                self._cancel(id)
            said += self._tell()
        elif isinstance(asked, Confirm):
            token = f"{self.name} {self._count()}"
            return self._waves.begin(
                token, party, asked.request, self._listeners(), now, asked.within
            )
        elif isinstance(asked, Told):
            self._edge.had(party, asked.number)
            return []
        elif isinstance(asked, Suspend):
            self._edge.suspend(party)
        elif isinstance(asked, Resume):
            said += self._edge.resume(party)
        return [*said, Reply(party, asked.request)]

    def _let(self, id: str, filters: Sequence[Filter]) -> None:
        """Let a local subscription count for what neighbours are told."""
        for number, one in enumerate(filters):
            self._table.put(LOCAL, (id, number), one)

    def _cancel(self, id: str) -> None:
        for number, _ in enumerate(routed(self._edge.standing(id))):
            self._table.drop(LOCAL, (id, number))
        self._edge.cancel(id)

    # Events

    def _publish(self, event: Event, party: str, now: int) -> list[Effect]:
        parcel = Parcel(self.name, self._count(), event.entering(now), party)
        return self._parcels((parcel,), None)

    def handle_batch(self, batch: bytes, sender: str, now: int) -> list[Effect]:
        """What follows from a batch of encoded events that a neighbour sent."""
        return self._out(self._parcels(decode_batch(batch), sender))

    def _parcels(self, parcels: Iterable[Parcel], sender: str | None) -> list[Effect]:
        """What follows from events that came by a link, or entered here."""
        told: list[Effect] = []
        sent: dict[str, list[Parcel]] = {}
        for parcel in parcels:
            told += self._take(parcel, sender, sent)
        return [*told, *(self._post(link, tuple(some)) for link, some in sent.items())]

    def _post(self, link: str, parcels: tuple[Parcel, ...]) -> SendParcels:
        """Keep what goes to a link until it is known to have arrived."""
        outbox = self._outbox.setdefault(link, {})
        posted = tuple((self._count(), parcel) for parcel in parcels)
        for position, parcel in posted:
            outbox[position] = parcel
            self._puts["out", link, str(position)] = parcel
        return SendParcels(link, posted)

    def _take(
        self, parcel: Parcel, sender: str | None, sent: dict[str, list[Parcel]]
    ) -> list[Deliver]:
        in_mesh = sender is not None and self._links.get(sender) is Role.MESH
        homes = [home for home in parcel.homes if home != self.name] if in_mesh else []
        told: list[Deliver] = []
        if not in_mesh or self.name in parcel.homes:
            if parcel.number <= self._seen.get(parcel.origin, 0):
                return []  # It came by another way, or again.
            self._seen[parcel.origin] = parcel.number
            self._puts["seen", parcel.origin] = parcel.number
            told = self._edge.take(parcel)
            links: dict[str, None] = {}
            for number in self._remote.match(parcel.event):
                owner, key = self._wanting[number]
                if owner != MESH:
                    if owner != sender:
                        links[owner] = None
                elif not in_mesh:
                    assert isinstance(key, tuple)
                    homes.append(key[0])
            self._send(parcel, links, (), sent)
        by_hop: dict[str, dict[str, None]] = {}
        for home in homes:
            hop = self._mesh.next_hop(home)
            if hop is not None:
                by_hop.setdefault(hop, {})[home] = None
        for hop, meant in by_hop.items():
            self._send(parcel, (hop,), tuple(meant), sent)
        return told

    def _send(
        self,
        parcel: Parcel,
        links: Iterable[str],
        homes: tuple[str, ...],
        sent: dict[str, list[Parcel]],
    ) -> None:
        if parcel.hops >= self.settings.hops:
            return
        further = replace(parcel, hops=parcel.hops + 1, homes=homes)
        for link in links:
            sent.setdefault(link, []).append(further)

    def _check(self) -> None:
        """Assert that everything agrees with what follows from the interfaces' interest."""
        self._table._check()
        self._mesh._check()
        wanted = {(link, key) for link in (*self._links, MESH) for key in self._table.keys(link)}
        assert wanted == self._numbers.keys() == set(self._wanting.values())
        assert len(self._remote) == len(wanted)
        assert all(number in self._remote for number in self._wanting)
        meshed = {link for link, role in self._links.items() if role is Role.MESH}
        assert meshed == set(self._mesh.links())
        assert self._outbox.keys() <= self._links.keys()


def enumerate_keys(filters: Iterable[Filter]) -> Iterable[tuple[str, Filter]]:
    """Filters by keys, as a neighbour would be told of them."""
    return ((str(number), one) for number, one in enumerate(filters))
