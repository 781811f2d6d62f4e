"""Which of them comes first, when their ranks keep changing?

A heap that is never searched: a rank that changed is pushed again, and what is out of date is
dropped when it comes to the top, or all at once when there is more of it than of the rest.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

_FEW = 16
"""Below this nothing is tidied up: it would be done all the time."""


class Least:
    """Numbers and their ranks; of equal ranks the smaller number comes first.

    >>> least = Least()
    >>> least.set(1, 30), least.set(2, 20), least.set(2, 40)
    (None, None, None)
    >>> least.first()
    (30, 1)
    >>> least.set(1, None)
    >>> least.first()
    (40, 2)
    """

    __slots__ = ("_heap", "_rank")

    def __init__(self) -> None:
        self._rank: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []

    def set(self, number: int, rank: int | None) -> None:
        """Give it this rank, whatever it had; None: no longer any. O(log n), amortised."""
        if self._rank.get(number) == rank:
            return
        if rank is None:
            del self._rank[number]
        else:
            self._rank[number] = rank
            heappush(self._heap, (rank, number))
        if len(self._heap) > 2 * len(self._rank) + _FEW:
            self._heap = [(rank, number) for number, rank in self._rank.items()]
            heapify(self._heap)

    def first(self) -> tuple[int, int] | None:
        """The least rank and who has it; O(log n), amortised."""
        while self._heap:
            rank, number = self._heap[0]
            if self._rank.get(number) == rank:
                return rank, number
            heappop(self._heap)
        return None

    def __contains__(self, number: int) -> bool:
        return number in self._rank

    def _check(self, ranks: dict[int, int]) -> None:
        there = set(self._heap)
        assert self._rank == ranks
        assert all((rank, number) in there for number, rank in ranks.items())
        assert all(self._heap[(at - 1) // 2] <= self._heap[at] for at in range(1, len(self._heap)))
        assert len(self._heap) <= 2 * len(ranks) + _FEW
