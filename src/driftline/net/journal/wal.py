"""Does SQLite's log hold commits that it would pass over?

SQLite reads its log up to the first frame whose checksum is wrong, and takes it for the end: so it
must, because a power loss may tear what was being written. But only the last commit can be torn,
each is synced before the next begins. Where two more commits stand behind a frame that is wrong,
something that was kept has been damaged since, and SQLite would lose it without a word. The last
commit alone cannot be told from a torn one, by anybody.

The layout is that of https://sqlite.org/fileformat2.html#walformat. A checksum goes on from that of
the frame before, two numbers (s, t) over pairs of words (x, y): s += x + t, t += y + s. That is
linear in the words, so what a frame adds is a product of two arrays, with weights by place.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

_HEAD = struct.Struct(">8I")
_FRAME_HEAD_BYTES = 24
_MAGIC = 0x377F0682
_WORD = (1 << 32) - 1
_FRAMES_AT_ONCE = 2048


class Log(NamedTuple):
    """How many commits a log has that SQLite sees, and behind them that it does not."""

    seen: int
    passed_over: int
    header_sound: bool = True

    @property
    def damaged(self) -> bool:
        """Has something been lost that no power loss can take?"""
        return self.passed_over > 1 or not self.header_sound


def read_log(path: Path) -> Log:
    """What is in a log that nobody has open; none is an empty one."""
    if not path.exists():
        return Log(0, 0)
    with path.open("rb") as file:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return Log(0, 0)
        magic, _, page_bytes, _, *salts, first, second = _HEAD.unpack(head)
        order = ">" if magic & 1 else "<"
        if magic & ~1 != _MAGIC or _small_sum(head[:24], order) != (first, second):
            # It is synced before anything is written behind it.
            return Log(0, 0, header_sound=not any(head) and _is_empty(file))
        return _count(file, page_bytes, (salts[0], salts[1]), (first, second), order)


def _is_empty(file: BinaryIO) -> bool:
    """Was there room made for what was never written?"""
    while raw := file.read(1 << 20):
        if any(raw):
            return False
    return True


def _count(
    file: BinaryIO, page_bytes: int, salts: tuple[int, int], sums: tuple[int, int], order: str
) -> Log:
    frame_bytes = _FRAME_HEAD_BYTES + page_bytes
    weights, power = _weights((frame_bytes - 16) // 8)
    seen = passed_over = 0
    sound = True
    while raw := file.read(_FRAMES_AT_ONCE * frame_bytes):
        count = len(raw) // frame_bytes
        frames = np.frombuffer(raw, np.uint8, count * frame_bytes).reshape(count, frame_bytes)
        heads = np.ascontiguousarray(frames[:, :_FRAME_HEAD_BYTES]).view(">u4")
        covered = np.concatenate([frames[:, :8], frames[:, _FRAME_HEAD_BYTES:]], axis=1)
        words = covered.view(f"{order}u4").astype(np.uint32)
        added = [(words * one).sum(axis=1, dtype=np.uint32).tolist() for one in weights]
        for (_, size, *rest), x, y in zip(heads.tolist(), *added, strict=True):
            ours = (rest[0], rest[1]) == salts
            if sound:
                (a, b), (c, d) = power
                s, t = sums
                sums = (a * s + b * t + x) & _WORD, (c * s + d * t + y) & _WORD
                sound = ours and sums == (rest[2], rest[3])
            # Whatever has a size of the file behind it ends a commit.
            seen += sound and size != 0
            passed_over += not sound and ours and size != 0
    return Log(seen, passed_over)


def _weights(
    pairs: int,
) -> tuple[tuple[NDArray[np.uint32], NDArray[np.uint32]], tuple[tuple[int, int], tuple[int, int]]]:
    """What each word adds to the two sums in the end, and what they become of what they were."""
    a, b, c, d = 1, 0, 0, 1
    to_s, to_t = [0] * (2 * pairs), [0] * (2 * pairs)
    for pair in reversed(range(pairs)):
        # A pair makes (x, x + y) of nothing; then come the steps behind it, which are known.
        to_s[2 * pair : 2 * pair + 2] = (a + b) & _WORD, b
        to_t[2 * pair : 2 * pair + 2] = (c + d) & _WORD, d
        a, b, c, d = (a + b) & _WORD, (a + 2 * b) & _WORD, (c + d) & _WORD, (c + 2 * d) & _WORD
    return (np.array(to_s, np.uint32), np.array(to_t, np.uint32)), ((a, b), (c, d))


def _small_sum(raw: bytes, order: str) -> tuple[int, int]:
    """The checksum by its definition."""
    s = t = 0
    for x, y in struct.iter_unpack(f"{order}2I", raw):
        s = (s + x + t) & _WORD
        t = (t + y + s) & _WORD
    return s, t
