"""What are the least and the greatest of values that come and go?

The values are counted, and the different ones lie in order, by kind: values of two kinds do not
compare, and while there are both there is no least.

>>> extremes = Extremes()
>>> for value in (3, 1, 1.0, 2):
...     extremes.add(value, 1)
>>> extremes.add(1, -1)
>>> extremes.least(), extremes.greatest()
(1, 3)
"""

from __future__ import annotations

from collections.abc import Iterator

from driftline.errors import InvalidValue
from driftline.model.truth import Unknown
from driftline.model.value import KIND_OF, Kind, Value, comparable, show
from driftline.stateful.range_sum.ordered import Ordered


class Extremes:
    """A multiset of values, in order.

    Both ends are wanted, and whatever comes may go: a heap would have but one of them, and would
    have to be rid of what was taken off below its top.
    """

    __slots__ = ("_counts", "_ordered")

    def __init__(self) -> None:
        self._counts: dict[object, int] = {}
        # Of those that are equal, as 1 and 1.0 are, the one that came first.
        self._ordered: dict[Kind, Ordered] = {}

    def add(self, value: Value, times: int) -> None:
        """Put the value in so many times; -1 takes it out."""
        hashed = comparable(value)
        before = self._counts.get(hashed, 0)
        after = before + times
        if after < 0:
            raise InvalidValue("a row that goes", "a value that is there", show(value))
        if after:
            self._counts[hashed] = after
        else:
            self._counts.pop(hashed, None)
        if bool(before) is not bool(after):
            self._place(KIND_OF[type(value)], value, came=after > 0)

    def _place(self, kind: Kind, value: Value, came: bool) -> None:
        ordered = self._ordered.setdefault(kind, Ordered())
        if came:
            ordered.put(value)
        else:
            ordered.remove(value)
            if not ordered:
                del self._ordered[kind]

    def least(self) -> Value | Unknown:
        """The least value. O(1)."""
        ordered = self._only()
        return ordered if isinstance(ordered, Unknown) else ordered.least()

    def greatest(self) -> Value | Unknown:
        """The greatest value. O(1)."""
        ordered = self._only()
        return ordered if isinstance(ordered, Unknown) else ordered.greatest()

    def _only(self) -> Ordered | Unknown:
        """All the values, if they are of one kind."""
        if len(self._ordered) > 1:
            return Unknown("values of different types", "do not compare")
        for ordered in self._ordered.values():
            return ordered
        return Unknown("an extreme", "has no value to be")

    def items(self) -> Iterator[tuple[Value, int]]:
        """The different values, in order within their kind, and how often each is there."""
        for ordered in self._ordered.values():
            for value in ordered:
                yield value, self._counts[comparable(value)]

    def _check(self) -> None:
        for kind, ordered in self._ordered.items():
            assert ordered
            ordered._check()
            assert all(KIND_OF[type(value)] is kind for value in ordered)
        placed = {comparable(value) for ordered in self._ordered.values() for value in ordered}
        assert placed == self._counts.keys()
        assert all(count > 0 for count in self._counts.values())
