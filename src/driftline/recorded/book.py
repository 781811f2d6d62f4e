"""Which version of a subscription counts at a number of the sequence, and who must know of it?

The book is written by one process, which reads each file of changes once, when it is recorded. It
checks every change against what stands, and notes what follows from it:

    filters    a plain filter has a version from one number to another; whoever matches event n by
               the versions that hold at n gives the answer of an engine told everything in order
    shown      what needs memory goes to the shards that keep it (see `places`), as an entry among
               the events
    wants      which types of events a shard must be shown from a number on, or no longer
    env        the environment from a number on
    refused    what could not be honoured, with the reason; it changes nothing

What follows from one file is a `Page` or several, written beside the sequence and never changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from driftline.errors import DriftlineError, InvalidValue
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.recorded.changes import Cancel, Change, Delete, Env, Restate, Set, Subscribe
from driftline.recorded.places import Place, Places

PAGE = 50_000
"""So many changes are on a page: whoever wants to know of some reads no more than that."""


class Want(NamedTuple):
    """From a number on, these types (None: all) are shown to a shard, or no longer."""

    seq: int
    types: frozenset[str] | None
    shard: int
    begins: bool = True


@dataclass(slots=True)
class Page:
    """What follows from the changes with numbers in [first, end)."""

    first: int
    end: int
    filters: list[tuple[int, str, Standing | None]] = field(default_factory=list)
    """From this number on, this id stands so; None: no more."""
    shown: list[tuple[int, int, tuple[int, ...], Change]] = field(default_factory=list)
    """At this number and time, these shards are shown a change."""
    wants: list[Want] = field(default_factory=list)
    env: list[tuple[int, str, Value | None]] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A subscription that needs memory, as it was asked for first, and how it stands."""

    asked: Subscribe
    place: Place
    standing: Standing


class Book:
    """All subscriptions as they stand at the end of what was recorded."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.end = 0
        self.filters: dict[str, Standing] = {}
        self.env: dict[str, Value] = {}
        self.remembered: dict[str, _Remembered] = {}
        self._wanted: Counter[tuple[frozenset[str] | None, int]] = Counter()
        self._remembers = False

    @property
    def remembers(self) -> bool:
        """Was there ever a subscription that needs memory?"""
        return self._remembers

    @property
    def wants(self) -> list[Want]:
        """What is shown to which shard at the end."""
        return [Want(self.end, types, shard) for types, shard in self._wanted]

    def _want(self, page: Page, seq: int, place: Place, by: int) -> None:
        """One more, or one less, is to be shown what its place says."""
        if place.types is not None and not place.types:
            return
        for shard in place.shards:
            which = place.types, shard
            self._wanted[which] += by
            if self._wanted[which] == max(by, 0):
                page.wants.append(Want(seq, *which, by > 0))
            if not self._wanted[which]:
                del self._wanted[which]

    def pages(
        self, first: int, recorded: int, changes: Sequence[Change | DriftlineError]
    ) -> Iterator[Page]:
        """Take in the changes of one file; those that say none come as the error they are."""
        for at in range(0, len(changes), PAGE):
            yield self.write(first + at, recorded, changes[at : at + PAGE])

    def write(self, first: int, recorded: int, changes: Iterable[Change | DriftlineError]) -> Page:
        """The same for as many as are on one page."""
        page = Page(first, first)
        for change in changes:
            seq = page.end
            page.end += 1
            try:
                if isinstance(change, DriftlineError):
                    raise change
                self._take(page, seq, recorded if change.time is None else change.time, change)
            except DriftlineError as problem:
                page.refused.append((seq, str(problem)))
        self.end = page.end
        return page

    def _take(self, page: Page, seq: int, time: int, change: Change) -> None:
        if isinstance(change, Subscribe):
            self._subscribe(page, seq, time, change)
        elif isinstance(change, Env):
            self._set_env(page, seq, time, change)
        elif isinstance(change, Delete):
            shard = self.places.of_row(change.table, change.key)
            page.shown.append((seq, time, (shard,), change))
        elif change.id in self.filters:
            self._move(page, seq, time, change)
        elif change.id in self.remembered:
            self._move_remembered(page, seq, time, change)
        else:
            raise InvalidValue("id", "that of a subscription", repr(change.id))

    def _subscribe(self, page: Page, seq: int, time: int, asked: Subscribe) -> None:
        if asked.id in self.filters or asked.id in self.remembered:
            raise InvalidValue("id", "one that is not taken", repr(asked.id))
        start = time if asked.start is None else asked.start
        standing = Standing(asked.statement, asked.params, start)
        if asked.is_plain:
            self.filters[asked.id] = standing
            page.filters.append((seq, asked.id, standing))
            return
        place = self.places.of(asked)
        self._remembers = True
        self.remembered[asked.id] = _Remembered(asked, place, standing)
        page.shown.append((seq, time, place.shards, asked))
        self._want(page, seq, place, 1)

    def _set_env(self, page: Page, seq: int, time: int, change: Env) -> None:
        if change.value is None:
            self.env.pop(change.name, None)
        else:
            self.env[change.name] = change.value
        page.env.append((seq, change.name, change.value))
        page.shown.append((seq, time, self.places.everywhere, change))

    def _move(self, page: Page, seq: int, time: int, change: Set | Restate | Cancel) -> None:
        if isinstance(change, Cancel):
            del self.filters[change.id]
            page.filters.append((seq, change.id, None))
            return
        standing = _moved(self.filters[change.id], time, change)
        if isinstance(change, Restate) and not Subscribe(change.id, change.statement, {}).is_plain:
            raise InvalidValue("restate", "a plain filter for one", str(change.statement))
        self.filters[change.id] = standing
        page.filters.append((seq, change.id, standing))

    def _move_remembered(
        self, page: Page, seq: int, time: int, change: Set | Restate | Cancel
    ) -> None:
        held = self.remembered[change.id]
        if isinstance(change, Cancel):
            del self.remembered[change.id]
            self._want(page, seq, held.place, -1)
        else:
            if isinstance(change, Restate):
                asked = replace(held.asked, statement=change.statement)
                follows = isinstance(held.asked.statement, Subscription)
                if follows or asked.is_plain or self.places.of(asked) != held.place:
                    why = "another view of the same tables; else cancel it and subscribe again"
                    raise InvalidValue("restate", why, str(change.statement))
            standing = _moved(held.standing, time, change)
            self.remembered[change.id] = replace(held, standing=standing)
            if isinstance(change, Set):
                # All of them, also where only the start was set anew.
                change = replace(change, params=standing.params)
        page.shown.append((seq, time, held.place.shards, change))

    def _check(self) -> None:
        assert not self.filters.keys() & self.remembered.keys()
        places = [held.place for held in self.remembered.values()]
        assert self._wanted == Counter(
            (place.types, shard)
            for place in places
            if place.types is None or place.types
            for shard in place.shards
        )


def _moved(standing: Standing, time: int, change: Set | Restate) -> Standing:
    if isinstance(change, Restate):
        return standing.restated(change.statement, change.params)
    params: Mapping[str, Value] = change.params
    if change.rebase and not params:
        params = standing.params
    return standing.moved_to(params, time if change.rebase else None)
