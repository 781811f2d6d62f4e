"""Whose is each subscription that a kernel finds, and what does its owner call it?

Kernels know a subscription by its number in the index. Here each number has the *slot* of its
party, and a *mark*: the handle that the party gave it, below its epoch. The notices of a slot that
is `kept` are kept until they were had: the party is durable, or suspended.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_T = TypeVar("_T", bound=np.generic)

NOBODY = -1
_FIRST = 1024


class Slots:
    """Arrays by the number of a subscription, and by slot."""

    __slots__ = (
        "_free",
        "_slots",
        "counts",
        "heads",
        "keeps",
        "kept",
        "mark_of",
        "matched",
        "names",
        "slot_of",
        "weight_of",
    )

    def __init__(self) -> None:
        self.slot_of: NDArray[np.int32] = np.full(_FIRST, NOBODY, np.int32)
        self.mark_of: NDArray[np.int64] = np.zeros(_FIRST, np.int64)
        self.matched: NDArray[np.int64] = np.zeros(_FIRST, np.int64)
        """How often each was found."""
        self.weight_of: NDArray[np.int64] = np.zeros(_FIRST, np.int64)
        """What it takes to judge each, where kernels cannot tell; see `weight`."""
        self.kept = np.zeros(_FIRST, np.uint8)
        # What kernels count in: words of 0 by slot, and others.
        self.counts = np.zeros(_FIRST, np.int64)
        self.heads = np.zeros(_FIRST, np.int64)
        self.keeps = 0
        """How many slots are kept."""
        self.names: list[str] = []
        """The parties by slot."""
        self._slots: dict[str, int] = {}
        self._free: list[int] = []

    def enter(self, party: str, *, kept: bool) -> int:
        """The slot of a party, new or known."""
        slot = self._slots.get(party)
        if slot is None:
            if self._free:
                slot = self._free.pop()
                self.names[slot] = party
            else:
                slot = len(self.names)
                self.names.append(party)
                if slot == len(self.kept):
                    for name in ("kept", "counts", "heads"):
                        setattr(self, name, _longer(getattr(self, name), 0))
            self._slots[party] = slot
        self.keeps += int(kept) - int(self.kept[slot])
        self.kept[slot] = kept
        return slot

    def leave(self, party: str) -> None:
        """There is no such party any more, nor has it subscriptions."""
        slot = self._slots.pop(party, None)
        if slot is not None:
            self.keeps -= int(self.kept[slot])
            self.kept[slot] = 0
            self.names[slot] = ""
            self._free.append(slot)

    def get(self, party: str) -> int | None:
        """The slot of a party."""
        return self._slots.get(party)

    def put(self, number: int, party: str, handle: int, epoch: int, weight: int = 0) -> None:
        """A subscription has this number now, is called so, and weighs so much."""
        while number >= len(self.slot_of):
            self.slot_of = _longer(self.slot_of, NOBODY)
            self.mark_of = _longer(self.mark_of, 0)
            self.matched = _longer(self.matched, 0)
            self.weight_of = _longer(self.weight_of, 0)
        if self.slot_of[number] == NOBODY:
            self.matched[number] = 0
        self.slot_of[number] = self._slots[party]
        self.mark_of[number] = epoch << 32 | handle
        self.weight_of[number] = weight

    def found(self, number: int) -> int:
        """How often the subscription of this number was found."""
        return int(self.matched[number]) if number < len(self.matched) else 0

    def drop(self, number: int) -> None:
        """No subscription has this number."""
        if number < len(self.slot_of):
            self.slot_of[number] = NOBODY

    def _check(self) -> None:
        assert not self.counts.any()
        assert self.keeps == int(self.kept.sum())
        live = set(self._slots.values())
        assert all(self.names[slot] == party for party, slot in self._slots.items())
        assert live.isdisjoint(self._free)
        assert len(live) + len(self._free) == len(self.names)
        assert set(self.slot_of.tolist()) <= live | {NOBODY}


def _longer(array: NDArray[_T], rest: int) -> NDArray[_T]:
    return np.concatenate([array, np.full(len(array), rest, array.dtype)])
