"""Which of the filters does an event satisfy, those included that evolve?

A filter that does not evolve is in an ordinary matcher. One that does is a row of a family (see
`family`): all that have its shape and the same fixed part. The fixed part is in a matcher of its
own, once for the family; where it is true the family's rows are gone through, in one of several
ways (see `ways`), and what is left in doubt is decided by the definition. So the answer is exact.

Parameters and the start belong to the row; the event's stamp and the environment are asked with.

    >>> from driftline.language.sql import parse
    >>> from driftline.matching.scan import Scan
    >>> from driftline.model.event import Event
    >>> (near,) = parse("SELECT * WHERE x <= 3 + elapsed()").filters()
    >>> evolving = Evolving(Scan(), "lazy")
    >>> evolving.add("1", (near,), start=0)
    >>> apple = Event("seen", {"x": 4})
    >>> evolving.match(apple.stamped(0), {}), evolving.match(apple.stamped(1_000_000), {})
    ([], ['1'])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import TypeAlias

import numpy as np

from driftline.errors import InvalidValue
from driftline.matching.bounds import admitted, parameters_of
from driftline.matching.choice import make_matcher
from driftline.matching.columns import Columns
from driftline.matching.matcher import NO_BOUNDS, Bounds, Matcher, Matches
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.scope import Scope
from driftline.model.value import Value, identity
from driftline.moving.evolving.adaptive import Adaptive
from driftline.moving.evolving.cached import Cached
from driftline.moving.evolving.choice import Chosen
from driftline.moving.evolving.family import FEW, Family, Moment, Row
from driftline.moving.evolving.lazy import Lazy
from driftline.moving.evolving.plan import Plan, evolves, plan_of, shape_of
from driftline.moving.evolving.started import heard
from driftline.moving.evolving.versioned import Versioned
from driftline.moving.evolving.ways import WAYS, Way
from driftline.moving.parametric.slots import bounds as slot_bounds

SECOND = 1_000_000
_DOUBT = 2

_Key: TypeAlias = tuple[Filter, tuple[object, ...]]


class Evolving:
    """Filters by id on an empty matcher; versions are good for `interval` microseconds."""

    __slots__ = (
        "_added",
        "_families",
        "_fixed",
        "_key_of",
        "_make_way",
        "_numbers",
        "_place",
        "_plain",
        "_rows",
        "_said",
        "_ways",
        "_which",
    )

    def __init__(self, matcher: Matcher, way: str = "adaptive", interval: int = SECOND) -> None:
        self._plain = matcher
        self._fixed = make_matcher("auto")
        self._make_way = _maker(way, interval)
        self._numbers = count()
        self._added = count()
        # By the numbers they have in the matcher of fixed parts.
        self._families: dict[str, Family] = {}
        self._ways: dict[str, Way] = {}
        self._key_of: dict[_Key, str] = {}
        self._which: dict[str, _Key] = {}
        # Of every id its place in the order of adding; of one that evolves its filters and rows.
        self._place: dict[str, int] = {}
        self._said: dict[str, tuple[Filter, ...]] = {}
        self._rows: dict[str, list[tuple[str, str]]] = {}

    # Changes

    def add(
        self, id: str, filters: tuple[Filter, ...], bounds: Bounds = NO_BOUNDS, start: int = 0
    ) -> None:
        """Take in what goes by this id, replacing what did; it becomes the last added."""
        plain = filters
        if any(map(evolves, filters)):
            plain = tuple(one for one in filters if not evolves(one))
        if len(plain) < len(filters) or id in self._place:
            bounds = admitted(parameters_of(filters), bounds)
        self.discard(id)
        if plain or not filters:
            self._plain.add(id, plain, bounds)
        self._place[id] = next(self._added)
        if len(plain) < len(filters):
            self._said[id] = filters
            self._enter(id, bounds, start)

    def change(self, id: str, bounds: Bounds, start: int = 0) -> None:
        """Move the bounds of what is there; its place in the order stays. KeyError if not there."""
        if id not in self._place:
            raise KeyError(id)
        if id in self._rows:
            bounds = admitted(parameters_of(self._said[id]), bounds)
            self._enter(id, bounds, start)
        if id in self._plain:
            self._plain.change(id, bounds)

    def discard(self, id: str) -> None:
        """Forget an id; nothing happens if it is not there."""
        if self._place.pop(id, None) is None:
            return
        self._plain.discard(id)
        self._said.pop(id, None)
        for key, name in self._rows.pop(id, ()):
            self._leave(key, name)

    def _enter(self, id: str, bounds: Bounds, start: int) -> None:
        """Let the rows of an id be what they are now."""
        before = self._rows.get(id, [])
        rows = []
        for nth, one in enumerate(self._said[id]):
            if not evolves(one):
                continue
            read, said = heard(one)
            shape, values = shape_of(read)
            params = {**bounds, **slot_bounds(values)}
            key = self._family(plan_of(shape), params)
            name = f"{nth}\n{id}"
            self._families[key].put(name, params, start if said is None else said)
            self._ways[key].touch(name)
            rows.append((key, name))
        self._rows[id] = rows
        for key, name in before:
            if (key, name) not in rows:
                self._leave(key, name)

    def _family(self, plan: Plan, params: Row) -> str:
        """The family of those with this shape and the same fixed part, new or known."""
        fixed = {name: params[name] for name in plan.fixed_names}
        which = (plan.whole, tuple(map(identity, fixed.values())))
        key = self._key_of.get(which)
        if key is None:
            key = self._key_of[which] = str(next(self._numbers))
            self._which[key] = which
            self._fixed.add(key, (plan.fixed.bound(fixed),))
            self._families[key] = Family(plan)
            self._ways[key] = self._make_way(plan)
        return key

    def _leave(self, key: str, name: str) -> None:
        family = self._families[key]
        family.remove(name)
        self._ways[key].forget(name)
        if not len(family):
            self._fixed.discard(key)
            del self._families[key], self._ways[key], self._key_of[self._which.pop(key)]

    # Questions

    def match(self, event: Event, env: Mapping[str, Value], at: int | None = None) -> list[str]:
        """The ids of all that the event satisfies, in the order they were added.

        `at` is the instant that is `now()`; without it, the event's stamp.
        """
        found = self._plain.match(event)
        if not self._families:
            return found
        rows = self._satisfied(event, env, at, first=False)
        evolving = {name.split("\n", 1)[1] for name in rows}
        if not evolving:
            return found
        return sorted(evolving.union(found), key=self._place.__getitem__)

    def match_batch(self, columns: Columns, env: Mapping[str, Value]) -> Matches:
        """For each event, by its stamp, the ids of all it satisfies, in no particular order.

        As fast as the ordinary matcher where nothing that evolves can be satisfied.
        """
        if not self._families or not len(self._fixed.match_batch(columns)):
            return self._plain.match_batch(columns)
        found = (self.match(columns.event(at), env) for at in range(len(columns)))
        return Matches.of(found, [*self._place])

    def any(self, event: Event, env: Mapping[str, Value], at: int | None = None) -> bool:
        """Does the event satisfy one of them? The rest is not looked at [EVOLVE VI.C]."""
        if self._plain.match(event):
            return True
        return next(self._satisfied(event, env, at, first=True), None) is not None

    def _satisfied(
        self, event: Event, env: Mapping[str, Value], at: int | None, first: bool
    ) -> Iterator[str]:
        """The names of the rows that hold."""
        if at is None:
            at = event.stamp
        for key in self._fixed.match(event):
            family = self._families[key]
            rows: Iterator[int]
            if at is None:
                # Nothing is known of time: the definition says what holds all the same.
                rows = (row for row in range(len(family)) if _timeless(family, row, event, env))
            else:
                moment = Moment(event, env, at)
                rows = _rows(family, self._ways[key], moment, first)
            for row in rows:
                yield family.names[row]

    def advance(self, at: int, env: Mapping[str, Value]) -> None:
        """The environment is about to change; events are judged by what they are asked with."""

    def ways(self) -> list[Chosen]:
        """How what evolves is found, and why so."""
        return [
            Chosen(str(family.plan.whole), len(family), *_way_of(self._ways[key], family))
            for key, family in self._families.items()
        ]

    def reads(self) -> dict[str, int]:
        """The variables of the environment that are read, and by how many rows each."""
        found: dict[str, int] = {}
        for family in self._families.values():
            for name in family.plan.environment:
                found[name] = found.get(name, 0) + len(family)
        return found

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, id: object) -> bool:
        return id in self._place

    def _check(self) -> None:
        self._plain._check()
        self._fixed._check()
        assert all(id in self._plain for id in self._place if id not in self._said)
        assert self._said.keys() == self._rows.keys() <= self._place.keys()
        assert len(self._fixed) == len(self._families)
        assert set(self._key_of.values()) == self._families.keys() == self._ways.keys()
        rows = {row for some in self._rows.values() for row in some}
        held = {(key, name) for key, one in self._families.items() for name in one.row_of}
        assert rows == held
        for key, family in self._families.items():
            assert len(family)
            family._check()
            self._ways[key]._check(family)


def _rows(family: Family, way: Way, moment: Moment, first: bool) -> Iterator[int]:
    """The rows of a family that hold."""
    if len(family) <= FEW:
        return (row for row in range(len(family)) if family.holds(row, moment))
    return _found(family, way, moment, first)


def _found(family: Family, way: Way, moment: Moment, first: bool) -> Iterator[int]:
    plan = family.plan
    if not family.common(moment):
        return
    try:
        shared = family.shared(moment)
    except LookupError:
        return
    if shared is None:
        yield from (row for row in range(len(family)) if family.holds(row, moment))
        return
    alone = not plan.comparisons and not plan.rest
    if plan.bounds:
        x = family.values(moment)
        if x is None:
            return
        found, marks = way.look(family, family.sheet(shared), moment, x, first and alone)
        rows, doubt = found, marks == _DOUBT
    else:
        rows, doubt = np.arange(len(family)), np.zeros(len(family), np.bool_)
    if plan.comparisons:
        rows, doubt = family.compared(rows, doubt, moment, shared)
    for row, unsure in zip(rows.tolist(), doubt.tolist(), strict=True):
        if not (unsure or plan.rest) or family.holds(row, moment):
            yield row


def _timeless(family: Family, row: int, event: Event, env: Mapping[str, Value]) -> bool:
    return family.plan.whole.matches(Scope(event, family.params[row], env))


def _way_of(way: Way, family: Family) -> tuple[str, str]:
    if len(family) <= FEW:
        return "definition", f"no more than {FEW} rows"
    return way.name, way.why if isinstance(way, Adaptive) else "as it was asked for"


def _maker(way: str, interval: int) -> Callable[[Plan], Way]:
    if way not in WAYS:
        raise InvalidValue("evolving", ", ".join(WAYS), way)
    if interval <= 0:
        raise InvalidValue("interval", "microseconds, more than none", str(interval))
    return partial(_MAKERS[way], interval)


def _lazy(interval: int, plan: Plan) -> Way:
    return Lazy()


def _cached(interval: int, plan: Plan) -> Way:
    return Cached(interval)


# By name, so that whoever holds one can be pickled.
_MAKERS: dict[str, Callable[[int, Plan], Way]] = {
    "lazy": _lazy,
    "cached": _cached,
    "versioned": Versioned,
    "adaptive": Adaptive,
}
