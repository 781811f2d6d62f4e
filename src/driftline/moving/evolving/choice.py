"""Which matcher for what evolves?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from driftline.matching.choice import make_matcher
from driftline.matching.columns import Columns
from driftline.matching.matcher import NO_BOUNDS, Bounds, Matcher, Matches
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.value import Value


class Chosen(NamedTuple):
    """How the subscriptions of one shape are found: how many there are, the way, and why."""

    asks: str
    rows: int
    way: str
    why: str


class EvolvingMatcher(Protocol):
    """Filters by id, with parameters and a start; the environment and the time are asked with."""

    def add(
        self, id: str, filters: tuple[Filter, ...], bounds: Bounds = NO_BOUNDS, start: int = 0
    ) -> None:
        """Take in what goes by this id, replacing what did; it becomes the last added."""

    def change(self, id: str, bounds: Bounds, start: int = 0) -> None:
        """Move the bounds of what is there; its place in the order stays. KeyError if not there."""

    def discard(self, id: str) -> None:
        """Forget an id; nothing happens if it is not there."""

    def match(self, event: Event, env: Mapping[str, Value], at: int | None = None) -> list[str]:
        """The ids of all that the event satisfies, in the order they were added."""

    def match_batch(self, columns: Columns, env: Mapping[str, Value]) -> Matches:
        """For each event, by its stamp, the ids of all it satisfies, in no particular order."""

    def any(self, event: Event, env: Mapping[str, Value], at: int | None = None) -> bool:
        """Does the event satisfy one of them?"""

    def advance(self, at: int, env: Mapping[str, Value]) -> None:
        """The environment is about to change: until now it was this."""

    def ways(self) -> list[Chosen]:
        """How what evolves is found, and why so."""

    def reads(self) -> dict[str, int]:
        """The variables of the environment that are read, and by how many conditions each."""

    def __len__(self) -> int: ...

    def _check(self) -> None:
        """Assert the invariants."""


class Wanted(Protocol):
    """The settings that matter here; see the broker's."""

    @property
    def evolving(self) -> str: ...

    @property
    def interval(self) -> int: ...

    @property
    def as_of(self) -> bool: ...


def make_evolving(settings: Wanted, matcher: str | Matcher = "auto") -> EvolvingMatcher:
    """A matcher as the settings say, on an ordinary one."""
    from driftline.moving.evolving.as_of import AsOf
    from driftline.moving.evolving.matcher import Evolving

    plain = make_matcher(matcher)
    if settings.as_of:
        return AsOf(plain, settings.evolving, settings.interval)
    return Evolving(plain, settings.evolving, settings.interval)
