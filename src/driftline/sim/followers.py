"""What may somebody have been told who follows values, when this is how they changed?

From the definition, and slow: a follower begins at some change, with a snapshot, and its parameters
become others at some change. At which ones nobody can see, and where a value may be told or not
there are two right answers. So there are several *beliefs* of what a follower knows by now; what it
is told, and that it is told nothing, rules some out, and one must be left.

    moved beside a condition without variables    its table's home knows it: by other radii it is
                                                  told at once of the last values that counted
    any other condition, and crossed              it finds what concerns it: while its parameters
                                                  become others it is brought what fits both, and
                                                  what fits the new ones from some change on
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from driftline.errors import InvalidValue
from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.standing import Standing
from driftline.model.value import Value, comparable
from driftline.model.view import View
from driftline.sim.history import Change, Placed
from driftline.stateful.news import News, Values, value_key
from driftline.stateful.plan import MovedPlan, plan_of
from driftline.stateful.value_based.conditions import Move, number_of
from driftline.stateful.value_based.reformulate import pin_of
from driftline.stateful.value_based.states import attribute_of, condition_of

NOBODY = -1
"""No epoch."""

_Key: TypeAlias = object
_Keyed: TypeAlias = tuple[tuple[Value, ...], Event]
Said: TypeAlias = tuple[object, ...]
"""What was told, such that what is equal in the language is equal."""


class Known(NamedTuple):
    """What is known of one row: the value last told, or whether the threshold was reached."""

    keys: tuple[Value, ...]
    centre: float | None = None
    beyond: bool = False
    told: tuple[tuple[str, Value | None], ...] | None = None
    last: Event | None = None
    """The row as it last counted."""

    def old(self) -> Values | None:
        """What was last told."""
        return None if self.told is None else dict(self.told)


class Outcome(NamedTuple):
    """One right answer to a row: what is known then, and what is told."""

    known: Known | None
    news: News | None = None


class Judge:
    """A follower's condition under one epoch."""

    def __init__(self, standing: Standing, key: str) -> None:
        """Over a table with this key; over a type that is no table there is none, and it is ''."""
        view = standing.statement
        assert isinstance(view, View)
        self.condition = condition_of(standing)
        self.at_home = bool(key) and isinstance(plan_of(view, standing.params), MovedPlan)
        self.is_table = bool(key)
        self.pinned = bool(key) and pin_of(view.where, key)[0] is not None
        self.attribute = attribute_of(view)
        self._standing = standing
        self._rest = view.condition()
        # Many beliefs ask the same.
        self._counts: dict[Event, bool] = {}

    def counts(self, row: Event) -> bool:
        """Does it satisfy the rest of the condition?"""
        found = self._counts.get(row)
        if found is None:
            there = self._rest.source in (None, row.type)
            found = there and self._rest.truth(self._standing.scope(row, {})) is True
            self._counts[row] = found
        return found

    def matters(self, row: Event) -> bool:
        """Must the network bring it?"""
        value = self.value(row)
        if isinstance(self.condition, Move) or value is None:
            return self.counts(row)
        return self.counts(row) and (self.condition.reached(value) or self.condition.cleared(value))

    def value(self, row: Event) -> float | None:
        """Its value, if it is one."""
        given = row.attributes.get(self.attribute)
        if not isinstance(self.condition, Move):
            return number_of(given)
        try:
            return self.condition.number(given)
        except InvalidValue:
            return None

    def take(
        self, keys: tuple[Value, ...], known: Known | None, row: Event, first: NotificationKind
    ) -> Iterator[Outcome]:
        """The right answers to a row that satisfies the rest."""
        value = self.value(row)
        if value is None:
            yield Outcome(known)
            return
        known = (known or Known(keys))._replace(last=row)
        due, may = self._judged(known, value)
        if due or may:
            yield self._told(known, value, row, first)
        if not due:
            beyond = known.beyond
            if not isinstance(self.condition, Move) and beyond:
                beyond = not self.condition.cleared(value)
            yield Outcome(known._replace(beyond=beyond))

    def _judged(self, known: Known, value: float) -> tuple[bool, bool]:
        """Must a value be told, or may it be?"""
        condition = self.condition
        if not isinstance(condition, Move):
            reached = not known.beyond and condition.reached(value)
            return reached, reached
        if known.centre is None:
            return True, True
        tells = condition.rule.tells
        may = condition.radius if condition.may is None else condition.may
        return tells(known.centre, condition.radius, value), tells(known.centre, may, value)

    def _told(self, known: Known, value: float, row: Event, first: NotificationKind) -> Outcome:
        values = self._rest.select(self._standing.scope(row, {}))
        kind = first if known.told is None else NotificationKind.CHANGE
        if not self.is_table:
            kind = NotificationKind.EVENT
        news = News(kind, values, known.old(), known.keys)
        after = known._replace(centre=value, beyond=True, told=tuple(values.items()))
        return Outcome(after, news)

    def begins_at(self, one: Placed, said: Value | None) -> Event:
        """A row as a snapshot tells it.

        Who shares a centre is told that: a value that the row had, from which it did not move far.
        """
        condition, row = self.condition, one.row
        if not isinstance(condition, Move) or not condition.shared or not self.at_home:
            return row
        value, centre = self.value(row), number_of(said)
        if value is None or centre is None or said is None or condition.may is not None:
            return row
        had = any(self.value(before) == centre for before in one.earlier if self.counts(before))
        if not had or condition.rule.tells(float(centre), condition.radius, value):
            return row
        return row.with_attribute(self.attribute, said)


