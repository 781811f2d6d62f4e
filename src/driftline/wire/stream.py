"""What lies on a client's connection, and where does one frame end and the next begin?

    offset  bytes  field
         0      1  magic     0xD2
         1      1  version   1
         2      1  kind      see `Kind`
         3      1  0
         4      4  length    of the payload, little-endian
         8         payload

The connection itself keeps the order and loses nothing while it lasts (TCP, or TLS on it), so there
are no numbers and no checksum here as on a link between brokers (`framing`). A stream that was
refused once is refused for good, and its connection must be closed.

    >>> frames = Frames()
    >>> list(frames.feed(frame(Kind.PING, b"7")))
    [(<Kind.PING: 8>, b'7')]
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator

from driftline.wire.limits import FRAME_BYTES_MAX
from driftline.wire.refusal import refused

MAGIC = 0xD2
VERSION = 1
HEAD_BYTES = 8
PAYLOAD_BYTES_MAX = FRAME_BYTES_MAX - HEAD_BYTES

_HEAD = struct.Struct("<BBBBI")


class Kind(enum.IntEnum):
    """What a payload is, and who sends it."""

    HELLO = 1
    """Both, first of all: who I am and what I can."""
    REQUEST = 2
    """Client: do something; see `wire.asking`."""
    REPLY = 3
    """Broker: what became of it."""
    EVENTS = 4
    """Client: publish these; a batch as `wire.publishing` says."""
    FORM = 5
    """Both: a number, and the form that goes by it from now on."""
    NOTICES = 6
    """Broker: events for some of the subscriptions of this connection; see `wire.notices`."""
    KEPT = 7
    """Broker: a channel's number, and notices of its durable subscription."""
    PING = 8
    """Both: are you there? The same comes back as a PONG."""
    PONG = 9
    TOLD = 10
    """Broker: what is no plain event: views, patterns, gaps; see `wire.telling`."""
    GOODBYE = 11
    """Both: the connection ends, and why."""
    LINK = 12
    """A broker, first of all: this connection is a link; frames of `framing` follow."""
    ONCE = 13
    """Client: publish these, but for those that came before by their source and id; a batch."""
    APART = 14
    """The same, by the value of an attribute too, whose name stands before the batch."""


_KINDS = {kind.value: kind for kind in Kind}
NOTICES_WORD = MAGIC | VERSION << 8 | Kind.NOTICES << 16
"""The first four bytes of a frame of notices, as a number."""
EVENTS_WORD = MAGIC | VERSION << 8 | Kind.EVENTS << 16
"""The same of a frame of events."""


def frame(kind: Kind, *parts: bytes | bytearray | memoryview) -> bytes:
    """One whole frame."""
    size = sum(map(len, parts))
    assert size <= PAYLOAD_BYTES_MAX
    return b"".join((_HEAD.pack(MAGIC, VERSION, kind, 0, size), *parts))


def head_of(data: bytes | bytearray | memoryview, at: int, limit: int) -> tuple[Kind, int]:
    """The kind of the frame whose head begins here, and the bytes of its payload."""
    magic, version, kind, nothing, size = _HEAD.unpack_from(data, at)
    if magic != MAGIC:
        raise refused("stream", f"a frame, which begins with {MAGIC:#x}", f"{magic:#x}")
    if version != VERSION:
        raise refused("stream", f"version {VERSION}", f"version {version}")
    if kind not in _KINDS or nothing:
        raise refused("stream", "a kind of frame that is known", f"kind {kind}, {nothing}")
    if size > limit - HEAD_BYTES:
        raise refused("stream", f"a frame of at most {limit} bytes", f"one of {size + HEAD_BYTES}")
    return _KINDS[kind], size


class Frames:
    """Frames out of a stream that comes in pieces of any size; for whoever is in no hurry."""

    __slots__ = ("_held", "_limit")

    def __init__(self, limit: int = FRAME_BYTES_MAX) -> None:
        self._held = bytearray()
        self._limit = limit

    @property
    def held(self) -> int:
        """Bytes of a frame that is not whole yet."""
        return len(self._held)

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[tuple[Kind, bytes]]:
        """The frames that these bytes complete."""
        self._held += data
        at = 0
        try:
            while len(self._held) - at >= HEAD_BYTES:
                kind, size = head_of(self._held, at, self._limit)
                if len(self._held) - at - HEAD_BYTES < size:
                    break
                at += HEAD_BYTES + size
                yield kind, bytes(self._held[at - size : at])
        finally:
            del self._held[:at]
