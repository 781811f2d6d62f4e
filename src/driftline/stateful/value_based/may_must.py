"""Who is told where some must be and others may be? [VALUE §6.1]

`moved(price, may => 1.5, must => 2)`: told when the value is 2 from the one last told, and not
before it is 1.5 from it. In between there are several right answers; which one we give, whatever
the structure and wherever it is kept, is this. Those with the same two radii are a group, groups
stand in the order of (may, must), and a move tells

- of a group in which somebody must be told, all who may be;
- and all of each group in which all may be told, if between it and one where somebody must be there
  are only such groups.

So ranges of radii that only those part who may be told become one, nobody is told where nobody must
be, and those with the same radii get the same centre, and are told together from then on. We
differ: the paper descends wherever somebody may be told, and says in its leaves what is to be done
where that is all of it; a move in which nobody must be told is not looked at here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from driftline.errors import InvalidValue
from driftline.model.value import show
from driftline.stateful.value_based.reference import DEFAULT
from driftline.stateful.value_based.rule import Floats, Rule
from driftline.stateful.value_based.structure import admit_held, admit_new

_FIRST = 16


def told(rule: Rule, may: Floats, must: Floats, centres: Floats, value: float) -> NDArray[np.bool_]:
    """Who of these is told of a value? They are in the order of (may, must). O(n)."""
    due = rule.tells_many(centres, must, value)
    if not due.any():
        return due
    allowed = rule.tells_many(centres, may, value)
    begins = np.ones(len(may), np.bool_)
    begins[1:] = (may[1:] != may[:-1]) | (must[1:] != must[:-1])
    group, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    triggered = np.logical_or.reduceat(due, first)
    whole = np.logical_and.reduceat(allowed, first)
    # A run of groups that may be told as a whole goes up to the next one that may not.
    run = np.cumsum(~whole)
    run_triggered = np.zeros(run[-1] + 1, np.bool_)
    run_triggered[run[whole & triggered]] = True
    picked = triggered | (whole & run_triggered[run])
    found: NDArray[np.bool_] = allowed & picked[group]
    return found


class MayMust:
    """Those who want to hear of one item, with two radii each.

    While the value stays where nobody must be told an event is O(1), else O(n).
    """

    def __init__(self, value: float, rule: Rule = DEFAULT) -> None:
        self.rule = rule
        self.value = rule.admit_value(value)
        self._rows: dict[int, int] = {}
        self._ids = np.zeros(_FIRST, np.int64)
        self._columns = np.zeros((3, _FIRST))  # may, must, centre
        self._arranged = True
        self._low, self._high = -math.inf, math.inf

    def insert(self, id: int, may: float, must: float) -> float:
        """Begin a subscription; what it has been told, the current value."""
        id = admit_new(self, id)
        may, must = self.rule.admit_radius(may, "may"), self.rule.admit_radius(must, "must")
        if may > must:
            raise InvalidValue("may", f"at most must, {must!r}", show(may))
        at = len(self._rows)
        if at == len(self._ids):
            self._ids = np.concatenate((self._ids, np.zeros_like(self._ids)))
            self._columns = np.concatenate((self._columns, np.zeros_like(self._columns)), axis=1)
        self._rows[id], self._ids[at], self._columns[:, at] = at, id, (may, must, self.value)
        self._arranged = False
        return self.value

    def delete(self, id: int) -> None:
        """End a subscription."""
        at = self._rows.pop(admit_held(self, id))
        last = len(self._rows)
        if at < last:
            self._ids[at], self._columns[:, at] = self._ids[last], self._columns[:, last]
            self._rows[int(self._ids[at])] = at
        self._arranged = False

    def tell(self, value: float) -> list[int]:
        """There is a new value: the ids of those who are told."""
        self.value = self.rule.admit_value(value)
        if not self._arranged:
            self._arrange()
        if self._low < self.value < self._high:
            return []
        may, must, centres = self._columns[:, : len(self)]
        found = told(self.rule, may, must, centres, self.value)
        centres[found] = self.value
        self._bound()
        ids: list[int] = self._ids[: len(self)][found].tolist()
        return ids

    def centre(self, id: int) -> float:
        """What a subscription was last told."""
        return float(self._columns[2][self._rows[admit_held(self, id)]])

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, id: object) -> bool:
        return id in self._rows

    def _arrange(self) -> None:
        """Bring all into the order of (may, must)."""
        count = len(self)
        order = np.lexsort((self._columns[1, :count], self._columns[0, :count]))
        self._ids[:count] = self._ids[order]
        self._columns[:, :count] = self._columns[:, order]
        self._rows = {id: at for at, id in enumerate(self._ids[:count].tolist())}
        self._arranged = True
        self._bound()

    def _bound(self) -> None:
        """Between which values nobody must be told? Not beyond the ends that are nearest."""
        _, must, centres = self._columns[:, : len(self)]
        lows, highs = self.rule.ends(centres, must)
        self._high = float(np.min(highs, initial=math.inf))
        self._low = float(np.max(lows, initial=-math.inf))

    def _check(self) -> None:
        assert sorted(self._ids[: len(self)].tolist()) == sorted(self._rows)
        _, must, centres = self._columns[:, : len(self)]
        assert not self.rule.tells_many(centres, must, self.value).any()
