"""How is one durable subscription told through its handler?

A client in the broker's own process attaches to it, in its owner's name: so what the owner may not
see is not sent. In order, and each is said to be had only when the receiver has taken it. What is
given up becomes a dead letter in the same store that says so, and the next goes on. Letters that
are delivered again are tried in between, one after something new, with a patience of their own:
nothing new waits for more than one try.

While nothing can be handed over, nobody is attached: nothing is held in memory for it, and whoever
wants to look by hand can. When somebody else attaches, the handler steps aside until they go.
"""

from __future__ import annotations

import asyncio
import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from driftline.broker import requests
from driftline.broker.access import may_be_told
from driftline.broker.effects import Reply
from driftline.broker.identity import durable_name, guest_of, identity_of
from driftline.broker.letters import Letter
from driftline.client.address import BrokerAddress
from driftline.client.client import Client
from driftline.client.conversation import Pending
from driftline.client.subscription import Subscription
from driftline.errors import DriftlineError, Unreachable
from driftline.handlers.coming import PENDING_MOST, Coming
from driftline.handlers.outcome import Fate, Outcome, Way
from driftline.handlers.outgoing import Incoming, Outgoing
from driftline.handlers.patience import Patience
from driftline.language.notified import source_of
from driftline.model.covering import Statement
from driftline.model.notification import NotificationKind
from driftline.net.inside import Trouble, dial_as
from driftline.net.logs import Log
from driftline.net.tokens import Proven
from driftline.net.withheld import is_withheld

if TYPE_CHECKING:
    from driftline.net.server import Server

log = Log("driftline.handlers")

_ASIDE = 0.25
"""Seconds after which it is looked whether whoever has it has gone."""
_DENIED = 30.0
"""Seconds after which something is tried again that only its owner or an operator can change."""


class _Failed(Exception):
    """It did not succeed now: be detached for so many seconds."""

    def __init__(self, delay: float) -> None:
        super().__init__(delay)
        self.delay = delay


class _Over(Exception):
    """Nothing more is to be told, until its owner says so."""


@dataclass(slots=True)
class Tally:
    """What became of all that was handed over."""

    taken: int = 0
    failed: int = 0
    buried: int = 0


