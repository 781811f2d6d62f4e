"""Which standing subscriptions does this event satisfy, those included that evolve?

The parts of a condition that move with time or the environment (`now()`, `env()`, `elapsed()`) are
kept out of the matcher: to keep an index up to date with them would be work at every tick, whether
an event comes or not. The fixed part is in the matcher, and a subscription that has an evolving
part is evaluated when an event gets that far [EVOLVE, lazy evaluation]. Leaving out a part of a
conjunction only finds too much, and what is found is verified by the definition: so the answer is
exact.

Parameters stay parameters in what the matcher holds: moving one is a `change` in place.

    >>> from driftline.language.sql import parse
    >>> from driftline.matching.scan import Scan
    >>> from driftline.model.event import Event
    >>> lazy = Lazy(Scan())
    >>> text = "SELECT * WHERE x > :low AND y < env('visibility')"
    >>> lazy.add("1", Standing.of(parse(text), {"low": 5}))
    >>> lazy.match(Event("seen", {"x": 7, "y": 2}), {"visibility": 3})
    ['1']
    >>> lazy.match(Event("seen", {"x": 7, "y": 4}), {"visibility": 3})
    []
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftline.matching.bounds import parameters_of
from driftline.matching.columns import Columns
from driftline.matching.matcher import Matcher, Matches
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.remember import remembered
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.variables import variables_of

_NUMBER = 0xFFFFFFFF
"""The lower half of a word."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """What the matcher holds of a subscription: does it leave something out, has it parameters?"""

    filters: tuple[Filter, ...]
    evolves: bool
    moves: bool


@dataclass(frozen=True, slots=True)
class _Places:
    """By the matcher's number: the place in the order of adding, and does it evolve?"""

    given: object
    place: NDArray[np.int64]
    evolves: NDArray[np.bool_]
    names: list[str]


class Lazy:
    """Standing subscriptions by id, on a matcher of filters that was empty."""

    __slots__ = ("_evolving", "_matcher", "_moving", "_places", "_standing")

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._standing: dict[str, Standing] = {}
        self._evolving: set[str] = set()
        self._moving: set[str] = set()
        self._places: _Places | None = None

    def add(self, id: str, standing: Standing) -> None:
        """Take in a subscription, replacing one of the same id; it becomes the last added."""
        assert isinstance(standing.statement, Subscription)
        fixed = fixed_of(standing.statement)
        self._matcher.add(id, fixed.filters, standing.params)
        self._forget(id)
        self._standing[id] = standing
        if fixed.evolves:
            self._evolving.add(id)
        if fixed.moves:
            self._moving.add(id)

    def move(self, id: str, standing: Standing) -> None:
        """Put the same subscription under other parameters; its place in the order stays."""
        assert standing.statement == self._standing[id].statement
        if id in self._moving:
            self._matcher.change(id, standing.params)
        self._standing[id] = standing

    def discard(self, id: str) -> None:
        """Forget a subscription; nothing happens if there is none of that id."""
        self._matcher.discard(id)
        self._forget(id)

    def _forget(self, id: str) -> None:
        self._places = None
        self._standing.pop(id, None)
        self._evolving.discard(id)
        self._moving.discard(id)

    def match(self, event: Event, env: Mapping[str, Value]) -> list[str]:
        """The ids of all that the event satisfies, in the order they were added."""
        found = self._matcher.match(event)
        if not self._evolving:
            return found
        evolving, standing = self._evolving, self._standing
        return [id for id in found if id not in evolving or standing[id].matches(event, env)]

    def match_batch(self, columns: Columns, env: Mapping[str, Value]) -> Matches:
        """For each event of the batch the ids of all that it satisfies, in the order of adding."""
        found = self._matcher.match_batch(columns)
        places = self._places_of(found)
        keep = None
        if self._evolving:
            names, standing = found.names, self._standing
            keep = verified(
                found, places.evolves, lambda number: standing[names[number]], columns, env
            )
        offsets, ordered = in_order(found, places.place, keep)
        return Matches(offsets, ordered, places.names)

    def find_batch(self, columns: Columns, env: Mapping[str, Value]) -> Matches:
        """The same; there are few, so they are in order too."""
        return self.match_batch(columns, env)

    def _places_of(self, found: Matches) -> _Places:
        """Kept while nothing is added or discarded: a batch should not cost what is held."""
        if self._places is None or self._places.given is not found.names:
            names = list(self._standing)
            place = {id: at for at, id in enumerate(names)}
            self._places = _Places(
                found.names,
                # A matcher may have numbers that are not in use.
                np.array([place.get(id, -1) for id in found.names], np.int64),
                np.array([id in self._evolving for id in found.names], np.bool_),
                names,
            )
        return self._places

    def __len__(self) -> int:
        return len(self._standing)

    def __contains__(self, id: object) -> bool:
        return id in self._standing

    def _check(self) -> None:
        self._matcher._check()
        assert len(self._matcher) == len(self._standing)
        assert all(id in self._matcher for id in self._standing)
        for id, standing in self._standing.items():
            assert isinstance(standing.statement, Subscription)
            fixed = fixed_of(standing.statement)
            assert (id in self._evolving) is fixed.evolves
            assert (id in self._moving) is fixed.moves
        assert self._standing.keys() >= self._evolving | self._moving


def verified(
    found: Matches,
    evolves: NDArray[np.bool_],
    standing_of: Callable[[int], Standing],
    columns: Columns,
    env: Mapping[str, Value],
) -> NDArray[np.bool_]:
    """Which of the matches are true, also where the condition evolves? That is told by number."""
    keep = np.ones(len(found), np.bool_)
    doubtful = np.flatnonzero(evolves[found.numbers])
    made = -1
    for at, event_at, number in zip(
        doubtful.tolist(),
        found.events[doubtful].tolist(),
        found.numbers[doubtful].tolist(),
        strict=True,
    ):
        if event_at != made:
            event, made = columns.event(event_at), event_at
        keep[at] = standing_of(number).matches(event, env)
    return keep


def in_order(
    found: Matches, place: NDArray[np.signedinteger[Any]], keep: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The offsets and, for each match that is kept, its place: by event, then by place."""
    events, numbers = found.events, found.numbers
    if keep is not None:
        events, numbers = events[keep], numbers[keep]
    # One sort of one word per match: the event above the place.
    words = (events << 32) | place[numbers]
    words.sort()
    offsets = np.searchsorted(words, np.arange(len(found.offsets), dtype=np.int64) << 32)
    return offsets, (words & _NUMBER).astype(np.int32)


@remembered
def fixed_of(statement: Subscription) -> Fixed:
    """What of it a matcher can hold."""
    whole = statement.filters()
    filters = tuple(map(_fixed_part, whole))
    return Fixed(filters, filters != whole, bool(parameters_of(filters)))


def _fixed_part(one: Filter) -> Filter:
    """The filter without what evolves; where all of it does, its type is left."""
    return Filter(
        one.type,
        tuple(c for c in one.constraints if c.constant or not c.variables().evolving),
        tuple(c for c in one.conditions if not variables_of(c).evolving),
    )
