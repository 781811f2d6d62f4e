"""Try only the subscriptions of which the type, one equality and one range fit.

Most subscriptions name the thing they are about (`symbol = 'IBM'`) and a bound (`price < 10`).
Each filter of a subscription is kept in the bucket of its type and one equality, if it has any, and
there under the range that it asks of one numeric attribute. An event looks up its own values, skips
the ranges it is outside of, and verifies what is left with the definition: so what the buckets find
too much costs time, never an answer, and the answer is that of `scan`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from itertools import count
from typing import TypeAlias

from driftline.model.constraint import Constraint, Operator
from driftline.model.domain import Domain
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.scope import Scope
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Kind, Value, comparable

_Number: TypeAlias = int | float
_Key: TypeAlias = tuple[Hashable, ...]
"""A bucket: (type,) or (type, attribute, kind, value)."""

_Place: TypeAlias = tuple[_Key, str | None]
"""A bucket, and the attribute in it whose range is looked at; None for filters without a range."""


class Hashed:
    """Buckets of filters; `match` costs what the fitting buckets hold, mostly a comparison each."""

    __slots__ = ("_buckets", "_keyed", "_order", "_places", "_standing")

    def __init__(self) -> None:
        self._standing: dict[str, tuple[int, Standing]] = {}
        self._places: dict[str, list[_Place]] = {}
        # By bucket, attribute and (id, number of the place): the range the value must be in.
        self._buckets: dict[
            _Key, dict[str | None, dict[tuple[str, int], tuple[_Number, _Number]]]
        ] = {}
        # How many buckets name each attribute, so that an event looks up only those.
        self._keyed: dict[str, int] = {}
        self._order = count()

    def add(self, id: str, standing: Standing) -> None:
        """Take in a subscription, replacing one of the same id. O(filters of it)."""
        assert isinstance(standing.statement, Subscription)
        self.discard(id)
        self._standing[id] = (next(self._order), standing)
        places = self._places[id] = []
        for one in standing.statement.filters(standing.params):
            ranges = {name: Domain.of(one.on(name)) for name in _attributes(one)}
            if any(domain.empty for domain in ranges.values()):
                continue  # Nothing satisfies this filter.
            attribute, bounds = _range(ranges)
            for key in _keys(one):
                self._put((key, attribute), (id, len(places)), bounds)
                places.append((key, attribute))

    def _put(self, place: _Place, entry: tuple[str, int], bounds: tuple[_Number, _Number]) -> None:
        key, attribute = place
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = {}
            if len(key) > 1:
                name = str(key[1])
                self._keyed[name] = self._keyed.get(name, 0) + 1
        bucket.setdefault(attribute, {})[entry] = bounds

    def discard(self, id: str) -> None:
        """Forget a subscription; nothing happens if there is none of that id."""
        if self._standing.pop(id, None) is None:
            return
        for number, (key, attribute) in enumerate(self._places.pop(id)):
            bucket = self._buckets[key]
            del bucket[attribute][(id, number)]
            if not bucket[attribute]:
                del bucket[attribute]
            if not bucket:
                del self._buckets[key]
                if len(key) > 1:
                    name = str(key[1])
                    self._keyed[name] -= 1
                    if not self._keyed[name]:
                        del self._keyed[name]

    def match(self, event: Event, env: Mapping[str, Value]) -> list[str]:
        """The ids of all that the event satisfies, in the order they were added."""
        scope = Scope(event)
        found: set[str] = set()
        for key in self._fitting(event, scope):
            for attribute, entries in self._buckets.get(key, {}).items():
                if attribute is None:
                    found.update(id for id, _ in entries)
                    continue
                value = scope.attribute(attribute)
                if type(value) is int or type(value) is float:
                    found.update(
                        id for (id, _), (low, high) in entries.items() if low <= value <= high
                    )
        hits = []
        for id in found:
            order, standing = self._standing[id]
            if standing.matches(event, env):
                hits.append((order, id))
        hits.sort()
        return [id for _, id in hits]

    def _fitting(self, event: Event, scope: Scope) -> Iterator[_Key]:
        for type_ in (event.type, None):
            yield (type_,)
            for attribute in self._keyed:
                value = scope.attribute(attribute)
                if value is not None:
                    yield (type_, attribute, *comparable(value))

    def __len__(self) -> int:
        return len(self._standing)

    def _check(self) -> None:
        assert self._standing.keys() == self._places.keys()
        held = {
            (key, attribute, entry)
            for key, bucket in self._buckets.items()
            for attribute, entries in bucket.items()
            for entry in entries
        }
        placed = {
            (key, attribute, (id, number))
            for id, places in self._places.items()
            for number, (key, attribute) in enumerate(places)
        }
        assert held == placed
        assert all(self._buckets.values()), "an empty bucket was kept"
        assert all(all(bucket.values()) for bucket in self._buckets.values())
        named = [str(key[1]) for key in self._buckets if len(key) > 1]
        assert self._keyed == {name: named.count(name) for name in named}


def _attributes(one: Filter) -> set[str]:
    return {constraint.attribute for constraint in one.constraints}


def _keys(one: Filter) -> list[_Key]:
    """The buckets of which an event must hit one for the filter to be true."""
    equalities = [
        part
        for part in one.constraints
        if part.operator in (Operator.EQ, Operator.IN) and part.constant
    ]
    if not equalities:
        return [(one.type,)]
    fewest: Constraint = min(equalities, key=lambda part: len(part.values))
    keys = dict.fromkeys(
        (one.type, fewest.attribute, *comparable(value)) for value in fewest.values
    )
    return list(keys)


def _range(ranges: Mapping[str, Domain]) -> tuple[str | None, tuple[_Number, _Number]]:
    """The numeric attribute with the best known ends, and those ends, taken as closed."""
    best: tuple[str | None, tuple[_Number, _Number]] = (None, (-math.inf, math.inf))
    ends_best = 0
    for name, domain in ranges.items():
        if domain.kind is not Kind.NUMBER:
            continue
        ends = (domain.low is not None) + (domain.high is not None)
        if ends > ends_best:
            low = -math.inf if domain.low is None else domain.low
            high = math.inf if domain.high is None else domain.high
            best, ends_best = (name, (low, high)), ends  # type: ignore[assignment]  # numbers
    return best
