"""What does a subscriber's edge keep of a view, and how do messages change it?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa

from driftline.model.event import Event
from driftline.model.value import Value
from driftline.stateful.news import News
from driftline.stateful.rows.change import Change, change_of


class Message:
    """A message as it came; what it says of rows is read once, however many folds want it."""

    __slots__ = ("_change", "env", "event")

    def __init__(self, event: Event, env: Mapping[str, Value]) -> None:
        self.event = event
        self.env = env
        self._change: Change | None = None

    @property
    def change(self) -> Change:
        """The change of a row, or of a pair of rows, that it says."""
        if self._change is None:
            self._change = change_of(self.event)
        return self._change


class Fold(Protocol):
    """What is known of one view; messages are folded in one after the other."""

    stale: bool
    """Has a message said that what it has to say is to be asked for?"""

    def snapshot(self) -> list[News]:
        """What to tell somebody who knows nothing yet."""

    def take(self, message: Message) -> News | None:
        """What a message tells, which the view's interest let through."""

    def succeed(self, before: Any) -> list[News]:
        """What to tell somebody who knows what another fold of the view has told."""

    def dump(self) -> pa.Table:
        """All of it: what the home sends for a snapshot."""
