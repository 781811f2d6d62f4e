"""Which pairs does a change of a row change? The home's side.

Each table's rows lie by their join key. A changed row meets the partners that it had and those that
it has: one it keeps makes a pair that changed, one it had a pair that went, one it gets a pair that
came. NULL equals nothing, so a row without its join key has no partners.

What is kept here is the two tables over again, in another order, so nothing of it must survive: it
is built from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from driftline.model.event import ENVELOPE, Event
from driftline.model.expression import Attribute
from driftline.model.scope import Scope
from driftline.model.value import Value, comparable
from driftline.stateful.join.subscription import Pairing
from driftline.stateful.rows.change import Change, attributes_of
from driftline.stateful.rows.interest import full_name

_Partners: TypeAlias = dict[object, tuple[Value, Event]]
_NOBODY: _Partners = {}


class Pairs:
    """The rows of both tables of a pairing, by join key."""

    __slots__ = ("_sides", "pairing")

    def __init__(
        self,
        pairing: Pairing,
        first: Iterable[tuple[Value, Event]] = (),
        second: Iterable[tuple[Value, Event]] = (),
    ) -> None:
        """Begin with the rows of the pairing's first and second table, with their keys."""
        self.pairing = pairing
        columns = zip(*pairing.columns, strict=True)
        self._sides = tuple(_Side(tuple(names)) for names in columns)
        for side, rows in zip(self._sides, (first, second), strict=True):
            for key, row in rows:
                side.replace(key, None, row)

    def take(self, change: Change) -> list[Change]:
        """Apply the change of a row of either table: the changes of pairs. O(partners)."""
        at = self.pairing.tables.index(change.table)
        side, other = self._sides[at], self._sides[1 - at]
        (key,) = change.keys
        before = other.partners(side.key_of(change.old))
        after = other.partners(side.key_of(change.new))
        found = []
        for hashed, (partner_key, partner) in {**before, **after}.items():
            old = self._pair(at, change.old, partner) if hashed in before else None
            new = self._pair(at, change.new, partner) if hashed in after else None
            keys = (key, partner_key) if at == 0 else (partner_key, key)
            found.append(Change(self.pairing.type, keys, old, new))
        side.replace(key, change.old, change.new)
        return found

    def snapshot(self) -> Iterator[tuple[tuple[Value, Value], Event]]:
        """Every pair there is, with the keys of its rows."""
        first, second = self._sides
        for join_key, rows in first.by_key.items():
            for key, row in rows.values():
                for partner_key, partner in second.partners(join_key).values():
                    yield (key, partner_key), self._pair(0, row, partner)

    def _pair(self, at: int, row: Event | None, partner: Event) -> Event:
        """Two rows as one, with the attributes and the envelope of both under their full names."""
        assert row is not None
        attributes: dict[str, Value] = {}
        rows = (row, partner) if at == 0 else (partner, row)
        for table, one in zip(self.pairing.tables, rows, strict=True):
            for name, value in one.attributes.items():
                attributes[full_name(Attribute(name, table))] = value
            for name in ENVELOPE:
                inner = one.envelope(name)
                if inner is not None:
                    attributes[full_name(Attribute(name, table))] = inner
        return Event(self.pairing.type, attributes)

    def _check(self) -> None:
        for side in self._sides:
            side._check()


class PairMessages:
    """Each change of a pairing's pairs as it is."""

    __slots__ = ("_flags", "pairs")

    def __init__(
        self,
        pairing: Pairing,
        first: Iterable[tuple[Value, Event]] = (),
        second: Iterable[tuple[Value, Event]] = (),
    ) -> None:
        """Begin with the rows of both tables, in the pairing's order."""
        self.pairs = Pairs(pairing, first, second)
        self._flags: dict[str, frozenset[str]] = {}

    @property
    def type(self) -> str:
        """The type of its messages."""
        return self.pairs.pairing.type

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables whose changes it must be told."""
        return self.pairs.pairing.tables

    def take(self, change: Change) -> list[dict[str, Value]]:
        """What the messages say. O(partners)."""
        return [attributes_of(pair, self._flags) for pair in self.pairs.take(change)]

    def notice(self, flags: Mapping[str, frozenset[str]]) -> bool:
        """Say these flags too from now on; is that new?"""
        known = flags.keys() <= self._flags.keys()
        self._flags.update(flags)
        return not known

    def flags(self) -> frozenset[str]:
        """The flags that messages may have."""
        return frozenset(self._flags)

    def retain(self, flags: set[str]) -> None:
        """Say no others."""
        self._flags = {flag: names for flag, names in self._flags.items() if flag in flags}

    def _check(self) -> None:
        self.pairs._check()


class _Side:
    """One table's rows, by the columns that the other's must equal."""

    __slots__ = ("by_key", "columns")

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self.by_key: dict[tuple[object, ...], _Partners] = {}

    def key_of(self, row: Event | None) -> tuple[object, ...] | None:
        """The join key of a row; None if a part is missing."""
        if row is None:
            return None
        scope = Scope(row)
        values = [scope.attribute(name) for name in self.columns]
        found = tuple(comparable(value) for value in values if value is not None)
        return found if len(found) == len(values) else None

    def partners(self, join_key: tuple[object, ...] | None) -> _Partners:
        """The rows with this join key."""
        return _NOBODY if join_key is None else self.by_key.get(join_key, _NOBODY)

    def replace(self, key: Value, old: Event | None, new: Event | None) -> None:
        """The row is now another; one that keeps its join key keeps its place."""
        before, after = self.key_of(old), self.key_of(new)
        if before is not None and before != after:
            del self.by_key[before][comparable(key)]
            if not self.by_key[before]:
                del self.by_key[before]
        if after is not None and new is not None:
            self.by_key.setdefault(after, {})[comparable(key)] = (key, new)

    def _check(self) -> None:
        for join_key, rows in self.by_key.items():
            assert rows
            for hashed, (key, row) in rows.items():
                assert hashed == comparable(key)
                assert self.key_of(row) == join_key
