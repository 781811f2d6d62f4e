"""What is a follower of values told, row by row? The subscriber's side of `moved` and `crossed`.

Among the events that satisfy the rest of the condition one is told iff the value moved since one
was last told; other events change nothing. There is a state for each row of a table, and one for
a type that is no table. Whoever brings the events may bring too many, never too few: what is told
is decided here, from the definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from driftline.errors import InvalidValue
from driftline.model.event import Event
from driftline.model.expression import Attribute
from driftline.model.notification import NotificationKind
from driftline.model.scope import Scope
from driftline.model.standing import Standing
from driftline.model.subscription import Moved, Subscription
from driftline.model.value import Value, comparable
from driftline.model.view import View
from driftline.stateful.news import News, Values
from driftline.stateful.value_based.conditions import (
    Hysteresis,
    Move,
    hysteresis_of,
    move_of,
)
from driftline.stateful.value_based.fold import Crossing, Moving

NO_ENV: Mapping[str, Value] = {}


Condition: TypeAlias = Move | Hysteresis


def condition_of(standing: Standing, tick: Decimal | None = None) -> Condition:
    """What `moved` or `crossed` asks for as it stands; InvalidValue if a radius is none."""
    change = _view(standing).having
    assert change is not None
    scope = Scope(params=standing.params)
    if isinstance(change, Moved):
        return move_of(change, scope, tick)
    return hysteresis_of(change, scope)


def attribute_of(view: View) -> str:
    """The attribute whose value moves."""
    assert view.having is not None
    assert isinstance(view.having.value, Attribute)
    return view.having.value.name


def _view(standing: Standing) -> View:
    assert isinstance(standing.statement, View)
    return standing.statement


@dataclass(slots=True)
class _State:
    """What is known of one row."""

    keys: tuple[Value, ...]
    judge: Moving | Crossing
    told: Values | None = None
    """What was last told of it; None before that."""


class States:
    """One subscription's states, by the keys of rows; without a key for what is no table."""

    __slots__ = ("_attribute", "_by_key", "_condition", "_standing", "_subscription", "first")

    def __init__(self, standing: Standing, condition: Condition) -> None:
        self._standing = standing
        self._subscription: Subscription = _view(standing).condition()
        self._attribute = attribute_of(_view(standing))
        self._condition = condition
        self._by_key: dict[object, _State] = {}
        self.first = NotificationKind.ENTER
        """What it is called that something is told of a row for the first time."""

    def satisfied(self, row: Event, env: Mapping[str, Value]) -> bool:
        """Does an event satisfy the rest of the condition?"""
        return self._subscription.truth(self._standing.scope(row, env)) is True

    def take(self, keys: tuple[Value, ...], row: Event, env: Mapping[str, Value]) -> News | None:
        """An event that satisfies the rest of the condition: is it told?"""
        hashed = tuple(map(comparable, keys))
        state = self._by_key.get(hashed)
        if state is None:
            state = self._by_key[hashed] = _State(keys, self._begin())
        try:
            told = state.judge.take(row.attributes.get(self._attribute))
        except InvalidValue:
            told = False  # No such number can be compared: there is no value.
        if not told:
            if state.told is None and isinstance(state.judge, Moving):
                del self._by_key[hashed]  # It had no value: there is nothing to be known.
            return None
        old, state.told = state.told, self._subscription.select(self._standing.scope(row, env))
        kind = self.first if old is None else NotificationKind.CHANGE
        self.first = NotificationKind.ENTER
        return News(kind, dict(state.told), old, keys)

    def must(self, keys: tuple[Value, ...], row: Event, by: Move) -> bool:
        """Must a row be told by a condition, whatever else it may be told by?"""
        state = self._by_key.get(tuple(map(comparable, keys)))
        centre = state.judge.centre if state and isinstance(state.judge, Moving) else None
        return Moving(by, centre).take(row.attributes.get(self._attribute))

    def leave(self, keys: tuple[Value, ...]) -> News | None:
        """A row is gone, and its state with it."""
        state = self._by_key.pop(tuple(map(comparable, keys)), None)
        if state is None or state.told is None:
            return None
        return News(NotificationKind.LEAVE, {}, state.told, state.keys)

    def succeed(self, before: States) -> None:
        """Take over what another had been told, which had other parameters."""
        self.first = before.first
        for hashed, state in before._by_key.items():
            judge = self._begin()
            if isinstance(judge, Moving) and isinstance(state.judge, Moving):
                judge.centre = state.judge.centre
            elif isinstance(judge, Crossing) and isinstance(state.judge, Crossing):
                judge.beyond = state.judge.beyond
            self._by_key[hashed] = _State(state.keys, judge, state.told)

    def begin(
        self, rows: Iterable[tuple[tuple[Value, ...], Event]], env: Mapping[str, Value]
    ) -> list[News]:
        """What these rows, as they are now, tell."""
        news = (self.take(keys, row, env) for keys, row in rows)
        return [one for one in news if one is not None]

    def _begin(self) -> Moving | Crossing:
        condition = self._condition
        return Moving(condition) if isinstance(condition, Move) else Crossing(condition)

    def __len__(self) -> int:
        return len(self._by_key)
