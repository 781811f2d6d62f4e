"""Did one event, then another, then another happen? [SIENA §3.3]

A pattern is a sequence of filters matched in time order. The matcher takes the first event that
matches the first filter, then the first later one that matches the second, and so on; when the
last is found it starts anew. "Later" means both: matched later and generated later. Events that do
not fit the step at hand are ignored, as is everything that the matcher saw before it.

`WITHIN w` bounds the time from the first event to the last. We differ: the paper has no such
bound. An event that fits some step of the pattern and was generated more than w seconds after the
first ends the partial match; that very event may begin the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from driftline.errors import NotSupported
from driftline.model.event import Event
from driftline.model.scope import Scope
from driftline.model.subscription import Subscription
from driftline.model.variables import Variables


@dataclass(frozen=True, slots=True)
class Pattern:
    """`first THEN second … [WITHIN seconds]`."""

    steps: tuple[Subscription, ...]
    within: int | float | None = None

    def __post_init__(self) -> None:
        if len(self.steps) < 2:
            raise ValueError(f"a pattern has two steps or more, not {len(self.steps)}")

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
    """The state of one pattern: what has been matched so far. The reference for all others."""

    __slots__ = ("found", "pattern")

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.found: list[Event] = []

    def take(self, scope: Scope) -> tuple[Event, ...] | None:
        """See the next event in match order; the whole sequence if this event completes it."""
        event = scope.event
        assert event is not None
        fits = [step.truth(scope) is True for step in self.pattern.steps]
        if not any(fits):
            return None
        if self.expires(event):
            self.found = []
        if not fits[len(self.found)] or not self.in_order(event):
            return None
        self.found.append(event)
        if len(self.found) < len(self.pattern.steps):
            return None
        complete, self.found = tuple(self.found), []
        return complete

    def expires(self, event: Event) -> bool:
        """Does this event, if it fits any step, end the partial match by coming too late?"""
        return bool(self.found) and self._too_late(_generated(event))

    def in_order(self, event: Event) -> bool:
        """Was it generated after what has been matched so far?"""
        return not self.found or _generated(self.found[-1]) < _generated(event)

    def _too_late(self, time: int) -> bool:
        within = self.pattern.within
        if within is None:
            return False
        # In decimals: 0.000249 seconds are 249 microseconds, which a product of floats misses.
        return time - _generated(self.found[0]) > Decimal(repr(within)) * 1_000_000

    def _check(self) -> None:
        times = [_generated(event) for event in self.found]
        assert len(self.found) < len(self.pattern.steps)
        assert all(earlier < later for earlier, later in pairwise(times))


def _generated(event: Event) -> int:
    assert event.time is not None
    return event.time
