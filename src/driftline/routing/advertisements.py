"""What may come from where? [SIENA §5.2.4]

Advertisements are forwarded as subscriptions are: a neighbour is told what the others offer, unless
it was told of something that covers it (see `table`). A subscription then goes only to where
something is offered that it could want; so each new advertisement draws after it the subscriptions
that it makes relevant.
"""

from __future__ import annotations

from collections.abc import Mapping

from driftline.matching.order import Node, Order
from driftline.model.advertisement import (
    Advertisement,
    advertisement_covers,
    advertisement_intersects,
)
from driftline.model.filter import Filter
from driftline.routing.table import Interface, Key, Table


class _Advertised(Node):
    said: Advertisement

    def covers(self, other: _Advertised) -> bool:
        return advertisement_covers(self.said, other.said)


class _ByCovering(Order[_Advertised]):
    """Advertisements are few: each is compared with each."""

    def _make(self, id: str, said: Advertisement) -> _Advertised:
        return _Advertised(id, said)

    def _candidates(self, new: _Advertised, *, around: bool) -> dict[_Advertised, None]:
        return dict.fromkeys(self)


class Advertisements:
    """What interfaces offer; `table` says what each neighbour must be told of it."""

    __slots__ = ("_held", "table")

    def __init__(self) -> None:
        self.table: Table[Advertisement] = Table(_ByCovering())
        self._held: dict[Interface, dict[Key, Advertisement]] = {}

    def put(self, owner: Interface, key: Key, says: Advertisement | None) -> list[Advertisement]:
        """Let an interface offer something by a key, None: no longer. What is different now?"""
        held = self._held.setdefault(owner, {})
        before = held.pop(key, None)
        if says is None:
            self.table.drop(owner, key)
        else:
            held[key] = says
            self.table.put(owner, key, says)
        if not held:
            del self._held[owner]
        return [one for one in (before, says) if one is not None and before != says]

    def keys(self, owner: Interface) -> list[Key]:
        """The keys of what an interface offers."""
        return list(self._held.get(owner, ()))

    def held(self, owner: Interface) -> Mapping[Key, Advertisement]:
        """What an interface offers, by its keys."""
        return self._held.get(owner, {})

    def owners(self) -> list[Interface]:
        """Who offers something."""
        return list(self._held)

    def provides(self, owner: Interface, wanted: Filter) -> bool:
        """Might an interface send something that satisfies a filter?"""
        held = self._held.get(owner, {})
        return any(advertisement_intersects(says, wanted) for says in held.values())

    def providers(self, wanted: Filter) -> list[Interface]:
        """Who might."""
        return [owner for owner in self._held if self.provides(owner, wanted)]

    def _check(self) -> None:
        self.table._check()
        for owner, held in self._held.items():
            assert set(self.table.keys(owner)) == held.keys()
