"""How does a view come to know its table, wherever that is kept?

Where the table is kept here the snapshot is taken on the spot. Otherwise: what the view wants is
told to the neighbours; when that is in effect everywhere its home is asked; what comes before the
answer waits. So nothing falls between the snapshot and the first message, and nothing counts twice.
Where interest goes only to what is offered, a home that has not been asked for such messages before
says `LATER`, and since when it offers them: that must be known before what a view wants can be in
effect. Whoever has heard it says so.

What moved or crossed may be asked of events that are no rows: so it is first asked whether the type
is a table, with everybody.

A table is claimed by asking everybody whether it has a home already. Of two that claim it at once
the one whose name comes first is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from driftline.broker.edge import Edge
from driftline.broker.effects import Effect, Reply
from driftline.broker.requests import Declare, Delete
from driftline.broker.tables import (
    ASK,
    ASKED,
    DATA,
    DELETE,
    FIND,
    HOME_OF,
    JOIN,
    KEEPS,
    KEY,
    LATER,
    LEFT,
    PART,
    PARTS,
    SNAPSHOT,
    SUBSCRIPTION,
    TO,
    VIEW,
    Tables,
    read_table,
    snapshot_for,
    who_asks,
)
from driftline.broker.views import Of, Question
from driftline.broker.waves import NEVER
from driftline.errors import DriftlineError, TableError
from driftline.model.advertisement import Advertisement
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.message import Parcel
from driftline.model.table import TableDeclaration
from driftline.model.value import Value, admit
from driftline.stateful.news import News
from driftline.stateful.plan import Moment
from driftline.wire.views import encode_view

WITHIN = 10_000_000
RETRY = 1_000_000
"""Who did not answer in time is asked again after so many microseconds."""


class Outward(Protocol):
    """What a broker does for its tables and views."""

    name: str

    def say(self, event: Event, now: int) -> list[Effect]:
        """Send a message as from here."""

    def tell_of(self, table: str, messages: list[Event], now: int) -> list[Effect]:
        """Send what is said of a table that is kept here."""

    def wave(self, request: str, within: int, now: int, says: Advertisement) -> list[Effect]:
        """Ask everybody, and have the answer as a reply to this broker itself."""

    def listen(self, key: str, wanted: Filter | None) -> None:
        """Let neighbours know that this broker itself wants something; None: no longer."""

    def may_say(self, type: str, said: bool) -> bool:
        """Let neighbours know that messages of a type may come from here, or no longer.

        Must they know, and did they not?
        """

    def resync(self, table: str) -> list[Effect]:
        """Let everybody know that a table has a home."""

    def at(self) -> int:
        """A number above all before."""


@dataclass(frozen=True, slots=True)
class _Claim:
    party: str
    asked: Declare
    yielded: bool = False
    """Has another that comes first claimed it too?"""


class Asking:
    """The questions of one broker that are open."""

    __slots__ = (
        "_alone",
        "_claims",
        "_deletions",
        "_edge",
        "_finds",
        "_later",
        "_out",
        "_retry_at",
        "_sources",
        "_tables",
        "_unheard",
        "_waves",
    )

    def __init__(self, out: Outward, edge: Edge, tables: Tables, *, alone: bool) -> None:
        self._out = out
        self._edge = edge
        self._tables = tables
        self._alone = alone
        self._claims: dict[str, _Claim] = {}
        self._deletions: dict[str, tuple[Reply, Event]] = {}
        self._waves: dict[str, list[tuple[Question, Value | None]]] = {}
        self._finds: dict[str, list[Question]] = {}
        # By types of messages, since when their home has said it offers them.
        self._later: dict[str, Value] = {}
        self._retry_at = NEVER
        self._sources: set[str] = set()
        # Types of messages that are to be said, and of which not everybody knows yet.
        self._unheard: set[str] = set()

    # Views

    @property
    def due(self) -> bool:
        """Is there something to be asked, or something else to be heard?"""
        views = self._edge.views
        return bool(views.due or views.left) or self._sources != views.sources.keys()

    def begin(self, env: Mapping[str, Value], now: int) -> list[Effect]:
        """Ask for what views need."""
        effects = self._leave(now)
        far: list[Question] = []
        unknown: dict[str, list[Question]] = {}
        for id in list(self._edge.views.due):
            question = self._edge.views.question(id)
            tables = _tables_of(question)
            if all(table in self._tables for table in tables):
                self._edge.views.found(question)
                effects += self._here(question, env, now)
            elif self._edge.views.of(id) is Of.TABLE:
                far.append(question)
            elif self._alone:
                effects += self._unfound(question)
            else:
                unknown.setdefault(tables[0], []).append(question)
        if self._alone:
            self._sources = set(self._edge.views.sources)
            return effects
        self._listen()
        self.keep(())
        for table, questions in unknown.items():
            effects += self._find(table, questions, now)
        return effects + self._join(far, now)

    def _leave(self, now: int) -> list[Effect]:
        """Let the homes of tables know of those who follow no longer."""
        effects: list[Effect] = []
        left, self._edge.views.left = self._edge.views.left, []
        for table, id in left:
            if table in self._tables:
                self._tables.leave(table, who_asks(self._out.name, id))
            elif not self._alone:
                said: dict[str, Value] = {TO: self._out.name, SUBSCRIPTION: id, ASKED: 0}
                said[LEFT] = True
                effects += self._out.say(Event.of_admitted(ASK + table, said, now), now)
        return effects

    def _find(self, table: str, questions: list[Question], now: int) -> list[Effect]:
        """Has a table a home at all?"""
        request = f"find {self._out.at()}"
        self._finds[request] = questions
        return self._out.wave(request, WITHIN, now, Advertisement(FIND + table))

    def _found(self, questions: list[Question], reply: Reply, now: int) -> list[Effect]:
        """Everybody has said whether it keeps a table."""
        questions = [one for one in questions if self._edge.views.open(one)]
        if reply.interested:
            for one in questions:
                self._edge.views.found(one)
            return self._join(questions, now)
        if not reply.silent:
            return [effect for one in questions for effect in self._unfound(one)]
        for one in questions:
            self._put_off(one, now)
        return []

    def _unfound(self, question: Question) -> list[Effect]:
        """It is no table: what the events tell that have waited."""
        told = self._edge.views.unfound(question)
        effects: list[Effect] = []
        if self._edge.views.forgot(question.id):
            effects += self._edge.gap([question.id], self._out.name, self._out.at())
        for event, news in told:
            effects += self._edge.tell(question.id, [news], event, self._out.name, self._out.at())
        return effects

    def _put_off(self, question: Question, now: int) -> None:
        """Ask again after a while."""
        self._edge.views.later(question.id, question.number)
        self._edge.views.due.pop(question.id)
        self._retry_at = min(self._retry_at, now + RETRY)

    def _join(self, far: list[Question], now: int) -> list[Effect]:
        if not far:
            return []
        request = f"join {self._out.at()}"
        self._waves[request] = [(one, self._later.get(_type_of(one))) for one in far]
        return self._out.wave(request, WITHIN, now, JOIN)

    def _here(self, question: Question, env: Mapping[str, Value], now: int) -> list[Effect]:
        """The table is kept here: there is nothing on the way that could be missed."""
        who = who_asks(self._out.name, question.id)
        moment = Moment(env, now, who, question.keeps)
        numbers, fold, messages = self._tables.view(question.standing, question.plan, moment)
        said = self._out.tell_of(_tables_of(question)[0], messages, now) if messages else []
        news = self._edge.views.heard(question.id, question.number, numbers, fold)
        return [*said, *self._tell(question, news, self._out.name, self._out.at(), now)]

    def _tell(
        self, question: Question, news: list[News], origin: str, position: int, at: int
    ) -> list[Effect]:
        """Tell what a snapshot, and what waited for it, came to."""
        numbers = self._edge.views.numbers(question.id)
        told = Event.of_admitted(SNAPSHOT + _tables_of(question)[0], numbers, at)
        return [*self._edge.tell(question.id, news, told, origin, position)]

    def _listen(self) -> None:
        """Want to hear of snapshots for as long as there are views that need them."""
        sources = set(self._edge.views.sources)
        for table in sources - self._sources:
            self._out.listen(SNAPSHOT + table, snapshot_for(self._out.name, table))
            self._out.may_say(ASK + table, True)
        for table in self._sources - sources:
            self._out.listen(SNAPSHOT + table, None)
            self._out.may_say(ASK + table, False)
        self._sources = sources

    def replied(self, reply: Reply, now: int) -> list[Effect]:
        """Everybody has answered a question of this broker, or not in time."""
        claim = self._claims.pop(reply.request, None)
        if claim is not None:
            return self._claimed(claim, reply)
        if reply.request in self._deletions:
            return self._deleted(*self._deletions.pop(reply.request), reply, now)
        if reply.request in self._finds:
            return self._found(self._finds.pop(reply.request), reply, now)
        effects: list[Effect] = []
        for question, since in self._waves.pop(reply.request, ()):
            if not self._edge.views.open(question):
                continue
            if reply.silent:
                self._put_off(question, now)
            else:
                effects += self._out.say(self._question(question, since, now), now)
        return effects

    def _question(self, question: Question, since: Value | None, now: int) -> Event:
        attributes: dict[str, Value] = {
            TO: self._out.name,
            SUBSCRIPTION: question.id,
            ASKED: question.number,
            VIEW: encode_view(question.standing),
        }
        if question.keeps:
            attributes[KEEPS] = True
        if since is not None:
            attributes[LATER] = since
        return Event.of_admitted(ASK + _tables_of(question)[0], attributes, now)

    def wake(self, now: int) -> None:
        """Ask again whoever was silent."""
        if self._retry_at <= now:
            self._retry_at = NEVER
            self._edge.views.retry()

    def wake_at(self) -> int:
        """When `wake` has something to do."""
        return self._retry_at

    def hear(self, parcel: Parcel) -> list[Effect]:
        """A snapshot, or a part of one, has come."""
        said = parcel.event.attributes
        if said.get(TO) != self._out.name:
            return []
        id, number = str(said[SUBSCRIPTION]), int(said[ASKED])  # type: ignore[arg-type]
        question = self._edge.views.current(id, number)
        if question is None:
            return []
        if LATER in said:
            self._later[_type_of(question)] = said[LATER]
            self._edge.views.later(id, number)
            return []
        data = self._edge.views.part(id, number, int(said[PART]), said[DATA], int(said[PARTS]))  # type: ignore[arg-type]
        if data is None:
            return []
        try:
            fold = question.plan.load(question.standing, read_table(data))
        except (pa.ArrowException, LookupError, TypeError, ValueError, DriftlineError):
            return []  # It is no answer; whoever sends such things is asked no more.
        news = self._edge.views.heard(id, number, said, fold)
        return self._tell(question, news, parcel.origin, parcel.number, parcel.event.stamp or 0)

    # Tables

    def declare(self, asked: Declare, party: str, now: int) -> list[Effect]:
        """A party wants a table to be kept here."""
        said = asked.declaration
        ticks = {name: str(tick) for name, tick in said.ticks.items()}
        TableDeclaration.of(said.name, said.key, ticks)
        if self._tables.check_declared(said):
            return [Reply(party, asked.request)]
        if self._alone:
            return self._claimed(_Claim(party, asked), Reply(party, ""))
        request = f"claim {self._out.at()}"
        says = Advertisement(HOME_OF + asked.declaration.name)
        effects = self._out.wave(request, asked.within, now, says)
        self._claims[request] = _Claim(party, asked)
        return effects

    def has(self, table: str, asker: str) -> bool:
        """Is this the table's home, or about to be it before another that claims it?"""
        mine = [one for one, claim in self._claims.items() if claim.asked.declaration.name == table]
        if table in self._tables or (mine and self._out.name < asker):
            return True
        for request in mine if asker != self._out.name else ():
            # Who has answered us before may be the one that asks now: we cannot both have it.
            self._claims[request] = replace(self._claims[request], yielded=True)
        return False

    def _claimed(self, claim: _Claim, reply: Reply) -> list[Effect]:
        declaration = claim.asked.declaration
        name = declaration.name
        refused = None
        try:
            if not self._tables.check_declared(declaration):
                if reply.interested or claim.yielded:
                    raise TableError(name, "is kept by another broker")
                if reply.silent:
                    silent = ", ".join(reply.silent)
                    raise TableError(name, f"may be kept by one who did not answer: {silent}")
                self._tables.declare(declaration, self._out.at())
        except TableError as problem:
            refused = problem
        answer = Reply(claim.party, claim.asked.request, refused)
        if refused is None and self._alone:
            # What followed events of its type follows rows now.
            self._edge.views.again(name)
        if refused is not None or self._alone:
            return [answer]
        self.keep([name])
        return [*self._out.resync(name), answer]

    def keep(self, names: Iterable[str]) -> None:
        """Be the home of tables, to the neighbours too."""
        for name in names:
            for wanted in self._tables.wants(name):
                self._out.listen(str(wanted.type), wanted)
            self._out.may_say(SNAPSHOT + name, True)
        for type in self._tables.home.types():
            self._out.may_say(type, True)

    def delete(self, asked: Delete, party: str, now: int) -> list[Effect]:
        """A party wants the home of a table, wherever it is, to remove a row."""
        done = Reply(party, asked.request)
        if asked.table in self._tables:
            _, messages = self._tables.delete(asked.table, asked.key, now)
            return [*self._out.tell_of(asked.table, messages, now), done]
        key = admit(asked.key, f"key of {asked.table}")
        event = Event.of_admitted(DELETE + asked.table, {KEY: key}, now)
        if self._out.may_say(event.type, True):
            self._unheard.add(event.type)
        if event.type not in self._unheard:
            return [*self._out.say(event, now), done]
        # That it may come from here must be known before it can find its way.
        request = f"delete {self._out.at()}"
        self._deletions[request] = done, event
        return self._out.wave(request, WITHIN, now, JOIN)

    def _deleted(self, done: Reply, event: Event, reply: Reply, now: int) -> list[Effect]:
        if not reply.silent:
            self._unheard.discard(event.type)
            return [*self._out.say(event, now), done]
        table = event.type.removeprefix(DELETE)
        why = f"nothing is removed, as some did not answer: {', '.join(reply.silent)}"
        return [replace(done, refused=TableError(table, why))]

    def _check(self) -> None:
        for questions in self._waves.values():
            assert questions


def _type_of(question: Question) -> str:
    return str(question.plan.interest.source)


def _tables_of(question: Question) -> tuple[str, ...]:
    tables: tuple[str, ...] = question.standing.statement.tables  # type: ignore[union-attr]
    return tables
