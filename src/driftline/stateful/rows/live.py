"""What does one change tell somebody who asks for the rows that satisfy a condition?

Nothing needs to be kept: the message has the row as it was. `LiveRows` of the model, which keeps
what it told, is the definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.scope import Scope
from driftline.model.subscription import Subscription
from driftline.model.value import Value, same
from driftline.stateful.news import News, Values
from driftline.stateful.rows.change import Change

Params = Mapping[str, Value]


def row_news(subscription: Subscription, params: Params, change: Change) -> News | None:
    """What the change of a row tells: that it entered, changed, left, or nothing."""
    old = _selected(subscription, params, change.old)
    new = _selected(subscription, params, change.new)
    return _between(change.keys, old, new)


def moved_news(
    subscription: Subscription, before: Params, after: Params, keys: tuple[Value, ...], row: Event
) -> News | None:
    """What a move of the parameters tells of a row that stands still."""
    old = _selected(subscription, before, row)
    new = _selected(subscription, after, row)
    return _between(keys, old, new)


def rows_snapshot(
    subscription: Subscription, params: Params, rows: Iterable[tuple[tuple[Value, ...], Event]]
) -> list[News]:
    """One for each row that satisfies the condition, in the order they come."""
    found = ((keys, _selected(subscription, params, row)) for keys, row in rows)
    snapshot = NotificationKind.SNAPSHOT
    return [News(snapshot, values, None, keys) for keys, values in found if values is not None]


def _selected(subscription: Subscription, params: Params, row: Event | None) -> Values | None:
    if row is None:
        return None
    scope = Scope(row, params)
    if subscription.where.evaluate(scope) is not True:
        return None
    return subscription.select(scope)


def _between(keys: tuple[Value, ...], old: Values | None, new: Values | None) -> News | None:
    if new is None:
        return None if old is None else News(NotificationKind.LEAVE, {}, old, keys)
    if old is None:
        return News(NotificationKind.ENTER, new, None, keys)
    if old.keys() == new.keys() and all(same(old[name], new[name]) for name in old):
        return None
    return News(NotificationKind.CHANGE, new, old, keys)
