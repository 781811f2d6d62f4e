"""Is a change of a view told? `HAVING moved(…)` and `HAVING crossed(…)`; see `news.Gate`.

    SELECT MIN(per) FROM stock WHERE risk BETWEEN 20 AND 60 HAVING moved(MIN(per), by => 1)

What a view was last told is kept by its fold, so `moved` needs no state of its own. A view over no
rows is NULL; that it became so, and ceased to be, is told whatever the condition, as one who knows
the last value could not tell it from one that did not move.
"""

from __future__ import annotations

from driftline.stateful.news import Values
from driftline.stateful.value_based.conditions import Hysteresis, Move, number_of
from driftline.stateful.value_based.fold import Crossing


class MovedGate:
    """Told when one column moved; the others go along with it."""

    __slots__ = ("column", "move")

    def __init__(self, column: str, move: Move) -> None:
        self.column = column
        self.move = move
        """May be replaced where a variable moved."""

    def tells(self, told: Values, now: Values) -> bool:
        """See `Gate`."""
        return self.move.tells(told[self.column], now[self.column])


class CrossedGate:
    """Told when one column reaches a threshold, and again only after it cleared.

    After NULL it begins anew: what is told then may be beyond the threshold already.
    """

    __slots__ = ("_crossing", "column")

    def __init__(self, column: str, hysteresis: Hysteresis, now: Values) -> None:
        """Begin with the values of the snapshot, which is told in any case."""
        self.column = column
        self._crossing = Crossing(hysteresis)
        self._crossing.take(now[column])

    @property
    def beyond(self) -> bool:
        """Has it reached the threshold, and not cleared since? All there is to keep."""
        return self._crossing.beyond

    @beyond.setter
    def beyond(self, beyond: bool) -> None:
        self._crossing.beyond = beyond

    @property
    def hysteresis(self) -> Hysteresis:
        """May be replaced where a variable moved."""
        return self._crossing.hysteresis

    @hysteresis.setter
    def hysteresis(self, hysteresis: Hysteresis) -> None:
        self._crossing.hysteresis = hysteresis

    def tells(self, told: Values, now: Values) -> bool:
        """See `Gate`."""
        was, value = number_of(told[self.column]), number_of(now[self.column])
        if value is None:
            self._crossing.beyond = False
            return was is not None
        crossed = self._crossing.take(value)
        return crossed or was is None
