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

In an overlay that goes by advertisements [SIENA §3.5] what is offered travels the same ways, and
interest goes only to where something is offered that it could want. A master offers everything: it
never says what.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Series
from dataclasses import dataclass, replace
from enum import StrEnum

from driftline.broker.edge import Edge, exactly_routed, routed
from driftline.broker.effects import Deliver, Effect, Reply, Send, SendParcels, Store
from driftline.broker.effects import Key as StoreKey
from driftline.broker.homes import Homes
from driftline.broker.requests import (
    Advertise,
    Cancel,
    Confirm,
    Interested,
    Observed,
    Publish,
    Redirect,
    Request,
    Resume,
    Subscribe,
    Suspend,
    Told,
    Unadvertise,
    Unsubscribe,
)
from driftline.broker.waves import Waves
from driftline.errors import InvalidValue, NotAdvertised, NotSupported
from driftline.matching.choice import make_matcher
from driftline.matching.matcher import Matcher
from driftline.model.advertisement import (
    Advertisement,
    advertisement_covers,
    advertisement_intersects,
)
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
    Sequence,
    Steps,
)
from driftline.model.pattern import Pattern
from driftline.model.standing import Standing
from driftline.routing.advertisements import Advertisements
from driftline.routing.subscriptions import News, Subscriptions
from driftline.routing.table import Change, Key
from driftline.wire.codec import encode_control
from driftline.wire.events import decode_batch
from driftline.wire.records import encode_parcel

EVERYTHING = Filter(None)
# Interfaces that are no links; no link has such a name.
MESH, LOCAL = "\nmesh", "\nlocal"
_COUNTED_BITS = 40
_DAY = 86_400_000_000
_LONG_AGO = -(1 << 55)


class Role(StrEnum):
    """What a link is to us."""

    PEER = "peer"
    CLIENT = "client"
    MASTER = "master"
    MESH = "mesh"


