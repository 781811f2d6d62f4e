"""Which is the least, and which the greatest, of different values of one kind?

The values lie in order, in blocks: a change finds its block by the last value of each and moves
what lies behind it there, a few hundred pointers however many values there are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

# Finding the block and moving within it cost about the same for a hundred thousand values.
_BLOCK_MAX = 512


class Ordered:
    """Different values of one kind, in order."""

    __slots__ = ("_blocks", "_lasts")

    def __init__(self) -> None:
        self._blocks: list[list[Any]] = []
        self._lasts: list[Any] = []

    def put(self, value: Any) -> None:
        """Take in a value that is not there. O(sqrt N), and little of it."""
        if not self._blocks:
            self._blocks.append([])
            self._lasts.append(value)
        at = min(bisect_left(self._lasts, value), len(self._blocks) - 1)
        block = self._blocks[at]
        block.insert(bisect_left(block, value), value)
        if len(block) > _BLOCK_MAX:
            half = len(block) // 2
            self._blocks[at : at + 1] = [block[:half], block[half:]]
            self._lasts.insert(at, block[half - 1])
            at += 1
        self._lasts[at] = self._blocks[at][-1]

    def remove(self, value: Any) -> None:
        """Let go of a value that is there. O(sqrt N)."""
        at = bisect_left(self._lasts, value)
        block = self._blocks[at]
        del block[bisect_left(block, value)]
        if block:
            self._lasts[at] = block[-1]
        else:
            del self._blocks[at], self._lasts[at]

    def least(self) -> Any:
        """The least value of some. O(1)."""
        return self._blocks[0][0]

    def greatest(self) -> Any:
        """The greatest value of some. O(1)."""
        return self._lasts[-1]

    def __iter__(self) -> Iterator[Any]:
        for block in self._blocks:
            yield from block

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def _check(self) -> None:
        assert all(0 < len(block) <= _BLOCK_MAX for block in self._blocks)
        assert self._lasts == [block[-1] for block in self._blocks]
        assert all(a < b for a, b in pairwise(self))
