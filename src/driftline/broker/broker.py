"""One broker of an overlay: what follows from each message, request and event.

It is what its neighbours are told and want (`links`), the subscriptions of its own parties
(`edge`), the events on their way, and a journal of all that must survive it. It never waits, reads
no clock and draws no chance: messages in, effects out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Sequence as Series
from functools import partial
from itertools import chain

from driftline.broker.access import Access
from driftline.broker.advertising import Advertising
from driftline.broker.asking import Asking
from driftline.broker.carrying import Carrying
from driftline.broker.edge import (
    Edge,
)
from driftline.broker.effects import Effect, Key, Poll, Reply, Send, Store
from driftline.broker.environment import Environment
from driftline.broker.links import LOCAL, Links, Role
from driftline.broker.outbox import Outbox
from driftline.broker.passing import Passing, entered, sound
from driftline.broker.publishing import Publishing
from driftline.broker.requests import (
    Advertise,
    Bury,
    Cancel,
    Confirm,
    Declare,
    Delete,
    Discard,
    Interested,
    Leave,
    Observed,
    Publish,
    PublishMany,
    Redirect,
    Renew,
    Request,
    Resume,
    Revive,
    Subscribe,
    Suspend,
    Told,
    Unadvertise,
    Unsubscribe,
    Watch,
)
from driftline.broker.resyncs import Resyncs
from driftline.broker.settings import Settings
from driftline.broker.subscribing import Subscribing
from driftline.broker.tables import FIND, HOME_OF, JOIN, Tables
from driftline.broker.waves import Waves
from driftline.errors import InvalidValue, NotAdvertised, NotSupported, TableError
from driftline.model.advertisement import Advertisement
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.message import (
    EVENTS,
    Answer,
    Ask,
    Control,
    Home,
    Interest,
    Neighbours,
    Offer,
    Parcel,
    Resync,
)
from driftline.model.value import show
from driftline.stateful.rows.change import is_derived
from driftline.wire.codec import encode_control
from driftline.wire.events import decode_batch

COUNTED_BITS = 36
INCARNATIONS = 1 << 27
"""A broker may start so often: its numbers are to fit 63 bits."""
MOMENTS = 1 << 21
"""Two lives of one incarnation, if there is no journal to count them, are told apart so finely."""
MOMENT_SHIFT = 15
_LISTENS = -1
"""In keys of interest, where subscriptions have a step: an id may be a table's name."""


