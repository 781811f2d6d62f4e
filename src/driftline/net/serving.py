"""What does a broker do when a client asks for something?

Each request becomes one or two of the broker's own (`broker.requests`), and its reply the client's.
What is refused is refused with a reason, and nothing has changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from driftline.broker import requests
from driftline.broker.effects import Reply
from driftline.broker.explaining import explained
from driftline.broker.given import more_bytes, more_weight
from driftline.broker.identity import durable_of
from driftline.broker.parties import Party
from driftline.broker.policy import Overflow, Policy
from driftline.broker.stating import check_executable, prepare, rows_of, stated
from driftline.broker.weight import weight_of_advertisement
from driftline.errors import (
    DriftlineError,
    InvalidValue,
    LimitReached,
    NotAllowed,
    NotEffective,
    Unreachable,
)
from driftline.language.advertising import advertisement
from driftline.language.sql import parse
from driftline.model.advertisement import Advertisement
from driftline.model.covering import Statement
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.model.value import Value, show
from driftline.model.view import View
from driftline.net.channel import Channel
from driftline.net.counting import Steps, identity_of_guest, mine_of
from driftline.net.guest import Guest
from driftline.net.keeping import Keeping, check_kind
from driftline.net.metrics import metrics_of
from driftline.net.reading import LETTERS
from driftline.wire import asking
from driftline.wire.asking import Interest, encode, unpack, unpack_all
from driftline.wire.compact import read_record
from driftline.wire.stream import Kind, frame

if TYPE_CHECKING:
    from driftline.net.server import Server

Said: TypeAlias = Statement | Advertisement


class Serving:
    """The requests of all guests of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._was_read: Said | DriftlineError | None = None
        """What the text of the request says that is served now, if it was read aside."""
        self._does: dict[type, Callable[[Guest, Any], None]] = {
            asking.Subscribe: self._subscribe,
            asking.Set: self._set,
            asking.Restate: self._restate,
            asking.Cancel: self._cancel,
            asking.Detach: self._detach,
            asking.Told: self._told,
            asking.Advertise: self._advertise,
            asking.Unadvertise: self._unadvertise,
            asking.Interested: self._interested,
            asking.Declare: self._declare,
            asking.Delete: self._delete,
            asking.Observe: self._observe,
            asking.Confirm: self._confirm,
            asking.Explain: self._explain,
            asking.Status: self._status,
            asking.Metrics: self._metrics,
            asking.Peer: self._peer,
        }
        self._keeping = Keeping(server, self)
        self._does |= self._keeping.does

    def serve(self, guest: Guest, asked: Any) -> None:
        """Do what a guest asks for, or say why not."""
        if len(getattr(asked, "text", None) or "") > LETTERS:
            guest.wait_for_reading()
            then = partial(self._serve_read, guest, asked)
            self._server.reading.read(guest.owner, partial(_said, asked), then)
        else:
            self._serve(guest, asked)

    def _serve_read(self, guest: Guest, asked: Any, said: Said | DriftlineError) -> None:
        """Go on with one whose text has been read."""
        if not guest.connection.is_open:
            return
        began = time.perf_counter()
        self._was_read = said
        try:
            self._serve(guest, asked)
        finally:
            # Whatever became of it: else it would be what the next one asks for, who is another.
            self._was_read = None
        self._server.turns.spend(began)
        guest.has_read()

    def _serve(self, guest: Guest, asked: Any) -> None:
        try:
            self._does[type(asked)](guest, asked)
        except DriftlineError as problem:
            guest.refuse_request(asked.request, problem)

    def forget(self, guest: Guest, handle: int) -> None:
        """A subscription of a guest is no more."""
        guest.handles.pop(handle, None)
        guest.quiet.discard(handle)
        guest.tallies.pop(handle, None)
        guest.behind.forget(handle)

    # Subscriptions

    def _subscribe(self, guest: Guest, asked: asking.Subscribe) -> None:
        if asked.handle in guest.handles:
            raise InvalidValue("handle", "one that is not taken", show(asked.handle))
        limits = self._server.limits
        guest.check_room("subscriptions", len(guest.handles), limits.subscriptions)
        statement = self.statement(guest, asked.text, rows=asked.rows)
        self._server.broker.access.subscribe(guest.name, statement)
        policy = Policy.of_options(asked.policy)
        if policy.key is not None:
            self._server.broker.access.tell_apart(guest.name, statement, policy.key)
        if policy.overflow is Overflow.BLOCK:
            self._server.broker.access.hold(guest.name, statement)
        params = self.params(asked.params)
        now = self._server.clock.now()
        standing = Standing.of(statement, params, now)
        if asked.epoch:
            standing = replace(standing, epoch=asked.epoch)
        if asked.durable:
            self._attach(guest, asked, standing)
            return
        self.check_given(guest.name, None, standing)
        if asked.quietly:
            guest.quiet.add(asked.handle)
        id = f"{guest.name}#{asked.handle}"
        guest.handles[asked.handle] = id
        guest.behind.add(asked.handle, policy)

        def done(reply: Reply) -> None:
            if reply.refused is not None:
                self.forget(guest, asked.handle)
                guest.refuse_request(asked.request, reply.refused)
                return
            self.when_effective(
                guest, asked.request, asked.within, "subscription", {"epoch": standing.epoch}
            )

        wanted = requests.Subscribe(
            self._name(done), id, standing, quietly=asked.quietly, handle=asked.handle
        )
        self._server.driver.ask(guest.name, wanted)

    def _attach(self, guest: Guest, asked: asking.Subscribe, standing: Standing) -> None:
        """Subscribe durably, or go on with what was subscribed so."""
        server = self._server
        party = durable_of(guest.identity, asked.durable)
        id = f"{party}#0"
        since = asked.epoch if asked.again else None
        if asked.as_it_is:
            self._keeping.find(guest, asked.durable)
            since = -1
        known, wanted = self._keeping.wanted(guest, party, standing, since)
        inside = guest.connection.inside
        is_told = server.durables.guest(party) is not None
        if inside is not None and inside.steps_aside and is_told:
            raise Unreachable(asked.durable, "another connection has it")
        if asked.after:
            self._keeping.check_number(party, asked.after, told=True)
        if known is None:
            server.durables.begin(party)
        server.durables.attach(party, guest)
        if asked.quietly:
            guest.quiet.add(asked.handle)
        guest.handles[asked.handle] = id
        if asked.after:
            server.driver.ask(party, requests.Told(asked.after))
        mark, parties = server.durables.mark(party), server.edge.parties
        channel = guest.channels[party] = Channel(guest, asked.handle, party, asked.after)

        def done(reply: Reply) -> None:
            if reply.refused is not None:
                if guest.channels.get(party) is channel:
                    guest.handles.pop(asked.handle, None)
                    del guest.channels[party]
                    server.durables.release(party)
                if known is None:
                    server.durables.end(party, lambda reply: None)
                guest.refuse_request(asked.request, reply.refused)
                return
            value = {
                "epoch": wanted.epoch,
                "params": asking.pack_all(dict(wanted.params)),
                "text": str(wanted.statement),
                "resumed": known is not None,
                "last": _last_kept(parties.get(party)),
                "mark": mark,
                "suspended": party in parties and parties[party].suspended,
            }
            self.when_effective(guest, asked.request, asked.within, "subscription", value)

        if wanted is known:
            done(Reply(party, ""))
        else:
            server.driver.ask(
                party, requests.Subscribe(self._name(done), id, wanted, quietly=asked.quietly)
            )
        channel.catch_up()

    def _set(self, guest: Guest, asked: asking.Set) -> None:
        id, standing = self._standing(guest, asked.handle, asked.durable)
        if asked.durable:
            self._server.broker.access.subscribe(guest.name, standing.statement)
        self._server.broker.access.set(guest.name, standing.statement)
        start = self._server.clock.now() if asked.rebase else None
        params = self.params(asked.params)
        if asked.rebase and not params:
            params = dict(standing.params)
        self._move(guest, asked, id, standing.moved_to(params, start))

    def _restate(self, guest: Guest, asked: asking.Restate) -> None:
        id, standing = self._standing(guest, asked.handle)
        statement = self.statement(guest, asked.text)
        self._server.broker.access.subscribe(guest.name, statement)
        self._server.broker.access.set(guest.name, statement)
        if guest.behind.blocks(asked.handle):
            self._server.broker.access.hold(guest.name, statement)
        if not isinstance(standing.statement, View) or standing.statement.asked() != statement:
            check_kind(standing.statement, stated(statement))
        self._move(
            guest, asked, id, standing.restated(stated(statement), self.params(asked.params))
        )

    def _move(
        self, guest: Guest, asked: asking.Set | asking.Restate, id: str, to: Standing
    ) -> None:
        check_executable(to.statement, to.params)
        owner = self._server.edge.owner(id)
        assert owner is not None
        self.check_given(owner, self._server.edge.standing(id), to)
        handle = 0 if self._server.edge.parties.is_durable(owner) else asked.handle

        def done(reply: Reply) -> None:
            if reply.refused is not None:
                guest.refuse_request(asked.request, reply.refused)
                return
            if owner not in guest.channels:
                self._server.durables.moved(owner, to)
            self.when_effective(guest, asked.request, asked.within, "set", {"epoch": to.epoch})

        quietly = asked.handle in guest.quiet
        wanted = requests.Subscribe(self._name(done), id, to, quietly=quietly, handle=handle)
        self._server.driver.ask(owner, wanted)

    def _cancel(self, guest: Guest, asked: asking.Cancel) -> None:
        id, _ = self._standing(guest, asked.handle)
        owner = self._server.edge.owner(id)
        assert owner is not None
        self.forget(guest, asked.handle)
        if guest.channels.pop(owner, None) is not None:
            durables = self._server.durables
            durables.release(owner)
            durables.end(owner, lambda reply: self.replied(guest, asked.request, reply))
        else:
            self._ask(guest, asked.request, owner, lambda name: requests.Cancel(name, id))

    def _detach(self, guest: Guest, asked: asking.Detach) -> None:
        id, _ = self._standing(guest, asked.handle)
        owner = self._server.edge.owner(id)
        if owner is None or owner not in guest.channels:
            raise InvalidValue("handle", "a durable subscription", show(asked.handle))
        self.forget(guest, asked.handle)
        del guest.channels[owner]
        self._server.durables.release(owner)
        guest.reply(asked.request)

    def _told(self, guest: Guest, asked: asking.Told) -> None:
        id = guest.handles.get(asked.handle)
        owner = self._server.edge.owner(id) if id is not None else None
        if owner is None or owner not in guest.channels:
            return  # It was cancelled, or another has it now.
        if asked.number > guest.channels[owner].sent:
            return  # It was not told that.
        self._server.driver.ask(owner, requests.Told(asked.number))

    # The rest

    def _advertise(self, guest: Guest, asked: asking.Advertise) -> None:
        limits = self._server.limits
        guest.check_room("advertisements", len(guest.advertised), limits.advertisements)
        says = self._advertisement(asked.text)
        self._server.broker.access.advertise(guest.name, says)
        before = self._server.broker.advertising.of(guest.name).get(asked.id)
        more = weight_of_advertisement(says) - weight_of_advertisement(before)
        self._check_weight(guest.name, more)
        guest.advertised[asked.id] = False
        if asked.watch:
            self._server.watching.watch(guest, asked.id, says)
        self._ask(
            guest, asked.request, guest.name, lambda name: requests.Advertise(name, asked.id, says)
        )

    def _unadvertise(self, guest: Guest, asked: asking.Unadvertise) -> None:
        says = self._server.broker.advertising.of(guest.name).get(asked.id)
        guest.advertised.pop(asked.id, None)
        self._server.watching.unwatch(guest, asked.id)
        if says is None:
            guest.reply(asked.request)
            return
        self._ask(guest, asked.request, guest.name, lambda name: requests.Unadvertise(name, says))

    def _interested(self, guest: Guest, asked: asking.Interested) -> None:
        says = self._advertisement(asked.text)
        self._server.broker.access.advertise(guest.name, says)

        def done(reply: Reply) -> None:
            guest.reply(asked.request, {"interested": reply.interested, "silent": reply.silent})

        self._put(guest, done, lambda name: requests.Interested(name, says, _bounded(asked.within)))

    def look(self, guest: Guest, id: str, says: Advertisement, found: Callable[[], object]) -> None:
        """Find out whether anybody wants what was advertised, and say so if that is news."""

        def done(reply: Reply) -> None:
            found()
            if guest.advertised.get(id) is not None and guest.advertised[id] != reply.interested:
                guest.advertised[id] = reply.interested
                said = encode(Interest(id, reply.interested))
                guest.connection.send(frame(Kind.TOLD, said))

        self._put(guest, done, lambda name: requests.Interested(name, says))

    def _declare(self, guest: Guest, asked: asking.Declare) -> None:
        declaration = TableDeclaration.of(asked.table, asked.key, asked.ticks)
        self._server.broker.access.declare(guest.name, declaration.name)
        self._ask(
            guest, asked.request, guest.name, lambda name: requests.Declare(name, declaration)
        )

    def _delete(self, guest: Guest, asked: asking.Delete) -> None:
        key = unpack(asked.key, "key")
        if key is None:
            raise InvalidValue("key", "a value", "none")
        self._server.broker.access.delete(guest.name, asked.table)
        self._ask(
            guest, asked.request, guest.name, lambda name: requests.Delete(name, asked.table, key)
        )

    def _observe(self, guest: Guest, asked: asking.Observe) -> None:
        self._server.broker.access.observe(guest.name, asked.name)
        value = unpack(asked.value, f"environment variable {asked.name}")
        self._ask(
            guest,
            asked.request,
            guest.name,
            lambda name: requests.Observed(asked.name, value, name),
        )

    def _confirm(self, guest: Guest, asked: asking.Confirm) -> None:
        self.when_effective(guest, asked.request, asked.within, "what was asked for", None)

    def _explain(self, guest: Guest, asked: asking.Explain) -> None:
        id, standing = self._standing(guest, asked.handle, asked.durable)
        if asked.durable:
            self._server.broker.access.subscribe(guest.name, standing.statement)
        event = read_record(asked.event, {}).entering(self._server.clock.now())
        guest.reply(asked.request, _packed(explained(self._server.broker, id, event)))

    def _status(self, guest: Guest, asked: asking.Status) -> None:
        self.answer(guest, asked.request, self._state(guest, asked))

    def _state(self, guest: Guest, asked: asking.Status) -> Steps[object]:
        mine: dict[str, object] = {}
        some = [asked.handle] if asked.handle else asked.handles
        if asked.others:
            mine = {"mine": (yield from identity_of_guest(guest))}
        elif asked.subscriptions:
            mine = {"mine": (yield from mine_of(guest, some))}
        if some:
            return mine
        try:
            self._server.broker.access.operate(guest.name)
        except NotAllowed:
            # What is its own everybody may see.
            if not mine:
                raise
            return mine
        return {**self._server.status(), **mine}

    def _metrics(self, guest: Guest, asked: asking.Metrics) -> None:
        self._server.broker.access.operate(guest.name)
        guest.reply(asked.request, metrics_of(self._server).decode())

    def answer(self, guest: Guest, request: int, steps: Steps[object]) -> None:
        """Reply with what is found in steps; what the guest asks next waits for that."""

        def answering() -> Iterator[None]:
            try:
                guest.reply(request, (yield from steps))
            except DriftlineError as problem:
                guest.refuse_request(request, problem)

        guest.work(answering())

    def _peer(self, guest: Guest, asked: asking.Peer) -> None:
        self._server.broker.access.operate(guest.name)
        if asked.role:
            self._server.peer(asked.broker, asked.address, asked.role)
        else:
            self._server.unpeer(asked.broker)
        guest.reply(asked.request)

    # What these have in common

    def statement(self, guest: Guest, text: str, *, rows: bool = False) -> Statement:
        """What a text of a guest asks for; with `rows`, the live set of these."""
        whose = guest.owner if self._server.config.is_closed else ""
        found = self._read(partial(_statement, text, rows=rows, whose=whose))
        assert not isinstance(found, Advertisement)
        return found

    def _advertisement(self, text: str) -> Advertisement:
        """What a text says may be published."""
        found = self._read(partial(advertisement, text))
        assert isinstance(found, Advertisement)
        return found

    def _read(self, what: Callable[[], Said]) -> Said:
        """What the text of a request says, unless that was found out beforehand."""
        found = self._was_read
        if isinstance(found, DriftlineError):
            raise found
        return what() if found is None else found

    def params(self, said: dict[str, Any]) -> dict[str, Value]:
        """Parameters as they were said."""
        if len(said) > self._server.limits.parameters:
            wanted = f"at most {self._server.limits.parameters}"
            raise InvalidValue("parameters", wanted, str(len(said)))
        given = unpack_all(said, "parameter")
        return {name: value for name, value in given.items() if value is not None}

    def check_given(self, party: str, before: Standing | None, after: Standing) -> None:
        """Raise if what a subscription asks for would be too much, with all others."""
        limits, given = self._server.limits, self._server.edge.given
        # Whoever has too much, because the limit was another once, may have less of it.
        more = more_bytes(before, after)
        if more > 0 and given.bytes(party) + more > limits.parameter_bytes:
            raise LimitReached("bytes of parameters", limits.parameter_bytes)
        self._check_weight(party, more_weight(before, after))

    def _check_weight(self, party: str, more: int) -> None:
        """Raise if all that somebody asks for would let others wait too long."""
        if not self._server.config.is_closed:
            return  # Whoever wants more of an open broker is somebody else on another connection.
        limits, given = self._server.limits, self._server.edge.given
        advertised = self._server.broker.advertising.weight(party)
        if more > 0 and given.weight(party) + advertised + more > limits.weight:
            what = "parts of conditions that no index answers, all together (limits.weight)"
            raise LimitReached(what, limits.weight)

    def _standing(self, guest: Guest, handle: int, durable: str = "") -> tuple[str, Standing]:
        """A subscription by its handle, or any durable one by its name."""
        if durable:
            party, standing = self._keeping.find(guest, durable)
            return f"{party}#0", standing
        id = guest.handles.get(handle)
        if id is None or self._server.edge.owner(id) is None:
            raise InvalidValue("handle", "one of your subscriptions", show(handle))
        return id, self._server.edge.standing(id)

    def _name(self, done: Callable[[Reply], None]) -> str:
        return self._server.await_reply(done)

    def _ask(
        self, guest: Guest, request: int, party: str, make: Callable[[str], requests.Request]
    ) -> None:
        """Ask the broker, and hand on what it replies."""
        name = self._name(lambda reply: self.replied(guest, request, reply))
        self._server.driver.ask(party, make(name))

    def replied(self, guest: Guest, request: int, reply: Reply) -> None:
        """Hand on what the broker has replied."""
        if reply.refused is not None:
            guest.refuse_request(request, reply.refused)
        elif reply.silent:
            guest.refuse_request(request, NotEffective("declaration", reply.silent))
        else:
            guest.reply(request)

    def when_effective(
        self, guest: Guest, request: int, within: int, what: str, value: object
    ) -> None:
        """Reply when all that was asked for is in effect everywhere."""
        if not within:
            guest.reply(request, value)
            return

        def done(reply: Reply) -> None:
            if reply.silent:
                guest.refuse_request(request, NotEffective(what, reply.silent))
            else:
                guest.reply(request, value)

        self._put(guest, done, lambda name: requests.Confirm(name, _bounded(within)))

    def _put(
        self, guest: Guest, done: Callable[[Reply], None], make: Callable[[str], requests.Request]
    ) -> None:
        """Put a question to everybody; a guest that goes does not wait for the answer."""
        if self._server.guests.get(guest.name) is not guest:
            return

        def answered(reply: Reply) -> None:
            guest.answered_by_all(name)
            done(reply)

        name = self._name(answered)
        guest.asks_all(name)
        self._server.driver.ask(guest.name, make(name))


