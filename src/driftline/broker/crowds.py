"""What has been said of the values that crowds follow, and is not told yet?

A crowd is in the same process as its table. What is said of it comes here like all messages, by the
name of its group; when a change is done the crowd takes all of it, so that it is told at once.
"""

from __future__ import annotations

from driftline.model.event import Event
from driftline.stateful.value_based.address import GROUP


class Crowds:
    """What was said, by the type of messages and the group."""

    __slots__ = ("_said",)

    def __init__(self) -> None:
        self._said: dict[tuple[str, object], list[Event]] = {}

    def begin(self, type: str, group: str) -> None:
        """Keep from now on what is said of a group."""
        self._said[type, group] = []

    def end(self, type: str, group: str) -> None:
        """Keep it no longer."""
        del self._said[type, group]

    def hear(self, message: Event) -> None:
        """Something is said of a table."""
        said = self._said.get((message.type, message.attributes.get(GROUP)))
        if said is not None:
            said.append(message)

    def take(self, type: str, group: str) -> list[Event]:
        """What was said since this was asked last."""
        said, self._said[type, group] = self._said[type, group], []
        return said

    def want(self, type: str) -> bool:
        """Does any of them want messages of a type?"""
        return any(wanted == type for wanted, _ in self._said)

    def __len__(self) -> int:
        return len(self._said)
