"""Which variables of local subscriptions move too often to be told each time? [PARAM §6]

Between a subscriber and the network stands a monitor for each variable. What it says of it, a value
or a range, is what the network is told; the edge evaluates the value itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from driftline.model.pattern import Pattern
from driftline.model.standing import Standing
from driftline.model.value import identity
from driftline.moving.hull import Range
from driftline.moving.parametric.monitor import NEVER, Monitor

_SECOND = 1_000_000


class Restless:
    """The monitors of a broker. A variable that moves `often` within a second gets a range."""

    __slots__ = ("_monitors", "_often", "_ranges")

    def __init__(self, often: int | None) -> None:
        self._often = often
        self._monitors: dict[str, dict[str, Monitor]] = {}
        self._ranges: dict[str, dict[str, Range]] = {}

    def moved(self, id: str, before: Standing, after: Standing, now: int) -> None:
        """The parameters of a subscription have other values."""
        if self._often is None or isinstance(after.statement, Pattern):
            return  # A pattern is delegated by its exact steps.
        monitors = self._monitors.setdefault(id, {})
        for name, value in after.params.items():
            if identity(value) == identity(before.params.get(name)):
                continue
            if name not in monitors:
                monitors[name] = Monitor(_SECOND, self._often)
            self._say(id, name, monitors[name].moved(value, now))

    def _say(self, id: str, name: str, range: Range) -> None:
        ranges = self._ranges.setdefault(id, {})
        if range[0] == range[1]:
            ranges.pop(name, None)
        else:
            ranges[name] = range
        if not ranges:
            del self._ranges[id]

    def ranges(self, id: str) -> Mapping[str, Range]:
        """The variables of a subscription that the network knows by a range."""
        return self._ranges.get(id, {})

    def forget(self, id: str) -> None:
        """A subscription has ended, or is another one now."""
        self._monitors.pop(id, None)
        self._ranges.pop(id, None)

    def due(self, now: int) -> list[str]:
        """The subscriptions of which a variable is calm by now."""
        return [id for id in self._ranges if self._calm_at(id) <= now]

    def calm(self, id: str, now: int) -> None:
        """Let variables of a subscription that are calm be told by their values again."""
        for name, monitor in self._monitors[id].items():
            range = monitor.calm(now)
            if range is not None:
                self._say(id, name, range)

    def _calm_at(self, id: str) -> int:
        return min(monitor.calm_at() for monitor in self._monitors[id].values())

    def wake_at(self) -> int:
        """When something is due."""
        return min(map(self._calm_at, self._ranges), default=NEVER)
