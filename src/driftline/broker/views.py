"""What do the views of local parties know, and what are they told?

A view is *joined* when it has had a snapshot of its table and all messages since. Until then what
comes for it waits; the snapshot says which of that it has in it already. A view whose bounds moved,
or that was told to ask again, joins anew, and its party is told the difference. One that may have
missed something joins anew too: its party is told that there was a gap, and then all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from driftline.model.notification import NotificationKind
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.view import View
from driftline.stateful.fold import Fold, Message
from driftline.stateful.home import LIFE, SEQUENCE
from driftline.stateful.news import News
from driftline.stateful.plan import Plan, plan_of
from driftline.stateful.rows.fold import RowSet

WAITING_MAX = 10_000
"""So many messages wait for a snapshot; with more it is asked for again."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is this view, as it stands?"""

    id: str
    number: int
    standing: Standing
    plan: Plan


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
    wide: bool = False
    """Must it see every change of the table? After a silent move: of all it was told of."""

    @property
    def view(self) -> View:
        assert isinstance(self.standing.statement, View)
        return self.standing.statement

    def interest(self) -> Standing:
        """What the network must bring, as it stands."""
        if self.wide:
            return _stands(Subscription(source=self.plan.interest.source), self.standing)
        return _stands(self.plan.interest, self.standing)


class Views:
    """The views of local parties, by id. `due` are those that must be asked for.

    `count` gives numbers above all before, in earlier lives too: an answer to what was asked in one
    of them must not be taken for another.

    `sources` are the tables whose homes are asked, and for how many views.
    """

    __slots__ = ("_count", "_views", "due", "sources")

    def __init__(self, count: Callable[[], int]) -> None:
        self._views: dict[str, _Viewed] = {}
        self._count = count
        self.due: dict[str, None] = {}
        self.sources: dict[str, int] = {}

    def begin(self, id: str, standing: Standing, *, gap: bool = False) -> Standing:
        """A new one; what the network must bring for it."""
        assert isinstance(standing.statement, View)
        viewed = _Viewed(standing, plan_of(standing.statement, standing.params), gap=gap)
        self._views[id] = viewed
        source = viewed.view.source
        self.sources[source] = self.sources.get(source, 0) + 1
        self._join(id, viewed)
        return viewed.interest()

    def move(self, id: str, standing: Standing, *, quietly: bool = False) -> Standing:
        """The same view under other parameters; what the network must bring for it.

        Quietly: nothing is told of that, for a set of rows.
        """
        viewed = self._views[id]
        viewed.standing = standing
        viewed.plan = plan_of(viewed.view, standing.params)
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
        source = self._views.pop(id).view.source
        self.due.pop(id, None)
        self.sources[source] -= 1
        if not self.sources[source]:
            del self.sources[source]

    def again(self, table: str | None) -> None:
        """All those of a table, or of any, may have missed something."""
        self.lost(
            id for id, viewed in self._views.items() if table is None or table in viewed.view.tables
        )

    def lost(self, ids: Iterable[str]) -> None:
        """These, as far as they are views, or their parties, may have missed something."""
        for id in ids:
            viewed = self._views.get(id)
            if viewed is not None:
                viewed.gap |= viewed.fold is not None
                self._join(id, viewed)

    def _join(self, id: str, viewed: _Viewed) -> None:
        viewed.asked = self._count()
        self.due[id] = None

    def question(self, id: str) -> Question:
        """What is to be asked for a view."""
        viewed = self._views[id]
        self.due.pop(id, None)
        return Question(id, viewed.asked, viewed.standing, viewed.plan)

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
        if viewed.asked:
            viewed.waiting.append(message)
            if len(viewed.waiting) > WAITING_MAX:
                viewed.waiting.clear()
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
        news = viewed.fold.take(message)
        if viewed.fold.stale:
            self._join(id, viewed)
        return news

    def current(self, id: str, number: int) -> Question | None:
        """The question with this number, if it is open."""
        viewed = self._views.get(id)
        if viewed is None or viewed.asked != number:
            return None
        return Question(id, number, viewed.standing, viewed.plan)

    def heard(self, id: str, asked: int, said: Mapping[str, Value], fold: Fold) -> list[News]:
        """The snapshot has come that a question was about: what to tell."""
        viewed = self._views.get(id)
        if viewed is None or viewed.asked != asked:
            return []  # The view has moved since, or is no more.
        before, viewed.fold, viewed.asked = viewed.fold, fold, 0
        viewed.life, viewed.snapshot = _numbers(said)
        viewed.sequence = viewed.snapshot
        gap, viewed.gap = viewed.gap, False
        if before is None or gap:
            news = fold.snapshot()
        else:
            news = fold.succeed(before)
        if gap:
            news.insert(0, News(NotificationKind.GAP, {}))
        waiting, viewed.waiting = viewed.waiting, []
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
            assert viewed.asked or (viewed.fold is not None and not viewed.waiting)


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
