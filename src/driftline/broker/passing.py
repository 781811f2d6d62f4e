"""How does an event go through a broker, and what follows from it on the way?

It is told to local parties, sent on to neighbours that want it, and heard by the tables that are
kept here; what these say of it goes the same way behind it. Each event is taken once, whichever way
it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from driftline.broker.asking import Asking, Outward
from driftline.broker.demand import Demand
from driftline.broker.derived import well_formed
from driftline.broker.edge import Edge
from driftline.broker.effects import Effect, Key
from driftline.broker.environment import Environment
from driftline.broker.links import MESH, Links, Role
from driftline.broker.outbox import Outbox
from driftline.broker.settings import Settings
from driftline.broker.subscribing import Subscribing
from driftline.broker.tables import DELETE, SNAPSHOT, Tables
from driftline.errors import InvalidValue
from driftline.model.event import Event
from driftline.model.message import Parcel
from driftline.model.value import Value
from driftline.routing.subscriptions import Which
from driftline.stateful.rows.change import is_derived
from driftline.stateful.value_based.address import GONE, MOVED, SHIFT
from driftline.wire.framing import PAYLOAD_BYTES_MAX
from driftline.wire.records import encode_parcel

_HOMES_BYTES_MAX = 1 << 15
RECORD_BYTES_MAX = PAYLOAD_BYTES_MAX - (1 << 17)
"""What a frame has room for, with the names of homes and a good deal to spare."""


class Passing:
    """Events on their way through one broker, by what it consists of. `put` journals."""

    __slots__ = (
        "_asking",
        "_demand",
        "_edge",
        "_environment",
        "_links",
        "_name",
        "_out",
        "_outbox",
        "_put",
        "_seen",
        "_settings",
        "_subscribing",
        "_tables",
    )

    def __init__(
        self,
        out: Outward,
        settings: Settings,
        edge: Edge,
        links: Links,
        tables: Tables,
        environment: Environment,
        outbox: Outbox,
        asking: Asking,
        subscribing: Subscribing,
        put: Callable[[Key, object], None],
    ) -> None:
        self._out = out
        self._name = out.name
        self._settings = settings
        self._edge = edge
        self._links = links
        self._tables = tables
        self._environment = environment
        self._outbox = outbox
        self._asking = asking
        self._subscribing = subscribing
        self._put = put
        self._demand = Demand(tables, edge, links)
        # Of each other origin the number of the last event that came.
        self._seen: dict[str, int] = {}

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept."""
        for key, value in stored.items():
            if key[0] == "seen":
                assert isinstance(value, int)
                self._seen[key[1]] = value

    def tell_of(self, table: str, messages: list[Event], now: int) -> list[Effect]:
        """What follows from what is said of a table that is kept here."""
        sent: dict[str, list[Parcel]] = {}
        told = self._spread(table, messages, sent, now)
        return [*told, *(self._outbox.post(link, tuple(some)) for link, some in sent.items())]

    def had(self, origin: str) -> int:
        """The number of the last event of an origin that came here."""
        return self._seen.get(origin, 0)

    def came(self, origin: str, number: int) -> None:
        """All events of an origin up to a number have come here."""
        self._seen[origin] = number
        self._put(("seen", origin), number)

    def _hear(
        self, parcel: Parcel, sent: dict[str, list[Parcel]], env: Mapping[str, Value], now: int
    ) -> list[Effect]:
        """What an event means to the tables that are kept here, and to views that asked."""
        event = parcel.event
        if event.type.startswith(SNAPSHOT):
            return self._asking.hear(parcel)
        if not self._tables:
            return []
        known = self._tables.home.types()
        messages = self._tables.hear(event, env, now, later=self._settings.advertised)
        if event.trace is not None:
            # Whoever is told of the change is told what caused it.
            messages = [message.with_trace(event.trace) for message in messages]
        told = self._spread(event.type.removeprefix(DELETE), messages, sent, now)
        if self._tables.home.types() != known:
            self._asking.keep(())
            told += self._links.tell()
        return told

    def _spread(
        self, table: str, messages: list[Event], sent: dict[str, list[Parcel]], now: int
    ) -> list[Effect]:
        """What follows from what is said of a table."""
        told: list[Effect] = []
        taken: set[str] = set()
        # Rows may move by themselves only where table and follower are in one process.
        stamps = self._environment.values if self._settings.alone else {}
        for message in messages:
            parcel = Parcel(self._name, self._out.at(), message, stamps=stamps)
            if not self._settings.alone and not fits(parcel):
                # It says a row twice, and can be too long where the row was not: a snapshot, which
                # comes in parts, can always be had.
                told += self._out.resync(table)
                continue
            count = sum(map(len, sent.values()))
            news = self._take(parcel, None, sent, now)
            if news or sum(map(len, sent.values())) > count:
                taken.add(message.type)
            told += news
        self.forget_unwanted(table, taken)
        return told

    def forget_unwanted(self, table: str, taken: set[str]) -> None:
        """Changes of a table were said, and these types were taken: the others may be in vain."""
        for type in self._demand.unwanted(table, taken):
            self._tables.forget(type)
            self._out.may_say(type, False)

    def parcels(self, parcels: Iterable[Parcel], sender: str | None, now: int) -> list[Effect]:
        """What follows from events that came by a link, or entered here."""
        told: list[Effect] = []
        sent: dict[str, list[Parcel]] = {}
        for parcel in parcels:
            told += self._take(parcel, sender, sent, now)
        return [*told, *(self._outbox.post(link, tuple(some)) for link, some in sent.items())]

    def _judged(self, parcel: Parcel, now: int) -> tuple[Mapping[str, Value], int | None]:
        """The environment and the instant that an event is judged by."""
        own = self._environment.own(now)
        if self._settings.stamped:
            return {**parcel.stamps, **own}, parcel.event.stamp
        return {**self._environment.values, **own}, now

    def _take(
        self, parcel: Parcel, sender: str | None, sent: dict[str, list[Parcel]], now: int
    ) -> list[Effect]:
        in_mesh = sender is not None and self._links.roles.get(sender) is Role.MESH
        homes = [home for home in parcel.homes if home != self._name] if in_mesh else []
        told: list[Effect] = []
        taken = not in_mesh or self._name in parcel.homes
        env: Mapping[str, Value] = {}
        if taken:
            if self._was_had(parcel, sender):
                return []
            env, at = self._judged(parcel, now)
            told += self._edge.take(parcel.event, parcel.origin, parcel.number, env, at)
            if sender is not None:
                self.came(parcel.origin, parcel.number)
            assert parcel.event.time is not None
            self._links.passed(parcel.event.time)
            links: dict[str, None] = {}
            concerned = list(self._links.concerned(parcel.event, env, at, sender))
            if SHIFT in parcel.event.attributes or GONE in parcel.event.attributes:
                told += self._relabel(parcel.event, concerned)
            for owner, key in concerned:
                if owner != MESH:
                    links[owner] = None
                elif not in_mesh:
                    assert isinstance(key, tuple)
                    homes.append(key[0])
            self._send(parcel, links, (), sent)
        by_hop: dict[str, dict[str, None]] = {}
        for home in homes:
            hop = self._links.homes.next_hop(home)
            if hop is not None:
                by_hop.setdefault(hop, {})[home] = None
        for hop, meant in by_hop.items():
            for some in _apart(meant):
                self._send(parcel, (hop,), some, sent)
        if taken:
            # Behind the event itself, on every link.
            told += self._hear(parcel, sent, env, now)
        return told

    def _was_had(self, parcel: Parcel, sender: str | None) -> bool:
        """Did it come by another way, or again? What began here has been had here."""
        if sender is None:
            return False
        return parcel.origin == self._name or parcel.number <= self._seen.get(parcel.origin, 0)

    def _relabel(self, event: Event, concerned: Iterable[Which]) -> list[Effect]:
        """Places of followers may have become others, with those whom it concerns."""
        if self._settings.alone or not event.type.startswith(MOVED):
            return []
        by = self._links.labels.hear(event)
        if by is None:
            return []
        # Before: what is different by it is not to be said.
        said = self._links.tell()
        own = self._subscribing.relabelled(event, by)
        return [*said, *self._links.relabel(event, by, concerned, own)]

    def _send(
        self,
        parcel: Parcel,
        links: Iterable[str],
        homes: tuple[str, ...],
        sent: dict[str, list[Parcel]],
    ) -> None:
        if parcel.hops >= self._settings.hops:
            return
        further = replace(parcel, hops=parcel.hops + 1, homes=homes)
        for link in links:
            sent.setdefault(link, []).append(further)


def entered(parcel: Parcel, now: int) -> Parcel:
    """A parcel whose event has its stamps, whoever has sent it."""
    event = parcel.event.entering(now)
    return parcel if event is parcel.event else replace(parcel, event=event)


def sound(parcel: Parcel) -> bool:
    """Is it nothing that we could not read? Other brokers are not to be relied on for that."""
    return not is_derived(parcel.event.type) or well_formed(parcel.event)


def fits(parcel: Parcel) -> bool:
    """Can it be put into a frame?"""
    try:
        return len(encode_parcel(parcel)) <= RECORD_BYTES_MAX
    except InvalidValue:
        return False


def _apart(homes: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Homes as so many as one parcel can name."""
    some: list[str] = []
    size = 0
    for home in homes:
        length = 4 + 4 * len(home)  # at most
        if some and size + length > _HOMES_BYTES_MAX:
            yield tuple(some)
            some, size = [], 0
        some.append(home)
        size += length
    if some:
        yield tuple(some)