def _last_kept(party: Party | None) -> int:
    """The number of the last that is kept for a durable subscription; 0: nothing is."""
    return party.waiting[-1].last if party is not None and party.waiting else 0


def _bounded(within: int) -> int:
    return min(within, asking.WITHIN_MOST)


def _packed(one: Any) -> list[object]:
    """An explanation as it is said."""
    seen = asking.pack_all(one.seen)
    parts = [_packed(part) for part in one.parts]
    return [one.text, one.outcome, one.reason, seen, one.decided, parts]


@lru_cache(maxsize=1024)
def _parsed(text: str, whose: str) -> Statement:
    """The same text, with other parameters, stands for many: reading it is most of the work. Each
    takes some hundred times what its letters do. By whose it is, where that counts: else it could
    be told from how soon it is answered whether somebody else has said the same.
    """
    return parse(text)


def _statement(text: str, *, rows: bool, whose: str = "") -> Statement:
    statement = _parsed(text, whose) if len(text) <= LETTERS else parse(text)
    if rows:
        statement = rows_of(statement)
    check_executable(statement)
    return statement


def _said(asked: Any) -> Said:
    """What the text of a request says, with all that is remembered of it when it is first used."""
    if isinstance(asked, asking.Advertise | asking.Interested):
        return advertisement(asked.text)
    statement = _statement(asked.text, rows=getattr(asked, "rows", False))
    prepare(statement)
    return statement
