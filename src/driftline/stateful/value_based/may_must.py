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

In a network who is told is said in ranges of groups, and each who hears of one looks at its own
centre: so a range may go on over a group in which nobody may be told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftline.errors import InvalidValue
from driftline.model.value import show
from driftline.stateful.value_based.reference import DEFAULT
from driftline.stateful.value_based.rule import Floats, Rule
from driftline.stateful.value_based.structure import admit_held, admit_new

_FIRST = 16

Group: TypeAlias = tuple[float, float]
"""Those with these two radii, may and must."""


class _Groups(NamedTuple):
    """Who is told of a value: those of the groups that are picked who may be."""

    allowed: NDArray[np.bool_]  # of each: may it be told?
    group: NDArray[np.int64]  # of each: the number of its group
    first: NDArray[np.int64]  # of each group: the first of it
    picked: NDArray[np.bool_]  # of each group

    def told(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.allowed & self.picked[self.group]
        return found

    def ranges(self) -> list[tuple[int, int]]:
        """Somebody of a first group, and of a last.

        Between two ranges there is a group in which somebody may be told and is not.
        """
        parting = np.logical_or.reduceat(self.allowed, self.first) & ~self.picked
        picked = np.flatnonzero(self.picked)
        section = np.cumsum(parting)[picked]
        parted = section[1:] != section[:-1]
        firsts = self.first[picked[np.concatenate(([True], parted))]]
        lasts = self.first[picked[np.concatenate((parted, [True]))]]
        return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def told(rule: Rule, may: Floats, must: Floats, centres: Floats, value: float) -> NDArray[np.bool_]:
    """Who of these is told of a value? They are in the order of (may, must). O(n)."""
    groups = _groups(rule, may, must, centres, value)
    return np.zeros(len(may), np.bool_) if groups is None else groups.told()


def _groups(rule: Rule, may: Floats, must: Floats, centres: Floats, value: float) -> _Groups | None:
    """The same by groups; None if nobody is told."""
    due = rule.tells_many(centres, must, value)
    if not due.any():
        return None
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
    return _Groups(allowed, group, first, triggered | (whole & run_triggered[run]))


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
        id, (may, must) = admit_new(self, id), self._admit(may, must)
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

    def change(self, id: int, may: float, must: float) -> bool:
        """Give it other radii: is it told of the current value at once, as it must be by them?"""
        at, (may, must) = self._rows[admit_held(self, id)], self._admit(may, must)
        overdue = self.rule.tells(self.centre(id), must, self.value)
        centre = self.value if overdue else self.centre(id)
        self._columns[:, at] = may, must, centre
        self._arranged = False
        return overdue

    def event(self, value: float) -> list[tuple[Group, Group]]:
        """There is a new value: who is told, as the first and the last group of each range.

        Of a range exactly those are told whose own centre is at least `may` away from the value.
        There are as few ranges as there can be, and of their first and last groups some are told.
        """
        groups = self._move(value)
        pairs = [] if groups is None else groups.ranges()
        return [(self._group(first), self._group(last)) for first, last in pairs]

    def tell(self, value: float) -> list[int]:
        """The same, as the ids of those who are told."""
        groups = self._move(value)
        if groups is None:
            return []
        ids: list[int] = self._ids[: len(self)][groups.told()].tolist()
        return ids

    def tell_all(self, value: float) -> None:
        """The same, where all are told who may be, whether or not anybody must be."""
        self.value = self.rule.admit_value(value)
        may, _, centres = self._columns[:, : len(self)]
        centres[self.rule.tells_many(centres, may, self.value)] = self.value
        self._arranged = False

    def radii(self, id: int) -> Group:
        """From how far on a subscription may be told, and must be."""
        return self._group(self._rows[admit_held(self, id)])

    def centre(self, id: int) -> float:
        """What a subscription was last told."""
        return float(self._columns[2][self._rows[admit_held(self, id)]])

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, id: object) -> bool:
        return id in self._rows

    def _admit(self, may: float, must: float) -> Group:
        may, must = self.rule.admit_radius(may, "may"), self.rule.admit_radius(must, "must")
        if may > must:
            raise InvalidValue("may", f"at most must, {must!r}", show(may))
        return may, must

    def _group(self, at: int) -> Group:
        may, must, _ = self._columns[:, at].tolist()
        return may, must

    def _move(self, value: float) -> _Groups | None:
        """The value is another: who is told, whose centre it is now."""
        self.value = self.rule.admit_value(value)
        if not self._arranged:
            self._arrange()
        if self._low < self.value < self._high:
            return None
        may, must, centres = self._columns[:, : len(self)]
        groups = _groups(self.rule, may, must, centres, self.value)
        if groups is not None:
            centres[groups.told()] = self.value
            self._bound()
        return groups

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
