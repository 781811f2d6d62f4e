"""The reference: try every filter. Slow and obvious."""

from __future__ import annotations

from collections.abc import Iterator

from driftline.matching.bounds import admitted, alternatives, parameters_of
from driftline.matching.columns import Columns
from driftline.matching.matcher import NO_BOUNDS, Bounds, Filters, Matches
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.scope import Scope


class Scan:
    """Each event against each filter, by the definition of `matches`."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[str, tuple[tuple[Filter, ...], Bounds]] = {}

    def add(self, id: str, filters: Filters, bounds: Bounds = NO_BOUNDS) -> None:
        """Take in what goes by this id, replacing what did; it becomes the last added. O(1)."""
        held = alternatives(filters)
        checked = admitted(parameters_of(held), bounds)
        self.discard(id)
        self._held[id] = held, checked

    def discard(self, id: str) -> None:
        """Forget an id; nothing happens if it is not there. O(1)."""
        self._held.pop(id, None)

    def change(self, id: str, bounds: Bounds) -> None:
        """Move the bounds of what is there; its place in the order stays. O(1)."""
        held, _ = self._held[id]
        self._held[id] = held, admitted(parameters_of(held), bounds)

    def match(self, event: Event) -> list[str]:
        """The ids that the event satisfies, in the order they were added. O(N)."""
        found = []
        for id, (filters, bounds) in self._held.items():
            scope = Scope(event, bounds)
            if any(one.matches(scope) for one in filters):
                found.append(id)
        return found

    def match_batch(self, columns: Columns) -> Matches:
        """For each event of the batch the ids that it satisfies."""
        ids = (self.match(columns.event(at)) for at in range(len(columns)))
        return Matches.of(ids, list(self._held))

    def items(self) -> Iterator[tuple[str, tuple[Filter, ...], Bounds]]:
        """All that is held, in the order it was added."""
        for id, (filters, bounds) in self._held.items():
            yield id, filters, bounds

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, id: object) -> bool:
        return id in self._held

    def _check(self) -> None:
        for filters, bounds in self._held.values():
            assert bounds.keys() == parameters_of(filters)
