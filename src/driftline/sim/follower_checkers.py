"""Was a follower of values told what it had to be, and nothing else?

What it was told says by which change of its table's home; between two deliveries it was told
nothing. The definition (`followers`) must be able to give that, from the changes that a witness saw
at that home. Of a type that is no table the changes are the events that a witness beside the
follower was told of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from driftline.model.notification import NotificationKind
from driftline.model.value import Value, comparable
from driftline.sim.checkers import Violation
from driftline.sim.followers import NOBODY, Belief, Definition, Judge, Said, said, says
from driftline.sim.history import Change, Moment, Placed
from driftline.stateful.news import News

_At = tuple[Belief, int]
"""A belief, and how much of a delivery it has explained."""


class Source(Protocol):
    """What happened to what is followed: see `History`."""

    latest: Moment

    def changes(self, table: str, after: Moment, upto: Moment) -> list[Change]: ...

    def rows(self, table: str, moment: Moment) -> tuple[Placed, ...]: ...


@dataclass(frozen=True, slots=True)
class Heard:
    """One delivery: what was told, by which change at the latest, and under which epoch."""

    moment: Moment
    epoch: int
    news: tuple[News, ...]
    exactly: bool
    """Was it that change that told it, and no snapshot?"""


class Follower:
    """One follower of a table, from when its id begins."""

    def __init__(self, name: str, table: str, source: Source, since: Moment) -> None:
        self.name = name
        self._table = table
        self._source = source
        self._definition = Definition()
        self._moment = since
        # What it may know; None: nobody knows, because the witness missed something.
        self._beliefs: set[Belief] | None = {Belief()}
        # What was told of changes that the witness has not been told of yet.
        self._waiting: list[Heard] = []

    def becomes(self, epoch: int, judge: Judge, since: Moment) -> None:
        """It stands like this from then on, at the earliest."""
        self._definition.judges[epoch] = judge
        self._definition.since[epoch] = since[1] if since[0] == self._moment[0] else 0

    def knows(self, epoch: int) -> bool:
        """Has it stood like that?"""
        return epoch in self._definition.judges

    def hear(self, heard: Heard) -> None:
        """It was told something."""
        self._waiting.append(heard)
        self.judge()

    def judge(self, *, everything: bool = False) -> None:
        """Judge what it was told, as far as the witness has come."""
        while self._waiting and (everything or self._waiting[0].moment <= self._source.latest):
            self._one(self._waiting.pop(0))

    def lose(self) -> None:
        """Something that it was told was forgotten: nobody knows what it knows."""
        self._waiting.clear()
        self._beliefs = None

    def begin(self, life: int, beliefs: Iterable[Belief] = (Belief(),)) -> None:
        """Nothing that it was told counts any more; it may begin anew, in a life of its home."""
        if life != self._moment[0]:
            self._moment = life, 0
            self._definition.since = dict.fromkeys(self._definition.since, 0)
        self._beliefs = set(beliefs)

    @property
    def began(self) -> bool:
        """Is it sure that it has had a snapshot?"""
        return self._beliefs is not None and Belief() not in self._beliefs

    def _one(self, heard: Heard) -> None:
        news, life = heard.news, heard.moment[0]
        if news[0].kind is NotificationKind.GAP:
            news = news[1:]
            self.begin(life)
        elif life != self._moment[0]:
            self._go_on(life)
        before = self._beliefs
        self._advance(heard.moment, heard.epoch, news, exactly=heard.exactly)
        if self._beliefs is not None and not self._beliefs:
            raise Violation(f"{self.name} was told {heard}, and knew {_shown(before)}")

    def rest(self, now: Moment, epoch: int) -> None:
        """When nothing is on its way: does it know what is so now?"""
        self.judge(everything=True)
        if self._moment[0] != now[0]:
            self._go_on(now[0])
        before = self._beliefs
        self._advance(now, epoch, (), exactly=False)
        if self._beliefs is not None and not self._beliefs:
            raise Violation(f"{self.name} was told nothing more, and knew {_shown(before)}")

    def _go_on(self, life: int) -> None:
        """There is another life, and it was told of no gap."""
        if self.began:
            raise Violation(f"{self.name} was told of no gap in another life of its home")
        self.begin(life)

    def _advance(self, upto: Moment, epoch: int, news: tuple[News, ...], *, exactly: bool) -> None:
        """Go on to a change, by when it stands under an epoch; on the way it is told this."""
        changes = self._source.changes(self._table, self._moment, upto)
        rows = self._source.rows(self._table, self._moment)
        self._moment = upto
        if self._beliefs is None or not all(one.known for one in changes):
            self._beliefs = None
            return
        told = _Told(self._definition, news, epoch)
        now: set[_At] = {(belief, 0) for belief in self._beliefs}
        until = [*(one.number - 1 for one in changes), upto[1]]
        now = told.settled(now, rows, until[0], speaking=not exactly)
        for change, end in zip(changes, until[1:], strict=True):
            now = told.stepped(now, change, speaking=not exactly or change.number == upto[1])
            now = told.settled(now, change.rows, end, speaking=not exactly)
        self._beliefs = {
            belief
            for belief, count in now
            if count == len(news) and (belief.epoch, belief.towards) == (epoch, NOBODY)
        }


class EventFollower(Follower):
    """One follower of a type that is no table, whose state is in its broker's memory alone."""

    def _go_on(self, life: int) -> None:
        """Its broker remembers that it is there, and nothing else."""
        epochs = self._definition.judges
        self.begin(life, map(Belief, epochs) if self.began else (Belief(),))


class _Told:
    """What one delivery has told, and what of it beliefs explain."""

    def __init__(self, definition: Definition, news: tuple[News, ...], epoch: int) -> None:
        self._definition = definition
        self._news = news
        self._said: list[Said] = list(map(said, news))
        self._epoch = epoch

    def stepped(self, now: Iterable[_At], change: Change, *, speaking: bool) -> set[_At]:
        """Beliefs after a change."""
        found: set[_At] = set()
        for belief, count in now:
            for after, told in self._definition.step(belief, change):
                self._explain(found, after, told, count, speaking=speaking)
        return found

    def settled(
        self, now: Iterable[_At], rows: tuple[Placed, ...], until: int, *, speaking: bool
    ) -> set[_At]:
        """These beliefs, and others that may follow from them while rows stay as they are."""
        found = set(now)
        queue = list(found)
        for belief, count in queue:  # which grows
            more: set[_At] = set()
            for after, told in self._definition.settle(
                belief, rows, until, self._epoch, self._hint
            ):
                self._explain(more, after, told, count, speaking=speaking)
            queue += more - found
            found |= more
        return found

    def _explain(
        self, found: set[_At], belief: Belief, told: tuple[News, ...], count: int, *, speaking: bool
    ) -> None:
        if not told:
            found.add((belief, count))
        elif speaking and says(told, self._said[count : count + len(told)]):
            found.add((belief, count + len(told)))

    def _hint(self, key: Value, attribute: str) -> Value | None:
        for news in self._news:
            about = tuple(map(comparable, news.keys))
            if about == (comparable(key),) and news.kind is NotificationKind.SNAPSHOT:
                return news.values.get(attribute)
        return None


def _shown(beliefs: set[Belief] | None) -> str:
    return "; ".join(str(one) for one in list(beliefs or ())[:4])