@dataclass(frozen=True, slots=True)
class Belief:
    """What a follower may know: its epoch, and what is known of rows; `towards` another epoch."""

    epoch: int = NOBODY
    towards: int = NOBODY
    first: bool = False
    """Is the first that it is told its snapshot?"""
    rows: frozenset[tuple[_Key, Known]] = frozenset()

    def known(self) -> dict[_Key, Known]:
        """What is known, by keys."""
        return dict(self.rows)

    def knowing(self, rows: Mapping[_Key, Known], *, told: bool) -> Belief:
        """The same, when this is known and something was told, or not."""
        return replace(self, rows=frozenset(rows.items()), first=self.first and not told)

    @property
    def kind(self) -> NotificationKind:
        """What it is called that something is told of a row for the first time."""
        return NotificationKind.SNAPSHOT if self.first else NotificationKind.ENTER


Next: TypeAlias = tuple[Belief, tuple[News, ...]]
"""A belief that follows from another, and what is told."""


class Definition:
    """What one follower is told; `judges` by epochs, and since when each may count."""

    def __init__(self) -> None:
        self.judges: dict[int, Judge] = {}
        self.since: dict[int, int] = {}

    def step(self, belief: Belief, change: Change) -> Iterator[Next]:
        """What follows from a change of a row."""
        if belief.epoch == NOBODY:
            yield belief, ()
            return
        key, known = tuple(map(comparable, change.keys)), belief.known()
        before = known.get(key)
        if change.row is None:
            gone = known.pop(key, None)
            leaves = gone is not None and gone.told is not None
            after = belief.knowing(known, told=False)
            yield after, (_left(gone),) if gone is not None and leaves else ()
            return
        judge = self.judges[belief.epoch if belief.towards == NOBODY else belief.towards]
        if not judge.counts(change.row):
            yield belief, ()
            return
        if not self._is_brought(belief, change.row):
            yield belief, ()
        for known_now, news in judge.take(change.keys, before, change.row, belief.kind):
            rows = dict(known) if known_now is None else {**known, key: known_now}
            told = () if news is None else (news,)
            yield belief.knowing(rows, told=bool(told)), told

    def _is_brought(self, belief: Belief, row: Event) -> bool:
        """Is it sure that a row that counts comes, while parameters become others?

        An event may have waited until it was known that it is no row, and been judged before, too.
        """
        first, last = belief.epoch, belief.towards
        if not self.judges[belief.epoch].is_table:
            first, last = min(self.judges), belief.epoch
        epochs = range(first, last + 1)
        return all(self.judges[one].matters(row) for one in epochs if one in self.judges)

    def settle(
        self, belief: Belief, rows: Iterable[Placed], until: int, newest: int, said: Hints
    ) -> Iterator[Next]:
        """What may happen while these are the rows, until some change.

        A snapshot is taken; or parameters become others.
        """
        rows = list(rows)
        if belief.epoch == NOBODY:
            for epoch, since in self.since.items():
                if epoch <= newest and since <= until:
                    yield self._join(epoch, rows, said)
            return
        if belief.towards != NOBODY and self.since[belief.towards] <= until:
            yield from self._arrive(belief, rows)
        for epoch in range(max(belief.epoch, belief.towards) + 1, newest + 1):
            if not self.judges[epoch].is_table:
                yield replace(belief, epoch=epoch), ()
            elif not self.judges[epoch].at_home:
                # What was on its way when it asked is judged by it, too.
                yield replace(belief, towards=epoch), ()
            elif self.since[epoch] <= until:
                yield from self._change(belief, epoch)

    def _join(self, epoch: int, rows: list[Placed], said: Hints) -> Next:
        judge = self.judges[epoch]
        counting = [one for one in rows if judge.counts(one.row)]
        known: dict[_Key, Known] = {}
        told: list[News] = []
        for one in counting:
            row = judge.begins_at(one, said(one.key, judge.attribute))
            outcome = next(judge.take((one.key,), None, row, NotificationKind.SNAPSHOT))
            if outcome.known is not None:
                known[comparable(one.key),] = outcome.known._replace(last=one.row)
            if outcome.news is not None:
                told.append(outcome.news)
        there = told if judge.at_home else counting
        belief = Belief(epoch, first=judge.pinned and not there)
        return belief.knowing(known, told=False), tuple(told)

    def _change(self, belief: Belief, epoch: int) -> Iterator[Next]:
        """Its home knows other radii: they may be overdue."""
        known = belief.known()
        last = [(one.keys, one.last) for one in known.values() if one.last is not None]
        yield from self._judge(replace(belief, epoch=epoch), last)

    def _arrive(self, belief: Belief, rows: list[Placed]) -> Iterator[Next]:
        """The snapshot has been taken by which it has other parameters."""
        judge = self.judges[belief.towards]
        counting: list[_Keyed] = [((one.key,), one.row) for one in rows if judge.counts(one.row)]
        after = replace(belief, epoch=belief.towards, towards=NOBODY)
        yield from self._judge(after, counting)

    def _judge(self, belief: Belief, rows: list[_Keyed]) -> Iterator[Next]:
        """All right answers to some rows, one after the other."""
        ways: list[Next] = [(belief, ())]
        judge = self.judges[belief.epoch]
        for keys, row in rows:
            key = tuple(map(comparable, keys))
            further: list[Next] = []
            for before, told in ways:
                known = before.known()
                for now, news in judge.take(keys, known.get(key), row, before.kind):
                    kept = known if now is None else {**known, key: now}
                    more = () if news is None else (news,)
                    further.append((before.knowing(kept, told=bool(more)), (*told, *more)))
            ways = further
        yield from ways


Hints: TypeAlias = Callable[[Value, str], Value | None]
"""What a delivery says of a row's attribute, by the row's key."""


def said(news: News) -> Said:
    """What was told, to be compared."""
    old = None if news.old is None else _values(news.old)
    return news.kind, tuple(map(comparable, news.keys)), _values(news.values), old


def says(told: Iterable[News], expected: Iterable[Said]) -> bool:
    """Is this what was told? A snapshot is told in any order."""
    return Counter(map(said, told)) == Counter(expected)


def _left(known: Known) -> News:
    return News(NotificationKind.LEAVE, {}, known.old(), known.keys)


def _values(values: Values) -> tuple[tuple[str, object], ...]:
    return tuple((name, value_key(value)) for name, value in sorted(values.items()))
