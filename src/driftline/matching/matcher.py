"""What can be asked of a matcher?

A matcher holds filters by id and finds those that an event satisfies. An id may have several
filters, which are alternatives: it is found once, whichever of them are true. A bound that moves is
a parameter in the filter (`price < :limit`); `bounds` gives the parameters their values, at first
in `add` and again in `change`.

What a filter reads besides the event and its parameters (the environment, `elapsed()`) is unknown
here, and so is whatever depends on it. `lazy` adds that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from driftline.matching.columns import Columns
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.value import Value

Filters: TypeAlias = Filter | Sequence[Filter]
"""One filter, or alternatives of which one must be true; none at all is never true."""

Bounds: TypeAlias = Mapping[str, Value]
"""The values of the parameters, by name."""

NO_BOUNDS: Bounds = {}


class Matcher(Protocol):
    """A set of filters by id, and which of them an event satisfies."""

    def add(self, id: str, filters: Filters, bounds: Bounds = NO_BOUNDS) -> None:
        """Take in what goes by this id, replacing what did; it becomes the last added."""

    def discard(self, id: str) -> None:
        """Forget an id; nothing happens if it is not there."""

    def change(self, id: str, bounds: Bounds) -> None:
        """Move the bounds of what is there; its place in the order stays. KeyError if not there."""

    def match(self, event: Event) -> list[str]:
        """The ids that the event satisfies, in the order they were added."""

    def match_batch(self, columns: Columns) -> Matches:
        """For each event of the batch the ids that it satisfies, in no particular order."""

    def __len__(self) -> int: ...

    def __contains__(self, id: object) -> bool: ...

    def _check(self) -> None:
        """Assert the invariants."""


@runtime_checkable
class Numbered(Protocol):
    """A matcher whose filters have numbers, by which kernels know them."""

    def number(self, id: str) -> int:
        """The number of what goes by this id; another one when it is added anew."""

    def __contains__(self, id: object) -> bool: ...


class StandingMatcher(Protocol):
    """Standing subscriptions, which may evolve: so the environment is part of the question."""

    def match_batch(self, columns: Columns, env: Mapping[str, Value]) -> Matches:
        """For each event of the batch the ids that it satisfies, in the order they were given."""

    def find_batch(self, columns: Columns, env: Mapping[str, Value]) -> Matches:
        """The same, in no particular order."""


@dataclass(frozen=True, slots=True)
class Matches:
    """Who is told of which event of a batch: a list of numbers per event, one after the other.

    Those of event i are `numbers[offsets[i]:offsets[i + 1]]`; `names[number]` is the id. The names
    are the matcher's own, to be read before it is changed.
    """

    offsets: NDArray[np.int64]
    numbers: NDArray[np.int32]
    names: Sequence[str]

    @classmethod
    def of(cls, ids: Iterable[Sequence[str]], names: Sequence[str]) -> Matches:
        """From the ids of each event: how a matcher without a faster way answers."""
        number_of = {name: number for number, name in enumerate(names)}
        found = [[number_of[id] for id in one] for one in ids]
        offsets = np.zeros(len(found) + 1, np.int64)
        np.cumsum([len(one) for one in found], out=offsets[1:])
        flat = [number for one in found for number in one]
        return cls(offsets, np.array(flat, np.int32), names)

    @property
    def events(self) -> NDArray[np.int64]:
        """For each match the index of its event."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def only(self, kept: NDArray[np.bool_]) -> Matches:
        """Those of the matches that are kept."""
        counted = np.zeros(len(kept) + 1, np.int64)
        np.cumsum(kept, out=counted[1:])
        return Matches(counted[self.offsets], self.numbers[kept], self.names)

    def ids(self, at: int) -> list[str]:
        """The ids that event `at` satisfies."""
        found = self.numbers[self.offsets[at] : self.offsets[at + 1]]
        return [self.names[number] for number in found.tolist()]

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for event, number in zip(self.events.tolist(), self.numbers.tolist(), strict=True):
            yield event, self.names[number]

    def __len__(self) -> int:
        return len(self.numbers)
