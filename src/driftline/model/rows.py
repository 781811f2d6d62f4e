"""Which rows does a subscriber see, and what changed for it?

The live set of rows of a subscription over a table: a snapshot, then a row enters, changes or
leaves. What counts is what the subscriber was last told, so nothing is told twice and nothing it
never saw can leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from driftline.model.notification import NotificationKind
from driftline.model.scope import Scope
from driftline.model.subscription import Subscription
from driftline.model.value import Value, comparable, same

Keys: TypeAlias = tuple[Value, ...]
Values: TypeAlias = dict[str, Value | None]


class LiveRows:
    """The rows one subscription has been told of, by keys, with the values it was told.

    A row of a table has one key; a pair of rows, of a join, has two.
    """

    __slots__ = ("_told", "subscription")

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self._told: dict[object, tuple[Keys, Values]] = {}

    def take(
        self, keys: Keys, scope: Scope | None
    ) -> tuple[NotificationKind, Values, Values | None] | None:
        """The row is now as in `scope` (None: it is gone). What to tell: kind, new, old."""
        hashed = tuple(map(comparable, keys))
        _, old = self._told.get(hashed, (keys, None))
        if scope is None or self.subscription.truth(scope) is not True:
            if old is None:
                return None
            del self._told[hashed]
            return NotificationKind.LEAVE, {}, old
        new = self.subscription.select(scope)
        if old is not None and equal_values(old, new):
            return None
        # A copy, because what is told belongs to the subscriber.
        self._told[hashed] = (keys, dict(new))
        return (NotificationKind.ENTER if old is None else NotificationKind.CHANGE), new, old

    def told(self) -> Iterator[tuple[Keys, Values]]:
        """The rows it was told of and that did not leave, with what it was told."""
        return ((keys, dict(values)) for keys, values in self._told.values())

    def tell(self, keys: Keys, values: Values) -> None:
        """It has been told of a row elsewhere."""
        self._told[tuple(map(comparable, keys))] = (keys, values)

    def __len__(self) -> int:
        return len(self._told)

    def _check(self, rows: Iterable[Keys]) -> None:
        present = {tuple(map(comparable, keys)) for keys in rows}
        assert self._told.keys() <= present, "told of a row that is gone"


def equal_values(a: Values, b: Values) -> bool:
    """Are they the very same, of which nothing need be told?"""
    return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
