"""Which events were sent to a link and are not known to have arrived?

They are kept, and sent again when a session on the link begins, until the neighbour has them. A
neighbour may be away for long: of more than fits the oldest are given up. The link is *short* then,
and whoever is behind it is told so, before all that is left, until some of that has arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from driftline.broker.effects import Effect, Key, Reopen, SendParcels
from driftline.model.message import Parcel
from driftline.model.value import Value

_PARCEL_BYTES = 200
_VALUE_BYTES = 50


class _Waiting:
    """What is on its way to one link, by position, and about how many bytes that is."""

    __slots__ = ("bytes", "parcels")

    def __init__(self) -> None:
        self.parcels: dict[int, tuple[Parcel, int]] = {}
        self.bytes = 0

    def put(self, position: int, parcel: Parcel) -> None:
        size = _size(parcel)
        self.parcels[position] = parcel, size
        self.bytes += size

    def pop(self, position: int) -> None:
        self.bytes -= self.parcels.pop(position)[1]


class Outbox:
    """What is on its way, by link and position. `put` journals, `count` numbers."""

    __slots__ = ("_count", "_limit", "_limit_bytes", "_put", "_short", "_waiting")

    def __init__(
        self,
        put: Callable[[Key, object], None],
        count: Callable[[], int],
        limit: int,
        limit_bytes: int,
    ) -> None:
        self._put = put
        self._count = count
        self._limit = max(1, limit)
        self._limit_bytes = limit_bytes
        self._waiting: dict[str, _Waiting] = {}
        self._short: set[str] = set()

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept."""
        outbox = [(key, value) for key, value in stored.items() if key[0] == "out"]
        for key, value in sorted(outbox, key=lambda one: int(one[0][2])):
            assert isinstance(value, Parcel)
            self._waiting.setdefault(key[1], _Waiting()).put(int(key[2]), value)
        self._short = {key[1] for key in stored if key[0] == "short"}

    def post(self, link: str, parcels: tuple[Parcel, ...]) -> Effect:
        """Keep what goes to a link until it is known to have arrived."""
        waiting = self._waiting.setdefault(link, _Waiting())
        posted = tuple((self._count(), parcel) for parcel in parcels)
        for position, parcel in posted:
            waiting.put(position, parcel)
            self._put(("out", link, str(position)), parcel)
        if self._is_full(waiting):
            self._give_up(link, waiting)
            return Reopen(link)
        return SendParcels(link, posted)

    def _is_full(self, waiting: _Waiting) -> bool:
        return len(waiting.parcels) > self._limit or waiting.bytes > self._limit_bytes

    def _give_up(self, link: str, waiting: _Waiting) -> None:
        """Forget the oldest. One alone may be larger than the limit says."""
        while self._is_full(waiting) and len(waiting.parcels) > 1:
            self._forget(link, waiting, next(iter(waiting.parcels)))
        if link not in self._short:
            self._short.add(link)
            self._put(("short", link), True)

    def _forget(self, link: str, waiting: _Waiting, position: int) -> None:
        waiting.pop(position)
        self._put(("out", link, str(position)), None)

    def is_short(self, link: str) -> bool:
        """Was something given up that was to go to a link, and has nothing arrived since?"""
        return link in self._short

    def again(self, link: str) -> list[SendParcels]:
        """All that is on its way to a link."""
        waiting = self._waiting.get(link)
        if waiting is None or not waiting.parcels:
            return []
        posted = ((position, parcel) for position, (parcel, _) in waiting.parcels.items())
        return [SendParcels(link, tuple(posted))]

    def delivered(self, link: str, position: int) -> None:
        """A neighbour has all that was sent to it up to a position."""
        waiting = self._waiting.get(link)
        if waiting is None:
            return
        # In order: the first ones are the oldest.
        while waiting.parcels and (sent := next(iter(waiting.parcels))) <= position:
            self._forget(link, waiting, sent)
        self._no_longer_short(link)

    def _no_longer_short(self, link: str) -> None:
        if link in self._short:
            self._short.discard(link)
            self._put(("short", link), None)

    def forget(self, link: str) -> None:
        """Nothing is on its way to a link any more."""
        waiting = self._waiting.pop(link, _Waiting())
        for position in waiting.parcels:
            self._put(("out", link, str(position)), None)
        self._no_longer_short(link)

    def links(self) -> list[str]:
        """The links that something is on its way to."""
        return [link for link, waiting in self._waiting.items() if waiting.parcels]

    def counts(self) -> dict[str, int]:
        """How many events are on their way to each link."""
        return {link: len(waiting.parcels) for link, waiting in self._waiting.items()}

    def _check(self) -> None:
        for waiting in self._waiting.values():
            assert list(waiting.parcels) == sorted(waiting.parcels)
            assert waiting.bytes == sum(size for _, size in waiting.parcels.values())
            assert len(waiting.parcels) <= 1 or not self._is_full(waiting)


def _size(parcel: Parcel) -> int:
    """About how many bytes it takes, in memory and in the journal."""
    values = parcel.event.attributes.values()
    return _PARCEL_BYTES + sum(map(_value_size, values))


def _value_size(value: Value) -> int:
    return _VALUE_BYTES + (len(value) if isinstance(value, str | bytes) else 0)
