"""When is one subscription told, whose state is kept alone? The subscriber's side, and the edge's.

Where there are many to one item a structure keeps them together; where each has its own condition,
or there is one, this does. Both say the same.
"""

from __future__ import annotations

from driftline.model.value import Value
from driftline.stateful.value_based.conditions import Hysteresis, Move, number_of


class Moving:
    """`moved(…)`: told of the first value, and whenever it is far enough from the one last told.

    >>> from driftline.stateful.value_based.rule import Rule
    >>> fold = Moving(Move(Rule(), 2.0))
    >>> [value for value in (100, 101, 102, 103, 104, None, 102) if fold.take(value)]
    [100, 102, 104, 102]
    """

    __slots__ = ("centre", "move")

    def __init__(self, move: Move, centre: float | None = None) -> None:
        self.move = move
        self.centre = centre
        """What was last told, in ticks if there are any; None before the first value."""

    def take(self, value: Value | None, radius: float | None = None) -> bool:
        """Is this value told, by its own radius or another? What is none changes nothing. O(1)."""
        number = self.move.number(value)
        if number is None or not self._is_due(number, radius or self.move.radius):
            return False
        self.centre = number
        return True

    def recentre(self, value: Value | None) -> bool:
        """This was told last, as somebody else knows: is that another value?"""
        before, self.centre = self.centre, self.move.number(value)
        return self.centre != before

    def _is_due(self, number: float, radius: float) -> bool:
        return self.centre is None or self.move.rule.tells(self.centre, radius, number)


class Crossing:
    """`crossed(…)`: told when the value reaches the threshold, and again only after it cleared.

    A first value that is there already is told.

    >>> fold = Crossing(Hysteresis(100, 95))
    >>> [value for value in (99, 101, 97, 102, 95, 100) if fold.take(value)]
    [101, 100]
    """

    __slots__ = ("beyond", "hysteresis")

    def __init__(self, hysteresis: Hysteresis, beyond: bool = False) -> None:
        self.hysteresis = hysteresis
        self.beyond = beyond
        """Has it reached the threshold, and not cleared since?"""

    def take(self, value: Value | None) -> bool:
        """Is this value told? What is none changes nothing. O(1)."""
        number = number_of(value)
        if number is None:
            return False
        if self.beyond:
            self.beyond = not self.hysteresis.cleared(number)
            return False
        self.beyond = self.hysteresis.reached(number)
        return self.beyond
