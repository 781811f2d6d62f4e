"""Which events were sent to a link and are not known to have arrived?

They are kept, and sent again when a session on the link begins, until the neighbour has them. A
neighbour may be away for long: of more than fits the oldest are given up. The link is *short* then,
and whoever is behind it is told so, before all that is left, until some of that has arrived.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from driftline.broker.effects import Effect, Key, Reopen, SendParcels
from driftline.broker.sizes import THING_BYTES, size_of_events
from driftline.model.message import Parcel
from driftline.wire.bundles import Bundle


class _Waiting:
    """What is on its way to one link, by position; how many events, and about how many bytes."""

    __slots__ = ("bytes", "events", "items")

    def __init__(self) -> None:
        self.items: dict[int, tuple[Parcel | Bundle, int]] = {}
        self.events = 0
        self.bytes = 0

    def put(self, position: int, item: Parcel | Bundle) -> None:
        size = _size(item)
        self.items[position] = item, size
        self.events += _events(item)
        self.bytes += size

    def pop(self, position: int) -> Parcel | Bundle:
        item, size = self.items.pop(position)
        self.events -= _events(item)
        self.bytes -= size
        return item


class Outbox:
    """What is on its way, by link and position. `put` journals, `count` numbers."""

    __slots__ = ("_count", "_limit", "_limit_bytes", "_put", "_short", "_waiting", "given_up")

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
        self.given_up: Counter[str] = Counter()
        """How many events for each link, in this life of the broker."""

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept."""
        outbox = [(key, value) for key, value in stored.items() if key[0] in ("out", "bundle")]
        for key, value in sorted(outbox, key=lambda one: int(one[0][2])):
            assert isinstance(value, Parcel | Bundle)
            self._waiting.setdefault(key[1], _Waiting()).put(int(key[2]), value)
        self._short = {key[1] for key in stored if key[0] == "short"}

    def post(self, link: str, items: tuple[Parcel | Bundle, ...]) -> Effect:
        """Keep what goes to a link until it is known to have arrived."""
        waiting = self._waiting.setdefault(link, _Waiting())
        posted = tuple((self._count(), item) for item in items)
        for position, item in posted:
            waiting.put(position, item)
            self._put(_key(link, position, item), item)
        # One alone may be larger than the limit says.
        if self._is_full(waiting) and len(waiting.items) > 1:
            self._give_up(link, waiting)
            return Reopen(link)
        return SendParcels(link, posted)

    def _is_full(self, waiting: _Waiting, share: int = 1) -> bool:
        """Is there more than may be, or more than such a share of that?"""
        return waiting.events * share > self._limit or waiting.bytes * share > self._limit_bytes

    def _give_up(self, link: str, waiting: _Waiting) -> None:
        """Forget the oldest, a good deal at once: it costs a session, and a gap is told."""
        before = waiting.events
        while self._is_full(waiting, 2) and len(waiting.items) > 1:
            self._forget(link, waiting, next(iter(waiting.items)))
        self.given_up[link] += before - waiting.events
        self._is_short_now(link)

    def refuse(self, link: str, position: int) -> None:
        """Something cannot go to a link, whatever is tried: it is given up."""
        waiting = self._waiting.get(link)
        if waiting is not None and position in waiting.items:
            before = waiting.events
            self._forget(link, waiting, position)
            self.given_up[link] += before - waiting.events
            self._is_short_now(link)

    def _is_short_now(self, link: str) -> None:
        if link not in self._short:
            self._short.add(link)
            self._put(("short", link), True)

    def _forget(self, link: str, waiting: _Waiting, position: int) -> None:
        self._put(_key(link, position, waiting.pop(position)), None)

    def is_short(self, link: str) -> bool:
        """Was something given up that was to go to a link, and has nothing arrived since?"""
        return link in self._short

    def again(self, link: str) -> list[SendParcels]:
        """All that is on its way to a link."""
        waiting = self._waiting.get(link)
        if waiting is None or not waiting.items:
            return []
        posted = ((position, item) for position, (item, _) in waiting.items.items())
        return [SendParcels(link, tuple(posted))]

    def delivered(self, link: str, position: int) -> None:
        """A neighbour has all that was sent to it up to a position."""
        waiting = self._waiting.get(link)
        if waiting is None:
            return
        # In order: the first ones are the oldest.
        while waiting.items and (sent := next(iter(waiting.items))) <= position:
            self._forget(link, waiting, sent)
        self._no_longer_short(link)

    def _no_longer_short(self, link: str) -> None:
        if link in self._short:
            self._short.discard(link)
            self._put(("short", link), None)

    def forget(self, link: str) -> None:
        """Nothing is on its way to a link any more."""
        waiting = self._waiting.pop(link, _Waiting())
        for position, (item, _) in waiting.items.items():
            self._put(_key(link, position, item), None)
        self._no_longer_short(link)

    def links(self) -> list[str]:
        """The links that something is on its way to."""
        return [link for link, waiting in self._waiting.items() if waiting.items]

    def counts(self) -> dict[str, int]:
        """How many events are on their way to each link."""
        return {link: waiting.events for link, waiting in self._waiting.items()}

    def _check(self) -> None:
        for waiting in self._waiting.values():
            assert list(waiting.items) == sorted(waiting.items)
            assert waiting.bytes == sum(size for _, size in waiting.items.values())
            assert waiting.events == sum(_events(item) for item, _ in waiting.items.values())
            assert len(waiting.items) <= 1 or not self._is_full(waiting)


def _key(link: str, position: int, item: Parcel | Bundle) -> Key:
    key = ("bundle", link, str(position))
    if not isinstance(item, Bundle):
        key = ("out", link, str(position))
    return key


def _events(item: Parcel | Bundle) -> int:
    return item.events if isinstance(item, Bundle) else 1


def _size(item: Parcel | Bundle) -> int:
    """About how many bytes it takes, in memory and in the journal."""
    if isinstance(item, Bundle):
        return THING_BYTES + len(item.payload)
    return size_of_events((item.event,))