class Broker:
    """Messages in, effects out. `incarnation` is higher each time a broker of this name starts, or
    it is the same and the `moment` is higher.
    """

    def __init__(
        self,
        name: str,
        incarnation: int = 1,
        settings: Settings | None = None,
        stored: Mapping[Key, object] | None = None,
        moment: int = 0,
    ) -> None:
        if not 0 < incarnation < INCARNATIONS:
            raise InvalidValue(
                "incarnation", f"a number from 1 to {INCARNATIONS - 1}", show(incarnation)
            )
        assert 0 <= moment < MOMENTS
        self.name = name
        self.settings = settings or Settings()
        self._counter = incarnation << COUNTED_BITS | moment << MOMENT_SHIFT
        self._puts: dict[Key, object] = {}
        put = self._puts.__setitem__ if self.settings.stores else _put_nowhere
        self.edge = Edge(self.settings, put, self._count)
        self.environment = Environment(put)
        self.links = Links(name, self.settings, put, self._count)
        self.tables = Tables(put, self._count, self.settings)
        self.asking = Asking(self, self.edge, self.tables, alone=self.settings.alone)
        # A broker that has lost what it knew must say so to whoever it meets.
        self._forgetful = incarnation > 1 and not stored and not self.settings.alone
        self._resyncs = Resyncs(put)
        self._cut = False
        self.advertising = Advertising(
            self.settings, self.links, partial(_put_durable, self.edge, put)
        )
        self._subscribing = Subscribing(self.settings, self.edge, self.links)
        self._waves = Waves()
        self.outbox = Outbox(put, self._count, self.settings.outbox, self.settings.outbox_bytes)
        self.passing = Passing(
            self,
            self.settings,
            self.edge,
            self.links,
            self.tables,
            self.environment,
            self.outbox,
            self.asking,
            self._subscribing,
            put,
        )
        self.publishing = Publishing(self, put)
        self.carrying = Carrying(self, self.publishing)
        if stored:
            self._restore(stored)

    def _restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life has kept, as if it had only slept."""
        self.tables.restore(stored)
        self.edge.restore(stored)
        self.environment.restore(stored)
        if any(key[0] == "link" for key in stored):
            self._subscribing.route()
        self.advertising.restore(stored)
        self.asking.keep(self.tables.home.tables)
        for key, _value in stored.items():
            if key[0] == "cut":
                self._cut = True
        self.publishing.restore(stored)
        self.passing.restore(stored)
        self.outbox.restore(stored)
        self._resyncs.restore(stored)
        self.links.restore(stored)
        self._puts.clear()

    def begin(self, now: int) -> list[Effect]:
        """What to do first after a crash: tell parties again what they may not have had."""
        if self._forgetful:
            self._resync()
        for type in self.tables.forgot:
            self._resync(type)
        told = self.edge.parties.again()
        # What followers of events were told was in memory only.
        views = self.edge.views
        told += self.edge.gap(filter(views.forgot, views), self.name, self._count())
        return self._out(self._settled([*told], now))

    def _settled(self, said: list[Effect], now: int) -> list[Effect]:
        """The effects, with all that follows for tables and views."""
        mine = [one for one in said if isinstance(one, Reply) and one.party == LOCAL]
        changed = self.edge.views.changed
        if not (mine or changed or self.asking.due):
            return said
        done = [one for one in said if not (isinstance(one, Reply) and one.party == LOCAL)]
        while mine or self.asking.due or self.edge.views.changed:
            more = [one for reply in mine for one in self.asking.replied(reply, now)]
            more += self.asking.begin(self.environment.values, now)
            self._subscribing.readdress()
            more += self.links.tell()
            mine = [one for one in more if isinstance(one, Reply) and one.party == LOCAL]
            done += (one for one in more if not (isinstance(one, Reply) and one.party == LOCAL))
        return done

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

    def roles(self) -> dict[str, Role]:
        """The links, and what each is."""
        return dict(self.links.roles)

    def connect(self, link: str, role: Role, now: int) -> list[Effect]:
        """A session on a link has begun, the first or another: say everything on it."""
        self._subscribing.route()
        known = self.links.roles.get(link)
        if known is not None and known is not role:
            # Another link under its name: what was on its way is lost.
            self.outbox.forget(link)
            self._cut = self._puts["cut",] = True
        said = self.links.connect(link, role)
        if self.outbox.is_short(link):
            # Those behind it, and nobody else: it is not kept for others to hear of.
            said.append(Send(link, Resync(self.name, self._count(), EVENTS)))
        said += self.outbox.again(link)
        self.edge.views.retry()
        if known is not role and self._cut:
            # What was on its way before is lost to those on either side.
            said += self._resync(EVENTS)
        elif known is None and role is Role.MESH:
            said += self._overtaken()
        said += self._resyncs.again(link, role, new=known is None)
        # Behind all that is to be in effect.
        said += self._waves.again(link, now)
        return self._out(self._settled(said, now))

    def disconnect(self, link: str, now: int) -> list[Effect]:
        """A link is gone for good: whatever came by it or went there is undone."""
        self.outbox.forget(link)
        self._cut = self._puts["cut",] = True
        meshed = self.links.roles[link] is Role.MESH
        said = self.links.disconnect(link)
        return self._out(self._settled([*said, *(self._overtaken() if meshed else ())], now))

    def _resync(self, table: str = "") -> list[Effect]:
        """Let everybody know that what messages change is to be asked for anew."""
        return self._resynced(Resync(self.name, self._count(), table), "")

    def _resynced(self, said: Resync, sender: str) -> list[Effect]:
        if not self._resyncs.hear(said):
            return []
        further = [Send(link, said) for link in self.links.roles if link != sender]
        return [*self._missing(said.table), *further]

    def _missing(self, what: str) -> list[Effect]:
        """Something may be missing: of a table, of all of them, or of events too."""
        told = self.edge.missing(self.name, self._count()) if what == EVENTS else []
        self.edge.views.again(None if what in ("", EVENTS) else what)
        return [*told]

    def expect(self, link: str, role: Role | None) -> None:
        """A link is configured, or no longer (None): whoever wants to be sure waits for it too."""
        if role is not None:
            self._subscribing.route()
        self.links.expect(link, role)

    def delivered(self, link: str, position: int) -> list[Effect]:
        """A neighbour has all that was sent to it up to a position."""
        self.outbox.delivered(link, position)
        return self._out([])

    # Messages and requests

    def handle(self, message: Control | Request, sender: str, now: int) -> list[Effect]:
        """What follows from one message of a neighbour, or one request of a party."""
        if isinstance(message, Publish):
            said = self.publishing.one(message, sender, now)
        elif isinstance(message, PublishMany):
            said = self.publishing.many(message, sender, now)
        elif isinstance(message, Ask):
            said = self._asked(message, sender, now)
        elif isinstance(message, Answer):
            said = self._waves.answer(message, sender, now)
        elif isinstance(message, Neighbours):
            said = self._rerouted(message, sender)
        elif isinstance(message, Interest | Offer | Home):
            said = self.links.hear(message, sender)
        elif isinstance(message, Resync):
            # What we have said comes back to us from those who were told.
            said = [] if message.origin == self.name else self._resynced(message, sender)
        else:
            said = self._request(message, sender, now)
        return self._out(self._settled(said, now))

    def _rerouted(self, said: Neighbours, sender: str) -> list[Effect]:
        """A mesh may have other links: what went another way before is overtaken, and dropped."""
        known = self.links.homes.links_of(said.origin)
        effects = self.links.hear(said, sender)
        if self.links.homes.links_of(said.origin) != known:
            effects += self._overtaken()
        return effects

    def _overtaken(self) -> list[Effect]:
        """Ways in the mesh have changed: those behind it are told, all members hear of it."""
        self.edge.views.again(None)
        resync = Resync(self.name, self._count())
        self._resyncs.hear(resync, meshed=True)
        behind = (link for link, role in self.links.roles.items() if role is not Role.MESH)
        return [Send(link, resync) for link in behind]

    def _asked(self, asked: Ask, sender: str, now: int) -> list[Effect]:
        about = "" if asked.says is None else asked.says.type or ""
        if is_derived(about):
            table, asker = about.removeprefix(HOME_OF), asked.token.rpartition(" ")[0]
            claimed = table != about and self.asking.has(table, asker)
            if claimed or about.removeprefix(FIND) in self.tables:
                return [Send(sender, Answer(asked.token, interested=True))]
            return self._waves.ask(asked, sender, self.links.everybody(), now)
        here = None
        if asked.says is not None and not self._waves.has(asked.token):
            wanted = self._wants(asked.says, sender, now)
            if wanted is True:
                return [Send(sender, Answer(asked.token, interested=True))]
            here = wanted or None
        return self._waves.ask(asked, sender, self.links.listeners(), now, here)

    def _wants(self, says: Advertisement, asker: str, now: int) -> bool | Iterator[bool]:
        """Does anybody here, or behind a link that says what it wants, want some of it? If nobody
        does of those who could be looked at now, the rest of them.
        """
        here = chain(self.edge.wants(says), self.links.wants(says, asker))
        wanted = self._waves.look(here, now)
        return here if wanted is None else wanted

    def wake(self, now: int) -> list[Effect]:
        """Time has passed."""
        said = self._waves.wake(now)
        self.asking.wake(now)
        self._subscribing.wake(now)
        polls = [Poll(name) for name in self.environment.due(now)]
        return self._out(self._settled([*said, *self.links.tell(), *polls], now))

    def wake_at(self) -> int:
        """When `wake` has something to do."""
        parts = (self._waves, self._subscribing, self.environment, self.asking)
        return min(part.wake_at() for part in parts)

    # What parties ask

    def _request(self, asked: Request, party: str, now: int) -> list[Effect]:
        said: list[Effect] = []
        try:
            if isinstance(asked, Subscribe):
                said += self._subscribing.subscribe(asked, party, now)
            elif isinstance(asked, Cancel | Unsubscribe):
                said += self._subscribing.unsubscribe(asked, party)
            elif isinstance(asked, Advertise):
                said += self.advertising.advertise(asked, party)
            elif isinstance(asked, Unadvertise):
                said += self.advertising.unadvertise(asked, party)
            elif isinstance(asked, Confirm | Interested):
                return self._wave(asked, party, now)
            elif isinstance(asked, Declare):
                return self.asking.declare(asked, party, now)
            elif isinstance(asked, Delete):
                return self.asking.delete(asked, party, now)
            elif isinstance(asked, Observed):
                self._observe(asked, now)
            elif isinstance(asked, Watch):
                self.environment.poll(asked.name, asked.every, now)
        except (InvalidValue, NotAdvertised, NotSupported, TableError) as problem:
            return [Reply(party, asked.request, problem)]
        if isinstance(asked, Told):
            self.edge.parties.had(party, asked.number)
            return []
        if isinstance(asked, Suspend):
            self.edge.parties.suspend(party)
        elif isinstance(asked, Resume):
            said += self.edge.resume(party)
        elif isinstance(asked, Redirect):
            said += self.edge.parties.redirect(party, asked.handler)
        elif isinstance(asked, Bury | Revive | Discard | Renew):
            self.edge.parties.attend(party, asked)
        elif isinstance(asked, Leave):
            said += self._leave(party)
        return [*said, Reply(party, asked.request)]

    def _leave(self, party: str) -> list[Effect]:
        """A party is gone for good: whatever it asked for and said is undone."""
        said = self._subscribing.leave(party) + self.advertising.leave(party)
        self._waves.leave(party)
        self.edge.parties.leave(party)
        return said

    def enter(self, party: str, *, durable: bool, generation: int = 0) -> None:
        """There is a party; of one that is not durable nothing survives a crash."""
        self.edge.parties.enter(
            party, durable=durable, born=self.last_number, generation=generation
        )

    def _wave(self, asked: Confirm | Interested, party: str, now: int) -> list[Effect]:
        says = here = None
        if isinstance(asked, Interested):
            says = asked.says
            wanted = self._wants(says, "", now)
            if wanted is True:
                return [Reply(party, asked.request, interested=True)]
            here = wanted or None
        links = self.links.listeners()
        return self._ask(party, asked.request, asked.within, now, says, links, here)

    def _ask(
        self,
        party: str,
        request: str,
        within: int,
        now: int,
        says: Advertisement | None,
        links: Iterable[str],
        here: Iterator[bool] | None = None,
    ) -> list[Effect]:
        """Put a question to everybody behind these links, for a party; `here`: see `Waves`."""
        ask = Ask(f"{self.name} {self._count()}", within, says)
        encode_control(ask)
        again = None
        if (says is None or says == JOIN) and self.settings.advertised:
            again = Ask(f"{self.name} {self._count()}", within, says)
        return self._waves.begin(ask, party, request, links, now, again, here)

    def _observe(self, asked: Observed, now: int) -> None:
        before = self.environment.values
        self.environment.observe(asked.name, asked.value)
        self.edge.advance(now, before)
        self.links.advance(now, before)

    def unknown(self) -> dict[str, int]:
        """Variables that conditions here read and nobody has given a value, and how many do."""
        own = {} if self.settings.alone else self.environment.own(0)
        known = {**self.environment.values, **own}
        return {name: some for name, some in self.edge.reads().items() if name not in known}

    # For tables and views

    def say(self, event: Event, now: int) -> list[Effect]:
        """See `Outward`."""
        return self.passing.parcels((Parcel(self.name, self._count(), event),), None, now)

    def wave(self, request: str, within: int, now: int, says: Advertisement) -> list[Effect]:
        """See `Outward`."""
        # Behind all that is to be in effect.
        told = self.links.tell()
        return [*told, *self._ask(LOCAL, request, within, now, says, self.links.everybody())]

    def listen(self, key: str, wanted: Filter | None) -> None:
        """See `Outward`."""
        if wanted is None:
            self.links.subscriptions.drop(LOCAL, (key, _LISTENS))
        else:
            self.links.subscriptions.let(LOCAL, (key, _LISTENS), wanted)

    def may_say(self, type: str, said: bool) -> bool:
        """See `Outward`."""
        if not self.settings.advertised:
            return False
        known = ("", type) in self.links.offers.keys(LOCAL)
        if known is not said:
            says = Advertisement(type, anything=True) if said else None
            self.links.offer(LOCAL, ("", type), says)
        return said and not known

    def resync(self, table: str) -> list[Effect]:
        """See `Outward`."""
        # Behind what the table's home wants.
        return [*self.links.tell(), *self._resync(table)]

    def at(self) -> int:
        """See `Outward`."""
        return self._count()

    @property
    def access(self) -> Access:
        """Who may do what."""
        return self.edge.access

    @access.setter
    def access(self, access: Access) -> None:
        self.edge.access = access

    @property
    def last_number(self) -> int:
        """The highest number that was ever given."""
        return self._counter

    def reserve(self, count: int) -> int:
        """The first of so many numbers, above all that were given."""
        self._counter += count
        return self._counter - count + 1

    def delete(self, table: str, key: object, now: int) -> tuple[Event | None, list[Effect]]:
        """Remove a row of a table that is kept here: what it was, and what follows."""
        before, messages = self.tables.delete(table, key, now)
        return before, self._settled(self.tell_of(table, messages, now), now)

    def lost(self, ids: Iterable[str], now: int) -> list[Effect]:
        """Somebody could not be told all that these views had to tell."""
        self.edge.views.lost(ids)
        return self._settled([], now)

    def missed(self, ids: Iterable[str], now: int) -> list[Effect]:
        """The same of a broker among others: views among these join again."""
        return self._out(self.lost(ids, now))

    def tell_of(self, table: str, messages: list[Event], now: int) -> list[Effect]:
        """See `Outward`."""
        return self.passing.tell_of(table, messages, now)

    # Events

    def publish(self, event: Event, party: str, now: int) -> list[Effect]:
        """What follows from an event that enters here; raises if it must not, or cannot travel."""
        return self.publishing.publish(event, party, now)

    def handle_batch(self, batch: bytes, sender: str, now: int) -> list[Effect]:
        """What follows from a batch of encoded events that a neighbour sent."""
        parcels = (entered(parcel, now) for parcel in decode_batch(batch) if sound(parcel))
        return self._out(self._settled(self.passing.parcels(parcels, sender, now), now))

    def handle_bundle(self, bundle: bytes, sender: str, now: int) -> list[Effect]:
        """What follows from a bundle of events that a neighbour sent."""
        return self._out(self._settled(self.carrying.take(bundle, sender, now), now))

    def _check(self) -> None:
        """Assert that everything agrees with what follows from the interfaces' interest."""
        self.edge._check()
        self.links._check()
        self.advertising._check()
        self.tables._check()
        self.asking._check()
        self.outbox._check()
        self.publishing.once._check()
        assert set(self.outbox.links()) <= self.links.roles.keys()


def _put_durable(edge: Edge, put: Callable[[Key, object], None], key: Key, value: object) -> None:
    """Journal what is said of a party, the second part of the key, if it is durable."""
    if edge.parties.is_durable(key[1]):
        put(key, value)


def _put_nowhere(key: Key, value: object) -> None:
    """What is not stored need not be kept until it is."""
