"""What waits to be kept, and who is told what became of it?

Whatever waits is kept in the order it came, all of it at once: the more waits the fewer commits
there are. Nobody is told that something is kept while anything before it is not.

When a commit fails, everything that waits is told so, in order, and goes on waiting: the broker has
gone on from it, so nothing of it may be left out. It is tried again, after a while that doubles
each time. A full disk heals as soon as there is room. Until then the broker acknowledges nothing,
and `bytes` grows: whoever publishes is to be held back by that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from driftline.broker.effects import Deliver, Key
from driftline.errors import DriftlineError
from driftline.model.event import Event
from driftline.model.message import Parcel

Stores: TypeAlias = Sequence[Mapping[Key, object]]
Done: TypeAlias = Callable[[DriftlineError | None], None]
"""Called with None, once, when it is kept; before that, or instead, with what went wrong."""

RETRY_FIRST_SECONDS = 0.05
RETRY_LAST_SECONDS = 5.0

_ENTRY_BYTES = 200
"""What an entry takes beside what is long in it."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """Some stores that are to be kept together, and who is to be told."""

    stores: Stores
    done: Done
    bytes: int


@dataclass(slots=True)
class Waiting:
    """Not thread-safe, and without a clock: whoever holds it says when `now` is, in seconds."""

    bytes: int = 0
    """How much waits, about."""
    retry_at: float = 0.0
    _submitted: list[Submitted] = field(default_factory=list)
    _trying: int = 0
    _pause: float = RETRY_FIRST_SECONDS

    def __len__(self) -> int:
        return len(self._submitted)

    def submit(self, stores: Stores, done: Done) -> None:
        """Let this wait, behind all that does."""
        size = sum(_size(value) for store in stores for value in store.values())
        self._submitted.append(Submitted(stores, done, size))
        self.bytes += size

    def take(self) -> list[Mapping[Key, object]]:
        """All that waits, to be kept in one commit; then say what became of it."""
        self._trying = len(self._submitted)
        return [store for one in self._submitted for store in one.stores]

    def committed(self) -> list[Done]:
        """What was taken is kept: those to be told, in order."""
        kept, self._submitted = self._submitted[: self._trying], self._submitted[self._trying :]
        self.bytes -= sum(one.bytes for one in kept)
        self._pause, self.retry_at = RETRY_FIRST_SECONDS, 0.0
        return [one.done for one in kept]

    def failed(self, now: float) -> list[Done]:
        """What was taken is not kept: those to be told, in order, of all that waits by now."""
        self.retry_at = now + self._pause
        self._pause = min(2 * self._pause, RETRY_LAST_SECONDS)
        return [one.done for one in self._submitted]

    def give_up(self) -> list[Done]:
        """Nothing more will be kept: those to be told, in order."""
        told = [one.done for one in self._submitted]
        self._submitted, self.bytes = [], 0
        return told


def _size(value: object) -> int:
    """About what an entry takes while it waits: what is long is counted, the rest is guessed."""
    if isinstance(value, bytes):
        return _ENTRY_BYTES + len(value)
    if isinstance(value, Parcel | Deliver):
        value = value.event
    if isinstance(value, Event):
        long = (one for one in value.attributes.values() if isinstance(one, str | bytes))
        return _ENTRY_BYTES + sum(map(len, long))
    return _ENTRY_BYTES