@dataclass(frozen=True, slots=True)
class Settings:
    """What may differ from broker to broker; `advertised` is the same in all of an overlay."""

    matcher: str | Matcher = "auto"
    advertised: bool = False
    """May a party publish only what it advertised? Then interest goes only where it is met."""
    keep: int = 1000
    """How much is kept for a suspended party."""
    patience: int = 30 * _DAY
    """How long (microseconds) half a pattern without WITHIN waits before it is a gap."""
    hops: int = 64
    """An event that crossed so many links goes no further."""
    stores: bool = True
    """Is there a journal? Without one a broker that crashes begins empty."""
    alone: bool = False
    """Is it one that never has links, in the process of its parties? What is told is then had, and
    nothing need be fit to travel."""


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
        self._expected: dict[str, Role] = {}
        self._puts: dict[StoreKey, object] = {}
        self.edge = Edge(
            self.settings.matcher,
            self.settings.keep,
            self.settings.patience,
            self._puts.__setitem__,
            self._count,
            certain=self.settings.alone,
        )
        matcher = self.settings.matcher
        self.subscriptions = Subscriptions(
            make_matcher(matcher if isinstance(matcher, str) else "auto"), self._provider
        )
        self.offers = Advertisements()
        self._advertised: dict[str, dict[str, Advertisement]] = {}
        self._homes = Homes(
            name,
            self._puts.__setitem__,
            self._count,
            lambda key, wanted: self._want(MESH, key, wanted),
            lambda key, says: self._offer(MESH, key, says),
        )
        self._in_mesh = False
        self._waves = Waves()
        self._seen: dict[str, int] = {}
        self._published: dict[str, tuple[int, int]] = {}
        self._latest = _LONG_AGO
        # What was sent to each link and is not known to have arrived, by position.
        self._outbox: dict[str, dict[int, Parcel]] = {}
        if stored:
            self._restore(stored)

    def _restore(self, stored: Mapping[StoreKey, object]) -> None:
        """Begin with what an earlier life has kept, as if it had only slept."""
        self.edge.restore(stored)
        for id, _, standing in self.edge:
            self._let(id, standing)
        latest = stored.get(("latest",), _LONG_AGO)
        assert isinstance(latest, int)
        self._latest = latest
        for key, value in stored.items():
            if key[0] == "seen":
                assert isinstance(value, int)
                self._seen[key[1]] = value
            elif key[0] == "published":
                assert isinstance(value, tuple)
                self._published[key[1]] = value
            elif key[0] == "want":
                assert isinstance(value, Filter | Sequence)
                self._want(key[1], key[2], value)
            elif key[0] == "offer":
                assert isinstance(value, Advertisement)
                self._offer(key[1], key[2], value)
            elif key[0] == "advertised":
                assert isinstance(value, Advertisement)
                self._advertises(key[1], key[2], value)
            elif key[0] == "mesh":
                assert isinstance(value, Neighbours | Home)
                self._homes.restore(value)
            elif key[0] == "link":
                assert isinstance(value, Role)
                self._open(key[1], value)
        outbox = [(key, value) for key, value in stored.items() if key[0] == "out"]
        for key, value in sorted(outbox, key=lambda one: int(one[0][2])):
            assert isinstance(value, Parcel)
            self._outbox.setdefault(key[1], {})[int(key[2])] = value
        self._homes.reach()
        # Links are told everything when they come up.
        self.offers.table.settle()
        self.subscriptions.settle()
        self._puts.clear()

    def begin(self) -> list[Effect]:
        """What to do first after a crash: tell parties again what they may not have had."""
        return self._out(self.edge.again())

    def roles(self) -> dict[str, Role]:
        """The links, and what each is."""
        return dict(self._links)

    def _out(self, effects: Series[Effect]) -> list[Effect]:
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
            said += self._homes.link(link, up=True)
        elif role is not Role.CLIENT:
            self._tellable(link, role)
        said += self._tell(reset=link)
        if role is Role.MESH and not self._homes.said:
            # The others may still believe what an earlier life of this broker has said.
            said += self._say_home(None, None)
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
                self._tellable(MESH, role)
        elif role is Role.MASTER:
            self._want(link, "", EVERYTHING)
        self.subscriptions.plan()

    def _tellable(self, out: str, role: Role) -> None:
        """There is an interface that must be told what the others want and offer."""
        selective = self.settings.advertised and role is not Role.MASTER
        if self.settings.advertised:
            self.offers.table.open(out)
        self.subscriptions.open(
            out, (lambda wanted: self.offers.provides(out, wanted)) if selective else None
        )

    def _close(self, link: str) -> list[Effect]:
        self._puts["link", link] = None
        for position in self._outbox.pop(link, ()):
            self._puts["out", link, str(position)] = None
        if self._links.pop(link) is Role.MESH:
            return self._homes.link(link, up=False)
        self.offers.table.close(link)
        self.subscriptions.close(link)
        for key in self.offers.keys(link):
            self._offer(link, key, None)
        for key in self.subscriptions.keys(link):
            self._want(link, key, None)
        return []

    def _want(self, owner: str, key: Key, wanted: Filter | Sequence | None) -> None:
        """A link, or the mesh, wants something under a key of its own; None: no longer."""
        if isinstance(key, str):  # What the mesh wants is kept with its homes.
            self._puts["want", owner, key] = wanted
        if isinstance(wanted, Sequence) and wanted.latest < self._latest:
            # What is on its way there is matched before anything we shall send.
            wanted = Sequence(wanted.steps, self._latest)
        self.subscriptions.want(owner, key, wanted)

    def _offer(self, owner: str, key: Key, says: Advertisement | None) -> None:
        """A link, the mesh or a local party offers something; None: no longer."""
        if isinstance(key, str):
            self._puts["offer", owner, key] = says
        changed = self.offers.put(owner, key, says)
        if changed and self.settings.advertised:
            self.subscriptions.table.reconsider(
                owner, lambda one: any(advertisement_intersects(says, one) for says in changed)
            )
            self.subscriptions.plan()

    def _provider(self, asker: str, step: tuple[Filter, ...]) -> str | None:
        """The link that alone may send what satisfies one of these, and can be told of it."""
        if not self.settings.advertised:
            return None
        found = {link for link, role in self._links.items() if role is Role.MASTER}
        found.update(owner for one in step for owner in self.offers.providers(one))
        if asker != LOCAL:
            found.discard(asker)
        if len(found) != 1:
            return None
        (only,) = found
        return only if self._links.get(only) in (Role.PEER, Role.MASTER) else None

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
        if isinstance(message, Publish):
            said = self._published_by(message, sender, now)
        elif isinstance(message, Interest):
            said = self._interest(message, sender)
        elif isinstance(message, Offer):
            said = self._offered(message, sender)
        elif isinstance(message, Neighbours | Home):
            news = self._homes.hear(message, sender)
            if news is None:
                return []
            said = [*news, *self._tell()]
        elif isinstance(message, Ask):
            said = self._asked(message, sender, now)
        elif isinstance(message, Answer):
            said = self._waves.answer(message, sender)
        else:
            said = self._request(message, sender, now)
        return self._out(said)

    def _interest(self, said: Interest, link: str) -> list[Effect]:
        if self._links.get(link) not in (Role.PEER, Role.CLIENT):
            return []  # A master wants all, and members say what they want to the whole mesh.
        wanted: dict[str, Filter | Sequence] = {**said.added, **said.sequences}
        removed = self.subscriptions.keys(link) if said.reset else said.removed
        for key in [key for key in removed if key not in wanted]:
            self._want(link, key, None)
        for key, one in wanted.items():
            self._want(link, key, one)
        return self._tell()

    def _offered(self, said: Offer, link: str) -> list[Effect]:
        if not self.settings.advertised:
            raise NotSupported("Offer", "this overlay does not go by advertisements")
        if self._links.get(link) not in (Role.PEER, Role.CLIENT):
            return []
        removed = self.offers.keys(link) if said.reset else said.removed
        for key in [key for key in removed if key not in said.added]:
            self._offer(link, key, None)
        for key, one in said.added.items():
            self._offer(link, key, one)
        return self._tell()

    def _asked(self, asked: Ask, sender: str, now: int) -> list[Effect]:
        if asked.says is not None and self._interested(asked.says, sender):
            return [Send(sender, Answer(asked.token, interested=True))]
        return self._waves.ask(asked, sender, self._listeners(), now)

    def _interested(self, says: Advertisement, asker: str) -> bool:
        """Does anybody here, or behind a link that says what it wants, want some of it?"""
        masters = (link for link, role in self._links.items() if role is Role.MASTER)
        silent = {LOCAL, asker, *masters}
        return self.edge.interested(says) or any(
            owner not in silent and advertisement_intersects(says, wanted)
            for owner, wanted in self.subscriptions.wanted()
        )

    # What neighbours are told

    def _tell(self, reset: str | None = None) -> list[Effect]:
        """Settle the tables: one message for each neighbour that must know, or two."""
        offers = self.offers.table.settle()
        news = self.subscriptions.settle()
        effects: list[Effect] = []
        for out in dict.fromkeys([*offers, *news]):
            if out == MESH:
                effects += self._say_home(offers.get(out), news.get(out))
                continue
            if out == reset:
                continue
            if out in offers:
                change = offers[out]
                effects.append(Send(out, Offer(change.added, tuple(change.removed))))
            if out in news:
                told = news[out]
                removed = (*told.filters.removed, *told.removed)
                sequences = self._delegated(told.added)
                effects.append(
                    Send(out, Interest(told.filters.added, removed, sequences=sequences))
                )
        if reset is not None and self._links[reset] in (Role.PEER, Role.MASTER):
            if self.settings.advertised:
                effects.append(Send(reset, Offer(self.offers.table.told(reset), reset=True)))
            filters, steps = self.subscriptions.told(reset)
            effects.append(
                Send(reset, Interest(filters, reset=True, sequences=self._delegated(steps)))
            )
        return effects

    def _delegated(self, told: Mapping[str, Steps]) -> dict[str, Sequence]:
        return {key: Sequence(steps, self._latest) for key, steps in told.items()}

    def _say_home(self, offers: Change[Advertisement] | None, news: News | None) -> list[Effect]:
        if not self._homes.said:
            # Keys are of this life: the first time all is said.
            filters, _ = self.subscriptions.told(MESH)
            offered = self.offers.table.told(MESH) if self.settings.advertised else {}
            return self._homes.say(filters, (), offered, ())
        wants = Change[Filter]() if news is None else news.filters
        offers = offers or Change()
        return self._homes.say(
            wants.added, tuple(wants.removed), offers.added, tuple(offers.removed)
        )

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
        try:
            if isinstance(asked, Subscribe):
                said += self._subscribe(asked, party)
            elif isinstance(asked, Cancel | Unsubscribe):
                said += self._unsubscribe(asked, party)
            elif isinstance(asked, Advertise):
                said += self._advertise(asked, party)
            elif isinstance(asked, Unadvertise):
                said += self._unadvertise(asked, party)
        except (InvalidValue, NotAdvertised) as problem:
            return [Reply(party, asked.request, problem)]
        if isinstance(asked, Confirm | Interested):
            return self._wave(asked, party, now)
        if isinstance(asked, Told):
            self.edge.had(party, asked.number)
            return []
        if isinstance(asked, Suspend):
            self.edge.suspend(party)
        elif isinstance(asked, Resume):
            said += self.edge.resume(party)
        elif isinstance(asked, Redirect):
            said += self.edge.redirect(party, asked.handler)
        elif isinstance(asked, Observed):
            if asked.value is None:
                self.edge.env.pop(asked.name, None)
            else:
                self.edge.env[asked.name] = asked.value
        return [*said, Reply(party, asked.request)]

    def _wave(self, asked: Confirm | Interested, party: str, now: int) -> list[Effect]:
        says = asked.says if isinstance(asked, Interested) else None
        if says is not None and self._interested(says, ""):
            return [Reply(party, asked.request, interested=True)]
        ask = Ask(f"{self.name} {self._count()}", asked.within, says)
        return self._waves.begin(ask, party, asked.request, self._listeners(), now)

    def _subscribe(self, asked: Subscribe, party: str) -> list[Effect]:
        owner = self.edge.owner(asked.id)
        if owner is not None and owner != party:
            raise InvalidValue(
                "id", "one of your own, or a new one", f"{asked.id} of another party"
            )
        if not self.settings.alone:
            # Refused here, where somebody can be told, if it cannot travel.
            filters = (one for step in routed(asked.standing) for one in step)
            encode_control(Interest({str(at): one for at, one in enumerate(filters)}))
        before = None if owner is None else self.edge.standing(asked.id)
        if before == asked.standing:
            return []
        if before is None or before.statement != asked.standing.statement:
            if before is not None:
                self.edge.cancel(asked.id)
            self.edge.subscribe(party, asked.id, asked.standing)
        else:
            self.edge.move(asked.id, asked.standing)
        self._let(asked.id, asked.standing, before)
        return self._tell()

    def _unsubscribe(self, asked: Cancel | Unsubscribe, party: str) -> list[Effect]:
        if isinstance(asked, Unsubscribe):
            ended = self.edge.covered(party, asked.statement, asked.params)
        else:
            ended = [asked.id] if self.edge.owner(asked.id) == party else []
        for id in ended:
            for key in self._parts(id, self.edge.standing(id)):
                self.subscriptions.drop(LOCAL, key)
            self.edge.cancel(id)
        return self._tell()

    def _let(self, id: str, standing: Standing, before: Standing | None = None) -> None:
        """Let a local subscription count for what neighbours are told."""
        if self.settings.alone:
            return
        parts = self._parts(id, standing)
        for key in self._parts(id, before) if before is not None else ():
            if key not in parts:
                self.subscriptions.drop(LOCAL, key)
        for key, one in parts.items():
            self.subscriptions.let(LOCAL, key, one)

    def _parts(self, id: str, standing: Standing) -> dict[Key, Filter | Steps]:
        """What the network must bring for a subscription, by keys."""
        steps = routed(standing)
        if isinstance(standing.statement, Pattern) and exactly_routed(standing):
            return {(id, -1): steps}
        filters = dict.fromkeys(one for step in steps for one in step)
        return {(id, at): one for at, one in enumerate(filters)}

    def _advertise(self, asked: Advertise, party: str) -> list[Effect]:
        if not self.settings.alone:
            encode_control(Offer({"": asked.says}))
        self._puts["advertised", party, asked.id] = asked.says
        self._advertises(party, asked.id, asked.says)
        return self._tell()

    def _advertises(self, party: str, id: str, says: Advertisement | None) -> None:
        mine = self._advertised.setdefault(party, {})
        if says is None:
            del mine[id]
        else:
            mine[id] = says
        if not mine:
            del self._advertised[party]
        self._offer(LOCAL, (party, id), says)

    def _unadvertise(self, asked: Unadvertise, party: str) -> list[Effect]:
        for id, says in self.advertised(party).items():
            if advertisement_covers(asked.says, says):
                self._puts["advertised", party, id] = None
                self._advertises(party, id, None)
        return self._tell()

    def advertised(self, party: str) -> dict[str, Advertisement]:
        """What a local party has advertised, by its ids."""
        return dict(self._advertised.get(party, {}))

    # Events

    def publish(self, event: Event, party: str, now: int) -> list[Effect]:
        """What follows from an event that enters here; raises if it must not, or cannot travel."""
        event = event.entering(now)
        if self.settings.advertised:
            self._check_advertised(event, party)
        if self.settings.alone:
            return [*self.edge.take(event, self.name, self._count())]
        parcel = Parcel(self.name, self._count(), event, party)
        encode_parcel(parcel)
        return self._parcels((parcel,), None)

    def _published_by(self, asked: Publish, party: str, now: int) -> list[Effect]:
        number = (asked.life, asked.number)
        said: list[Effect] = []
        # A party that has not heard what became of it may ask again.
        if not asked.number or number > self._published.get(party, (0, 0)):
            try:
                said = self.publish(asked.event, party, now)
            except (InvalidValue, NotAdvertised) as problem:
                return [Reply(party, asked.request, problem)]
            if asked.number:
                self._published[party] = self._puts["published", party] = number
        return [*said, Reply(party, asked.request)]

    def _check_advertised(self, event: Event, party: str) -> None:
        problems = [one.uncovered(event) for one in self._advertised.get(party, {}).values()]
        if None not in problems:
            why = "; ".join(problem for problem in problems if problem) or "nothing is advertised"
            raise NotAdvertised(party, event.type, why)

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
            told = self.edge.take(parcel.event, parcel.origin, parcel.number)
            self._seen[parcel.origin] = parcel.number
            self._puts["seen", parcel.origin] = parcel.number
            time = parcel.event.time
            if time is not None and time > self._latest:
                self._latest = self._puts["latest",] = time
            links: dict[str, None] = {}
            for owner, key in self.subscriptions.concerned(parcel.event, sender):
                if owner != MESH:
                    links[owner] = None
                elif not in_mesh:
                    assert isinstance(key, tuple)
                    homes.append(key[0])
            self._send(parcel, links, (), sent)
        by_hop: dict[str, dict[str, None]] = {}
        for home in homes:
            hop = self._homes.next_hop(home)
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
        self.edge._check()
        self.subscriptions._check()
        self.offers._check()
        self._homes._check()
        meshed = {link for link, role in self._links.items() if role is Role.MESH}
        assert meshed == set(self._homes.links())
        assert self._outbox.keys() <= self._links.keys()