class Delivering:
    """One durable subscription with a handler."""

    def __init__(self, server: Server, party: str, handler: str, way: Way, tally: Tally) -> None:
        self._server = server
        self._tally = tally
        self._party = party
        self._log = log.bind(broker=server.config.name, party=party)
        self.handler = handler
        self.way = way
        self._name = durable_name(party) or ""
        identity = identity_of(party)
        self._dial = dial_as(server, Proven(identity), steps_aside=True)
        self._source = source_of(server.config.name, identity)
        self._patience, self._with_letters = (
            Patience(way.patience, server.loop.time, random.random) for _ in range(2)
        )
        self._denied = ""
        self._asked = asyncio.Event()
        """Set when there is something to be done that nobody is told of."""
        self._guest = ""
        self.handing_over = False
        self.is_over = False
        """Is it to be told nothing more, so that whoever wants that needs another of these?"""
        self._finishing = False
        self._burying = False

    @property
    def trouble(self) -> Trouble | None:
        """Why telling it does not succeed."""
        if self._denied:
            return Trouble(self._denied, 0)
        for patience in (self._patience, self._with_letters):
            if patience.why:
                return Trouble(patience.why, patience.attempts)
        return None

    @property
    def is_attached(self) -> bool:
        """Is it told to us, and to nobody else?"""
        told = self._server.durables.guest(self._party)
        return told is not None and told.name == self._guest

    def finish(self) -> None:
        """Begin nothing more when what is on its way was taken, or not."""
        self._finishing = True

    def look(self) -> None:
        """There may be letters to deliver again."""
        self._asked.set()

    async def run(self) -> None:
        """Tell it until it is cancelled, or nothing is wanted any more."""
        while True:
            if self._server.durables.guest(self._party) is not None:
                await asyncio.sleep(_ASIDE)
                continue
            try:
                await self._attached()
            except _Failed as failed:
                await asyncio.sleep(failed.delay)
            except _Over:
                return
            except Unreachable:
                # Another has it now, or who may do what has changed.
                await asyncio.sleep(_ASIDE)
            except DriftlineError as problem:
                self._log.warning("not told through its handler", problem=problem)
                self._denied = str(problem)
                await asyncio.sleep(_DENIED)
            except Exception as problem:
                # Whatever it is, it must not end in silence, nor end the broker.
                where = "".join(traceback.format_exception(problem))
                self._log.error("not told through its handler", where=where)
                self._denied = "something is wrong with the broker: see its log"
                await asyncio.sleep(_DENIED)

    async def _attached(self) -> None:
        """Be attached, and tell what comes."""
        self._server.broker.access.handle(self._party, self.handler)
        name = f"handler {uuid4().hex}"
        self._guest = guest_of(identity_of(self._party), name)
        client = Client(
            BrokerAddress("inside"),
            name=name,
            reconnect=False,
            dial=self._dial,
            pending=Pending(PENDING_MOST),
        )
        async with client:
            # What it asks for is in effect, or will be: nobody need be asked.
            subscription = await client.attach(self._name, ack="manual", within=0.0)
            self._denied = ""
            await self._tell(subscription)

    async def _tell(self, subscription: Subscription) -> None:
        coming = Coming(subscription, Incoming(self._name, self._source))
        # What is told is said by what it asks for now; if that changes, we are detached.
        epoch = subscription.epoch
        try:
            while True:
                again_in = await self._deliver_again()
                if not await coming.is_there(self._asked, again_in):
                    continue
                await asyncio.sleep(self.way.wait(self._party))
                if self.way.count(self._party, PENDING_MOST) > 1:
                    coming.fetch()
                tried = self._patience.tried
                if tried:
                    await coming.fetch_again(tried)
                count = self._count(coming.ids(len(tried)), len(coming), self._patience)
                await self._hand_over(coming.take(count), epoch)
        finally:
            await coming.close()

    def _count(self, first: tuple[str, ...], waiting: int, patience: Patience) -> int:
        """How many are handed over at once: those that failed together again, and no others."""
        if first and first == patience.tried:
            return len(first)
        return self.way.count(self._party, waiting)

    async def _hand_over(self, some: list[Outgoing], epoch: int) -> None:
        """Tell some, and say that they were had; `_Failed` if that did not succeed now."""
        outcome = await self._try(some, self._patience)
        if outcome.fate is Fate.LATER:
            delay = self._failed(outcome, self._patience)
            if delay is not None:
                raise _Failed(delay)
        if outcome.fate is Fate.GONE:
            await self._suspend(outcome)
        elif outcome.fate is Fate.TAKEN:
            self._burying = False
            done = [one.number for one in some if one.is_last]
            if done:
                self._server.driver.ask(self._party, requests.Told(done[-1]))
        else:
            for one in some:
                made_from = self._made_from(one, epoch)
                await self._bury(one, outcome, self._patience.attempts, made_from)
        self._patience.succeeded()

    async def _deliver_again(self) -> float | None:
        """Deliver the first of the letters that somebody has asked for again.

        In how many seconds to come back for the rest; None: there is none. What is new has its
        turn in between, so that it does not wait for all of them.
        """
        self._asked.clear()
        patience = self._with_letters
        letters = self._to_deliver_again()
        if not letters:
            patience.succeeded()  # Somebody has thrown them away.
            return None
        if patience.left:
            return patience.left
        await asyncio.sleep(self.way.wait(self._party))
        first = tuple(one.id for one in letters[: len(patience.tried)])
        some = letters[: self._count(first, len(letters), patience)]
        again = [Outgoing(one.id, 0, one.data) for one in some]
        outcome = await self._try(again, patience)
        if outcome.fate is Fate.LATER:
            delay = self._failed(outcome, patience)
            if delay is not None:
                return delay
        if outcome.fate is Fate.TAKEN:
            ids = tuple(one.id for one in some)
            await self._ask(partial(requests.Discard, letters=ids))
        elif outcome.fate is Fate.GONE:
            await self._suspend(outcome)
        else:
            for letter, one in zip(some, again, strict=True):
                attempts = letter.attempts + patience.attempts
                await self._bury(one, outcome, attempts, letter.made_from)
        patience.succeeded()
        return 0.0

    def _failed(self, outcome: Outcome, patience: Patience) -> float | None:
        """How long to wait before it is tried again; None: it is given up."""
        if outcome.ours and patience.why != outcome.why:
            self._log.warning("nothing can be handed over", why=outcome.why)
        return patience.failed(outcome.why, outcome.after, ever=outcome.ours)

    def _to_deliver_again(self) -> list[Letter]:
        """The letters that somebody has asked for again, and may still see."""
        edge, access = self._server.edge, self._server.broker.access
        known = edge.parties.get(self._party)
        if known is None or edge.owner(f"{self._party}#0") is None:
            return []
        if not may_be_told(access, self._party, edge.standing(f"{self._party}#0").statement):
            return []
        letters = known.letters.to_deliver()
        return [one for one in letters if not is_withheld(access, self._party, one)]

    async def _try(self, some: list[Outgoing], patience: Patience) -> Outcome:
        if self._finishing:
            raise _Over
        patience.begin(*(one.id for one in some))
        generation = self._server.edge.parties[self._party].generation
        mark = self._server.durables.mark(self._party)
        self.handing_over = True
        try:
            outcome = await self.way.hand_over(self._party, mark, generation, self.handler, some)
        finally:
            self.handing_over = False
        if outcome.fate is Fate.TAKEN:
            self._tally.taken += len(some)
        else:
            self._tally.failed += 1
        return outcome

    def _made_from(self, one: Outgoing, epoch: int) -> tuple[Statement, ...]:
        """What was asked for when it was found, and when it was told; none: it is not known."""
        edge, id = self._server.edge, f"{self._party}#0"
        if edge.owner(id) is None:
            return ()
        told = one.event()["data"]
        # A gap says nothing of what was found.
        epochs = (epoch,) if told["kind"] == NotificationKind.GAP else (told["epoch"], epoch)
        found = [edge.asked_under(id, each) for each in epochs]
        known = [each for each in found if each is not None]
        return tuple(dict.fromkeys(known)) if len(known) == len(found) else ()

    async def _bury(
        self, one: Outgoing, outcome: Outcome, attempts: int, made_from: tuple[Statement, ...]
    ) -> None:
        # Of many in a row the first says enough.
        say = self._log.debug if self._burying else self._log.warning
        self._burying = True
        self._tally.buried += 1
        say("a dead letter", letter=one.id, why=outcome.why)
        now = self._server.clock.now()
        letter = Letter(one.id, outcome.why, attempts, now, one.body, made_from=made_from)
        await self._ask(lambda name: requests.Bury(name, one.number, letter))

    async def _suspend(self, outcome: Outcome) -> None:
        """Nothing is wanted there any more: all is kept until its owner says where to."""
        self._log.warning("a subscription is suspended", why=outcome.why)
        self._denied = f"{outcome.why}: suspended"
        # Its owner may let it go on before we have left.
        self.is_over = True
        await self._ask(requests.Suspend)
        raise _Over

    async def _ask(self, make: Callable[[str], requests.Request]) -> None:
        """Ask the broker, and wait until that is kept."""
        done: asyncio.Future[None] = self._server.loop.create_future()

        def replied(reply: Reply) -> None:
            if not done.done():
                done.set_result(None)

        self._server.driver.ask(self._party, make(self._server.await_reply(replied)))
        await done
