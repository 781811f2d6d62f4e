"""How many events were looked at for a subscription, how many matched, how many told it nothing?

An index does not look at each filter, so what was *evaluated* for one is defined by types: the
events of its types that came to this broker since it began here. That takes one count for each
event, whoever subscribes; kernels count by form. What was *matched* satisfied the condition;
*quiet* is what did and yet told nothing: a step of a pattern, a message that leaves a view as it
was, a value that did not move far enough.

A plain subscription is known by its number in the index, and takes a word here and one in `slots`.
Of others there are few. All of it begins with the broker's process, or when a text is restated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from driftline.broker.slots import Slots
from driftline.stateful.rows.change import is_derived
from driftline.wire.forms import Form

_FIRST = 1024


@dataclass(slots=True)
class _Count:
    """Of one that is not plain."""

    types: tuple[str, ...]
    began: int
    matched: int = 0
    quiet: int = 0


class Counted:
    """The counts of one edge. Types are those a subscription is about; none: any."""

    __slots__ = (
        "_began",
        "_by_type",
        "_ended",
        "_events",
        "_forms",
        "_of_type",
        "_others",
        "_quiet_ended",
        "_slots",
        "by_form",
    )

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self.by_form: NDArray[np.int64] = np.zeros(64, np.int64)
        """How many events of each form kernels have taken."""
        self._by_type: dict[str, int] = {}
        self._events = 0
        self._forms: Mapping[int, Form] = {}
        self._of_type: dict[str, list[int]] = {}
        self._began: NDArray[np.int64] = np.zeros(_FIRST, np.int64)
        self._others: dict[str, _Count] = {}
        self._ended = 0
        """How often those were found that are no more."""
        self._quiet_ended = 0

    # What comes

    def came(self, type: str) -> None:
        """An event, or a message about a table, came by itself."""
        self._by_type[type] = self._by_type.get(type, 0) + 1
        self._events += not is_derived(type)

    def room(self, forms: Mapping[int, Form]) -> NDArray[np.int64]:
        """Where kernels count, with a word for each form."""
        self._forms = forms
        while len(self.by_form) < len(forms):
            self.by_form = np.concatenate([self.by_form, np.zeros_like(self.by_form)])
        return self.by_form

    def looked_at(self, types: tuple[str, ...]) -> int:
        """How many events of these types came so far."""
        if not types:
            return self._events + int(self.by_form.sum())
        known = sum(map(len, self._of_type.values()))
        for number in range(known, len(self._forms)):
            self._of_type.setdefault(self._forms[number].type, []).append(number)
        by_form = self.by_form
        return sum(
            self._by_type.get(type, 0)
            + sum(int(by_form[n]) for n in self._of_type.get(type, ()) if n < len(by_form))
            for type in types
        )

    # Subscriptions

    def begin(self, id: str, types: tuple[str, ...], number: int | None) -> None:
        """There is one more; the number of one that is plain."""
        began = self.looked_at(types)
        if number is None:
            self._others[id] = _Count(types, began)
            return
        while number >= len(self._began):
            self._began = np.concatenate([self._began, np.zeros_like(self._began)])
        self._began[number] = began

    def end(self, id: str, number: int | None) -> None:
        """It is no more."""
        self._ended += self.matched(id, number)
        self._quiet_ended += self.quiet(id)
        self._others.pop(id, None)

    def carry(self, id: str, number: int | None, evaluated: int, matched: int, quiet: int) -> None:
        """One that has just begun was counted before, as one that has ended."""
        self._ended -= matched
        self._quiet_ended -= quiet
        other = self._others.get(id)
        if other is not None:
            other.began -= evaluated
            other.matched += matched
            other.quiet += quiet
            return
        assert number is not None
        self._began[number] -= evaluated
        # Of a plain one everything that was found is told.
        self._slots.matched[number] += matched - quiet

    def found(self, id: str, number: int | None, *, told: bool = True) -> None:
        """An event satisfied it, and told something or not; see `slots` for what kernels find."""
        other = self._others.get(id)
        if other is None:
            assert number is not None
            self._slots.matched[number] += 1
            return
        other.matched += 1
        other.quiet += not told

    def evaluated(self, id: str, types: tuple[str, ...], number: int | None) -> int:
        """How many events of its types came since it began."""
        other = self._others.get(id)
        if other is not None:
            return self.looked_at(other.types) - other.began
        assert number is not None
        return self.looked_at(types) - int(self._began[number])

    def matched(self, id: str, number: int | None) -> int:
        """How many of them satisfied it."""
        other = self._others.get(id)
        if other is not None:
            return other.matched
        return 0 if number is None else self._slots.found(number)

    def quiet(self, id: str) -> int:
        """How many of these told nothing."""
        other = self._others.get(id)
        return 0 if other is None else other.quiet

    def total(self) -> int:
        """How often anything was matched, also by those who are no more."""
        slots = self._slots
        live = slots.matched[: len(slots.slot_of)][slots.slot_of >= 0]
        return self._ended + int(live.sum()) + sum(one.matched for one in self._others.values())

    def total_quiet(self) -> int:
        """How often that told nothing."""
        return self._quiet_ended + sum(one.quiet for one in self._others.values())

    def _check(self, others: set[str]) -> None:
        assert self._others.keys() == others
        assert all(0 <= one.quiet <= one.matched for one in self._others.values())
