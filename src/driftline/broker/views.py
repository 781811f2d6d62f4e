"""What do the views of local parties know, and what are they told?

A view is *joined* when it has had a snapshot of its table and all messages since. Until then what
comes for it waits; the snapshot says which of that it has in it already. A view whose bounds moved,
or that was told to ask again, joins anew, and its party is told the difference. One that may have
missed something joins anew too: its party is told that there was a gap, and then all of it.

What moved or crossed may be asked of events that are no rows of a table, so at first it is asked
whether they are: until that is known events wait, and if they are not, what is to be known of them
is known here.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from driftline.errors import InvalidValue
from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.view import View, ViewKind
from driftline.stateful.fold import Fold, Message
from driftline.stateful.home import LIFE, SEQUENCE
from driftline.stateful.news import NOTHING, News
from driftline.stateful.plan import MovedPlan, Plan, plan_of
from driftline.stateful.rows.fold import RowSet
from driftline.stateful.rows.interest import flags_of
from driftline.stateful.value_based.follower import Follower, RowsFollower
from driftline.stateful.value_based.states import States, condition_of

_SETS = (ViewKind.ROWS, ViewKind.PAIRS, ViewKind.DISTINCT)
WAITING_MAX = 10_000
"""So many messages wait for a snapshot; with more it is asked for again."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is this view, as it stands?"""

    id: str
    number: int
    standing: Standing
    plan: Plan
    keeps: bool = False
    """Does what it was told before count?"""


class Of(enum.Enum):
    """What is a view of? Of a table; of events of a type, if that is no table; or who knows."""

    TABLE = "table"
    EVENTS = "events"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class _Viewed:
    """One view, and how far it is."""

    standing: Standing
    plan: Plan
    fold: Fold | None = None
    asked: int = 0
    """The number of the question that is out; 0: none is, and what it knows counts."""
    life: int = 0
    snapshot: int = 0
    """Up to which change its home's snapshot had it."""
    sequence: int = 0
    """Up to which change it knows by now."""
    gap: bool = False
    waiting: list[Message] = field(default_factory=list)
    parts: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """What has come of snapshots, by questions."""
    put: dict[int, Standing] = field(default_factory=dict)
    """What it was when it was asked for, by questions whose answers may come, and count."""
    news: list[News] = field(default_factory=list)
    """What earlier ones of these came to, to be told with the last."""
    wide: bool = False
    """Must it see every change of the table? After a silent move: of all it was told of."""
    of: Of = Of.TABLE
    states: States | None = None
    """What is known of events, if they are no rows of a table."""
    events: list[Message] = field(default_factory=list)
    """Those that wait until it is known whether they are."""

    @property
    def view(self) -> View:
        assert isinstance(self.standing.statement, View)
        return self.standing.statement

    def interest(self) -> Standing:
        """What the network must bring, as it stands."""
        if self.of is not Of.TABLE:
            events = _stands(self.view.condition(), self.standing)
            return replace(events, start_us=self.standing.start_us)
        if isinstance(self.fold, Follower) and not self.asked:
            return _stands(self.fold.interest(), self.standing)
        if self.wide:
            return _stands(Subscription(source=self.plan.interest.source), self.standing)
        return _stands(self.plan.interest, self.standing)


