"""Whom do events of a type concern? Subscriptions of local parties, counted by what they are about.

Whoever asks for events of any type is concerned by all. A view over a range (`RangePlan`) is
counted by itself too: there are tables that concern nobody else. So is what is more than filters
over single events, fixed but for their parameters: where there is none of that, events can be taken
many at a time.
"""

from __future__ import annotations

from collections import Counter

from driftline.model.covering import Statement
from driftline.model.pattern import Pattern
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.view import View
from driftline.stateful.plan import RangePlan, plan_of


class Concern:
    """How many there are."""

    __slots__ = ("_about", "_ranges", "_special", "version")

    def __init__(self) -> None:
        # None: about any type.
        self._about: Counter[str | None] = Counter()
        self._ranges: Counter[str | None] = Counter()
        self._special: Counter[str | None] = Counter()
        self.version = 0
        """Another one whenever `plain` may give another answer."""

    def begin(self, standing: Standing) -> None:
        """There is one more."""
        self._count(standing, 1)

    def end(self, standing: Standing) -> None:
        """This one is gone, or has become another."""
        self._count(standing, -1)

    def _count(self, standing: Standing, by: int) -> None:
        special = not is_plain(standing.statement)
        self.version += special
        for name in types_of(standing) or (None,):
            self._about[name] += by
            if special:
                self._special[name] += by
                if _is_range(standing):
                    self._ranges[name] += by

    def anybody(self, type: str) -> bool:
        """May anybody want events of a type, or the rows of such a table?"""
        return bool(self._about[type] or self._about[None])

    def plain(self, type: str) -> bool:
        """Do all whom it concerns ask by filters that neither evolve nor remember?"""
        return not (self._special[type] or self._special[None])

    def only_ranges(self, type: str) -> bool:
        """Are all whom it concerns views over ranges?"""
        return not self._about[None] and self._about[type] == self._ranges[type]

    def _check(self, standings: list[Standing]) -> None:
        counted = Concern()
        for one in standings:
            counted.begin(one)
        assert +counted._about == +self._about
        assert +counted._ranges == +self._ranges
        assert +counted._special == +self._special


def is_plain(statement: Statement) -> bool:
    """Is it filters over single events, fixed but for their parameters?"""
    return isinstance(statement, Subscription) and not statement.variables().evolving


def types_of(standing: Standing) -> tuple[str, ...]:
    """The types of the events that a subscription is about; none if it may be any."""
    statement = standing.statement
    if isinstance(statement, View):
        return statement.tables
    steps = statement.steps if isinstance(statement, Pattern) else (statement,)
    sources = [step.source for step in steps]
    return () if None in sources else tuple(source for source in sources if source)


def _is_range(standing: Standing) -> bool:
    view = standing.statement
    return isinstance(view, View) and isinstance(plan_of(view, standing.params), RangePlan)
