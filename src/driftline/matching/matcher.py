"""What can be asked of a matcher?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.value import Value


class Matcher(Protocol):
    """A set of standing subscriptions by id, and which of them an event satisfies."""

    def add(self, id: str, standing: Standing) -> None:
        """Take in a subscription, replacing one of the same id."""

    def discard(self, id: str) -> None:
        """Forget a subscription; nothing happens if there is none of that id."""

    def match(self, event: Event, env: Mapping[str, Value]) -> list[str]:
        """The ids of all that the event satisfies, in the order they were added."""

    def __len__(self) -> int: ...

    def _check(self) -> None:
        """Assert the invariants."""
