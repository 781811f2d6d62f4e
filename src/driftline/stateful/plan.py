"""Which reformulator takes a view, and how is it told of what it needs?

A view is planned alike wherever it is looked at: its subscriber's edge asks for the *interest*, the
home for the messages to make and for a snapshot, which the edge reads.

    MIN or MAX over one range, beside equalities      range_min: $min:…, $max:…
    moved, beside a condition without variables       value_based: $moved:…
    crossed, and moved beside any other condition     $rows:…, folded where the subscriber is
    other aggregates, DISTINCT, live sets of rows     $rows:…, folded where the subscriber is
    a join                                            join: $pairs:…
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

import pyarrow as pa

from driftline.model.event import Event
from driftline.model.expression import Expression
from driftline.model.predicate import conjunction, conjuncts
from driftline.model.remember import remembered
from driftline.model.standing import Standing
from driftline.model.subscription import Crossed, Subscription
from driftline.model.table import Table
from driftline.model.value import Value
from driftline.model.variables import variables_of
from driftline.model.view import View, ViewKind
from driftline.stateful.distinct.fold import Distinct
from driftline.stateful.fold import Fold
from driftline.stateful.gates import check_gate, gate_of
from driftline.stateful.join.reformulate import PairMessages
from driftline.stateful.join.subscription import JoinSubscription
from driftline.stateful.range_min.fold import Extreme
from driftline.stateful.range_min.reformulate import RangeMessages
from driftline.stateful.range_min.subscription import RangeView, range_view
from driftline.stateful.range_sum.fold import Aggregates
from driftline.stateful.range_sum.totals import totals_of
from driftline.stateful.rows.change import ROWS, Change
from driftline.stateful.rows.fold import RowSet
from driftline.stateful.rows.interest import interest, interest_of_view
from driftline.stateful.rows.reformulate import RowMessages
from driftline.stateful.value_based.conditions import Move
from driftline.stateful.value_based.follower import Follower, RowsFollower
from driftline.stateful.value_based.reformulate import MovedMessages, pin_of
from driftline.stateful.value_based.states import attribute_of, condition_of
from driftline.stateful.value_based.subscription import (
    check_change,
    interest_in_moves,
    interest_in_rows,
)


class Reformulator(Protocol):
    """State and a change of a row become what messages of one type say."""

    @property
    def type(self) -> str: ...

    @property
    def tables(self) -> tuple[str, ...]: ...

    def take(self, change: Change) -> list[dict[str, Value]]:
        """Apply the change of a row of one of the tables: what each message says."""

    def notice(self, flags: Mapping[str, frozenset[str]]) -> bool:
        """Let messages say which of these sets of attributes changed too; is that new?"""

    def flags(self) -> frozenset[str]: ...

    def retain(self, flags: set[str]) -> None:
        """Say no other flags any more."""

    def _check(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Moment:
    """The environment and the instant that a snapshot is judged by, and for whom it is."""

    env: Mapping[str, Value]
    now: int
    who: str = ""
    keeps: bool = False
    """Does what it was told before count?"""


class Kept(Protocol):
    """What a home has that reformulators begin with."""

    tables: dict[str, Table]
    label_bits: int
    many: int

    @property
    def mark(self) -> str:
        """Another text each time."""


class Plan(Protocol):
    """How a view is kept up to date."""

    @property
    def interest(self) -> Subscription:
        """The subscription to the messages that may change it."""

    def reformulator(self, home: Kept) -> Reformulator:
        """What makes these messages, for tables with these rows."""

    def begin(
        self, standing: Standing, by: Reformulator, tables: Mapping[str, Table], moment: Moment
    ) -> Fold:
        """The view over the rows there are now."""

    def load(self, standing: Standing, table: pa.Table) -> Fold:
        """The view that another place has dumped."""


def plan_of(view: View, params: Mapping[str, Value]) -> Plan:
    """The plan of a view under parameters; NotSupported for what cannot be kept up to date."""
    if view.of is ViewKind.MOVED:
        return _of_change(view)
    check_gate(view)
    parts = range_view(view, params)
    return _by_rows(view) if parts is None else RangePlan(view, parts)


@remembered
def _of_change(view: View) -> Plan:
    """The plan of `moved` and `crossed`."""
    assert view.having is not None
    check_change(view.having)
    used = variables_of(view.where)
    if isinstance(view.having, Crossed) or used.private or used.evolving:
        return FollowingPlan(view, interest_in_rows(view))
    return MovedPlan(view, interest_in_moves(view))


@remembered
def _by_rows(view: View) -> Plan:
    """The plan of a view that is kept up to date by the changes of rows, or of pairs."""
    kind = view.of
    if kind is ViewKind.PAIRS:
        return PairsPlan(JoinSubscription.of(view))
    if kind is ViewKind.ROWS:
        return RowsPlan(view, _interest_of_rows(view))
    made = interest_of_view(view)
    return AggregatesPlan(view, made) if kind is ViewKind.AGGREGATES else DistinctPlan(view, made)


@dataclass(frozen=True, slots=True)
class RangePlan:
    """MIN or MAX over a range."""

    view: View
    parts: RangeView

    @property
    def interest(self) -> Subscription:
        """See `Plan`."""
        return self.parts.interest

    def reformulator(self, home: Kept) -> RangeMessages:
        """See `Plan`."""
        return RangeMessages(self.parts.shape, home.tables[self.view.source].items())

    def begin(
        self, standing: Standing, by: Reformulator, tables: Mapping[str, Table], moment: Moment
    ) -> Extreme:
        """See `Plan`."""
        assert isinstance(by, RangeMessages)
        value = by.value(self.view, self.parts, standing.params)
        return Extreme(self.parts.name, value, gate_of(standing))

    def load(self, standing: Standing, table: pa.Table) -> Extreme:
        """See `Plan`."""
        return Extreme.load(self.parts.name, table, gate_of(standing))


@dataclass(frozen=True, slots=True)
class AggregatesPlan:
    """COUNT, SUM, AVG, and MIN and MAX over any condition."""

    view: View
    interest: Subscription

    def reformulator(self, home: Kept) -> RowMessages:
        """See `Plan`."""
        return RowMessages(self.view.source)

    def begin(
        self, standing: Standing, by: Reformulator, tables: Mapping[str, Table], moment: Moment
    ) -> Aggregates:
        """See `Plan`."""
        table = tables[self.view.source]
        ticks = table.declaration.ticks
        totals = totals_of(self.view, standing.params, _rows(table), ticks)
        return Aggregates(self.view, standing.params, totals, gate_of(standing))

    def load(self, standing: Standing, table: pa.Table) -> Aggregates:
        """See `Plan`."""
        return Aggregates.load(self.view, standing.params, table, gate_of(standing))


@dataclass(frozen=True, slots=True)
class DistinctPlan:
    """SELECT DISTINCT."""

    view: View
    interest: Subscription

    def reformulator(self, home: Kept) -> RowMessages:
        """See `Plan`."""
        return RowMessages(self.view.source)

    def begin(
        self, standing: Standing, by: Reformulator, tables: Mapping[str, Table], moment: Moment
    ) -> Distinct:
        """See `Plan`."""
        return Distinct(self.view, standing.params, _rows(tables[self.view.source]))

    def load(self, standing: Standing, table: pa.Table) -> Distinct:
        """See `Plan`."""
        return Distinct.load(self.view, standing.params, table)


@dataclass(frozen=True, slots=True)
class RowsPlan:
    """The live set of the rows that satisfy a condition."""

    view: View
    interest: Subscription

    def reformulator(self, home: Kept) -> RowMessages:
        """See `Plan`."""
        return RowMessages(self.view.source)

    def begin(
        self, standing: Standing, by: Reformulator, tables: Mapping[str, Table], moment: Moment
    ) -> RowSet:
        """See `Plan`."""
        fold = RowSet(self.view.condition(), standing)
        rows = (((key,), row) for key, row in tables[self.view.source].items())
        fold.fill(rows, moment.env, moment.now)
        return fold

    def load(self, standing: Standing, table: pa.Table) -> RowSet:
        """See `Plan`."""
        fold = RowSet(self.view.condition(), standing)
        fold.load(table)
        return fold


@dataclass(frozen=True, slots=True)
class PairsPlan:
    """A join."""

    join: JoinSubscription

    @property
    def interest(self) -> Subscription:
        """See `Plan`."""
        return self.join.interest()

    def reformulator(self, home: Kept) -> PairMessages:
        """See `Plan`."""
        first, second = (home.tables[name].items() for name in self.join.pairing.tables)
        return PairMessages(self.join.pairing, first, second)

    def begin(
        self, standing: Standing, by: Reformulator, tables: Mapping[str, Table], moment: Moment
    ) -> RowSet:
        """See `Plan`."""
        assert isinstance(by, PairMessages)
        fold = self._fold(standing)
        fold.fill(by.pairs.snapshot(), moment.env, moment.now)
        return fold

    def load(self, standing: Standing, table: pa.Table) -> RowSet:
        """See `Plan`."""
        fold = self._fold(standing)
        fold.load(table)
        return fold

    def _fold(self, standing: Standing) -> RowSet:
        return RowSet(self.join.pairs, standing, turned=self.join.turned)


@dataclass(frozen=True, slots=True)
class MovedPlan:
    """`moved`: the home knows what everybody was told, and whom a value concerns."""

    view: View
    interest: Subscription

    def reformulator(self, home: Kept) -> MovedMessages:
        """See `Plan`."""
        return MovedMessages(home.tables[self.view.source], home.mark, home.label_bits, home.many)

    def begin(
        self, standing: Standing, by: Reformulator, tables: Mapping[str, Table], moment: Moment
    ) -> Follower:
        """See `Plan`."""
        assert isinstance(by, MovedMessages)
        move, tick = self.move(standing, tables), self._tick(tables)
        found, rows = by.join(moment.who, self.view, move, keeps=moment.keeps)
        return Follower(standing, self.view.source, rows, tick, found)

    def move(self, standing: Standing, tables: Mapping[str, Table]) -> Move:
        """What is asked for as it stands, in ticks if its column has any."""
        move = condition_of(standing, self._tick(tables))
        assert isinstance(move, Move)
        return move

    def _tick(self, tables: Mapping[str, Table]) -> Decimal | None:
        return tables[self.view.source].declaration.ticks.get(attribute_of(self.view))

    def load(self, standing: Standing, table: pa.Table) -> Follower:
        """See `Plan`."""
        return Follower.load(standing, self.view.source, table)


@dataclass(frozen=True, slots=True)
class FollowingPlan:
    """`crossed`, and `moved` beside a condition with variables: each subscription for itself."""

    view: View
    interest: Subscription

    def reformulator(self, home: Kept) -> RowMessages:
        """See `Plan`."""
        return RowMessages(self.view.source)

    def begin(
        self, standing: Standing, by: Reformulator, tables: Mapping[str, Table], moment: Moment
    ) -> RowsFollower:
        """See `Plan`."""
        table = tables[self.view.source]
        condition = self.view.condition()
        rows = [
            (key, row)
            for key, row in table.items()
            if condition.truth(standing.scope(row, moment.env, moment.now)) is True
        ]
        tick = table.declaration.ticks.get(attribute_of(self.view))
        pinned = pin_of(self.view.where, table.declaration.key)[0] is not None
        return RowsFollower(standing, self.view.source, rows, tick, moment.env, pinned=pinned)

    def load(self, standing: Standing, table: pa.Table) -> RowsFollower:
        """See `Plan`."""
        return RowsFollower.load(standing, self.view.source, table)


def _interest_of_rows(view: View) -> Subscription:
    """What moves by itself is judged where the subscriber is: the network leaves it out."""
    parts = (*conjuncts(view.where), *(column.expression for column in view.columns))
    if not any(map(_evolves, parts)):
        columns = [column.expression for column in view.columns]
        return interest(ROWS + view.source, view.where, columns or None)
    still = tuple(part for part in conjuncts(view.where) if not _evolves(part))
    return interest(ROWS + view.source, conjunction(still))


def _evolves(expression: Expression) -> bool:
    return bool(variables_of(expression).evolving)


def _rows(table: Table) -> Iterable[Event]:
    return (row for _, row in table.items())
