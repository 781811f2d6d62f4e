"""Where does one frame end and the next begin, and did it come unharmed?

All numbers are unsigned and little-endian.

    offset  bytes  field
         0      1  magic        0xD1
         1      1  version      1
         2      1  kind         1 control, 2 events, 3 hello, 4 ack, 5 bundle
         3      1  flags        for the link to give a meaning to
         4      4  length       of the payload
         8      8  sender       incarnation of the sender
        16      8  receiver     incarnation of the receiver, as the sender knows it
        24      8  sequence     of this frame on its link
        32      8  acknowledged the sequence up to which the sender has all
        40      n  payload
    40 + n      4  checksum     CRC-32 of all before it

The magic, version, kind and length are judged as soon as these eight bytes are there. So a peer
that speaks something else is refused at once, and nobody waits for a frame that is too long.

    >>> sent = encode_frame(Frame(FrameKind.CONTROL, b"hello", sequence=7))
    >>> decoder = Decoder()
    >>> decoder.feed(sent[:20]), decoder.held
    ([], 20)
    >>> [(frame.sequence, frame.payload) for frame in decoder.feed(sent[20:])]
    [(7, b'hello')]
"""

from __future__ import annotations

import enum
import struct
import zlib
from dataclasses import dataclass
from typing import TypeAlias

from driftline.errors import FrameRefused, InvalidValue
from driftline.model.value import show
from driftline.wire.limits import FRAME_BYTES_MAX
from driftline.wire.refusal import refused

MAGIC = 0xD1
VERSION = 1

_PRELUDE = struct.Struct("<BBBBI")
_HEADER = struct.Struct("<BBBBIQQQQ")
_CHECKSUM = struct.Struct("<I")
OVERHEAD = _HEADER.size + _CHECKSUM.size
"""Bytes of a frame that are not its payload."""

PAYLOAD_BYTES_MAX = FRAME_BYTES_MAX - OVERHEAD

Bytes: TypeAlias = bytes | bytearray | memoryview


class FrameKind(enum.IntEnum):
    """What the payload is: a control message, a batch of events, one in their forms, a greeting, or
    nothing.
    """

    CONTROL = 1
    EVENTS = 2
    HELLO = 3
    ACK = 4
    BUNDLE = 5


_KINDS = {kind.value: kind for kind in FrameKind}


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. `sender` and `receiver` are incarnations: a broker that restarts has another."""

    kind: FrameKind
    payload: bytes = b""
    sender: int = 0
    receiver: int = 0
    sequence: int = 0
    acknowledged: int = 0
    flags: int = 0


def encode_frame(frame: Frame) -> bytes:
    """The bytes of a frame; InvalidValue if a field does not fit."""
    size = len(frame.payload)
    if size > PAYLOAD_BYTES_MAX:
        raise InvalidValue("frame payload", f"at most {PAYLOAD_BYTES_MAX} bytes", f"{size}")
    link = (frame.sender, frame.receiver, frame.sequence, frame.acknowledged)
    try:
        header = _HEADER.pack(MAGIC, VERSION, frame.kind, frame.flags, size, *link)
    except struct.error:
        fields = {"flags": frame.flags, "link header": link}
        raise InvalidValue("frame", "numbers of 8 and 64 bits", show(fields)) from None
    return b"".join((header, frame.payload, _CHECKSUM.pack(_checksum(header, frame.payload))))


class Decoder:
    """Frames out of a stream that comes in pieces of any size; holds at most one that is not whole.

    A stream that was refused once is refused for good, since nobody knows where its next frame
    begins: the connection must be closed. Frames before the bad one in the same piece are lost with
    it. They were not acknowledged yet, so the link sends them again.
    """

    __slots__ = ("_held", "_limit", "_read", "_refusal")

    def __init__(self, limit: int = FRAME_BYTES_MAX) -> None:
        self._limit = limit
        self._held = bytearray()
        self._read = 0
        self._refusal: FrameRefused | None = None

    @property
    def held(self) -> int:
        """Bytes of a frame that is not whole yet; where a stream ends it should be 0."""
        return len(self._held)

    def feed(self, data: Bytes) -> list[Frame]:
        """The frames that these bytes complete. O(bytes), however they are cut."""
        if self._refusal is not None:
            raise FrameRefused(*self._refusal.args)
        try:
            return self._frames(memoryview(data))
        except FrameRefused as refusal:
            self._refusal = refusal
            self._held = bytearray()
            raise

    def _frames(self, data: memoryview) -> list[Frame]:
        frames: list[Frame] = []
        while True:
            if not self._held:
                whole = self._bytes_needed(data)
                if len(data) < whole:
                    self._held += data
                    return frames
                frames.append(self._frame(data[:whole]))
                data = data[whole:]
                continue
            lacking = self._bytes_needed(self._held) - len(self._held)
            if lacking == 0:
                frames.append(self._frame(self._held))
                self._held = bytearray()
            elif data:
                self._held += data[:lacking]
                data = data[lacking:]
            else:
                return frames

    def _bytes_needed(self, data: Bytes) -> int:
        """Up to where the next step can be made: the end of the prelude, then of the frame."""
        if len(data) < _PRELUDE.size:
            return _PRELUDE.size
        magic, version, kind, _, length = _PRELUDE.unpack_from(data)
        if magic != MAGIC:
            raise self._refused(f"a frame, which begins with {MAGIC:#x}", f"{magic:#x}")
        if version != VERSION:
            raise self._refused(f"version {VERSION}", f"version {version}")
        if kind not in _KINDS:
            known = ", ".join(f"{one.value} ({one.name.lower()})" for one in FrameKind)
            raise self._refused(f"one of the kinds {known}", f"kind {kind}")
        whole = int(length) + OVERHEAD
        if whole > self._limit:
            raise self._refused(f"a frame of at most {self._limit} bytes", f"one of {whole}")
        return whole

    def _frame(self, whole: Bytes) -> Frame:
        body = memoryview(whole)[: -_CHECKSUM.size]
        (told,) = _CHECKSUM.unpack_from(whole, len(body))
        found = _checksum(body)
        if found != told:
            raise self._refused(f"bytes with the checksum {told:#010x}", f"{found:#010x}")
        _, _, kind, flags, _, sender, receiver, sequence, acknowledged = _HEADER.unpack_from(whole)
        self._read += len(whole)
        payload = bytes(body[_HEADER.size :])
        return Frame(_KINDS[kind], payload, sender, receiver, sequence, acknowledged, flags)

    def _refused(self, wanted: str, came: str) -> FrameRefused:
        return refused(f"frame at byte {self._read}", wanted, came)


def _checksum(*parts: Bytes) -> int:
    found = 0
    for part in parts:
        found = zlib.crc32(part, found)
    return found
