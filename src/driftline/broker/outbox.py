"""Which events were sent to a link and are not known to have arrived?

They are kept, and sent again when a session on the link begins, until the neighbour has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from driftline.broker.effects import Key, SendParcels
from driftline.model.message import Parcel


class Outbox:
    """What is on its way, by link and position. `put` journals, `count` numbers."""

    __slots__ = ("_count", "_put", "_waiting")

    def __init__(self, put: Callable[[Key, object], None], count: Callable[[], int]) -> None:
        self._put = put
        self._count = count
        self._waiting: dict[str, dict[int, Parcel]] = {}

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept."""
        outbox = [(key, value) for key, value in stored.items() if key[0] == "out"]
        for key, value in sorted(outbox, key=lambda one: int(one[0][2])):
            assert isinstance(value, Parcel)
            self._waiting.setdefault(key[1], {})[int(key[2])] = value

    def post(self, link: str, parcels: tuple[Parcel, ...]) -> SendParcels:
        """Keep what goes to a link until it is known to have arrived."""
        waiting = self._waiting.setdefault(link, {})
        posted = tuple((self._count(), parcel) for parcel in parcels)
        for position, parcel in posted:
            waiting[position] = parcel
            self._put(("out", link, str(position)), parcel)
        return SendParcels(link, posted)

    def again(self, link: str) -> list[SendParcels]:
        """All that is on its way to a link."""
        waiting = self._waiting.get(link)
        return [SendParcels(link, tuple(waiting.items()))] if waiting else []

    def delivered(self, link: str, position: int) -> None:
        """A neighbour has all that was sent to it up to a position."""
        waiting = self._waiting.get(link, {})
        # In order: the first ones are the oldest.
        while waiting and (sent := next(iter(waiting))) <= position:
            del waiting[sent]
            self._put(("out", link, str(sent)), None)

    def forget(self, link: str) -> None:
        """Nothing is on its way to a link any more."""
        for position in self._waiting.pop(link, ()):
            self._put(("out", link, str(position)), None)

    def links(self) -> list[str]:
        """The links that something is on its way to."""
        return [link for link, waiting in self._waiting.items() if waiting]
