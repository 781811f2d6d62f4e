"""What does a broker do with a durable subscription that is asked for by its name?

Whoever is attached to it stays so, and hears of what others change. All of it is the identity's
own: nobody else's names are ever looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from driftline.broker import requests
from driftline.broker.access import may_be_told
from driftline.broker.effects import Deliver, Reply
from driftline.broker.identity import durable_name, durable_of
from driftline.broker.kept import Kept
from driftline.broker.letters import Letter
from driftline.broker.stating import stated
from driftline.errors import InvalidValue, LimitReached, NotSupported
from driftline.model.covering import Statement
from driftline.model.standing import Standing
from driftline.model.value import show
from driftline.model.view import View, ViewKind
from driftline.net.counting import SHOWN_MOST, Shown, Steps, left_of, page
from driftline.net.inside import Trouble
from driftline.net.withheld import is_withheld
from driftline.wire import asking, by_name

if TYPE_CHECKING:
    from driftline.net.guest import Guest
    from driftline.net.server import Server
    from driftline.net.serving import Serving

HANDLER_MOST = 2000
_PAGE_BYTES = 1 << 20
"""About so much of dead letters is said at once."""
_LETTER_BYTES = 1 << 22
"""What is larger is not shown: it would not fit a frame."""


class Keeping:
    """The requests about durable subscriptions by name, of all guests of one server."""

    def __init__(self, server: Server, serving: Serving) -> None:
        self._server = server
        self._serving = serving
        self.does: dict[type, Callable[[Guest, Any], None]] = {
            by_name.Keep: self._keep,
            by_name.Drop: self._drop,
            by_name.Had: self._had,
            by_name.Route: self._route,
            by_name.Durables: self._durables,
            by_name.Dead: self._dead,
            by_name.Redeliver: self._redeliver,
            by_name.Discard: self._discard,
            by_name.Secret: self._secret,
        }

    def find(self, guest: Guest, name: str) -> tuple[str, Standing]:
        """The party that a durable subscription of a guest is, and what it asks for."""
        party = durable_of(guest.identity, name)
        if not name or self._server.edge.owner(f"{party}#0") != party:
            raise InvalidValue("durable", "the name of a durable subscription", show(name))
        return party, self._server.edge.standing(f"{party}#0")

    def wanted(
        self, guest: Guest, party: str, standing: Standing, since: int | None = None
    ) -> tuple[Standing | None, Standing]:
        """What a durable subscription asks for, None: there is none, and what it is to ask for.

        If another has moved it since this epoch, that stands.
        """
        edge, access = self._server.edge, self._server.broker.access
        known = edge.standing(f"{party}#0") if edge.owner(f"{party}#0") == party else None
        if known is None:
            self._serving.check_given(party, None, standing)
            return None, standing
        statement = stated(standing.statement)
        if since is not None and known.epoch > since:
            wanted = known
        elif known.statement != statement:
            check_kind(known.statement, statement)
            # What waits was found by what it asked for until now.
            access.subscribe(guest.name, known.statement)
            wanted = known.restated(statement, standing.params)
        elif not replace(known, epoch=0, start_us=0).same(
            replace(standing, epoch=0, start_us=0, statement=known.statement)
        ):
            wanted = known.moved_to(standing.params)
        else:
            wanted = known
        access.subscribe(guest.name, wanted.statement)
        if wanted is not known:
            self._serving.check_given(party, known, wanted)
            access.set(guest.name, wanted.statement)
        return known, wanted

    def _keep(self, guest: Guest, asked: by_name.Keep) -> None:
        server, serving = self._server, self._serving
        if not asked.durable:
            raise InvalidValue("durable", "a name", show(asked.durable))
        statement = serving.statement(guest, asked.text, rows=asked.rows)
        server.broker.access.subscribe(guest.name, statement)
        standing = Standing.of(statement, serving.params(asked.params), server.clock.now())
        party = durable_of(guest.identity, asked.durable)
        known, wanted = self.wanted(guest, party, standing)
        if known is None:
            server.durables.begin(party)
        value = {"epoch": wanted.epoch, "created": known is None}

        def done(reply: Reply) -> None:
            if reply.refused is not None:
                if known is None:
                    server.durables.end(party, lambda reply: None)
                guest.refuse_request(asked.request, reply.refused)
                return
            if known is not None and known.statement != wanted.statement:
                server.durables.detach(party, "it asks for something else now")
            elif wanted is not known:
                server.durables.moved(party, wanted)
            serving.when_effective(guest, asked.request, asked.within, "subscription", value)

        if wanted is known:
            done(Reply(party, ""))
            return
        name = server.await_reply(done)
        server.driver.ask(
            party, requests.Subscribe(name, f"{party}#0", wanted, quietly=asked.quietly)
        )

    def _drop(self, guest: Guest, asked: by_name.Drop) -> None:
        party, _ = self.find(guest, asked.durable)
        durables = self._server.durables
        durables.detach(party, "it was ended")
        durables.end(party, lambda reply: self._serving.replied(guest, asked.request, reply))

    def check_number(self, party: str, number: int, *, told: bool = False) -> None:
        """Raise if to have had this number would throw away what it says nothing of.

        It may be another subscription's, another broker's, or of what is to come. With `told` it
        must be one that somebody was told; what was told in an earlier life nobody knows any more.
        """
        server = self._server
        known = server.edge.parties.get(party)
        is_one = number <= server.broker.last_number
        if is_one and known is not None:
            is_one = is_number_of(known.waiting, number)
            if told and number > server.began_at and known.waiting:
                last = max(server.durables.tally(party).told, known.had)
                is_one = is_one and (number <= last or number < known.waiting[0].number)
        if not is_one:
            raise InvalidValue("number", "one that this subscription was told", show(number))

    def _had(self, guest: Guest, asked: by_name.Had) -> None:
        party, _ = self.find(guest, asked.durable)
        self.check_number(party, asked.number)
        self._server.driver.ask(party, requests.Told(asked.number))
        guest.reply(asked.request)

    def _route(self, guest: Guest, asked: by_name.Route) -> None:
        server = self._server
        party, _ = self.find(guest, asked.durable)
        todo: list[Any] = []
        if asked.handler is not None:
            if len(asked.handler) > HANDLER_MOST:
                # Before it is remembered anywhere what was asked for.
                wanted = f"an address of at most {HANDLER_MOST} characters"
                raise InvalidValue("handler", wanted, f"{len(asked.handler)}")
            if asked.handler:
                server.broker.access.handle(guest.name, asked.handler)
                server.check_handler(asked.handler)
                handled, most = server.edge.parties.handled, server.limits.handlers
                if party not in handled and len(handled) >= most:
                    raise LimitReached("handlers", int(most))
            todo.append(lambda name: requests.Redirect(name, asked.handler or ""))
        if asked.suspended is not None:
            kind = requests.Suspend if asked.suspended else requests.Resume
            todo.append(kind)

        def done(reply: Reply) -> None:
            if reply.refused is None and todo:
                server.driver.ask(party, todo.pop(0)(server.await_reply(done)))
                return
            for door in server.doors:
                door.routed(party)
            self._serving.replied(guest, asked.request, reply)

        done(Reply(party, ""))

    def _durables(self, guest: Guest, asked: by_name.Durables) -> None:
        steps = self._one(guest, asked.durable) if asked.durable else self._some(guest, asked.after)
        self._serving.answer(guest, asked.request, steps)

    def _one(self, guest: Guest, name: str) -> Steps[object]:
        while True:
            party, _ = self.find(guest, name)
            shown = yield from self._described(guest, party)
            if shown is not None:
                return [shown]

    def _some(self, guest: Guest, after: str) -> Steps[object]:
        """Those behind one, by name, as many as can be shown at once."""
        last = durable_of(guest.identity, after)
        while some := self._server.durables.of(guest.identity, last, SHOWN_MOST):
            shown = yield from page(self._described(guest, party) for party in some)
            if shown:
                return shown
            # All of these have ended meanwhile.
            last = some[-1]
        return []

    def _described(self, guest: Guest, party: str) -> Steps[Shown | None]:
        """A durable subscription, as its owner sees it; None: it has ended meanwhile."""
        server = self._server
        kept, first = yield from left_of(server, party, guest.sight)
        if server.edge.owner(f"{party}#0") != party:
            return None
        standing = server.edge.standing(f"{party}#0")
        known = server.edge.parties[party]
        handling = server.handling
        trouble = None
        if handling is not None:
            trouble = handling.trouble(party)
        elif known.handler:
            trouble = Trouble("no webhooks and no e-mail are sent from this broker", 0)
        is_told = server.durables.guest(party) is not None
        attached = is_told and not (handling and handling.holds(party))
        statement = standing.statement
        matched = server.edge.matched(f"{party}#0")
        if not may_be_told(server.broker.access, guest.name, statement):
            # How often it matches would say what may not be seen any more.
            kept = first = matched = 0
        is_rows = isinstance(statement, View) and statement.of is ViewKind.ROWS
        return {
            "name": durable_name(party),
            "text": str(statement),
            "rows": is_rows,
            "params": asking.pack_all(dict(standing.params)),
            "epoch": standing.epoch,
            "kept": kept,
            "next": first,
            "attached": attached,
            "suspended": known.suspended,
            "handler": known.handler,
            "matched": matched,
            "failing": "" if trouble is None else trouble.why,
            "attempts": 0 if trouble is None else trouble.attempts,
            "dead": len(known.letters),
            "forgotten": known.letters.forgotten,
            "mark": server.durables.mark(party),
        }

    # What could not be handed over

    def _dead(self, guest: Guest, asked: by_name.Dead) -> None:
        party, standing = self.find(guest, asked.durable)
        # They say what it was told once: only to those who may still be told of it.
        self._server.broker.access.subscribe(guest.name, standing.statement)
        found: list[list[object]] = []
        size = 0
        for one in self._server.edge.parties[party].letters.page(asked.after, asked.most):
            is_shown = len(one.data) <= _LETTER_BYTES and not self._is_withheld(party, one)
            data = one.data if is_shown else b""
            size += len(data)
            if found and size > _PAGE_BYTES:
                break
            found.append([one.id, one.why, one.attempts, one.time, data, one.again])
        guest.reply(asked.request, found)

    def _redeliver(self, guest: Guest, asked: by_name.Redeliver) -> None:
        server = self._server
        party, standing = self.find(guest, asked.durable)
        server.broker.access.subscribe(guest.name, standing.statement)
        if not server.edge.parties[party].handler:
            raise InvalidValue("handler", "one to deliver through: redirect it first", "none")
        self._letters(guest, asked, requests.Revive, party)

    def _is_withheld(self, party: str, letter: Letter) -> bool:
        return is_withheld(self._server.broker.access, party, letter)

    def _discard(self, guest: Guest, asked: by_name.Discard) -> None:
        party, _ = self.find(guest, asked.durable)
        self._letters(guest, asked, requests.Discard, party)

    def _letters(
        self,
        guest: Guest,
        asked: by_name.Redeliver | by_name.Discard,
        kind: type[requests.Revive] | type[requests.Discard],
        party: str,
    ) -> None:
        server = self._server
        known = server.edge.parties[party].letters
        letters = None if asked.letters is None else tuple(dict.fromkeys(asked.letters))
        if kind is requests.Revive:
            chosen = [one for one in known if letters is None or one.id in letters]
            letters = tuple(one.id for one in chosen if not self._is_withheld(party, one))
        count = len(known) if letters is None else sum(one in known for one in letters)

        def done(reply: Reply) -> None:
            for door in server.doors:
                door.routed(party)
            guest.reply(asked.request, {"letters": count})

        server.driver.ask(party, kind(server.await_reply(done), letters))

    def _secret(self, guest: Guest, asked: by_name.Secret) -> None:
        server = self._server
        party, _ = self.find(guest, asked.durable)
        handling = server.handling
        if handling is None:
            raise NotSupported("secret", "no webhooks are sent from this broker")

        def done(reply: Reply) -> None:
            known = server.edge.parties.get(party)
            if known is None:
                # It was ended meanwhile: what it had is nobody's any more.
                wanted = "the name of a durable subscription"
                gone = InvalidValue("durable", wanted, show(asked.durable))
                guest.refuse_request(asked.request, gone)
                return
            secret = handling.secret(party, known.generation)
            guest.reply(asked.request, {"secret": secret})

        handling.secret(party, 0)  # If there are none, that is to be said before it is renewed.
        if asked.renew:
            server.driver.ask(party, requests.Renew(server.await_reply(done)))
        else:
            done(Reply(party, ""))


def is_number_of(waiting: Iterable[Deliver | Kept], number: int) -> bool:
    """Is it the number of something that waits, or before all of it?

    It looks no further than that, which is as far as would be forgotten.
    """
    is_first = True
    for one in waiting:
        if number <= one.last:
            if number < one.number:
                return is_first
            return isinstance(one, Deliver) or number == next(one.numbers(number - 1), 0)
        is_first = False
    return is_first


def check_kind(known: Statement, wanted: Statement) -> None:
    """Raise if one cannot take the other's place: what waits was found for the one."""
    if isinstance(known, View):
        why = "a view's condition stays; its parameters can move"
        raise NotSupported(str(wanted), why)
    if type(known) is not type(wanted):
        why = f"it would take the place of {str(known)[:200]}, which is of another kind"
        raise NotSupported(str(wanted), why)
