"""Which link does each filter belong to that a kernel finds?

What neighbours want is in an index of its own, whose filters kernels know by their numbers; each
link is a slot, like a party among those who are told (`slots`).
"""

from __future__ import annotations

from driftline.broker.slots import Slots
from driftline.matching.index import Index


class Ways:
    """The links by slot, as the index of what they want goes on; see `routing.subscriptions`."""

    __slots__ = ("index", "slots")

    def __init__(self, index: Index) -> None:
        self.index = index
        self.slots = Slots()

    def put(self, number: str, owner: str) -> None:
        """See `Places`."""
        # Kept: each event on its way has a number.
        self.slots.enter(owner, kept=True)
        self.slots.put(self.index.number(number), owner, 0, 0)

    def drop(self, number: str) -> None:
        """See `Places`."""
        self.slots.drop(self.index.number(number))
