"""How does what is said on a link arrive once and in order, whatever the link does?

Each end has a number of its own, higher each time it begins anew, and learns the other's. The pair
of both is a *session*: payloads are numbered from 1, acknowledged cumulatively, and sent again
until they are; what comes twice or too early is dropped. A frame that was meant for another session
is not listened to. When an end learns a new number of the other (it crashed, or lost what it had to
send), the session is over, and with it all that was not acknowledged: both ends start the next one
by saying everything again.

    hello     mine, theirs (0: not known yet)
    payload   mine, theirs, number, acknowledged
    ack       mine, theirs,         acknowledged
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from driftline.wire.framing import Frame, FrameKind

_SECOND = 1_000_000
RESEND_FIRST = _SECOND // 5
RESEND_LAST = 4 * _SECOND
WINDOW = 1024
WINDOW_BYTES = 1 << 23
"""So many payloads, and bytes of them, are on their way at once; the others wait."""

NEVER = 1 << 62

_PAYLOADS = (FrameKind.CONTROL, FrameKind.EVENTS, FrameKind.BUNDLE)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a frame led to: has a session begun, what was said, and up to where was ours heard?"""

    began: bool
    said: Frame | None
    acknowledged: int
    answer: bool


class Session:
    """One end of a link. `mine` is higher than that of any earlier session of this end."""

    __slots__ = (
        "_acked",
        "_heard",
        "_next",
        "_resend_at",
        "_sent",
        "_sent_bytes",
        "_wait",
        "_waiting",
        "mine",
        "theirs",
    )

    def __init__(self, mine: int) -> None:
        self.mine = mine
        self.theirs = 0
        self._wait = RESEND_FIRST
        self._resend_at = 0
        self._begin()

    def _begin(self) -> None:
        self._next = 1
        self._acked = 0
        self._heard = 0
        self._sent: deque[Frame] = deque()
        self._sent_bytes = 0
        self._waiting: deque[Frame] = deque()

    @property
    def up(self) -> bool:
        """Is the other end known, so that something can be said?"""
        return self.theirs != 0

    @property
    def acknowledged(self) -> int:
        """Up to which payload the other end has heard us."""
        return self._acked

    @property
    def pending(self) -> int:
        """How many payloads are not acknowledged yet."""
        return len(self._sent) + len(self._waiting)

    def send(self, kind: FrameKind, payload: bytes, now: int) -> list[Frame]:
        """Say something; the frames to send at once."""
        assert self.up
        self._waiting.append(Frame(kind, payload, self.mine, self.theirs))
        return self._pump(now)

    def receive(self, frame: Frame, now: int) -> tuple[Heard, list[Frame]]:
        """A frame came; what it led to, and frames to send at once (besides an answer)."""
        if frame.sender < self.theirs:
            return Heard(False, None, self._acked, False), []  # of an earlier life
        if not self.up and frame.receiver != self.mine and frame.kind is not FrameKind.HELLO:
            # It is meant for a session before this one: they do not know of it yet.
            return Heard(False, None, self._acked, False), [self._hello()]
        began = frame.sender > self.theirs
        if began:
            self.theirs = frame.sender
            self._begin()
            self._wait = RESEND_FIRST
        if frame.receiver != self.mine:
            # They do not know us, or not any more: tell them who we are.
            return Heard(began, None, self._acked, False), [self._hello()]
        if frame.acknowledged > self._acked:
            self._acked = min(frame.acknowledged, self._next - 1)
            while self._sent and self._sent[0].sequence <= self._acked:
                self._sent_bytes -= len(self._sent.popleft().payload)
            self._wait = RESEND_FIRST
            self._resend_at = now + self._wait
        says = frame.kind in _PAYLOADS
        expected = says and frame.sequence == self._heard + 1
        heard = Heard(began, frame if expected else None, self._acked, says)
        return heard, self._pump(now)

    def took(self) -> None:
        """What was said last has been dealt with, and may be acknowledged from now on.

        Not sooner: a frame that leaves before it is stored must not say that it was heard.
        """
        self._heard += 1

    def acknowledge(self) -> Frame:
        """A frame that says up to where we heard."""
        return Frame(FrameKind.ACK, b"", self.mine, self.theirs, 0, self._heard)

    def wake(self, now: int) -> list[Frame]:
        """What to send again, if it is time."""
        if now < self.wake_at():
            return []
        self._resend_at = now + self._wait
        self._wait = min(2 * self._wait, RESEND_LAST)
        if not self.up:
            return [self._hello()]
        return [replace(frame, acknowledged=self._heard) for frame in self._sent]

    def retry(self, now: int) -> list[Frame]:
        """Say at once what is not known to have been heard: the link was away, and is back."""
        self._wait = RESEND_FIRST
        self._resend_at = now
        return self.wake(now)

    def wake_at(self) -> int:
        """When `wake` has something to do; never while all was heard."""
        return self._resend_at if self._sent or not self.up else NEVER

    def _hello(self) -> Frame:
        return Frame(FrameKind.HELLO, b"", self.mine, self.theirs)

    def _has_room(self, frame: Frame) -> bool:
        whole = self._sent_bytes + len(frame.payload)
        return len(self._sent) < WINDOW and (not self._sent or whole <= WINDOW_BYTES)

    def _pump(self, now: int) -> list[Frame]:
        frames = []
        while self._waiting and self._has_room(self._waiting[0]):
            if not self._sent:
                self._resend_at = now + self._wait
            waited = self._waiting.popleft()
            self._sent_bytes += len(waited.payload)
            frame = replace(waited, sequence=self._next, acknowledged=self._heard)
            self._next += 1
            self._sent.append(frame)
            frames.append(frame)
        return frames
