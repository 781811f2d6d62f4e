"""Whom of the local parties does an event concern, and are they being told now?

The last evaluation happens here, with everything the subscription says; between brokers travels
only what a filter can say of it. A party is told of an event once, whichever of its subscriptions
it satisfies [SIENA §3.5]. What it was told is kept until it says that it has had it, and so is what
comes while it is suspended, up to a limit; beyond it the oldest is forgotten, and the next delivery
says that there is a gap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from driftline.broker.effects import Deliver, Key
from driftline.matching.choice import make_matcher
from driftline.matching.lazy import Lazy, fixed_of
from driftline.model.covering import Statement, covers
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.message import Parcel
from driftline.model.pattern import Pattern, SequenceMatcher
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value

_NO_ENVIRONMENT: Mapping[str, Value] = {}


@dataclass(slots=True)
class Party:
    """One identity, and what it has not said it has had."""

    suspended: bool = False
    waiting: deque[Deliver] = field(default_factory=deque)


class Edge:
    """The subscriptions of local parties. Ids are unique in a broker."""

    __slots__ = (
        "_count",
        "_limit",
        "_owner",
        "_plain",
        "_put",
        "_sequences",
        "_standing",
        "parties",
    )

    def __init__(
        self,
        matcher: str,
        limit: int,
        put: Callable[[Key, object], None],
        count: Callable[[], int],
    ) -> None:
        self.parties: dict[str, Party] = {}
        self._standing: dict[str, Standing] = {}
        self._owner: dict[str, str] = {}
        self._plain = Lazy(make_matcher(matcher))
        self._sequences: dict[str, SequenceMatcher] = {}
        self._limit = max(1, limit)
        self._put = put
        self._count = count

    def subscribe(self, party: str, id: str, standing: Standing) -> None:
        """Take in a subscription."""
        self.parties.setdefault(party, Party())
        self._put(("sub", id), (party, standing))
        self._owner[id] = party
        self._standing[id] = standing
        if isinstance(standing.statement, Pattern):
            self._sequences[id] = SequenceMatcher(standing.statement)
        else:
            self._plain.add(id, standing)

    def cancel(self, id: str) -> None:
        """Forget a subscription."""
        self._put(("sub", id), None)
        self._put(("partial", id), None)
        del self._owner[id], self._standing[id]
        if self._sequences.pop(id, None) is None:
            self._plain.discard(id)

    def owner(self, id: str) -> str | None:
        """The party whose subscription it is."""
        return self._owner.get(id)

    def standing(self, id: str) -> Standing:
        """A subscription as it stands."""
        return self._standing[id]

    def covered(self, party: str, general: Statement) -> list[str]:
        """The subscriptions of a party that one covers."""
        return [
            id
            for id, owner in self._owner.items()
            if owner == party
            and covers(general, self._standing[id].statement, None, self._standing[id].params)
        ]

    def take(self, parcel: Parcel) -> list[Deliver]:
        """What to tell whom of an event; nothing for those who are suspended."""
        event = parcel.event
        found: dict[str, list[str]] = {}
        for id in self._plain.match(event, _NO_ENVIRONMENT):
            found.setdefault(self._owner[id], []).append(id)
        complete: dict[str, dict[str, tuple[Event, ...]]] = {}
        for id, sequence in self._sequences.items():
            before = len(sequence.found), sequence.found[:1]
            whole = sequence.take(self._standing[id].scope(event, _NO_ENVIRONMENT))
            if (len(sequence.found), sequence.found[:1]) != before:
                self._put(("partial", id), tuple(sequence.found))
            if whole is not None:
                found.setdefault(self._owner[id], []).append(id)
                complete.setdefault(self._owner[id], {})[id] = whole
        told = []
        for name, ids in found.items():
            deliver = Deliver(
                name,
                self._count(),
                tuple(ids),
                event,
                complete.get(name, {}),
                parcel.origin,
                parcel.number,
            )
            if self._wait(deliver):
                told.append(deliver)
        return told

    def _wait(self, deliver: Deliver) -> bool:
        """Keep it until the party has had it; is it to be told now?"""
        name = deliver.party
        party = self.parties[name]
        party.waiting.append(deliver)
        self._put(("deliver", name, str(deliver.number)), deliver)
        if len(party.waiting) > self._limit:
            self._forget(name, party)
            if party.suspended:
                first = party.waiting[0] = replace(party.waiting[0], gap=True)
                self._put(("deliver", name, str(first.number)), first)
        return not party.suspended

    def _forget(self, name: str, party: Party) -> None:
        self._put(("deliver", name, str(party.waiting.popleft().number)), None)

    def had(self, name: str, number: int) -> None:
        """A party has had everything up to a number."""
        party = self.parties.setdefault(name, Party())
        while party.waiting and party.waiting[0].number <= number:
            self._forget(name, party)

    def suspend(self, name: str) -> None:
        """Keep what comes for a party."""
        party = self.parties.setdefault(name, Party())
        party.suspended = True
        self._put(("suspended", name), True)

    def resume(self, name: str) -> list[Deliver]:
        """What waits for a party, which is told again from now on."""
        party = self.parties.setdefault(name, Party())
        party.suspended = False
        self._put(("suspended", name), None)
        return list(party.waiting)

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept."""
        for key, value in stored.items():
            if key[0] == "sub":
                assert isinstance(value, tuple)
                self.subscribe(value[0], key[1], value[1])
            elif key[0] == "suspended":
                self.parties.setdefault(key[1], Party()).suspended = True
        for key, value in stored.items():
            if key[0] == "partial":
                assert isinstance(value, tuple)
                self._sequences[key[1]].found = list(value)
        delivers = [value for value in stored.values() if isinstance(value, Deliver)]
        for deliver in sorted(delivers, key=lambda one: one.number):
            self.parties.setdefault(deliver.party, Party()).waiting.append(deliver)

    def again(self) -> list[Deliver]:
        """What to tell all parties after a crash: they pass over what they have had."""
        return [
            deliver
            for party in self.parties.values()
            if not party.suspended
            for deliver in party.waiting
        ]

    def __iter__(self) -> Iterator[tuple[str, str, Standing]]:
        return ((id, self._owner[id], standing) for id, standing in self._standing.items())


def routed(standing: Standing) -> tuple[Filter, ...]:
    """What the network must bring for a subscription: filters that say no less than it does.

    Parameters are bound; what moves with time or the environment is left to the edge, because
    clocks and variables differ from broker to broker.
    """
    statement = standing.statement
    steps = statement.steps if isinstance(statement, Pattern) else (statement,)
    found: dict[Filter, None] = {}
    for step in steps:
        assert isinstance(step, Subscription)
        for one in fixed_of(step).filters:
            found[one.bound(standing.params)] = None
    return tuple(found)
