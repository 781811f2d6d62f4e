"""How does a batch of events that a client publishes look, and what is said of those refused?

A head, and the records of the events one behind the other, as `compact` says.

    offset  bytes  field
         0      4  request   0: no reply is wanted
         4      4  count     of the events
         8      8  number    of the first event, if the client counts what it publishes, else 0
        16         records

    >>> HEAD.unpack_from(batch(7, 2, 1, b"..."))
    (7, 2, 1)

Before a batch of events that an attribute tells apart stands its name, behind its length (2 bytes):

    >>> name, rest = split_apart(apart_head("topic") + b"...")
    >>> name, bytes(rest)
    ('topic', b'...')

The reply has the place of every event that was refused, and why; of very many, the reasons of the
first. What is refused for the same reason is said together.

    >>> from driftline.errors import TableError
    >>> some = Refusals()
    >>> for at in (1, 2, 3, 7):
    ...     some.add(at, TableError("t", "a row needs its key k"))
    >>> some.said()
    [['TableError', ['t', 'a row needs its key k'], [1, 3, 7, 1]]]
    >>> print(refusals_of(some.said())[3])
    table t: a row needs its key k
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from driftline.errors import DriftlineError, ReasonLeftOff
from driftline.wire.asking import problem_of
from driftline.wire.refusal import refused

HEAD = struct.Struct("<IIQ")
_REASONS_MOST = 100
"""So many reasons of one batch are told."""
_REASONS_LETTERS = 1 << 18
"""And so many letters of them: a reply is to fit a frame, whatever the reasons quote."""
_LENGTH = struct.Struct("<H")


def batch(request: int, count: int, number: int, records: bytes) -> bytes:
    """The payload."""
    return HEAD.pack(request, count, number) + records


def apart_head(name: str) -> bytes:
    """What stands before a batch whose events an attribute of this name tells apart."""
    raw = name.encode()
    return _LENGTH.pack(len(raw)) + raw


def split_apart(payload: memoryview | bytes) -> tuple[str, memoryview]:
    """The name, and the batch behind it."""
    view = memoryview(payload)
    if len(view) < _LENGTH.size:
        raise refused("events", "the name of an attribute", f"{len(view)} bytes")
    end = _LENGTH.size + _LENGTH.unpack_from(view)[0]
    try:
        name = bytes(view[_LENGTH.size : end]).decode()
    except UnicodeDecodeError:
        raise refused("events", "the name of an attribute", "what is no UTF-8") from None
    if not name or end > len(view):
        raise refused("events", "the name of an attribute", f"{len(view)} bytes")
    return name, view[end:]


class Refusals:
    """Which events of a batch were refused, from the first on, and why."""

    __slots__ = ("_letters", "_runs", "count")

    def __init__(self) -> None:
        self.count = 0
        # By the name of an error and its facts, None: left off; where runs begin, and how long
        # they are, in turn.
        self._runs: dict[tuple[str, tuple[object, ...] | None], list[int]] = {}
        self._letters = 0

    def add(self, at: int, problem: DriftlineError) -> None:
        """The event at this place, behind all that were added, was refused."""
        self.count += 1
        name, facts = type(problem).__name__, problem.args
        runs = self._runs.get((name, facts))
        if runs is None:
            letters = sum(len(str(one)) for one in facts)
            is_told = (
                len(self._runs) < _REASONS_MOST and self._letters + letters <= _REASONS_LETTERS
            )
            self._letters += letters if is_told else 0
            runs = self._runs.setdefault((name, facts if is_told else None), [])
        if runs and runs[-2] + runs[-1] == at:
            runs[-1] += 1
        else:
            runs += at, 1

    def said(self) -> list[list[object]] | None:
        """As it is said; None: nothing was refused."""
        return [
            [name, None if facts is None else list(facts), runs]
            for (name, facts), runs in self._runs.items()
        ] or None


def refusals_of(said: Iterable[Any] | None) -> dict[int, DriftlineError]:
    """What became of the events that were refused, by their places."""
    found: dict[int, DriftlineError] = {}
    for name, facts, runs in said or ():
        problem = ReasonLeftOff(name) if facts is None else problem_of(name, facts)
        for start, count in zip(runs[::2], runs[1::2], strict=True):
            found |= dict.fromkeys(range(start, start + count), problem)
    return found
