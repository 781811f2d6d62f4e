"""What does each interface want, whom does an event concern, and what is each neighbour told?

An interface wants filters and sequences (parts of patterns), by keys of its own. Filters are in a
table, which says what neighbours must be told of them, and in a matcher, which finds them when an
event comes. A sequence is factored (see `patterns`): some of its parts are delegated, the filters
of the others are in the table like any other, and a monitor says which events it lets pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Protocol, TypeAlias

from driftline.matching.matcher import Matcher
from driftline.matching.relations import Relations
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.message import Sequence, Steps
from driftline.model.value import Value
from driftline.moving.evolving.choice import EvolvingMatcher
from driftline.moving.evolving.plan import evolves
from driftline.moving.parametric.slots import bounds, opened
from driftline.routing.patterns import Monitor, factored
from driftline.routing.table import Change, Interface, Key, Table

Which: TypeAlias = tuple[Interface, Key]
Provider: TypeAlias = Callable[[Interface, tuple[Filter, ...]], Interface | None]


@dataclass(slots=True)
class News:
    """What one neighbour must be told, all at once."""

    filters: Change[Filter] = field(default_factory=Change)
    added: dict[str, Steps] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.filters or self.added or self.removed)


class Places(Protocol):
    """Who keeps whose each filter in the matcher is."""

    def put(self, number: str, owner: Interface) -> None:
        """It is in the matcher under this id, new or anew, for an interface."""

    def drop(self, number: str) -> None:
        """It will not be any more."""


class _NoPlaces:
    def put(self, number: str, owner: Interface) -> None:
        pass

    def drop(self, number: str) -> None:
        pass


@dataclass(slots=True)
class _Sequence:
    """A sequence somebody wants, what of it is delegated to whom, and its other filters."""

    steps: Steps
    monitor: Monitor | None
    delegated: list[tuple[Interface, Steps]] = field(default_factory=list)
    filters: dict[Key, Filter] = field(default_factory=dict)


class Subscriptions:
    """What interfaces want. `provider` names the neighbour that alone may send such events."""

    __slots__ = (
        "_counted",
        "_delegated",
        "_evolving",
        "_held",
        "_make_evolving",
        "_matcher",
        "_moving",
        "_numbers",
        "_provider",
        "_renewed",
        "_said",
        "_said_of",
        "_sequences",
        "_special",
        "_unplanned",
        "_wanting",
        "places",
        "table",
        "version",
    )

    def __init__(
        self,
        matcher: Matcher,
        provider: Provider,
        make_evolving: Callable[[], EvolvingMatcher],
    ) -> None:
        self.table: Table[Filter] = Table(Relations())
        self._matcher = matcher
        # What evolves, of each link or member of a mesh apart: one that wants an event for another
        # reason need not be looked at, and the first reason will do.
        self._evolving: dict[Interface, dict[str, EvolvingMatcher]] = {}
        self._make_evolving = make_evolving
        self._provider = provider
        self._counted = count(1)
        self._held: dict[Interface, dict[Key, Filter | None]] = {}
        self._sequences: dict[Which, _Sequence] = {}
        # By the numbers they have in the matcher: whose it is, and the step of a sequence.
        self._wanting: dict[str, tuple[Interface, Key, int | None]] = {}
        self._numbers: dict[Which, tuple[str, ...]] = {}
        # How many of those in the matcher are about a type (None: about any) and are a step of a
        # sequence, or of a member of a mesh.
        self._special: Counter[str | None] = Counter()
        self._said_of: dict[str, tuple[str | None, ...]] = {}
        self.places: Places = _NoPlaces()
        """Who is told which of those in the matcher are whose."""
        self.version = 0
        """Another one whenever `plain` may give another answer."""
        # Those that the matcher holds with their constants as parameters.
        self._moving: set[str] = set()
        # What each neighbour has to look after, how often it is needed, and its key there.
        self._delegated: dict[Interface, dict[Steps, int]] = {}
        self._said: dict[Interface, dict[Steps, str]] = {}
        self._renewed: dict[Interface, dict[Steps, None]] = {}
        self._unplanned: dict[Which, None] = {}

    # What interfaces want

    def want(self, owner: Interface, key: Key, wanted: Filter | Sequence | None) -> None:
        """Let an interface want something under a key, None: no longer; events are sent to it."""
        if isinstance(wanted, Sequence):
            known = self._sequences.get((owner, key))
            if known is not None and known.steps == wanted.steps:
                assert known.monitor is not None
                known.monitor.reopen(wanted.latest)
                for out, steps in known.delegated:
                    self._renewed.setdefault(out, {})[steps] = None
                return
            self.drop(owner, key)
            monitor = Monitor(len(wanted.steps), wanted.latest)
            self._keep(owner, key, wanted.steps, monitor)
            for at, step in enumerate(wanted.steps):
                self._match((owner, key), step, at)
        elif wanted is None:
            self.drop(owner, key)
        else:
            if (owner, key) in self._sequences:
                self.drop(owner, key)
            held = self._held.setdefault(owner, {})
            before = held.get(key)
            held[key] = wanted
            self.table.put(owner, key, wanted)
            if evolves(wanted):
                if before is not None and not evolves(before):
                    self._forget((owner, key))
                self._evolve((owner, key), wanted)
            elif before is None or evolves(before):
                self._calm((owner, key))
                self._match((owner, key), (wanted,), None)
            else:
                self._move(self._numbers[owner, key][0], before, wanted)

    def let(self, owner: Interface, key: Key, wanted: Filter | Steps) -> None:
        """Let it count for what neighbours are told only: whoever wants it sees all events here."""
        if isinstance(wanted, Filter):
            self._held.setdefault(owner, {})[key] = wanted
            self.table.put(owner, key, wanted)
        else:
            known = self._sequences.get((owner, key))
            if known is None or known.steps != wanted:
                self.drop(owner, key)
                self._keep(owner, key, wanted, None)

    def drop(self, owner: Interface, key: Key) -> None:
        """Let an interface no longer want what goes by this key."""
        held = self._held.get(owner, {})
        if key not in held:
            return
        del held[key]
        if not held:
            del self._held[owner]
        sequence = self._sequences.pop((owner, key), None)
        if sequence is None:
            self.table.drop(owner, key)
        else:
            self._unplanned.pop((owner, key), None)
            self._undo((owner, key), sequence)
        self._forget((owner, key))
        self._calm((owner, key))

    def _forget(self, which: Which) -> None:
        """It is no longer in the matcher."""
        for number in self._numbers.pop(which, ()):
            self.places.drop(number)
            self._matcher.discard(number)
            self._count(number, self._said_of.pop(number), -1)
            self._moving.discard(number)
            del self._wanting[number]

    def _count(self, number: str, types: Iterable[str | None], by: int) -> None:
        _, key, step = self._wanting[number]
        if step is None and not _member(key):
            return
        for type in types:
            self._special[type] += by
            # The first one, or none any more.
            self.version += self._special[type] == max(by, 0)

    def plain(self, type: str) -> bool:
        """Do links want events of this type, if at all, by filters that neither evolve nor
        remember?
        """
        return not (self._special[type] or self._special[None] or self._evolving)

    def _evolve(self, which: Which, wanted: Filter) -> None:
        self.version += 1
        owner, member = which[0], _member(which[1])
        apart = self._evolving.setdefault(owner, {})
        if member not in apart:
            apart[member] = self._make_evolving()
        apart[member].add(_name(which[1]), (wanted,))

    def _calm(self, which: Which) -> None:
        """It no longer evolves."""
        owner, member = which[0], _member(which[1])
        apart = self._evolving.get(owner, {})
        if member in apart:
            apart[member].discard(_name(which[1]))
            if not len(apart[member]):
                del apart[member]
            if not apart:
                del self._evolving[owner]
            self.version += 1

    def advance(self, at: int, env: Mapping[str, Value]) -> None:
        """The environment is about to change: until now it was this."""
        for apart in self._evolving.values():
            for one in apart.values():
                one.advance(at, env)

    def keys(self, owner: Interface) -> list[Key]:
        """The keys of what an interface wants."""
        return list(self._held.get(owner, ()))

    def held(self, owner: Interface) -> dict[Key, Filter | Steps]:
        """What an interface wants, by its keys."""
        held = self._held.get(owner, {}).items()
        return {key: self._sequences[owner, key].steps if one is None else one for key, one in held}

    def _keep(self, owner: Interface, key: Key, steps: Steps, monitor: Monitor | None) -> None:
        self._held.setdefault(owner, {})[key] = None
        self._sequences[owner, key] = _Sequence(steps, monitor)
        self._unplanned[owner, key] = None

    def _match(self, which: Which, filters: tuple[Filter, ...], step: int | None) -> None:
        number = str(next(self._counted))
        self._matcher.add(number, filters)
        self._said_of[number] = types = tuple({one.type for one in filters})
        self._wanting[number] = (*which, step)
        self._count(number, types, 1)
        self.places.put(number, which[0])
        self._numbers[which] = (*self._numbers.get(which, ()), number)

    def _move(self, number: str, before: Filter, wanted: Filter) -> None:
        """Let a filter be another one, in place if it differs in its values alone."""
        if before.type != wanted.type:
            self._count(number, self._said_of[number], -1)
            self._said_of[number] = (wanted.type,)
            self._count(number, (wanted.type,), 1)
        shape, values = opened(wanted)
        if number not in self._moving or opened(before)[0] != shape:
            # It has moved once and may again: from now on its constants can be changed.
            self._matcher.add(number, shape, bounds(values))
            self._moving.add(number)
            self.places.put(number, self._wanting[number][0])
        else:
            self._matcher.change(number, bounds(values))

    def filter(self, owner: Interface, key: Key) -> Filter | None:
        """What an interface wants under a key, if that is a filter."""
        return self._held.get(owner, {}).get(key)

    # Whom an event concerns

    def concerned(
        self, event: Event, env: Mapping[str, Value], at: int | None, sender: Interface | None
    ) -> Iterator[Which]:
        """Who wants an event and under which keys, but for whoever has sent it.

        It is judged in an environment and at an instant (None: its stamp). Of who wants it because
        of something that evolves no key is given but, in a mesh, the member.
        """
        found: set[tuple[Interface, str]] = set()
        for which in self._surely(event, sender):
            found.add((which[0], _member(which[1])))
            yield which
        for owner, apart in self._evolving.items():
            for member, evolving in apart.items():
                known = owner == sender or (owner, member) in found
                if not known and evolving.any(event, env, at):
                    yield owner, (member, "")

    def _surely(self, event: Event, sender: Interface | None) -> Iterator[Which]:
        """Who wants it because of something that does not evolve."""
        sequences: dict[Which, list[int]] = {}
        for number in self._matcher.match(event):
            owner, key, step = self._wanting[number]
            if owner == sender:
                continue
            if step is None:
                yield owner, key
            else:
                sequences.setdefault((owner, key), []).append(step)
        for which, steps in sequences.items():
            monitor = self._sequences[which].monitor
            assert monitor is not None
            assert event.time is not None
            if monitor.take(steps, event.time):
                yield which

    # What neighbours are told

    def open(self, out: Interface, allowed: Callable[[Filter], bool] | None) -> None:
        """There is a neighbour that must be told, of what is allowed."""
        self.table.open(out, allowed)
        self._said[out] = {}
        self.plan()

    def close(self, out: Interface) -> None:
        """The neighbour is gone, and with it what it was told."""
        self.table.close(out)
        self._said.pop(out, None)
        self.plan()

    def plan(self) -> None:
        """Who may send what has changed: look anew for who could look after which sequence."""
        self._unplanned.update(dict.fromkeys(self._sequences))

    def settle(self) -> dict[Interface, News]:
        """What each neighbour must be told by now; nobody has to ask again for the same."""
        for which in self._unplanned:
            self._plan(which)
        self._unplanned.clear()
        news = {out: News(change) for out, change in self.table.settle().items()}
        for out, said in self._said.items():
            needed = self._delegated.get(out, {})
            renewed = self._renewed.pop(out, {})
            if renewed or said.keys() != needed.keys():
                told = news.setdefault(out, News())
                told.added |= {
                    said[steps]: steps for steps in renewed if steps in said and steps in needed
                }
                for steps in [steps for steps in said if steps not in needed]:
                    told.removed.append(said.pop(steps))
                for steps in needed:
                    if steps not in said:
                        # Unlike any key that the table gives.
                        said[steps] = f"s{next(self._counted)}"
                        told.added[said[steps]] = steps
        return news

    def told(self, out: Interface) -> tuple[dict[str, Filter], dict[str, Steps]]:
        """All that a neighbour has been told, or will be when this settles."""
        sequences = {key: steps for steps, key in self._said[out].items()}
        return self.table.told(out), sequences

    def _plan(self, which: Which) -> None:
        owner, key = which
        sequence = self._sequences[which]
        delegated: list[tuple[Interface, Steps]] = []
        filters: dict[Key, Filter] = {}
        for factor in factored(sequence.steps, partial(self._provider, owner)):
            if factor.provider is not None:
                delegated.append((factor.provider, factor.steps))
                continue
            for at, step in enumerate(factor.steps, factor.first):
                filters |= {(key, at, nth): one for nth, one in enumerate(step)}
        if delegated == sequence.delegated and filters == sequence.filters:
            return
        # First what is new, so that whatever is wanted both before and after stays as it is.
        for part, one in filters.items():
            self.table.put(owner, part, one)
        for part in sequence.filters.keys() - filters.keys():
            self.table.drop(owner, part)
        self._delegate(delegated, sequence.delegated)
        sequence.filters, sequence.delegated = filters, delegated

    def _undo(self, which: Which, sequence: _Sequence) -> None:
        for part in sequence.filters:
            self.table.drop(which[0], part)
        self._delegate([], sequence.delegated)

    def _delegate(
        self, more: list[tuple[Interface, Steps]], less: list[tuple[Interface, Steps]]
    ) -> None:
        for out, steps in more:
            needed = self._delegated.setdefault(out, {})
            if steps in needed:
                # Whoever comes to it now may have matched a part of it elsewhere.
                self._renewed.setdefault(out, {})[steps] = None
            needed[steps] = needed.get(steps, 0) + 1
        for out, steps in less:
            needed = self._delegated[out]
            needed[steps] -= 1
            if not needed[steps]:
                del needed[steps]
            if not needed:
                del self._delegated[out]

    # Looking

    def wanted(self) -> Iterator[tuple[Interface, Filter]]:
        """All that interfaces want, as filters; others may come and go meanwhile."""
        for owner, held in [*self._held.items()]:
            for key, one in [*held.items()]:
                if one is not None:
                    yield owner, one
                elif (sequence := self._sequences.get((owner, key))) is not None:
                    yield from ((owner, part) for step in sequence.steps for part in step)

    def monitored(self) -> Iterable[tuple[Interface, Steps]]:
        """The sequences looked after here, and for whom."""
        return [(owner, one.steps) for (owner, _), one in self._sequences.items()]

    def delegated(self, out: Interface) -> list[Steps]:
        """The sequences that a neighbour looks after."""
        return list(self._said.get(out, ()))

    def _check(self) -> None:
        self.table._check()
        assert not self._unplanned
        needed: dict[Interface, dict[Steps, int]] = {}
        for (owner, _), one in self._sequences.items():
            planned = factored(one.steps, partial(self._provider, owner))
            parts = [(part.provider, part.steps) for part in planned if part.provider is not None]
            assert parts == one.delegated
            for out, steps in parts:
                counted = needed.setdefault(out, {})
                counted[steps] = counted.get(steps, 0) + 1
        assert needed == self._delegated
        for out, said in self._said.items():
            assert said.keys() == needed.get(out, {}).keys()
        for owner, apart in self._evolving.items():
            for member, evolving in apart.items():
                evolving._check()
                assert len(evolving) == sum(
                    one is not None and evolves(one) and _member(key) == member
                    for key, one in self._held[owner].items()
                )
        assert len(self._wanting) == len(self._matcher)
        assert self._said_of.keys() == self._wanting.keys()
        special = {
            number
            for number, (_, key, step) in self._wanting.items()
            if step is not None or _member(key)
        }
        about = Counter(type for number in special for type in self._said_of[number])
        assert about == +self._special
        assert self._moving <= self._wanting.keys()
        assert {number for some in self._numbers.values() for number in some} == set(self._wanting)


def _member(key: Key) -> str:
    """The member of a mesh that wants something under a key; none for the key of a link."""
    return key[0] if isinstance(key, tuple) and isinstance(key[0], str) else ""


def _name(key: Key) -> str:
    return key if isinstance(key, str) else repr(key)
