"""The reference: try every subscription. Slow and obvious."""

from __future__ import annotations

from collections.abc import Mapping

from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.value import Value


class Scan:
    """Each event against each subscription, by the definition of `matches`."""

    __slots__ = ("_standing",)

    def __init__(self) -> None:
        self._standing: dict[str, Standing] = {}

    def add(self, id: str, standing: Standing) -> None:
        """Take in a subscription, replacing one of the same id. O(1)."""
        self._standing.pop(id, None)
        self._standing[id] = standing

    def discard(self, id: str) -> None:
        """Forget a subscription. O(1)."""
        self._standing.pop(id, None)

    def match(self, event: Event, env: Mapping[str, Value]) -> list[str]:
        """The ids of all that the event satisfies. O(N)."""
        return [id for id, one in self._standing.items() if one.matches(event, env)]

    def __len__(self) -> int:
        return len(self._standing)

    def _check(self) -> None:
        assert all(isinstance(id, str) for id in self._standing)
