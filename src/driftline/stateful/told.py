"""What has a view of one row told, and is more told now?"""

from __future__ import annotations

from typing import Protocol

from driftline.model.notification import NotificationKind
from driftline.stateful.news import WHEN_DIFFERENT, Gate, News, Values


class Told:
    """The values last told, and the gate that the next ones must pass."""

    __slots__ = ("gate", "values")

    def __init__(self, values: Values, gate: Gate = WHEN_DIFFERENT) -> None:
        self.values = values
        self.gate = gate

    def snapshot(self) -> News:
        """What was last told, at first or anew: exactly one, also when all of it is NULL."""
        return News(NotificationKind.SNAPSHOT, dict(self.values))

    def tell(self, now: Values) -> News | None:
        """These are the values now: what to tell."""
        if not self.gate.tells(self.values, now):
            return None
        old, self.values = self.values, now
        # Copies, because what is told belongs to the subscriber.
        return News(NotificationKind.CHANGE, dict(now), dict(old))

    def succeed(self, before: Told) -> list[News]:
        """Another one, after a move, has these values: what to tell whoever knew the ones before.

        Which is told by its own gate, as a move may be of the gate's radius.
        """
        now, self.values = self.values, before.values
        self.gate.succeed(before.gate)
        news = self.tell(now)
        return [] if news is None else [news]


class Scalar(Protocol):
    """A fold of one row of values."""

    told: Told
