"""Everything in one process, synchronously: the embedded default.

    >>> import driftline as dl
    >>> engine = dl.Engine(clock=dl.ManualClock())
    >>> s = engine.subscribe("SELECT * FROM quote WHERE firm = 'IBM' AND price < :limit",
    ...                      params={"limit": 10})
    >>> engine.publish(dl.Event("quote", {"firm": "IBM", "price": 9.5}))
    1
    >>> [(n.kind, n.values["price"], n.epoch) for n in s.pending()]
    [('event', 9.5, 0)]
    >>> s.set(limit=9)
    1
    >>> engine.publish(dl.Event("quote", {"firm": "IBM", "price": 9.5}))
    0

An operation that is refused raises and changes nothing. Everything is told in the order in which
it was published; each subscription is told of an event at most once.

The engine is an overlay of one broker whose parties are in the same process: what it does with
events is what every broker does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from driftline.batches import batch_of, entering, events_from
from driftline.broker.broker import Broker
from driftline.broker.effects import Deliver, Effect, Poll, Reply
from driftline.broker.environment import check_variable
from driftline.broker.explaining import explained
from driftline.broker.requests import (
    Advertise,
    Cancel,
    Declare,
    Observed,
    Request,
    Subscribe,
    Unadvertise,
    Watch,
)
from driftline.broker.settings import Settings
from driftline.broker.stating import check_executable, stated
from driftline.clock import Clock, SystemClock
from driftline.crowding import Crowding
from driftline.doors import (
    Wanted,
    admit_advertisement,
    admit_event,
    admit_statement,
    check_followed,
    check_handler,
    check_party,
    check_provider,
    microseconds,
)
from driftline.errors import (
    DriftlineError,
    InvalidValue,
    NotSupported,
    ParameterError,
)
from driftline.handle import Handle, OnChange
from driftline.matching.matcher import Matcher
from driftline.model.advertisement import Advertisement
from driftline.model.covering import cancels
from driftline.model.event import Event
from driftline.model.explanation import Explanation
from driftline.model.notification import Notification, NotificationKind
from driftline.model.pattern import Pattern
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.table import TableDeclaration
from driftline.model.value import Value, admit, items_of, show
from driftline.model.view import View, ViewKind
from driftline.moving.evolving.choice import Chosen
from driftline.outlets import Handler, Outlets
from driftline.shifts import Shifts
from driftline.stateful.news import News
from driftline.together import Together

if TYPE_CHECKING:
    from driftline.crowd import Crowd

Provider: TypeAlias = Callable[[], object]
Listener: TypeAlias = Callable[[int, Handle, Notification], None]


class Engine:
    """Publish, subscribe, tables, environment and advertisements, in place.

    `clock` defaults to the machine's. With `advertised=True` the advertisement-based semantics
    holds [SIENA §3.5]: a party may publish only what it advertised. `matcher` finds the plain
    filters: "auto", "index", "poset", "scan" (see `matching.choice`) or one of your own, empty.
    `evolving` is how those are found that move with time and the environment (see
    `moving.evolving.ways`): "adaptive", "lazy", "cached" or "versioned", with versions good for
    `interval` seconds; the answer is the same.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        advertised: bool = False,
        matcher: str | Matcher = "auto",
        evolving: str = "adaptive",
        interval: float = 1.0,
    ) -> None:
        self._clock = SystemClock() if clock is None else clock
        settings = Settings(
            matcher=matcher,
            advertised=advertised,
            evolving=evolving,
            interval=microseconds(interval, "interval"),
            stores=False,
            alone=True,
        )
        self._broker = Broker("engine", settings=settings)
        self._handles: dict[str, Handle] = {}
        # The event that is being published: what whoever is told meanwhile is told of.
        self._cause: Event | None = None
        # Its place among many, and who listens to what they tell.
        self._place = 0
        self._listener: Listener | None = None
        self._ids = count(1)
        self._outlets = Outlets()
        self._shifts = Shifts(self._broker, self._handles, self._tell)
        self._crowding = Crowding(self._broker)
        self._together = Together(
            self._broker, self._crowding, self._outlets, self._deliver_because
        )
        self._providers: dict[str, Provider] = {}
        self._failed: dict[str, str] = {}

    # Subscriptions

    def subscribe(
        self,
        wanted: Wanted,
        params: Mapping[str, object] | None = None,
        *,
        party: str = "",
        rows: bool = False,
        on_change: OnChange | str = OnChange.SILENT,
    ) -> Handle:
        """Ask to be told; `rows=True` over a table asks for its live set of matching rows."""
        statement = admit_statement(wanted)
        if on_change not in tuple(OnChange):
            raise InvalidValue("on_change", " or ".join(OnChange), show(on_change))
        on_change = OnChange(on_change)
        check_party(party)
        if on_change is OnChange.FOLLOW:
            check_followed(statement, rows)
        self._pass_time()
        now = self._clock.now()
        # What moves over last events tells of them too, so there must be some that are kept.
        if rows or on_change is not OnChange.SILENT:
            self._shifts.table_of(statement)
        if rows:
            assert isinstance(statement, Subscription)
            statement = View.of_rows(statement)
            check_executable(statement)
        statement = stated(statement)
        if isinstance(statement, View) and statement.of is not ViewKind.MOVED:
            for name in statement.tables:
                self._broker.tables.get(name)
        standing = Standing.of(statement, params, now)
        handle = Handle(self, f"s{next(self._ids)}", party, standing, on_change)
        self._handles[handle.id] = handle
        try:
            self._perform(self._broker.handle(Subscribe("", handle.id, standing), party, now))
        except DriftlineError:
            del self._handles[handle.id]
            raise
        self._shifts.follow(handle, now)
        self._outlets.call()
        return handle

    def crowd(self, wanted: Wanted, params: Mapping[str, object] | None = None) -> Crowd:
        """Follow `moved(value, by => :r)` of one row for a great many, each with its own radius.

        The one parameter is a column of radii, one for each member; more can come later.
        """
        now = self._now()
        crowd = self._crowding.gather(self, f"c{next(self._ids)}", wanted, now)
        try:
            if params is not None:
                crowd.add(**{str(name): radii for name, radii in items_of(params, "parameters")})
        except DriftlineError:
            crowd.cancel()
            raise
        return crowd

    def _disperse(self, crowd: Crowd) -> None:
        self._crowding.disperse(crowd)

    def unsubscribe(
        self, party: str, wanted: Wanted, params: Mapping[str, object] | None = None
    ) -> int:
        """Cancel all of the party's subscriptions that this one covers; how many there were.

        It never narrows one [SIENA §3.7]. A text with unbound parameters covers nothing that
        depends on them: give `params`, or use the handle's own `cancel`.
        """
        general = admit_statement(wanted)
        check_party(party)
        given = {str(name) for name, _ in items_of(params, "parameters")}
        extra = given - general.variables().parameters
        if extra:
            raise ParameterError((), tuple(sorted(extra)), ())
        covered = [
            handle
            for handle in self._handles.values()
            if handle.party == party and cancels(general, handle.statement, params, handle.params)
        ]
        for handle in covered:
            self._cancel(handle)
        return len(covered)

    def _cancel(self, handle: Handle) -> None:
        handle.active = False
        self._handles.pop(handle.id, None)
        self._shifts.forget(handle.id)
        self._ask(handle.party, Cancel("", handle.id))

    def _move(self, handle: Handle, standing: Standing) -> None:
        if handle.of_rows and standing.statement != handle._standing.statement:
            why = "the condition of a live set of rows stays; its parameters can move"
            raise NotSupported(str(standing.statement), why)
        standing = replace(standing, statement=stated(standing.statement))
        check_executable(standing.statement, standing.params)
        now = self._clock.now()
        before = self._shifts.before(handle, now)
        handle._standing = standing
        asked = Subscribe("", handle.id, standing, quietly=handle.of_rows)
        self._perform(self._broker.handle(asked, handle.party, now))
        self._shifts.tell(handle, before, now)
        self._outlets.call()

    def _explain(self, handle: Handle, event: Event) -> Explanation:
        event = admit_event(event).entering(self._clock.now())
        return explained(self._broker, handle.id, event, handle._standing)

    # Parties

    def suspend(self, party: str) -> None:
        """Tell a party nothing for now; the last thousand of what comes are kept."""
        check_party(party)
        self._outlets.suspend(party)

    def resume(self, party: str) -> None:
        """Tell a party what was kept for it, and go on. What was forgotten is told as a gap."""
        check_party(party)
        lost = [handle.id for handle in self._outlets.resume(party)]
        # A view is told all of it behind a gap.
        self._perform(self._broker.lost(lost, self._clock.now()))
        self._outlets.call()

    def redirect(self, party: str, handler: Handler | None) -> None:
        """Tell a party through a function from now on, or through its handles again (None).

        It is called with the handle and the notification, when the operation that led to it is
        done; so it may publish, subscribe and cancel. If it raises, the others are told first.
        """
        check_party(party)
        check_handler(handler)
        self._outlets.redirect(party, handler)

    # The broker

    def _ask(self, party: str, asked: Request) -> int:
        """Ask the broker, and do what follows; how many notifications that made."""
        told = self._perform(self._broker.handle(asked, party, self._clock.now()))
        self._outlets.call()
        return told

    def _perform(self, effects: list[Effect]) -> int:
        told = 0
        for effect in effects:
            if isinstance(effect, Deliver):
                told += self._deliver(effect)
            elif isinstance(effect, Reply) and effect.refused is not None:
                raise effect.refused
        return told

    def _deliver(self, deliver: Deliver) -> int:
        event, env, told = deliver.event, self._env, 0
        for id in deliver.gaps:
            told += self._tell(self._handles[id], NotificationKind.GAP, event, {})
        for id in deliver.subscriptions:
            handle = self._handles[id]
            if id in deliver.news:
                told += self._tell_news(handle, deliver.news[id], event)
                continue
            scope = handle._standing.scope(event, env)
            statement = handle.statement
            if isinstance(statement, Pattern):
                # The columns are those of the last step, whose event completed the sequence.
                values, found = statement.steps[-1].select(scope), deliver.sequences[id]
                told += self._tell(handle, NotificationKind.PATTERN, event, values, events=found)
            else:
                assert isinstance(statement, Subscription)
                values = statement.select(scope)
                told += self._tell(handle, NotificationKind.EVENT, event, values)
        return told

    def _deliver_because(self, deliver: Deliver, cause: Event, place: int) -> int:
        """What a message tells that was made of a row."""
        self._cause, self._place = cause, place
        try:
            return self._deliver(deliver)
        finally:
            self._cause = None

    def _tell_news(self, handle: Handle, told: tuple[News, ...], message: Event) -> int:
        """Tell a view what a message, or a snapshot, came to."""
        snapshots = [news for news in told if news.kind is NotificationKind.SNAPSHOT]
        for news in told:
            key = news.keys[0] if len(news.keys) == 1 else news.keys or None
            event = self._cause
            if news.kind is NotificationKind.SNAPSHOT and len(news.keys) == 1:
                event = self._broker.tables.get(handle.source).get(news.keys[0])
            self._tell(
                handle,
                news.kind,
                event,
                news.values,
                old=news.old,
                key=key,
                last=bool(snapshots) and news is snapshots[-1],
                at=message.stamp,
            )
        return len(told)

    @property
    def _env(self) -> Mapping[str, Value]:
        return self._broker.environment.values

    # Events

    def publish(self, event: Event, *, party: str = "") -> int:
        """Tell everyone who is interested; how many notifications that made.

        An event of a table's type is an upsert of its row; a row that the table refuses raises
        `TableError` and nobody is told anything. The event is stamped with the clock, unless it
        carries the stamp of an earlier entry: so a replay gives the same answers.
        """
        check_party(party)
        event = admit_event(event)
        self._pass_time()
        now = self._clock.now()
        self._cause = event = event.entering(now)
        try:
            told = self._perform(self._broker.publish(event, party, now))
        finally:
            self._cause = None
        if event.type in self._broker.tables:
            told += self._crowding.tell(event.type, event, now)
            # Since it was looked at, which may be long ago: a replay keeps its stamps.
            key = event.attributes[self._broker.tables.get(event.type).declaration.key]
            self._shifts.row_changed(event.type, key, event, event.stamp or 0)
        self._outlets.call()
        return told

    def publish_many(self, type: str, columns: object, *, party: str = "") -> int:
        """Publish one event of a type for each row, in order; how many notifications that made.

        `columns` are arrays or lists by name, or an Arrow record batch; nulls are missing. As one
        after the other, but if one is refused none is published. Where crowds and MIN and MAX over
        ranges are all that a table concerns they are told in bulk, and all rows enter at one
        instant.
        """
        check_party(party)
        batch, now = batch_of(type, columns), self._now()
        if self._together.can_take(type):
            told = self._together.take(type, entering(type, batch, now), now)
            if told is not None:
                return told
        events = events_from(type, batch)
        for event in events:
            self._broker.tables.admit(event)
            self._broker.advertising.check(event.entering(now), party)
        return sum(self.publish(event, party=party) for event in events)

    def hears_at_once(self, type: str) -> bool:
        """Do rows of a table concern nobody who must be told of one after the other?"""
        return self._together.can_take(type, is_heard=True)

    def publish_heard(self, type: str, columns: object, listener: Listener) -> int | None:
        """Publish rows in bulk to a listener, who is called with the place of the row, the handle
        and the notification; crowds keep what they are told. How many notifications that made.

        None, and nothing has happened, where rows must be published one after the other.
        """
        batch, now = batch_of(type, columns), self._now()
        if not self.hears_at_once(type):
            return None
        self._listener = listener
        try:
            return self._together.take(type, entering(type, batch, now), now)
        finally:
            self._listener = None

    def _tell(
        self,
        handle: Handle,
        kind: NotificationKind,
        event: Event | None,
        values: dict[str, Value | None],
        *,
        events: tuple[Event, ...] = (),
        old: dict[str, Value | None] | None = None,
        key: Value | tuple[Value, ...] | None = None,
        last: bool = False,
        at: int | None = None,
    ) -> int:
        # A snapshot is told when it is taken, whenever its rows were set.
        cause = None if kind is NotificationKind.SNAPSHOT else event
        time = at
        if time is None:
            time = self._clock.now() if cause is None or cause.entered is None else cause.entered
        notification = Notification(kind, values, time, handle.epoch, event, events, old, key, last)
        if self._listener is None:
            self._outlets.put(handle, notification)
        else:
            self._listener(self._place, handle, notification)
        return 1

    # Tables

    def table(self, name: str, key: str, ticks: Mapping[str, str | int] | None = None) -> None:
        """Declare that events of this type are upserts of a table. Saying it twice is fine."""
        self._ask("", Declare("", TableDeclaration.of(name, key, ticks)))

    def delete(self, name: str, key: object) -> bool:
        """Remove a row; was there one?"""
        declaration = self._broker.tables.get(name).declaration
        self._pass_time()
        row, effects = self._broker.delete(name, key, self._clock.now())
        if row is None:
            return False
        self._perform(effects)
        self._crowding.tell(name, None, self._clock.now())
        self._shifts.row_changed(name, row.attributes[declaration.key], None, 0)
        self._outlets.call()
        return True

    def rows(self, name: str) -> list[Event]:
        """The rows of a table now, each as the event that last set it."""
        return [row for _, row in self._broker.tables.get(name).items()]

    # Time

    def wake(self) -> int:
        """Do what time alone makes due by now; how many notifications that made.

        Rows that have entered or left a moving set are told as of when they did, and variables are
        polled. Every operation does it first; between them, call it when `next_wake` says.
        """
        told = self._pass_time()
        self._outlets.call()
        return told

    def _pass_time(self) -> int:
        """What `wake` does, but for calling handlers: the operation at hand comes first."""
        now = self._clock.now()
        told = self._shifts.pass_time(now)
        # Only then: what providers say now was not so before.
        return told + self._poll(now) if self._providers else told

    def next_wake(self) -> int | None:
        """When (microseconds since 1970) `wake` will have something to do; None: not by itself."""
        times = [self._shifts.next_at()]
        if self._providers:
            times.append(self._broker.wake_at())
        return min((at for at in times if at is not None), default=None)

    def _now(self) -> int:
        self._pass_time()
        return self._clock.now()

    # Environment

    def set_env(self, name: str, value: object) -> None:
        """Set a variable of the environment; None makes it unknown again."""
        self._pass_time()
        self._observe(name, value)
        self._outlets.call()

    def provide(self, name: str, provider: Provider | None, every: float = 1.0) -> None:
        """Ask a function for a variable, now and then every so many seconds; None: no longer.

        There is no thread: it is asked before whatever is done next (see `wake`). While it raises,
        or gives nothing, the variable is unknown; `unknown` says why.
        """
        asked = None if provider is None else microseconds(every, "every")
        check_provider(provider)
        self._ask("", Watch(name, asked))
        if provider is None:
            self._providers.pop(name, None)
            self._failed.pop(name, None)
            return
        self._providers[name] = provider
        self.wake()

    def _poll(self, now: int) -> int:
        told = 0
        for effect in self._broker.wake(now):
            if not isinstance(effect, Poll):
                continue
            self._failed.pop(effect.name, None)
            try:
                told += self._observe(effect.name, self._providers[effect.name]())
            except Exception as problem:  # Whatever a provider may raise, events go on.
                self._failed[effect.name] = f"{type(problem).__name__}: {problem}"
                told += self._observe(effect.name, None)
        return told

    def unknown(self) -> dict[str, str]:
        """Variables of the environment that are read and have no value, and why not.

        What reads one of them is never true.
        """
        found = self._broker.unknown()
        views = self._broker.edge.views
        for id in views:
            # What a view asks for is counted already, as far as it reads any.
            counted = views.interest(id).statement.variables().environment
            read = self._handles[id].statement.variables().environment
            for name in read - counted - self._env.keys():
                found[name] = found.get(name, 0) + 1
        return {
            name: self._failed.get(name, "nobody has given it a value") + f" ({some} conditions)"
            for name, some in found.items()
        }

    def ways(self) -> list[Chosen]:
        """How the subscriptions are found that move with time and the environment, and why so."""
        return self._broker.edge.ways()

    def _observe(self, name: str, value: object) -> int:
        check_variable(name)
        admitted = None if value is None else admit(value, f"environment variable {name}")
        following = [
            handle
            for handle in self._handles.values()
            if handle.on_change is not OnChange.SILENT
            and name in handle.statement.variables().environment
        ]
        now = self._clock.now()
        before = {handle.id: self._shifts.before(handle, now) for handle in following}
        self._perform(self._broker.handle(Observed(name, admitted), "", now))
        return sum(self._shifts.tell(handle, before[handle.id], now) for handle in following)

    @property
    def env(self) -> dict[str, Value]:
        """The environment now."""
        return dict(self._env)

    # Advertisements

    def advertise(self, says: str | Advertisement, *, party: str = "") -> Advertisement:
        """Say what the party will publish."""
        read = admit_advertisement(says)
        check_party(party)
        self._ask(party, Advertise("", f"a{next(self._ids)}", read))
        return read

    def unadvertise(self, party: str, says: str | Advertisement) -> int:
        """Take back all of the party's advertisements that this one covers; how many."""
        general = admit_advertisement(says)
        before = len(self._broker.advertising.of(party))
        self._ask(party, Unadvertise("", general))
        return before - len(self._broker.advertising.of(party))

    def interested(self, says: str | Advertisement) -> bool:
        """Would anyone subscribed want some of what is advertised? May say yes too often."""
        read = admit_advertisement(says)
        return any(self._broker.edge.wants(read)) or self._crowding.interested(read)

    def _check(self) -> None:
        """Assert that every index agrees with the handles."""
        self._broker._check()
        self._crowding._check()
        held = {id: standing for id, _, standing in self._broker.edge}
        assert held == {id: handle._standing for id, handle in self._handles.items()}
        for handle in self._handles.values():
            if handle.of_rows:
                rows = self._shifts.table_of(handle.statement).items()
                live = self._broker.edge.views.rows(handle.id).live
                live._check((key,) for key, _ in rows)
