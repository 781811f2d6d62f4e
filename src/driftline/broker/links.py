"""What do neighbours want and offer, and what are they told?

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

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from driftline.broker.effects import Effect, Send
from driftline.broker.effects import Key as StoreKey
from driftline.broker.homes import Homes
from driftline.broker.labels import Labels, relabelled
from driftline.broker.settings import Settings
from driftline.broker.waves import QUICK
from driftline.errors import NotSupported
from driftline.matching.bounds import parameters_of
from driftline.matching.choice import make_matcher
from driftline.model.advertisement import Advertisement, advertisement_intersects
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.message import Home, Interest, Neighbours, Offer, Sequence, Steps
from driftline.model.value import Value
from driftline.moving.evolving.choice import make_evolving
from driftline.moving.evolving.plan import evolves
from driftline.moving.parametric.updates import Spoken, updated
from driftline.routing.advertisements import Advertisements
from driftline.routing.subscriptions import News, Subscriptions, Which
from driftline.routing.table import Change, Key
from driftline.stateful.value_based.address import Relabelling, asked_by

if TYPE_CHECKING:
    from driftline.broker.ways import Ways

EVERYTHING = Filter(None)
ANYTHING = Advertisement(None, anything=True)
# Interfaces that are no links; no link has such a name.
MESH, LOCAL = "\nmesh", "\nlocal"
_LONG_AGO = -(1 << 55)


class Role(StrEnum):
    """What a link is to us."""

    PEER = "peer"
    CLIENT = "client"
    MASTER = "master"
    MESH = "mesh"


def _filters_of(sequences: Iterable[Sequence]) -> Iterable[Filter]:
    return (one for sequence in sequences for step in sequence.steps for one in step)


def _check_bound(filters: Iterable[Filter]) -> None:
    for one in filters:
        # Nearly all have constants only, which is quickly seen.
        plain = not one.conditions and all(part.constant for part in one.constraints)
        if not plain and parameters_of((one,)):
            raise NotSupported(str(one), "parameters are bound where the subscriber is")


def _is_placeless(one: Filter) -> bool:
    return asked_by(one) is None


def _check_steady(filters: Iterable[Filter]) -> None:
    for one in filters:
        if evolves(one):
            raise NotSupported(str(one), "a sequence has no steps that evolve")


class Links:
    """The links of a broker, what came by them, and what must be said on them."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        put: Callable[[StoreKey, object], None],
        count: Callable[[], int],
    ) -> None:
        self.roles: dict[str, Role] = {}
        self._expected: dict[str, Role] = {}
        self.advertised = settings.advertised
        self._put = put
        matcher = settings.matcher if isinstance(settings.matcher, str) else "auto"
        index = make_matcher(matcher)
        self.subscriptions = Subscriptions(index, self._provider, partial(make_evolving, settings))
        # For events that are taken many at a time; for that an index is needed.
        self.ways: Ways | None = None
        if matcher == "index":
            # Imported when it is wanted: it brings compiled code with it.
            from driftline.broker.ways import Ways
            from driftline.matching.index import Index

            assert isinstance(index, Index)
            self.subscriptions.places = self.ways = Ways(index)
        self.offers = Advertisements()
        want, offer = partial(self._want, MESH), partial(self.offer, MESH)
        self.homes = Homes(name, put, count, want, offer)
        self.labels = Labels(put)
        self._in_mesh = False
        self._spoken: dict[str, Spoken] = {}
        # What neighbours have said since their sessions began, until they have said everything.
        self._heard: dict[tuple[str, type], set[Key]] = {}
        self.latest = _LONG_AGO
        """When the newest event was generated that has come here, or to whoever asked of us."""

    def restore(self, stored: Mapping[StoreKey, object]) -> None:
        """Begin with what an earlier life of the broker has kept."""
        latest = stored.get(("latest",), _LONG_AGO)
        assert isinstance(latest, int)
        self.latest = latest
        self.labels.restore(stored)
        for key, value in stored.items():
            if key[0] == "want":
                assert isinstance(value, Filter | Sequence)
                self._want(key[1], key[2], value)
            elif key[0] == "offer":
                assert isinstance(value, Advertisement)
                self.offer(key[1], key[2], value)
            elif key[0] == "link":
                assert isinstance(value, Role)
                self._open(key[1], value)
        self.homes.restore(stored)
        # Links are told everything when they come up.
        self.offers.table.settle()
        self.subscriptions.settle()

    # Links that come and go

    def connect(self, link: str, role: Role) -> list[Effect]:
        """A session on a link has begun, the first or another: say everything on it.

        What the neighbour wanted before counts until it says what it wants now.
        """
        said: list[Effect] = []
        if self.roles.get(link) is not role:
            if link in self.roles:
                said += self._close(link)
            self._put(("link", link), role)
            self._open(link, role)
        self._heard[link, Interest] = set()
        self._heard[link, Offer] = set()
        if role is Role.MESH:
            said += self.homes.link(link, up=True)
        elif role is not Role.CLIENT:
            self._tellable(link, role)
        said += self.tell(reset=link)
        if role is Role.MESH and not self.homes.said:
            # The others may still believe what an earlier life of this broker has said.
            said += self._say_home(None, None)
        return said

    def disconnect(self, link: str) -> list[Effect]:
        """A link is gone for good: whatever came by it is undone."""
        return [*self._close(link), *self.tell()]

    def expect(self, link: str, role: Role | None) -> None:
        """A link is configured, or no longer (None): whoever wants to be sure waits for it too."""
        if role is None:
            self._expected.pop(link, None)
        else:
            self._expected[link] = role

    def listeners(self) -> list[str]:
        """The links on which interest is told: who must say that it has taken effect."""
        links = {**self._expected, **self.roles}
        return [link for link, role in links.items() if role is not Role.CLIENT]

    def everybody(self) -> list[str]:
        """All links, those included that are not up."""
        return list({**self._expected, **self.roles})

    def _open(self, link: str, role: Role) -> None:
        if not self.roles and self.latest > _LONG_AGO:
            # Without neighbours nobody needs to know.
            self._put(("latest",), self.latest)
        self.roles[link] = role
        if role is Role.MESH:
            if not self._in_mesh:
                self._in_mesh = True
                self._tellable(MESH, role)
        elif role is Role.MASTER:
            self._want(link, "", EVERYTHING)
            self.offer(link, "", ANYTHING)
        self.subscriptions.plan()

    def _tellable(self, out: str, role: Role) -> None:
        """There is an interface that must be told what the others want and offer."""
        # Whoever holds one that has a place may shift it by itself: others are told in full.
        self._spoken[out] = Spoken(_is_placeless)
        selective = self.advertised and role is not Role.MASTER
        if self.advertised:
            self.offers.table.open(out)
        self.subscriptions.open(out, partial(self.offers.provides, out) if selective else None)

    def _close(self, link: str) -> list[Effect]:
        self._put(("link", link), None)
        self._heard.pop((link, Interest), None)
        self._heard.pop((link, Offer), None)
        if self.roles.pop(link) is Role.MESH:
            return self.homes.link(link, up=False)
        self.offers.table.close(link)
        self.subscriptions.close(link)
        self._spoken.pop(link, None)
        for key in self.offers.keys(link):
            self.offer(link, key, None)
        for key in self.subscriptions.keys(link):
            self._want(link, key, None)
        return []

    def _want(self, owner: str, key: Key, wanted: Filter | Sequence | None) -> None:
        """A link, or the mesh, wants something under a key of its own; None: no longer."""
        if isinstance(key, str):  # What the mesh wants is kept with its homes.
            self._put(("want", owner, key), wanted)
        if isinstance(wanted, Sequence):
            # What is on its way there is matched before anything we shall send; and whoever looks
            # after a part of it for us must know what the asker has seen.
            self.passed(wanted.latest)
            wanted = Sequence(wanted.steps, self.latest)
        elif wanted is not None:
            wanted = self.labels.current(wanted)
        self.subscriptions.want(owner, key, wanted)

    def offer(self, owner: str, key: Key, says: Advertisement | None) -> None:
        """A link, the mesh or a local party offers something; None: no longer."""
        if isinstance(key, str):
            self._put(("offer", owner, key), says)
        changed = self.offers.put(owner, key, says)
        if changed and self.advertised:
            self.subscriptions.table.reconsider(
                owner, lambda one: any(advertisement_intersects(says, one) for says in changed)
            )
            self.subscriptions.plan()

    def _provider(self, asker: str, step: tuple[Filter, ...]) -> str | None:
        """The link that alone may send what satisfies one of these, and can be told of it."""
        if not self.advertised:
            return None
        # What a mesh says of its offers may overtake its events, and so may who looks after a part.
        if self._in_mesh:
            return None
        found = {owner for one in step for owner in self.offers.providers(one)}
        if asker != LOCAL:
            found.discard(asker)
        if len(found) != 1:
            return None
        (only,) = found
        return only if self.roles.get(only) in (Role.PEER, Role.MASTER) else None

    # What neighbours say

    def hear(self, said: Interest | Offer | Neighbours | Home, link: str) -> list[Effect]:
        """What follows from what a neighbour says of itself, or of other members of a mesh."""
        if isinstance(said, Interest):
            return self._interest(said, link)
        if isinstance(said, Offer):
            return self._offered(said, link)
        if isinstance(said, Home):
            _check_bound(said.added.values())
        news = self.homes.hear(said, link)
        return [] if news is None else [*news, *self.tell()]

    def _interest(self, said: Interest, link: str) -> list[Effect]:
        if self.roles.get(link) not in (Role.PEER, Role.CLIENT):
            return []  # A master wants all, and members say what they want to the whole mesh.
        _check_bound((*said.added.values(), *_filters_of(said.sequences.values())))
        _check_steady(_filters_of(said.sequences.values()))
        moved = {key: self._updated(link, key, new) for key, new in said.updates.items()}
        wanted: dict[str, Filter | Sequence] = {**said.added, **moved, **said.sequences}
        removed = self._unsaid(link, said, self.subscriptions.keys)
        for key in [key for key in removed if key not in wanted]:
            self._want(link, key, None)
        for key, one in wanted.items():
            self._want(link, key, one)
        return self.tell()

    def _updated(self, link: str, key: str, moved: Mapping[int, Value]) -> Filter:
        before = self.subscriptions.filter(link, key)
        after = None if before is None else updated(before, moved)
        if after is None:
            raise NotSupported(f"update of {key}", "it was not told, or has no such values")
        return after

    def _unsaid(
        self, link: str, said: Interest | Offer, known: Callable[[str], list[Key]]
    ) -> Iterable[Key]:
        """The keys that no longer count."""
        # Until all has been said it may be said in several messages.
        heard = self._heard.get((link, type(said)))
        if heard is not None:
            heard.update(said.added)
            if isinstance(said, Interest):
                heard.update(said.sequences, said.updates)
        if not said.reset:
            return said.removed
        self._heard.pop((link, type(said)), None)
        return [key for key in known(link) if heard is None or key not in heard]

    def _offered(self, said: Offer, link: str) -> list[Effect]:
        if not self.advertised:
            raise NotSupported("Offer", "this overlay does not go by advertisements")
        if self.roles.get(link) not in (Role.PEER, Role.CLIENT):
            return []
        removed = self._unsaid(link, said, self.offers.keys)
        for key in [key for key in removed if key not in said.added]:
            self.offer(link, key, None)
        for key, one in said.added.items():
            self.offer(link, key, one)
        return self.tell()

    def wants(self, says: Advertisement, asker: str) -> Iterator[bool]:
        """Does one of those behind links that say what they want, but the asker, want some of it,
        and the next? See `Edge.wants`.
        """
        masters = (link for link, role in self.roles.items() if role is Role.MASTER)
        silent = {LOCAL, asker, *masters}
        for at, (owner, wanted) in enumerate(self.subscriptions.wanted()):
            if owner not in silent and (says.type is None or wanted.type in (None, says.type)):
                yield advertisement_intersects(says, wanted)
            elif at % QUICK == 0:
                yield False

    # What neighbours are told

    def tell(self, reset: str | None = None) -> list[Effect]:
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
                effects.append(Send(out, self._news(out, news[out])))
        if reset is not None and self.roles[reset] in (Role.PEER, Role.MASTER):
            if self.advertised:
                effects.append(Send(reset, Offer(self.offers.table.told(reset), reset=True)))
            filters, steps = self.told(reset)
            effects.append(
                Send(reset, Interest(filters, reset=True, sequences=self._delegated(steps)))
            )
        return effects

    def _news(self, out: str, told: News) -> Interest:
        said = self._spoken[out].say(told.filters.added, told.filters.removed)
        return Interest(
            said.added,
            (*said.removed, *told.removed),
            sequences=self._delegated(told.added),
            updates=said.updates,
        )

    def told(self, out: str) -> tuple[dict[str, Filter], dict[str, Steps]]:
        """All that a neighbour has been told, by the keys that it knows it by."""
        filters, steps = self.subscriptions.told(out)
        return self._spoken[out].all(filters), steps

    def _delegated(self, told: Mapping[str, Steps]) -> dict[str, Sequence]:
        return {key: Sequence(steps, self.latest) for key, steps in told.items()}

    def _say_home(self, offers: Change[Advertisement] | None, news: News | None) -> list[Effect]:
        if not self.homes.said:
            # Keys are of this life: the first time all is said.
            filters, _ = self.told(MESH)
            offered = self.offers.table.told(MESH) if self.advertised else {}
            return self.homes.say(filters, (), offered, ())
        wants = Change[Filter]() if news is None else news.filters
        said = self._spoken[MESH].say(wants.added, wants.removed)
        offers = offers or Change()
        return self.homes.say(
            said.added, said.removed, offers.added, tuple(offers.removed), said.updates
        )

    # Events

    def concerned(
        self, event: Event, env: Mapping[str, Value], at: int | None, sender: str | None
    ) -> Iterable[Which]:
        """Which links, or members of the mesh, an event concerns, and by which keys."""
        return self.subscriptions.concerned(event, env, at, sender)

    def relabel(
        self, event: Event, by: Relabelling, held: Iterable[Which], own: Mapping[Filter, Filter]
    ) -> list[Effect]:
        """Shift what these want, and our own, where a relabelling concerns it.

        All before has been told. Neighbours on its way have done so by themselves; to others it
        makes no difference.
        """
        moved = dict(own)
        said: list[Effect] = []
        for owner, key in held:
            before = self.subscriptions.filter(owner, key)
            after = None if before is None else relabelled(before, event, by)
            if before is not None and after is not None:
                self.subscriptions.want(owner, key, after)
                moved[before] = after
        for out, news in self.subscriptions.settle().items():
            self._spoken[out].rename(news.filters.added, news.filters.removed, moved)
            if out == MESH:
                said += self._say_home(None, news) if news else []
            elif news:
                said.append(Send(out, self._news(out, news)))
        return said

    def advance(self, at: int, env: Mapping[str, Value]) -> None:
        """The environment is about to change: until now it was this."""
        self.subscriptions.advance(at, env)

    def passed(self, time: int) -> None:
        """An event has come here that was generated then."""
        if time > self.latest:
            self.latest = time
            if self.roles:
                self._put(("latest",), time)

    def _check(self) -> None:
        self.subscriptions._check()
        self.offers._check()
        self.homes._check()
        meshed = {link for link, role in self.roles.items() if role is Role.MESH}
        assert meshed == set(self.homes.links())
