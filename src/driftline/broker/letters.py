"""What could not be handed over to a party, and what becomes of it?

A *dead letter* is what a handler has given up on: who is to have it did not take it. It is kept, in
the same store that says that it was had, until its party has it delivered again or throws it away.
Of too many, or too large ones, the oldest is forgotten, and counted.

    >>> letters = Letters(most=2, most_bytes=1 << 20, put=lambda key, value: None)
    >>> for id in ("7", "8", "9-1"):
    ...     letters.bury("p", Letter(id, "it answered 500", 3, 0, b"{}"))
    >>> [one.id for one in letters], letters.forgotten
    (['8', '9-1'], 1)
    >>> letters.revive("p", ["8", "7"])
    1
    >>> [one.id for one in letters.to_deliver()]
    ['8']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from driftline.broker.effects import Key
from driftline.broker.sizes import THING_BYTES
from driftline.model.covering import Statement


@dataclass(frozen=True, slots=True)
class Letter:
    """What was to be told, and why that did not succeed.

    Its id is the number that it was told under; where one number told several things, all but the
    last have a part behind it (`9-1`, `9-gap`).
    """

    id: str
    why: str
    attempts: int
    time: int
    """When it was given up, microseconds since 1970."""
    data: bytes
    """What was to be told, as it was said then."""
    again: bool = False
    """Is it to be delivered again?"""
    made_from: tuple[Statement, ...] = ()
    """What was asked for when it was found, and last what was when it was told; none: that is not
    known."""

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return THING_BYTES + len(self.data) + len(self.why)


class Letters:
    """The dead letters of one party, the oldest first."""

    __slots__ = ("_known", "_most", "_most_bytes", "_put", "bytes", "forgotten")

    def __init__(self, most: int, most_bytes: int, put: Callable[[Key, object], None]) -> None:
        self._known: dict[str, Letter] = {}
        self._most = max(1, most)
        self._most_bytes = most_bytes
        self._put = put
        self.forgotten = 0
        """How many there were too many."""
        self.bytes = 0
        """About how many bytes they take."""

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Letter]:
        return iter(self._known.values())

    def __contains__(self, id: object) -> bool:
        return id in self._known

    def bury(self, party: str, letter: Letter) -> None:
        """Keep a letter; what was buried before under its id is the same, tried again."""
        self.restore(letter)
        self._put(("dead", party, letter.id), letter)
        while len(self._known) > self._most or (
            # One alone is kept however large it is: no event is larger than a frame.
            self.bytes > self._most_bytes and len(self._known) > 1
        ):
            self.discard(party, [next(iter(self._known))])
            self.forgotten += 1
            self._put(("forgotten", party), self.forgotten)

    def revive(self, party: str, ids: Iterable[str] | None) -> int:
        """Let some be delivered again, None: all; how many there are of these."""
        found = self._some(ids)
        for one in found:
            if not one.again:
                self._known[one.id] = replace(one, again=True)
                self._put(("dead", party, one.id), self._known[one.id])
        return len(found)

    def discard(self, party: str, ids: Iterable[str] | None) -> int:
        """Throw some away, None: all; how many there were of these."""
        found = self._some(ids)
        for one in found:
            del self._known[one.id]
            self.bytes -= one.size
            self._put(("dead", party, one.id), None)
        return len(found)

    def _some(self, ids: Iterable[str] | None) -> list[Letter]:
        if ids is None:
            return [*self]
        return [self._known[id] for id in dict.fromkeys(ids) if id in self._known]

    def to_deliver(self) -> list[Letter]:
        """Those that are to be delivered again."""
        return [one for one in self if one.again]

    def page(self, after: str, most: int) -> list[Letter]:
        """Some, behind the one of this id; empty: from the first on."""
        every = [*self]
        at = next((n for n, one in enumerate(every, 1) if one.id == after), 0)
        return every[at : at + most]

    def leave(self, party: str) -> None:
        """Nothing is kept for the party any more."""
        self.discard(party, None)
        if self.forgotten:
            self._put(("forgotten", party), None)

    def restore(self, letter: Letter) -> None:
        """One that an earlier life has kept, or the same, tried again."""
        before = self._known.get(letter.id)
        self.bytes += letter.size - (0 if before is None else before.size)
        self._known[letter.id] = letter

    def _check(self) -> None:
        assert len(self._known) <= self._most
        assert self.bytes == sum(one.size for one in self)
        assert all(id == one.id for id, one in self._known.items())
