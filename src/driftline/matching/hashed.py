"""Try only the subscriptions whose type and one equality fit.

Most subscriptions name the thing they are about: `symbol = 'IBM'`. A subscription is kept under
each (type, attribute, value) such that one of them must hold for it to match; one without any such
equality is kept under its type alone. An event looks up its own values and verifies what it finds
with the definition, so the answer is that of `scan`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import count

from driftline.model.constraint import Constraint, Operator
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import KIND_OF, Value

_Key = Hashable


class Hashed:
    """Buckets of subscriptions; `match` costs what the fitting buckets hold."""

    __slots__ = ("_attributes", "_buckets", "_keys", "_order", "_standing")

    def __init__(self) -> None:
        self._standing: dict[str, tuple[int, Standing]] = {}
        self._keys: dict[str, tuple[_Key, ...]] = {}
        self._buckets: dict[_Key, dict[str, None]] = {}
        # How many bucket keys name each attribute, so that an event looks up only those.
        self._attributes: dict[str, int] = {}
        self._order = count()

    def add(self, id: str, standing: Standing) -> None:
        """Take in a subscription, replacing one of the same id. O(filters of it)."""
        self.discard(id)
        keys = _keys(standing)
        self._standing[id] = (next(self._order), standing)
        self._keys[id] = keys
        for key in keys:
            bucket = self._buckets.get(key)
            if bucket is None:
                bucket = self._buckets[key] = {}
                self._count(key, 1)
            bucket[id] = None

    def discard(self, id: str) -> None:
        """Forget a subscription; nothing happens if there is none of that id."""
        if self._standing.pop(id, None) is None:
            return
        for key in self._keys.pop(id):
            bucket = self._buckets[key]
            del bucket[id]
            if not bucket:
                del self._buckets[key]
                self._count(key, -1)

    def _count(self, key: _Key, step: int) -> None:
        assert isinstance(key, tuple)
        if len(key) > 1:
            attribute = key[1]
            self._attributes[attribute] = self._attributes.get(attribute, 0) + step
            if not self._attributes[attribute]:
                del self._attributes[attribute]

    def match(self, event: Event, env: Mapping[str, Value]) -> list[str]:
        """The ids of all that the event satisfies, in the order they were added."""
        found: set[str] = set()
        for type_ in (event.type, None):
            found.update(self._buckets.get((type_,), ()))
            for attribute in self._attributes:
                value = event.attributes.get(attribute)
                if value is None:
                    value = event.envelope(attribute)
                if value is not None:
                    found.update(self._buckets.get((type_, attribute, *_hashed(value)), ()))
        hits = []
        for id in found:
            order, standing = self._standing[id]
            if standing.matches(event, env):
                hits.append((order, id))
        hits.sort()
        return [id for _, id in hits]

    def __len__(self) -> int:
        return len(self._standing)

    def _check(self) -> None:
        assert self._standing.keys() == self._keys.keys()
        held = {(key, id) for key, bucket in self._buckets.items() for id in bucket}
        assert held == {(key, id) for id, keys in self._keys.items() for key in keys}
        assert all(self._buckets.values()), "an empty bucket was kept"
        named = [key[1] for key in self._buckets if isinstance(key, tuple) and len(key) > 1]
        assert self._attributes == {name: named.count(name) for name in named}


def _keys(standing: Standing) -> tuple[_Key, ...]:
    """The buckets of which an event must hit one for the subscription to match."""
    assert isinstance(standing.statement, Subscription)
    keys: dict[_Key, None] = {}
    for one in standing.statement.filters(standing.params):
        equality = _equality(one)
        if equality is None:
            # Kept under its type, this filter finds the whole subscription: no other key is needed.
            return ((one.type,),)
        for value in equality.values:
            keys[(one.type, equality.attribute, *_hashed(value))] = None
    return tuple(keys)


def _equality(one: Filter) -> Constraint | None:
    """A constraint with the fewest values an attribute must be equal to; None if there is none."""
    equalities = [
        part
        for part in one.constraints
        if part.operator in (Operator.EQ, Operator.IN) and part.constant
    ]
    return min(equalities, key=lambda part: len(part.values), default=None)


def _hashed(value: Value) -> tuple[_Key, Value]:
    """Equal for values that compare equal, and for no others: 1 and 1.0, but not TRUE."""
    return (KIND_OF[type(value)].value, value)
