"""Which plain filters hold at a number of the sequence, and which of them does an event satisfy?

Most stand in a base: a large index that the processes of a machine share. What has changed since is
few: versions that have begun are held beside it, and versions that have ended are left out of what
is found. So a change costs nothing but itself, and a new base is made only now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from driftline.matching.choice import make_matcher
from driftline.matching.columns import Columns
from driftline.matching.lazy import Lazy
from driftline.matching.matcher import Matches, StandingMatcher
from driftline.model.value import Value
from driftline.recorded.book import Page, Want
from driftline.recorded.pages import Base, Pages

FOREVER = np.iinfo(np.int64).max

OpenBase: TypeAlias = Callable[[Base], StandingMatcher]
"""The matcher of a base, its subscriptions in their order."""

FEW = 256
"""A newer base is gone over to when more than so many versions are beside the present one."""


class Versions:
    """The plain filters by numbers, as far as they were asked for."""

    def __init__(self, pages: Pages, open_base: OpenBase) -> None:
        self._pages = pages
        self._open_base = open_base
        self._begin(None)

    def _begin(self, base: Base | None) -> None:
        self._from = self._read = 0 if base is None else base.end
        self._base = base if base is not None and base.count else None
        self._matcher: StandingMatcher | None = None
        # By id, for those of the base; by the matcher's number once it has been asked.
        self._ended: dict[str, int] = {}
        self._base_ends: NDArray[np.int64] | None = None
        self._beside = Lazy(make_matcher("auto"))
        self._ids: list[str] = []
        self._begins: list[int] = []
        self._ends: list[int] = []
        self._current: dict[str, int] = {}
        self._envs: list[tuple[int, Mapping[str, Value]]] = [
            (self._from, {} if base is None else base.env)
        ]
        self._wanted: list[Want] = [] if base is None else base.wants
        self._wants: list[Want] = []

    def at(self, seq: int) -> At:
        """What holds for the event with this number."""
        # A base instead of all pages, for whoever has read none yet.
        is_many = not self._read or len(self._ids) + len(self._ended) > FEW
        if seq < self._from or (is_many and self._pages.newest(seq) > self._from):
            self._begin(self._pages.base(seq))
        for page in self._pages.between(self._read, seq):
            self._take(page)
            self._read = page.end
        return At(self, seq)

    def _take(self, page: Page) -> None:
        for seq, id, standing in page.filters:
            self._end(id, seq)
            if standing is not None:
                number = self._current[id] = len(self._ids)
                self._ids.append(id)
                self._begins.append(seq)
                self._ends.append(FOREVER)
                self._beside.add(str(number), standing)
        for seq, name, value in page.env:
            env = {**self._envs[-1][1], name: value}
            self._envs.append((seq, {n: v for n, v in env.items() if v is not None}))
        self._wants += page.wants

    def _end(self, id: str, seq: int) -> None:
        number = self._current.pop(id, None)
        if number is not None:
            self._ends[number] = seq
        elif self._base is not None:
            self._ended.setdefault(id, seq)
            self._base_ends = None

    def _opened(self) -> StandingMatcher:
        """The base's matcher: not everybody who asks what holds wants to match."""
        if self._matcher is None:
            assert self._base is not None
            self._matcher = self._open_base(self._base)
        return self._matcher

    def _ends_of(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Where those of the base end, by the numbers of its matcher."""
        if self._base_ends is None or len(self._base_ends) != len(names):
            self._base_ends = np.full(len(names), FOREVER, np.int64)
            for number, name in enumerate(names):
                if name in self._ended:
                    self._base_ends[number] = self._ended[name]
        return self._base_ends


class At:
    """What holds at one number: a matcher of standing subscriptions, and the environment."""

    __slots__ = ("_seq", "_versions")

    def __init__(self, versions: Versions, seq: int) -> None:
        self._versions = versions
        self._seq = seq

    @property
    def env(self) -> Mapping[str, Value]:
        """The environment."""
        return next(env for seq, env in reversed(self._versions._envs) if seq <= self._seq)

    @property
    def wants(self) -> list[tuple[frozenset[str] | None, int]]:
        """Which types (None: all) which shard is to be shown."""
        held = self._versions
        found = {(one.types, one.shard) for one in held._wanted}
        for one in held._wants:
            if one.seq < self._seq:
                (found.add if one.begins else found.discard)((one.types, one.shard))
        return list(found)

    def match_batch(self, columns: Columns, env: Mapping[str, Value]) -> Matches:
        """For each event of the batch the ids that it satisfies, in no particular order."""
        return self.find_batch(columns, env)

    def find_batch(self, columns: Columns, env: Mapping[str, Value]) -> Matches:
        """The same."""
        held = self._versions
        found = None
        if held._base is not None:
            found = held._opened().find_batch(columns, env)
            if held._ended:
                found = found.only((held._ends_of(found.names) > self._seq)[found.numbers])
        if not held._ids:
            return Matches.of([()] * len(columns), ()) if found is None else found
        begun, end = np.array(held._begins, np.int64), np.array(held._ends, np.int64)
        beside = held._beside.match_batch(columns, env)
        # Nothing is ever taken out of it, so its names are all that came, in order.
        beside = Matches(beside.offsets, beside.numbers, held._ids)
        beside = beside.only(((begun <= self._seq) & (self._seq < end))[beside.numbers])
        return beside if found is None else _joined(found, beside)


def _joined(one: Matches, other: Matches) -> Matches:
    """For each event what both have found."""
    events = np.concatenate((one.events, other.events))
    numbers = np.concatenate((one.numbers, other.numbers + np.int32(len(one.names))))
    order = np.argsort(events, kind="stable")
    names = _Names(one.names, other.names)
    return Matches(one.offsets + other.offsets, numbers[order].astype(np.int32), names)


class _Names(Sequence[str]):
    """The names of two, one behind the other: a batch should not cost what is held."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: Sequence[str], second: Sequence[str]) -> None:
        self._first, self._second = first, second

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        behind = at - len(self._first)
        return self._first[at] if behind < 0 else self._second[behind]

    def __len__(self) -> int:
        return len(self._first) + len(self._second)
