"""What is a subscriber told?"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from driftline.model.event import Event
from driftline.model.value import Value


class NotificationKind(enum.StrEnum):
    """Why it was told; compares equal to its word, so `n.kind == "enter"` works."""

    EVENT = "event"
    SNAPSHOT = "snapshot"
    CHANGE = "change"
    ENTER = "enter"
    LEAVE = "leave"
    PATTERN = "pattern"
    GAP = "gap"

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Notification:
    """One thing told to one subscription.

    `values` are the selected columns now (empty when a row left), `old` those told before;
    `time` is the stamp of what caused it, `epoch` counts the subscription's parameter changes;
    `key` names the row of a table, or the two of a join; `last` marks the end of a snapshot.
    `lost` is how many were not told before a gap, where that is known; `repeated` marks what is
    told again because nothing else was for long; `number` is the place of what a durable
    subscription is told: what comes again after a crash has the same; `more` says that the next
    has it too, and that only with that one all of it was told. `trace` is the trace context of the
    event that caused it.
    """

    kind: NotificationKind
    values: dict[str, Value | None] = field(default_factory=dict)
    time: int = 0
    epoch: int = 0
    event: Event | None = None
    events: tuple[Event, ...] = ()
    old: dict[str, Value | None] | None = None
    key: Value | tuple[Value, ...] | None = None
    last: bool = False
    lost: int = 0
    repeated: bool = False
    number: int = 0
    more: bool = False
    trace: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.trace is None and self.event is not None:
            object.__setattr__(self, "trace", self.event.trace)
