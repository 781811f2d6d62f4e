"""What does an expression see when it is evaluated?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from driftline.model.event import Event
from driftline.model.value import Value, time_of

_NOTHING: Mapping[str, Value] = {}


class Scope:
    """One event, the subscriber's parameters, the environment, and the time.

    `now` is the stamp the event got where it entered the system, never a clock read later: that
    is what lets a replay give the same answers. Without a stamp, the time the publisher gave.
    """

    __slots__ = ("attributes", "elapsed", "env", "event", "now_us", "params")

    def __init__(
        self,
        event: Event | None = None,
        params: Mapping[str, Value] = _NOTHING,
        env: Mapping[str, Value] = _NOTHING,
        now_us: int | None = None,
        elapsed: float | None = None,
    ) -> None:
        if now_us is None and event is not None:
            now_us = event.stamp
        self.event = event
        self.attributes: Mapping[str, Value] = _NOTHING if event is None else event.attributes
        self.params = params
        self.env = env
        self.now_us = now_us
        self.elapsed = elapsed

    @property
    def now(self) -> datetime | None:
        """The stamp as a time; made only when read, because most predicates never do."""
        return None if self.now_us is None else time_of(self.now_us)

    def attribute(self, name: str) -> Value | None:
        """The value of an attribute of the event or of its envelope, None if it is missing."""
        value = self.attributes.get(name)
        if value is None and self.event is not None:
            return self.event.envelope(name)
        return value


NO_EVENT = Scope()
"""The scope in which only constants have a value."""
