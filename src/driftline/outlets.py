"""Where does a notification go: to its handle's queue, to a function, or is it kept for later?

A party may be suspended, resumed and redirected [SIENA §3]. Functions are called one after the
other when the operation is done that led to it, so they may publish, subscribe and cancel; what
that leads to is told behind what was told before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from driftline.handle import Handle
from driftline.model.notification import Notification, NotificationKind

Handler: TypeAlias = Callable[[Handle, Notification], None]
"""What a party may be told through, instead of the queues of its handles."""

KEEP = 1000
"""So much is kept for a suspended party; of more the oldest is forgotten, and told as a gap."""


class _Kept:
    """What a suspended party has not been told, and whose notifications had to be forgotten."""

    __slots__ = ("gaps", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[tuple[Handle, Notification]] = deque()
        self.gaps: dict[Handle, Notification] = {}

    def put(self, handle: Handle, told: Notification) -> None:
        self.waiting.append((handle, told))
        if len(self.waiting) > KEEP:
            whose, oldest = self.waiting.popleft()
            gap = Notification(NotificationKind.GAP, {}, oldest.time, oldest.epoch)
            self.gaps.setdefault(whose, gap)


class Outlets:
    """The ways to all parties."""

    __slots__ = ("_calling", "_calls", "_handlers", "_suspended")

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._suspended: dict[str, _Kept] = {}
        self._calls: deque[tuple[Handle, Notification]] = deque()
        self._calling = False

    def put(self, handle: Handle, told: Notification) -> None:
        """Something is told to a subscription."""
        kept = self._suspended.get(handle.party) if self._suspended else None
        if kept is not None:
            kept.put(handle, told)
            return
        if self._handlers and handle.party in self._handlers:
            self._calls.append((handle, told))
        else:
            handle._pending.append(told)

    @property
    def direct(self) -> bool:
        """Does everything go to the queues of handles at once?"""
        return not self._handlers and not self._suspended

    def suspend(self, party: str) -> None:
        """Keep what comes for a party."""
        self._suspended.setdefault(party, _Kept())

    def resume(self, party: str) -> list[Handle]:
        """Tell a party what was kept, first of all what was not; whose that was."""
        kept = self._suspended.pop(party, None)
        if kept is None:
            return []
        for handle, told in (*kept.gaps.items(), *kept.waiting):
            self.put(handle, told)
        return list(kept.gaps)

    def redirect(self, party: str, handler: Handler | None) -> None:
        """Tell a party through a function, None: through the queues of its handles."""
        if handler is None:
            self._handlers.pop(party, None)
        else:
            self._handlers[party] = handler

    def call(self) -> None:
        """Let functions have what is theirs; if one raises, the others are told first."""
        if self._calling or not self._calls:
            return
        self._calling = True
        problems = []
        try:
            while self._calls:
                handle, told = self._calls.popleft()
                # One that was called before may have suspended or redirected it.
                handler = self._handlers.get(handle.party)
                if handler is None or handle.party in self._suspended:
                    self.put(handle, told)
                    continue
                try:
                    handler(handle, told)
                except Exception as problem:
                    problems.append(problem)
        finally:
            self._calling = False
        if problems:
            raise problems[0]
