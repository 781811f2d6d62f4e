"""What can a broker ask its driver to do?

Effects are performed in the order given. Those after a `Store` only once it is committed: whoever
is told something may rely on it, whatever crashes then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

from driftline.broker.sizes import THING_BYTES, size_of_events, size_of_values
from driftline.errors import DriftlineError
from driftline.model.event import Event
from driftline.model.message import Control, Parcel
from driftline.model.value import Value
from driftline.stateful.news import News
from driftline.wire.bundles import Bundle

Key: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Send:
    """Say this to a neighbour."""

    peer: str
    message: Control


@dataclass(frozen=True, slots=True)
class SendParcels:
    """Send these events to a neighbour, in order.

    Each has a position: the broker keeps it until it is told that the neighbour has all up to it.
    """

    peer: str
    parcels: tuple[tuple[int, Parcel | Bundle], ...]


@dataclass(frozen=True, slots=True)
class Reopen:
    """Begin a session on a link anew: some of what this one was to carry has been given up."""

    peer: str


@dataclass(frozen=True, slots=True)
class SendBytes:
    """Put this on a link, which may lose it."""

    peer: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Deliver:
    """Tell a party, once, of an event and which of its subscriptions it satisfies or completes.

    Numbers count what a party was told: one that it has had before is to be passed over. `epochs`
    are those that the subscriptions were matched under; in `sequences` are the events of each
    pattern that this event completed. `gap` says that something before it, which the party was
    never told, has been forgotten; `gaps` are patterns of which a partial match was, because
    nothing continued it for too long, and views of which something was: they are told anew.
    `handler` is what the party has said it wants to be told through; what that means is the
    driver's.
    """

    party: str
    number: int
    subscriptions: tuple[str, ...]
    event: Event
    sequences: Mapping[str, tuple[Event, ...]]
    origin: str = ""
    position: int = 0
    gap: bool = False
    gaps: tuple[str, ...] = ()
    handler: str = ""
    epochs: tuple[int, ...] = ()
    stamps: Mapping[str, Value] = field(default_factory=dict)
    """The environment that the event was judged by."""
    news: Mapping[str, tuple[News, ...]] = field(default_factory=dict)
    """What each of the views among the subscriptions is told."""

    notices: ClassVar[int] = 1
    stored_as: ClassVar[str] = "deliver"

    @property
    def last(self) -> int:
        """Who has had this number has had it."""
        return self.number

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        events = size_of_events(
            (self.event, *(one for found in self.sequences.values() for one in found))
        )
        rows = (row for news in self.news.values() for one in news for row in (one.values, one.old))
        told = sum(THING_BYTES + size_of_values(row) for row in rows if row is not None)
        return events + told + size_of_values(self.stamps) + sum(map(len, self.subscriptions))

    @property
    def stored(self) -> Deliver:
        """As it is kept."""
        return self

    def behind(self, lost: Waiting) -> Deliver:
        """This one, behind one that was forgotten."""
        before = (*lost.gaps, *lost.news) if isinstance(lost, Deliver) else ()
        return replace(self, gap=True, gaps=tuple(dict.fromkeys((*before, *self.gaps))))


MISSING = Event.of_admitted("driftline.missing", {}, 0)
"""What a delivery is of that tells of a gap and nothing else."""


class Waiting(Protocol):
    """What waits for a party: one delivery, or notices that lie together."""

    @property
    def notices(self) -> int:
        """How many."""


class Run(NamedTuple):
    """The notices for one party in a buffer: where they lie, their forms, how many there are."""

    party: str
    start: int
    end: int
    low: int
    high: int
    notices: int


@dataclass(frozen=True, slots=True)
class DeliverMany:
    """Tell parties of events, by notices (see `wire.notices`) that lie in one buffer.

    Each run is a whole frame, unless it is `kept`: then it is notices alone, of which the party is
    to say that it had them. A party must know the forms that are used, from the lowest number to
    the highest.
    """

    raw: bytes
    runs: tuple[Run, ...]
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """Tell a party what became of its request; `silent` names who did not answer in time."""

    party: str
    request: str
    refused: DriftlineError | None = None
    silent: tuple[str, ...] = ()
    interested: bool = False
    events: int = 0
    """How many were published."""
    came: int = 0
    """How many there were, with those that were refused and those that had come before."""
    denied: int = 0
    """How many were refused."""
    problems: tuple[tuple[int, DriftlineError], ...] = ()
    """Of many events, every one that was refused, by its place, and why."""


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Call `wake` when it is this time (microseconds)."""

    time: int


@dataclass(frozen=True, slots=True)
class Store:
    """Keep these values under their keys, None: forget them. All or nothing."""

    values: Mapping[Key, object]


@dataclass(frozen=True, slots=True)
class Poll:
    """Find out what a variable of the environment is worth, and say so with `Observed`."""

    name: str


Effect: TypeAlias = (
    Send | SendParcels | Reopen | SendBytes | Deliver | DeliverMany | Reply | WakeAt | Poll | Store
)
