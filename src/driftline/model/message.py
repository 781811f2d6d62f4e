"""What do brokers say to one another?

Control messages travel one by one, events in batches of *parcels*. Each message is a change to what
the receiver knows of the sender; `reset` says that nothing counts any more that was not said since
the session on the link began, which is how a link begins again after a fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from driftline.model.advertisement import Advertisement
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.value import Value

Steps: TypeAlias = tuple[tuple[Filter, ...], ...]
"""The steps of a sequence, each as filters of which one must be true."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """A part of a pattern that the receiver shall look after [SIENA §5.3.3].

    `latest` is when the newest event was generated that the sender has seen: what it has matched so
    far is no newer.
    """

    steps: Steps
    latest: int = 0


@dataclass(frozen=True, slots=True)
class Interest:
    """What the sender wants to be sent, by keys of its own, changed all at once [SIENA §5.2.3]."""

    added: Mapping[str, Filter] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    reset: bool = False
    sequences: Mapping[str, Sequence] = field(default_factory=dict)
    updates: Mapping[str, Mapping[int, Value]] = field(default_factory=dict)
    """Of filters that were told before: new values for some of their constants, by their place in
    the filter [PARAM §5]."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What the sender may send, by keys of its own: advertisements [SIENA §5.2.4]."""

    added: Mapping[str, Advertisement] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Which members of a mesh its member `origin` has links to; the highest version counts."""

    origin: str
    version: int
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Home:
    """What a member of a mesh wants, and may send, for everyone behind it; told to the whole mesh.

    A change takes those who know version `base` to `version`; with `base` 0 it is all there is.
    """

    origin: str
    version: int
    base: int
    added: Mapping[str, Filter] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    offered: Mapping[str, Advertisement] = field(default_factory=dict)
    withdrawn: tuple[str, ...] = ()
    updates: Mapping[str, Mapping[int, Value]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ask:
    """Is all that was said before this in effect everywhere? Answered when all further on have.

    `within` so many microseconds; whoever has not answered by then is named in the answer. With
    `says` the question is another one: does anybody want some of what is advertised there?
    """

    token: str
    within: int = 0
    says: Advertisement | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """It is; or it is not, because these did not answer. And somebody is interested."""

    token: str
    silent: tuple[str, ...] = ()
    interested: bool = False


EVENTS = "$events"
"""No table has this name."""


@dataclass(frozen=True, slots=True)
class Resync:
    """Something may be missing: whoever keeps what messages change must ask for it anew.

    Told to everybody, once by its origin and number. With a table, it is about that one only: it
    has a home, which it had not before. `EVENTS`: some were given up, which nobody can ask for.
    """

    origin: str
    number: int
    table: str = ""


Control: TypeAlias = Interest | Offer | Neighbours | Home | Ask | Answer | Resync


@dataclass(frozen=True, slots=True)
class Parcel:
    """An event on its way, and what it was given where it entered.

    `origin` is the broker it entered at, `number` counts what entered there: together they tell one
    parcel from all others, and the order of what one publisher said. `hops` counts the links it
    crossed. In a mesh `homes` are the members this copy is meant for.
    """

    origin: str
    number: int
    event: Event
    publisher: str = ""
    hops: int = 0
    homes: tuple[str, ...] = ()
    stamps: Mapping[str, Value] = field(default_factory=dict)
