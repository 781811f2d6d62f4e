"""Whom of the local parties does an event concern, and are they being told now?

The last evaluation happens here, with everything the subscription says; between brokers travels
only what a filter can say of it. Messages about tables are for views alone. A party is told of an
event once, whichever of its subscriptions it satisfies [SIENA §3.5]; what waits for it is in
`parties`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from driftline.broker.access import Access, Anyone, seen_news
from driftline.broker.concern import Concern, is_plain, types_of
from driftline.broker.counted import Counted
from driftline.broker.crowds import Crowds
from driftline.broker.effects import MISSING, Deliver, DeliverMany, Key
from driftline.broker.given import Given
from driftline.broker.parties import Parties
from driftline.broker.restated import NEVER, Restated
from driftline.broker.settings import Settings
from driftline.broker.views import Of, Views
from driftline.broker.waves import QUICK
from driftline.broker.weight import weight_of
from driftline.matching.choice import make_matcher
from driftline.matching.columns import Columns
from driftline.matching.matcher import Numbered
from driftline.model.advertisement import Advertisement
from driftline.model.covering import Statement, cancels, intersects
from driftline.model.event import Event
from driftline.model.expression import Literal
from driftline.model.filter import Filter
from driftline.model.message import Steps
from driftline.model.pattern import Pattern, SequenceMatcher
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.view import View
from driftline.moving.evolving.choice import Chosen, EvolvingMatcher, make_evolving
from driftline.moving.evolving.plan import evolves
from driftline.moving.evolving.started import told
from driftline.moving.hull import Range, widened
from driftline.stateful.fold import Message
from driftline.stateful.news import News
from driftline.stateful.plan import plan_of
from driftline.stateful.rows.change import is_derived

NO_RANGES: Mapping[str, Range] = {}


@dataclass(slots=True)
class _Found:
    """What an event means to one party."""

    ids: list[str] = field(default_factory=list)
    sequences: dict[str, tuple[Event, ...]] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)
    news: dict[str, tuple[News, ...]] = field(default_factory=dict)


class Edge:
    """The subscriptions of local parties. Ids are unique in a broker."""

    __slots__ = (
        "_count",
        "_counting",
        "_handles",
        "_index",
        "_owner",
        "_patience",
        "_plain",
        "_put",
        "_restated",
        "_sequences",
        "_standing",
        "_step_of",
        "_steps",
        "access",
        "concern",
        "counted",
        "crowds",
        "given",
        "parties",
        "views",
    )

    def __init__(
        self,
        settings: Settings,
        put: Callable[[Key, object], None],
        count: Callable[[], int],
    ) -> None:
        self.access: Access = Anyone()
        """What its parties may do, and see."""
        self.parties = Parties(settings, put)
        self.views = Views(count, marked=not settings.alone)
        self.concern = Concern()
        self.crowds = Crowds()
        self.given = Given()
        self.counted = Counted(self.parties.slots)
        # An engine has nobody who would ask.
        self._counting = not settings.alone
        self._standing: dict[str, Standing] = {}
        self._owner: dict[str, str] = {}
        self._handles: dict[str, int] = {}
        # Of those that have asked for something else before.
        self._restated: dict[str, Restated] = {}
        matcher = make_matcher(settings.matcher)
        self._plain = make_evolving(settings, matcher)
        # Who is told of events that are taken many at a time; for that an index is needed.
        self._index = matcher if isinstance(matcher, Numbered) else None
        self._sequences: dict[str, SequenceMatcher] = {}
        # The steps of all patterns, by ids of their own.
        self._steps = make_evolving(settings)
        self._step_of: dict[str, tuple[str, int]] = {}
        self._patience = settings.patience
        self._put = put
        self._count = count

    @property
    def index(self) -> Numbered | None:
        """What finds plain subscriptions, if kernels can ask it."""
        return self._index

    def _note(self, id: str) -> None:
        """Journal a subscription as it stands, if its party is durable."""
        owner = self._owner[id]
        if self.parties[owner].durable:
            handle, restated = self._handles.get(id, 0), self._restated.get(id, NEVER)
            self._put(("sub", id), (owner, self._standing[id], handle, restated))

    def _place(self, id: str) -> None:
        """Let kernels know whose it is, if it is for them to find."""
        if self._index is not None and is_plain(self._standing[id].statement):
            number = self._index.number(id)
            standing, handle = self._standing[id], self._handles.get(id, 0)
            weight = weight_of(standing)
            self.parties.slots.put(number, self._owner[id], handle, standing.epoch, weight)

    def subscribe(
        self,
        party: str,
        id: str,
        standing: Standing,
        handle: int = 0,
        *,
        gap: bool = False,
        restated: Restated = NEVER,
    ) -> None:
        """Take in a subscription; with a gap, a view that was there before."""
        self.parties.know(party).ids[id] = None
        self._owner[id] = party
        self._standing[id] = standing
        if handle:
            self._handles[id] = handle
        if restated is not NEVER:
            self._restated[id] = restated
        self._note(id)
        self.concern.begin(standing)
        if isinstance(standing.statement, Pattern):
            self._sequences[id] = SequenceMatcher(standing.statement, self._patience)
            for at, (step_id, step) in enumerate(_steps(id, standing)):
                self._step_of[step_id] = id, at
                _add(self._steps, step_id, step)
        elif isinstance(standing.statement, View):
            _add(self._plain, id, self.views.begin(id, standing, gap=gap))
        else:
            _add(self._plain, id, standing)
            self._place(id)
        if self._counting:
            self.given.change(party, None, standing)
            self.counted.begin(id, self._types(standing), self._number(id))

    def restate(self, party: str, id: str, standing: Standing, handle: int) -> None:
        """The same subscription asks for something else."""
        restated = Restated(standing.epoch)
        if self.parties[party].waiting:
            before = self._restated.get(id, NEVER)
            restated = before.again(standing.epoch, self._standing[id].statement)
        if not self._counting:
            self.cancel(id)
            self.subscribe(party, id, standing, handle, restated=restated)
            return
        evaluated, matched, quiet = self.evaluated(id), self.matched(id), self.counted.quiet(id)
        self.cancel(id)
        self.subscribe(party, id, standing, handle, restated=restated)
        # What waits for it was found before.
        self.counted.carry(id, self._number(id), evaluated, matched, quiet)

    def _number(self, id: str) -> int | None:
        """The number of a plain subscription, by which kernels know it."""
        if self._index is None or not is_plain(self._standing[id].statement):
            return None
        return self._index.number(id)

    def _types(self, standing: Standing) -> tuple[str, ...]:
        """The types of what is looked at for a subscription; none: all events."""
        statement = standing.statement
        if isinstance(statement, View):
            about = (*statement.tables, plan_of(statement, standing.params).interest.source)
            return tuple(dict.fromkeys(one for one in about if one))
        steps = statement.steps if isinstance(statement, Pattern) else (statement,)
        sources = dict.fromkeys(step.source for step in steps)
        return () if None in sources else tuple(one for one in sources if one)

    def move(self, id: str, standing: Standing, *, quietly: bool = False) -> None:
        """The same subscription under other parameters."""
        before = self._standing[id]
        if self._counting:
            self.given.change(self._owner[id], before, standing)
        self.concern.end(before)
        self._standing[id] = standing
        self._note(id)
        self.concern.begin(standing)
        if id in self._sequences:
            for step_id, step in _steps(id, standing):
                self._steps.change(step_id, step.params, step.start_us)
        elif id in self.views:
            was = self.views.interest(id)
            after = self.views.move(id, standing, quietly=quietly)
            if after.statement == was.statement:
                self._plain.change(id, after.params, after.start_us)
            else:
                _add(self._plain, id, after)
        else:
            self._plain.change(id, standing.params, standing.start_us)
            self._place(id)

    def readdress(self, id: str) -> None:
        """The network must bring something else for a view than before."""
        _add(self._plain, id, self.views.interest(id))

    def narrow(self, id: str) -> None:
        """A set of rows has been told what its move made enter and leave."""
        _add(self._plain, id, self.views.narrow(id))

    def cancel(self, id: str) -> None:
        """Forget a subscription."""
        if self._counting:
            self.counted.end(id, self._number(id))
        standing, owner = self._standing.pop(id), self._owner.pop(id)
        if self._counting:
            self.given.change(owner, standing, None)
        party = self.parties[owner]
        del party.ids[id]
        self._handles.pop(id, None)
        self._restated.pop(id, None)
        if party.durable:
            self._put(("sub", id), None)
            self._put(("partial", id), None)
        self.concern.end(standing)
        if self._sequences.pop(id, None) is None:
            if self._index is not None and id in self._index:
                self.parties.slots.drop(self._index.number(id))
            self._plain.discard(id)
            if id in self.views:
                self.views.end(id)
            return
        for step_id, _ in _steps(id, standing):
            self._steps.discard(step_id)
            del self._step_of[step_id]

    def owner(self, id: str) -> str | None:
        """The party whose subscription it is."""
        return self._owner.get(id)

    def standing(self, id: str) -> Standing:
        """A subscription as it stands."""
        return self._standing[id]

    def asked_under(self, id: str, epoch: int) -> Statement | None:
        """What a subscription asked for under an epoch; None: it is not known any more."""
        restated = self._restated.get(id, NEVER)
        return restated.at(epoch, self._standing[id].statement)

    def matched(self, id: str) -> int:
        """How many events satisfied a subscription since it began."""
        return self.counted.matched(id, self._number(id))

    def evaluated(self, id: str) -> int:
        """How many events of its types came to this broker since then."""
        return self.counted.evaluated(id, self._types(self._standing[id]), self._number(id))

    def sequence(self, id: str) -> SequenceMatcher | None:
        """How far a pattern has come; None if it is none of ours."""
        return self._sequences.get(id)

    def covered(
        self, party: str, general: Statement, params: Mapping[str, object] | None
    ) -> list[str]:
        """The subscriptions of a party that one covers."""
        known = self.parties.get(party)
        return [
            id
            for id in (known.ids if known else ())
            if cancels(general, self._standing[id].statement, params, self._standing[id].params)
        ]

    def reads(self) -> dict[str, int]:
        """The variables of the environment that are read here, and by how many conditions."""
        plain, steps = self._plain.reads(), self._steps.reads()
        return {name: plain.get(name, 0) + steps.get(name, 0) for name in {**plain, **steps}}

    def ways(self) -> list[Chosen]:
        """How what evolves is found, and why so."""
        return [*self._plain.ways(), *self._steps.ways()]

    def advance(self, at: int, env: Mapping[str, Value]) -> None:
        """The environment is about to change: until now it was this."""
        self._plain.advance(at, env)
        self._steps.advance(at, env)

    def wants(self, says: Advertisement) -> Iterator[bool]:
        """Could some of what is advertised satisfy one of those here, and the next? May say yes too
        often. Of those who are quickly looked at several are one.
        """
        if says.type is not None and not self.concern.anybody(says.type):
            return
        # They may be others before all have been looked at.
        for at, standing in enumerate([*self._standing.values()]):
            about = types_of(standing)
            if says.type is None or not about or says.type in about:
                yield intersects(says, standing.statement, standing.params)
            elif at % QUICK == 0:
                yield False

    def take(
        self, event: Event, origin: str, position: int, env: Mapping[str, Value], at: int | None
    ) -> list[Deliver]:
        """What to tell whom of an event, in an environment and at an instant (None: its stamp).

        Nothing for those who are suspended.
        """
        found: dict[str, _Found] = {}
        if self._counting:
            self.counted.came(event.type)
        if is_derived(event.type):
            self._fold(event, env, at, found)
        else:
            for id in self._plain.match(event, env, at):
                if id not in self.views:
                    found.setdefault(self._owner[id], _Found()).ids.append(id)
                    if self._counting:
                        self.counted.found(id, self._number(id))
                else:
                    self._put_news(found, id, self.views.hear(id, Message(event, env)))
            if self._sequences:
                self._continue(event, env, at, found)
        return self._tell(found, event, origin, position, env)

    def take_many(
        self, messages: Columns, origin: str, position: int, env: Mapping[str, Value]
    ) -> list[tuple[int, Deliver]]:
        """What to tell whom of messages for views that are in columns, and of which message."""
        matches = self._plain.match_batch(messages, env)
        told: list[tuple[int, Deliver]] = []
        for at in np.flatnonzero(np.diff(matches.offsets)).tolist():
            found: dict[str, _Found] = {}
            message = Message(messages.event(at), env)
            for id in matches.ids(at):
                if id in self.views:
                    self._put_news(found, id, self.views.take(id, message))
            delivers = self._tell(found, message.event, origin, position, env)
            told += ((at, deliver) for deliver in delivers)
        return told

    def _fold(
        self, event: Event, env: Mapping[str, Value], at: int | None, found: dict[str, _Found]
    ) -> None:
        """Let views have a message. It is for them alone, whoever asks for events of all types."""
        self.crowds.hear(event)
        message = Message(event, env)
        for id in self._plain.match(event, env, at):
            if id in self.views:
                self._put_news(found, id, self.views.take(id, message))

    def _put_news(self, found: dict[str, _Found], id: str, news: Collection[News]) -> None:
        news = self._seen(id, news)
        if self._counting:
            # What waits for a snapshot may tell something yet.
            self.counted.found(id, None, told=bool(news) or self.views.is_waiting(id))
        if news:
            what = found.setdefault(self._owner[id], _Found())
            what.ids.append(id)
            what.news[id] = tuple(news)

    def _seen(self, id: str, news: Collection[News]) -> Collection[News]:
        return news and seen_news(self.access, self._owner[id], self._standing[id].statement, news)

    def tell(
        self, id: str, news: Collection[News], event: Event, origin: str, position: int
    ) -> list[Deliver]:
        """Tell a view's party what came of a snapshot."""
        news = self._seen(id, news)
        if not news:
            return []
        found = {self._owner[id]: _Found([id], news={id: tuple(news)})}
        return self._tell(found, event, origin, position, {})

    def _tell(
        self,
        found: Mapping[str, _Found],
        event: Event,
        origin: str,
        position: int,
        env: Mapping[str, Value],
    ) -> list[Deliver]:
        told = []
        # One number for all, and for nobody: else it would tell how many others were told.
        number = self._count()
        for name, what in found.items():
            deliver = Deliver(
                name,
                number,
                tuple(what.ids),
                event,
                what.sequences,
                origin,
                position,
                gaps=tuple(what.gaps),
                epochs=tuple([self._standing[id].epoch for id in what.ids]),
                stamps=env,
                news=what.news,
            )
            if self.parties.wait(deliver):
                told.append(self.parties.through(deliver))
        return told

    def missing(self, origin: str, position: int) -> list[Deliver]:
        """Tell everybody that events may be missing; views of tables join anew."""
        ids = (id for id in self._owner if id not in self.views or self.views.of(id) is Of.EVENTS)
        return self.gap(ids, origin, position)

    def gap(self, ids: Iterable[str], origin: str, position: int) -> list[Deliver]:
        """Tell that of these something may be missing."""
        found: dict[str, _Found] = {}
        for id in ids:
            found.setdefault(self._owner[id], _Found()).gaps.append(id)
        return self._tell(found, MISSING, origin, position, {})

    def _continue(
        self, event: Event, env: Mapping[str, Value], at: int | None, found: dict[str, _Found]
    ) -> None:
        """Take the patterns further that an event is of use to."""
        fits: dict[str, list[int]] = {}
        for step_id in self._steps.match(event, env, at):
            id, nth = self._step_of[step_id]
            fits.setdefault(id, []).append(nth)
        for id, steps in fits.items():
            sequence = self._sequences[id]
            before = len(sequence.found), sequence.found[:1]
            whole = sequence.advance(event, steps)
            owner = self._owner[id]
            changed = (len(sequence.found), sequence.found[:1]) != before
            if changed and self.parties[owner].durable:
                self._put(("partial", id), tuple(sequence.found))
            if self._counting:
                self.counted.found(id, None, told=whole is not None)
            if whole is None and not sequence.forgot:
                continue
            what = found.setdefault(owner, _Found())
            if whole is not None:
                what.ids.append(id)
                what.sequences[id] = whole
            if sequence.forgot:
                what.gaps.append(id)

    def resume(self, name: str) -> list[Deliver | DeliverMany]:
        """What waits for a party, which is told again from now on."""
        told = self.parties.resume(name)
        # Of these views something was forgotten: what they know is told anew, behind all that.
        self.views.lost(id for one in told if isinstance(one, Deliver) for id in one.gaps)
        return told

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept."""
        for key, value in stored.items():
            if key[0] == "sub":
                assert isinstance(value, tuple)
                owner, standing, handle, restated = value
                self.subscribe(owner, key[1], standing, handle, gap=True, restated=restated)
        for key, value in stored.items():
            if key[0] == "partial":
                assert isinstance(value, tuple)
                self._sequences[key[1]].found = list(value)
        self.parties.restore(stored)

    def __len__(self) -> int:
        return len(self._standing)

    def __iter__(self) -> Iterator[tuple[str, str, Standing]]:
        return ((id, self._owner[id], standing) for id, standing in self._standing.items())

    def _check(self) -> None:
        patterns = {id for id, one in self._standing.items() if isinstance(one.statement, Pattern)}
        assert self._owner.keys() == self._standing.keys() >= self._handles.keys()
        assert self._restated.keys() <= self._standing.keys()
        owned = {(id, name) for name, party in self.parties.items() for id in party.ids}
        assert owned == set(self._owner.items())
        self.parties._check()
        assert self._sequences.keys() == patterns
        assert len(self._plain) == len(self._standing) - len(patterns)
        views = {id for id, one in self._standing.items() if isinstance(one.statement, View)}
        assert set(self.views) == views
        self.views._check()
        self.concern._check([*self._standing.values()])
        assert len(self._steps) == len(self._step_of)
        assert set(self._step_of) == {
            step_id for id in patterns for step_id, _ in _steps(id, self._standing[id])
        }
        for sequence in self._sequences.values():
            sequence._check()
        self._plain._check()
        self._steps._check()
        if self._counting:
            said = [(party, self._standing[id]) for id, party in self._owner.items()]
            self.given._check(said)
            self.counted._check({id for id in self._standing if self._number(id) is None})


def _add(matcher: EvolvingMatcher, id: str, standing: Standing) -> None:
    assert isinstance(standing.statement, Subscription)
    matcher.add(id, standing.statement.filters(), standing.params, standing.start_us)


def _steps(id: str, standing: Standing) -> Iterator[tuple[str, Standing]]:
    """The steps of a pattern as subscriptions of their own, with ids."""
    assert isinstance(standing.statement, Pattern)
    for at, step in enumerate(standing.statement.steps):
        used = step.variables().parameters
        params = {name: value for name, value in standing.params.items() if name in used}
        yield f"{id}\n{at}", replace(standing, statement=step, params=params)


def routed(standing: Standing, ranges: Mapping[str, Range] = NO_RANGES) -> Steps:
    """What the network must bring for a subscription: filters that say no less than it does.

    One step for a subscription, and one for each of a pattern. Parameters are bound, or within a
    range. What moves with time or the environment travels as it is, with its start: other brokers
    judge it by the stamps of an event.
    """
    within = {name: ranges.get(name, (value, value)) for name, value in standing.params.items()}
    steps = []
    for step in _parts(standing):
        bound = (
            widened(one, within) if ranges else one.bound(standing.params) for one in step.filters()
        )
        said = (told(one, standing.start_us) for one in bound if not _switched_off(one))
        steps.append(tuple(dict.fromkeys(said)))
    return tuple(steps)


def _switched_off(one: Filter) -> bool:
    """Is a condition on parameters alone not true? Then nothing satisfies it [PARAM §9.1.2]."""
    return any(isinstance(part, Literal) and part.value is not True for part in one.conditions)


def exactly_routed(standing: Standing) -> bool:
    """Are these filters such as a sequence may have: ones that do not evolve?"""
    return not any(evolves(one) for step in _parts(standing) for one in step.filters())


def _parts(standing: Standing) -> tuple[Subscription, ...]:
    statement = standing.statement
    if isinstance(statement, Pattern):
        return statement.steps
    assert isinstance(statement, Subscription)
    return (statement,)
