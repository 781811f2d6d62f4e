"""Did one event, then another, then another happen? [SIENA §3.3]

A pattern is a sequence of filters matched in time order. The matcher takes the first event that
matches the first filter, then the first later one that matches the second, and so on; when the
last is found it starts anew. "Later" means both: matched later and generated later. Events that do
not fit the step at hand are ignored, as is everything that the matcher saw before it.

`WITHIN w` bounds the time from the first event to the last. We differ: the paper has no such
bound. An event that fits the step at hand, or the first, and was generated more than w seconds
after the first ends the partial match; that very event may begin the next one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from driftline.errors import NotSupported
from driftline.model.event import Event
from driftline.model.remember import Remembering
from driftline.model.scope import Scope
from driftline.model.subscription import Subscription
from driftline.model.variables import Variables


@dataclass(frozen=True, slots=True)
class Pattern(Remembering):
    """`first THEN second … [WITHIN seconds]`."""

    steps: tuple[Subscription, ...]
    within: int | float | None = None

    def __post_init__(self) -> None:
        if len(self.steps) < 2:
            raise ValueError(f"a pattern has two steps or more, not {len(self.steps)}")

    def parts(self) -> tuple[object, ...]:
        """See `Remembering`."""
        return tuple(part for step in self.steps for part in step.parts())

    def variables(self) -> Variables:
        """The variables any of the steps depends on."""
        found = Variables()
        for step in self.steps:
            found |= step.variables()
        return found

    def matches(
        self,
        event: Event,
        params: Mapping[str, object] | None = None,
        env: Mapping[str, object] | None = None,
        elapsed: float = 0.0,
        now: int | None = None,
    ) -> bool:
        """Refused: a pattern is matched by a sequence, not by one event."""
        raise NotSupported(str(self), "a pattern matches a sequence of events, not one")

    def __str__(self) -> str:
        within = "" if self.within is None else f" WITHIN {self.within!r}"
        return " THEN ".join(map(str, self.steps)) + within


class SequenceMatcher:
    """The state of one pattern: what has been matched so far. The reference for all others.

    A pattern without WITHIN waits for ever, or for `patience` (microseconds): `forgot` says whether
    the last event ended a partial match that only our patience had limited.
    """

    __slots__ = ("_patience", "forgot", "found", "pattern")

    def __init__(self, pattern: Pattern, patience: int | None = None) -> None:
        self.pattern = pattern
        self.found: list[Event] = []
        self.forgot = False
        self._patience = patience

    def take(self, scope: Scope) -> tuple[Event, ...] | None:
        """See the next event in match order; the whole sequence if this event completes it."""
        assert scope.event is not None
        steps = enumerate(self.pattern.steps)
        return self.advance(scope.event, [at for at, step in steps if step.truth(scope) is True])

    def advance(self, event: Event, fits: Collection[int]) -> tuple[Event, ...] | None:
        """The same for an event of which is known which steps it fits."""
        self.forgot = False
        if self.expires(event, fits):
            self.forgot = self.pattern.within is None
            self.found = []
        if len(self.found) not in fits or not self.in_order(event):
            return None
        self.found.append(event)
        if len(self.found) < len(self.pattern.steps):
            return None
        complete, self.found = tuple(self.found), []
        return complete

    def expires(self, event: Event, fits: Collection[int]) -> bool:
        """Does this event, which fits these steps, end the partial match by coming too late?"""
        return bool(self.found) and (0 in fits or len(self.found) in fits) and self._too_late(event)

    def in_order(self, event: Event) -> bool:
        """Was it generated after what has been matched so far?"""
        return not self.found or _generated(self.found[-1]) < _generated(event)

    def _too_late(self, event: Event) -> bool:
        waited = _generated(event) - _generated(self.found[0])
        within = self.pattern.within
        if within is None:
            return self._patience is not None and waited > self._patience
        # In decimals: 0.000249 seconds are 249 microseconds, which a product of floats misses.
        return waited > Decimal(repr(within)) * 1_000_000

    def _check(self) -> None:
        times = [_generated(event) for event in self.found]
        assert len(self.found) < len(self.pattern.steps)
        assert all(earlier < later for earlier, later in pairwise(times))


def _generated(event: Event) -> int:
    assert event.time is not None
    return event.time
