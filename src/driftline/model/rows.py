"""Which rows does a subscriber see, and what changed for it?

The live set of rows of a subscription over a table: a snapshot, then a row enters, changes or
leaves. What counts is what the subscriber was last told, so nothing is told twice and nothing it
never saw can leave.
"""

from __future__ import annotations

from collections.abc import Iterable

from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.scope import Scope
from driftline.model.subscription import Subscription
from driftline.model.value import Value, comparable, same

Values = dict[str, Value | None]


class LiveRows:
    """The rows one subscription has been told of, by key, with the values it was told."""

    __slots__ = ("_told", "subscription")

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self._told: dict[object, tuple[Value, Values]] = {}

    def take(
        self, key: Value, scope: Scope | None
    ) -> tuple[NotificationKind, Values, Values | None] | None:
        """The row is now as in `scope` (None: it is gone). What to tell: kind, new, old."""
        hashed = comparable(key)
        _, old = self._told.get(hashed, (key, None))
        if scope is None or self.subscription.truth(scope) is not True:
            if old is None:
                return None
            del self._told[hashed]
            return NotificationKind.LEAVE, {}, old
        new = self.subscription.select(scope)
        if old is not None and _equal(old, new):
            return None
        # A copy, because what is told belongs to the subscriber.
        self._told[hashed] = (key, dict(new))
        return (NotificationKind.ENTER if old is None else NotificationKind.CHANGE), new, old

    def keys(self) -> list[Value]:
        """The keys of the rows it was told of and that did not leave."""
        return [key for key, _ in self._told.values()]

    def _check(self, rows: Iterable[tuple[Value, Event]]) -> None:
        present = {comparable(key) for key, _ in rows}
        assert self._told.keys() <= present, "told of a row that is gone"


def _equal(a: Values, b: Values) -> bool:
    return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