class Views:
    """The views of local parties, by id. `due` are those that must be asked for.

    `count` gives numbers above all before, in earlier lives too: an answer to what was asked in one
    of them must not be taken for another.

    `sources` are the tables whose homes are asked, and for how many views. `changed` are those that
    the network must bring something else for than before. `left` were known to the homes of tables
    by name. `marked`: is it told, too, that there is nothing in a set?
    """

    __slots__ = ("_count", "_marked", "_views", "changed", "due", "left", "sources")

    def __init__(self, count: Callable[[], int], *, marked: bool) -> None:
        self._views: dict[str, _Viewed] = {}
        self._count = count
        self._marked = marked
        self.due: dict[str, None] = {}
        self.sources: dict[str, int] = {}
        self.changed: dict[str, None] = {}
        self.left: list[tuple[str, str]] = []

    def begin(self, id: str, standing: Standing, *, gap: bool = False) -> Standing:
        """A new one; what the network must bring for it."""
        assert isinstance(standing.statement, View)
        viewed = _Viewed(standing, plan_of(standing.statement, standing.params), gap=gap)
        self._views[id] = viewed
        source = viewed.view.source
        if source:
            self.sources[source] = self.sources.get(source, 0) + 1
            self._doubt(viewed)
            self._join(id, viewed)
        else:
            viewed.of, viewed.states = Of.EVENTS, states_of(standing)
        return viewed.interest()

    def move(self, id: str, standing: Standing, *, quietly: bool = False) -> Standing:
        """The same view under other parameters; what the network must bring for it.

        Quietly: nothing is told of that, for a set of rows.
        """
        viewed = self._views[id]
        viewed.standing = standing
        viewed.plan = plan_of(viewed.view, standing.params)
        if viewed.of is not Of.TABLE:
            # Nothing has to be asked for: the next event is judged by it.
            before, viewed.states = viewed.states, states_of(standing)
            if before is not None:
                viewed.states.succeed(before)
            if viewed.of is Of.UNKNOWN:
                self._join(id, viewed)  # What is asked so far is what it was.
            return viewed.interest()
        if quietly and not viewed.asked and isinstance(viewed.fold, RowSet):
            viewed.fold.moved(standing)
            viewed.wide = True
        else:
            viewed.wide = False
            self._join(id, viewed)
        return viewed.interest()

    def narrow(self, id: str) -> Standing:
        """What a set of rows was told is what it asks for: it need not see the rest any more."""
        self._views[id].wide = False
        return self._views[id].interest()

    def end(self, id: str) -> None:
        """It is no longer wanted."""
        viewed = self._views.pop(id)
        source = viewed.view.source
        self.due.pop(id, None)
        self.changed.pop(id, None)
        if not source:
            return
        if isinstance(viewed.plan, MovedPlan) and viewed.of is Of.TABLE:
            self.left.append((source, id))
        self.sources[source] -= 1
        if not self.sources[source]:
            del self.sources[source]

    def again(self, table: str | None) -> None:
        """All those of a table, or of any, may have missed something."""
        for id, viewed in self._views.items():
            about = (*viewed.view.tables, viewed.plan.interest.source)
            if viewed.view.source and (table is None or table in about):
                if self._doubt(viewed):
                    viewed.gap |= table is None
                    self.changed[id] = None
                self.lost([id])

    def lost(self, ids: Iterable[str]) -> None:
        """These, as far as they are views, or their parties, may have missed something."""
        for id in ids:
            viewed = self._views.get(id)
            if viewed is not None and viewed.of is not Of.EVENTS:
                viewed.gap |= viewed.fold is not None
                viewed.put.clear()
                self._join(id, viewed)
            elif viewed is not None:
                viewed.states = states_of(viewed.standing)

    def _join(self, id: str, viewed: _Viewed) -> None:
        viewed.asked = self._count()
        if not isinstance(viewed.fold, Follower) or viewed.gap:
            viewed.put.clear()
            viewed.parts.clear()
        self.due[id] = None
        if isinstance(viewed.fold, Follower):
            self.changed[id] = None  # It must see all, until it is known where it is found.

    def _doubt(self, viewed: _Viewed) -> bool:
        """Is what it asks for a table, or still? That is to be found out, if it may be none."""
        if viewed.view.of is not ViewKind.MOVED:
            return False
        viewed.of = Of.UNKNOWN
        return True

    def of(self, id: str) -> Of:
        """What a view is of, as far as it is known."""
        return self._views[id].of

    def is_waiting(self, id: str) -> bool:
        """Does what comes for it wait for an answer?"""
        viewed = self._views[id]
        return bool(viewed.asked) or viewed.of is Of.UNKNOWN

    def forgot(self, id: str) -> bool:
        """Is it one of events that may have missed some, or that knows no more what it told?

        That is to be told, once.
        """
        viewed = self._views[id]
        if not viewed.gap or viewed.of is not Of.EVENTS:
            return False
        viewed.gap = False
        return True

    def found(self, asked: Question) -> None:
        """What a view asks for is a table, whose home can be asked."""
        viewed = self._views[asked.id]
        if viewed.of is not Of.TABLE:
            viewed.of, viewed.states, viewed.events = Of.TABLE, None, []
            self.changed[asked.id] = None

    def unfound(self, asked: Question) -> list[tuple[Event, News]]:
        """It is no table: what is told of the events that have waited."""
        viewed = self._views[asked.id]
        # If it was one, and is one again, its party is told then that there was a gap.
        viewed.of, viewed.asked, viewed.fold = Of.EVENTS, 0, None
        if viewed.states is None:
            viewed.states = states_of(viewed.standing)
        # It may have moved while they waited.
        states = viewed.states
        waiting = [one for one in viewed.events if states.satisfied(one.event, one.env)]
        viewed.events = []
        news = ((message.event, self._event(viewed, message)) for message in waiting)
        return [(event, one) for event, one in news if one is not None]

    def hear(self, id: str, message: Message) -> tuple[News, ...]:
        """What an event tells that satisfies the rest of what moved or crossed is asked for."""
        viewed = self._views[id]
        if viewed.of is Of.TABLE:
            return ()
        if viewed.of is Of.UNKNOWN:
            viewed.events.append(message)
            del viewed.events[:-WAITING_MAX]
            return ()
        news = self._event(viewed, message)
        return () if news is None else (news,)

    def _event(self, viewed: _Viewed, message: Message) -> News | None:
        assert viewed.states is not None
        news = viewed.states.take((), message.event, message.env)
        return None if news is None else news._replace(kind=NotificationKind.EVENT)

    def question(self, id: str) -> Question:
        """What is to be asked for a view."""
        viewed = self._views[id]
        self.due.pop(id, None)
        keeps = viewed.fold is not None and not viewed.gap
        viewed.put[viewed.asked] = viewed.standing
        return Question(id, viewed.asked, viewed.standing, viewed.plan, keeps)

    def open(self, asked: Question) -> bool:
        """Is this still the question? It is not if the view has moved since, or is no more."""
        viewed = self._views.get(asked.id)
        return viewed is not None and viewed.asked == asked.number

    def later(self, id: str, number: int) -> None:
        """The home says that a question is to be put once more."""
        viewed = self._views.get(id)
        if viewed is not None and viewed.asked == number:
            self._join(id, viewed)

    def take(self, id: str, message: Message) -> tuple[News, ...]:
        """What a message tells, which a view's interest let through."""
        viewed = self._views[id]
        if viewed.of is Of.EVENTS:
            return ()  # It asks for events of any type; messages are none.
        if viewed.asked:
            viewed.waiting.append(message)
            if len(viewed.waiting) > WAITING_MAX:
                viewed.waiting.clear()
                # What a follower was to be told is in no snapshot.
                viewed.gap |= isinstance(viewed.fold, Follower | RowsFollower)
                self._join(id, viewed)
            return ()
        news = self._fold(id, viewed, message)
        return () if news is None else (news,)

    def _fold(self, id: str, viewed: _Viewed, message: Message) -> News | None:
        assert viewed.fold is not None
        life, sequence = _numbers(message.event.attributes)
        if life < viewed.life or (life == viewed.life and sequence <= viewed.snapshot):
            return None  # It is in the snapshot already.
        if life > viewed.life:
            viewed.gap = True
            self._join(id, viewed)
            return None
        viewed.sequence = sequence
        try:
            news = viewed.fold.take(message)
        except InvalidValue:
            # It cannot be, or contradicts what is known: then that is not to be relied on.
            viewed.gap = True
            self._join(id, viewed)
            return None
        if viewed.fold.stale:
            self._join(id, viewed)
        elif isinstance(viewed.fold, Follower) and viewed.fold.readdressed:
            viewed.fold.readdressed = False
            self.changed[id] = None
        return news

    def current(self, id: str, number: int) -> Question | None:
        """The question with this number, if an answer to it counts."""
        viewed = self._views.get(id)
        if viewed is None or number not in viewed.put:
            return None
        standing = viewed.put[number]
        return Question(id, number, standing, plan_of(viewed.view, standing.params))

    def part(self, id: str, number: int, at: int, data: bytes, count: int) -> bytes | None:
        """A part of an answer has come: all of it, when it is the last."""
        parts = self._views[id].parts
        parts[number, at] = data
        mine = sorted(part for part in parts if part[0] == number)
        if len(mine) < count:
            return None
        return b"".join(parts.pop(part) for part in mine)

    def heard(self, id: str, asked: int, said: Mapping[str, Value], fold: Fold) -> list[News]:
        """The snapshot has come that a question was about: what to tell."""
        viewed = self._views.get(id)
        if viewed is None or asked not in viewed.put:
            return []  # The view has moved since, or is no more.
        before, gap = viewed.fold, viewed.gap
        if before is None or gap:
            news = fold.snapshot()
            if not news and self._marked and viewed.view.of in _SETS:
                news = [NOTHING]
        else:
            if isinstance(fold, Follower | RowsFollower):
                fold.missed = _between(viewed.waiting, viewed, _numbers(said))
            news = viewed.news + fold.succeed(before)
        viewed.fold, viewed.news = fold, []
        viewed.life, viewed.snapshot = _numbers(said)
        viewed.sequence = viewed.snapshot
        del viewed.put[asked]
        if viewed.asked != asked:
            # It has moved since. What its home believes to have told it has to be told all the
            # same, or one of them would go on from another value than the other.
            viewed.news = news
            return []
        viewed.asked, viewed.gap = 0, False
        viewed.put.clear()
        viewed.parts.clear()
        waiting, viewed.waiting = viewed.waiting, []
        if isinstance(fold, Follower):
            self.changed[id] = None
        if gap:
            news.insert(0, News(NotificationKind.GAP, {}))
        for at, message in enumerate(waiting):
            told = self._fold(id, viewed, message)
            if told is not None:
                news.append(told)
            if viewed.asked:
                # It must join anew, and what comes behind waits for that.
                viewed.waiting = waiting[at + 1 :] + viewed.waiting
                break
        return news

    def numbers(self, id: str) -> dict[str, Value]:
        """Of which life of its home, and up to which change, a view knows."""
        viewed = self._views[id]
        return {LIFE: viewed.life, SEQUENCE: viewed.sequence}

    def rows(self, id: str) -> RowSet:
        """What is known of a set of rows."""
        fold = self._views[id].fold
        assert isinstance(fold, RowSet)
        return fold

    def states(self, id: str) -> States | None:
        """What is known of what a subscription was told, if what it is told depends on that."""
        viewed = self._views.get(id)
        if viewed is None:
            return None
        fold = viewed.fold
        return fold.states if isinstance(fold, Follower | RowsFollower) else viewed.states

    def interest(self, id: str) -> Standing:
        """What the network must bring for a view."""
        return self._views[id].interest()

    def retry(self) -> None:
        """Questions may not have come through: put all that are open anew."""
        for id, viewed in self._views.items():
            if viewed.asked:
                self._join(id, viewed)

    def want(self, type: str) -> bool:
        """Does any of them want messages of a type?"""
        return any(viewed.plan.interest.source == type for viewed in self._views.values())

    def flags(self, type: str) -> set[str]:
        """The flags that they ask for in messages of a type."""
        plans = (viewed.plan for viewed in self._views.values())
        return {
            flag
            for plan in plans
            if plan.interest.source == type
            for flag in flags_of(plan.interest)
        }

    def unjoined(self) -> list[str]:
        """The views that have not had their snapshots."""
        return [id for id, viewed in self._views.items() if viewed.asked]

    def __contains__(self, id: str) -> bool:
        return id in self._views

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def _check(self) -> None:
        assert self.due.keys() <= self._views.keys()
        for viewed in self._views.values():
            joined = viewed.fold is not None and not viewed.waiting
            assert viewed.asked or (viewed.states is not None if viewed.of is Of.EVENTS else joined)


def _between(waiting: list[Message], viewed: _Viewed, numbers: tuple[int, int]) -> list[Message]:
    """What was said since the snapshot that it had, up to the one that has come."""
    known = viewed.life, viewed.snapshot
    return [one for one in waiting if known < _numbers(one.event.attributes) <= numbers]


def states_of(standing: Standing) -> States:
    """What is known when nothing was told yet."""
    return States(standing, condition_of(standing))


def interest_of(standing: Standing) -> Standing:
    """What the network is told of a subscription: of a view, the messages that change it."""
    view = standing.statement
    if not isinstance(view, View):
        return standing
    return _stands(plan_of(view, standing.params).interest, standing)


def _stands(interest: Subscription, standing: Standing) -> Standing:
    used = interest.variables().parameters
    params = {name: value for name, value in standing.params.items() if name in used}
    return replace(standing, statement=interest, params=params, start_us=0)


def _numbers(said: Mapping[str, Value]) -> tuple[int, int]:
    """The life of the home, and the change of a table, that a message or a snapshot is of."""
    return said[LIFE], said[SEQUENCE]  # type: ignore[return-value]  # as homes write them
