"""What the paper's engines tell: versions as of when they were made [EVOLVE IV].

A version is the filter with the variables' values of an instant in their place. It is kept for an
interval, so an event is judged by a past that is at most so long ago.

    versioned   [VES] a version is made when the subscription begins, and again when an interval
                has passed (if it moves with time) or a variable it reads has changed; versions are
                in an ordinary matcher
    cached      [CLEES] a version is made when an event comes and there is none, or only one that is
                an interval old

Written for the comparison with the paper, row by row: our own ways (see `ways`) are exact at the
same price.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from driftline.errors import InvalidValue
from driftline.matching.choice import make_matcher
from driftline.matching.columns import Columns
from driftline.matching.matcher import NO_BOUNDS, Bounds, Matcher, Matches
from driftline.model.event import Event
from driftline.model.expression import Elapsed, Environment, Expression, Literal, Now
from driftline.model.filter import Filter
from driftline.model.scope import Scope
from driftline.model.value import Value, time_of
from driftline.model.variables import fold, variables_of
from driftline.moving.evolving.choice import Chosen
from driftline.moving.evolving.plan import evolves
from driftline.moving.evolving.started import heard, mapped, parts_of


@dataclass(slots=True)
class _Standing:
    """A subscription, its version, when that was made, and in which environment.

    `said`: is its start written out in its filters?
    """

    filters: tuple[Filter, ...]
    bounds: Bounds
    start: int
    said: bool
    timed: bool
    reads: frozenset[str]
    version: tuple[Filter, ...] = ()
    made: int | None = None
    env: Mapping[str, Value] | None = None


class AsOf:
    """Filters by id, by versions that are kept for an interval (microseconds)."""

    __slots__ = ("_added", "_interval", "_kind", "_matcher", "_place", "_plain", "_standing")

    def __init__(self, matcher: Matcher, kind: str, interval: int) -> None:
        if kind not in ("versioned", "cached"):
            raise InvalidValue("evolving", "versioned or cached, to be judged as of a time", kind)
        self._plain = matcher
        self._matcher = make_matcher("auto")
        self._kind = kind
        self._interval = interval
        self._standing: dict[str, _Standing] = {}
        self._place: dict[str, int] = {}
        self._added = count()

    def add(
        self, id: str, filters: tuple[Filter, ...], bounds: Bounds = NO_BOUNDS, start: int = 0
    ) -> None:
        """Take in what goes by this id, replacing what did; it becomes the last added."""
        self.discard(id)
        self._place[id] = next(self._added)
        if not any(map(evolves, filters)):
            self._plain.add(id, filters, bounds)
            return
        read, said = _read(filters)
        variables = [variables_of(part) for one in read for part in parts_of(one)]
        self._standing[id] = _Standing(
            read,
            dict(bounds),
            start if said is None else said,
            said is not None,
            any(one.elapsed or one.now for one in variables),
            frozenset().union(*(one.environment for one in variables)),
        )

    def change(self, id: str, bounds: Bounds, start: int = 0) -> None:
        """Move the bounds of what is there; its next version will have them. KeyError if not."""
        one = self._standing.get(id)
        if one is None:
            self._plain.change(id, bounds)
        else:
            one.bounds, one.made = dict(bounds), None
            one.start = one.start if one.said else start

    def discard(self, id: str) -> None:
        """Forget an id; nothing happens if it is not there."""
        if self._place.pop(id, None) is not None:
            self._plain.discard(id)
            self._matcher.discard(id)
            self._standing.pop(id, None)

    def advance(self, at: int, env: Mapping[str, Value]) -> None:
        """The environment is about to change: until now it was this."""
        if self._kind == "versioned":
            self._evolve(at, env)

    def _evolve(self, at: int, env: Mapping[str, Value]) -> None:
        """Make the versions that are due, as of when they were."""
        for id, one in self._standing.items():
            made = self._due(one, at, env)
            if made is not None:
                self._make(one, made, env)
                self._matcher.add(id, one.version)

    def _due(self, one: _Standing, at: int, env: Mapping[str, Value]) -> int | None:
        """The instant as of which a new version is to be made, if there is to be one."""
        if one.made is None:
            # At the beginning, and then always whole intervals later.
            passed = max(0, at - one.start) // self._interval if one.timed else 0
            return one.start + passed * self._interval
        passed = (at - one.made) // self._interval
        if passed < 1:
            return None
        if one.timed:
            return one.made + passed * self._interval
        before = one.env or {}
        changed = any(env.get(name) != before.get(name) for name in one.reads)
        return at if changed else None

    def _make(self, one: _Standing, at: int, env: Mapping[str, Value]) -> None:
        elapsed = max(0.0, float(at - one.start) / 1e6)
        one.version = tuple(
            frozen(part.bound(one.bounds), at, elapsed, env) for part in one.filters
        )
        one.made, one.env = at, env

    def match(self, event: Event, env: Mapping[str, Value], at: int | None = None) -> list[str]:
        """The ids of all that the event satisfies, in the order they were added."""
        found = self._plain.match(event)
        if self._standing:
            found += self._evolving(event, env, at)
            found.sort(key=self._place.__getitem__)
        return found

    def match_batch(self, columns: Columns, env: Mapping[str, Value]) -> Matches:
        """For each event, by its stamp, the ids of all it satisfies, in no particular order."""
        if not self._standing:
            return self._plain.match_batch(columns)
        found = (self.match(columns.event(at), env) for at in range(len(columns)))
        return Matches.of(found, [*self._place])

    def any(self, event: Event, env: Mapping[str, Value], at: int | None = None) -> bool:
        """Does the event satisfy one of them?"""
        if self._plain.match(event):
            return True
        return next(iter(self._evolving(event, env, at)), None) is not None

    def _evolving(
        self, event: Event, env: Mapping[str, Value], at: int | None
    ) -> Iterator[str] | list[str]:
        at = event.stamp if at is None else at
        assert at is not None
        if self._kind == "cached":
            return self._cached(event, env, at)
        self._evolve(at, env)
        return self._matcher.match(event)

    def _cached(self, event: Event, env: Mapping[str, Value], at: int) -> Iterator[str]:
        scope = Scope(event)
        for id, one in self._standing.items():
            if one.made is None or not one.made <= at < one.made + self._interval:
                self._make(one, at, env)
            if any(part.matches(scope) for part in one.version):
                yield id

    def ways(self) -> list[Chosen]:
        """How what evolves is found."""
        why = f"as of at most {self._interval} microseconds ago"
        return [Chosen("", len(self._standing), self._kind, why)] if self._standing else []

    def reads(self) -> dict[str, int]:
        """The variables of the environment that are read, and by how many each."""
        found: dict[str, int] = {}
        for one in self._standing.values():
            for name in one.reads:
                found[name] = found.get(name, 0) + 1
        return found

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, id: object) -> bool:
        return id in self._place

    def _check(self) -> None:
        self._plain._check()
        self._matcher._check()
        assert len(self._place) == len(self._plain) + len(self._standing)
        assert all(id in self._standing for id in self._place if id not in self._plain)
        if self._kind == "versioned":
            made = {id for id, one in self._standing.items() if one.env is not None}
            assert all(id in self._matcher for id in made)
            assert len(made) == len(self._matcher)


def _read(filters: tuple[Filter, ...]) -> tuple[tuple[Filter, ...], int | None]:
    """The filters and the start that is written out in them, if it is the only one they have."""
    read = tuple(map(heard, filters))
    starts = {said for _, said in read if said is not None}
    own = any(variables_of(part).elapsed for one in filters for part in parts_of(one))
    if own or len(starts) != 1:
        return filters, None
    return tuple(one for one, _ in read), starts.pop()


def frozen(one: Filter, at: int, elapsed: float, env: Mapping[str, Value]) -> Filter:
    """The filter with the values that its variables have at an instant; unknown ones are NULL.

    >>> from driftline.language.sql import parse
    >>> (near,) = parse("SELECT * WHERE x < elapsed() * env('v')").filters()
    >>> print(frozen(near, 0, 4.0, {"v": 0.5}))
    x < 2.0
    """

    def known(node: Expression) -> Expression:
        if isinstance(node, Elapsed):
            return Literal(elapsed)
        if isinstance(node, Environment):
            return Literal(env.get(node.name))
        return Literal(time_of(at)) if isinstance(node, Now) else node

    bound = mapped(one, known)
    return Filter(
        bound.type,
        tuple(part.bound({"": 0}) for part in bound.constraints),
        tuple(map(fold, bound.conditions)),
    )
