"""What can a party ask of its broker?

A party is an identity: it publishes, advertises, subscribes, and is told [SIENA §3]. Every request
has a name of the party's choice, by which the reply refers to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftline.broker.letters import Letter
from driftline.model.advertisement import Advertisement
from driftline.model.covering import Statement
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.model.value import Value
from driftline.wire.forms import Form


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Tell me of what satisfies this; the subscription goes by `id`, and replaces what did.

    If only its parameters are others, it goes on where it is: half a pattern is not forgotten.
    """

    request: str
    id: str
    standing: Standing
    quietly: bool = False
    """Tell nothing of what a move of a set of rows makes enter and leave."""
    handle: int = 0
    """What the party calls it, in notices; it stays."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the subscription of this id."""

    request: str
    id: str


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """End all of my subscriptions that this one covers; it never narrows one [SIENA §3.7]."""

    request: str
    statement: Statement
    params: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Advertise:
    """I shall publish such events; the advertisement goes by `id`."""

    request: str
    id: str
    says: Advertisement


@dataclass(frozen=True, slots=True)
class Unadvertise:
    """Take back all of my advertisements that this one covers."""

    request: str
    says: Advertisement


@dataclass(frozen=True, slots=True)
class Publish:
    """Tell everyone who is interested.

    A party that counts what it publishes, from 1, may ask again when it got no reply: what the
    broker has had it passes over. One that begins to count anew gives a higher `life`.
    """

    request: str
    event: Event
    number: int = 0
    life: int = 0
    once: bool = False
    """Pass it over if one with its source and id was published once before; see `broker.once`."""


@dataclass(frozen=True, slots=True)
class PublishMany:
    """Tell everyone who is interested in these events, which lie as records (see `wire.compact`).

    `forms` are the broker's numbers of the forms that the records name, -1 where there is none;
    `own` are those that only the sender knows, because the broker knows too many.
    The first has the number, if they are counted, and the others the next ones; see `Publish`.
    """

    request: str
    records: bytes | memoryview
    forms: NDArray[np.int64]
    number: int = 0
    life: int = 0
    own: Mapping[int, Form] = field(default_factory=dict)
    once: bool = False
    """Pass over those that were published once before."""
    apart: str = ""
    """The attribute, a text, that tells those of the same source and id apart; "": none does."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Forget all that I asked for, advertised, and have not had."""

    request: str


@dataclass(frozen=True, slots=True)
class Declare:
    """Events of this type are rows of a table, which is kept here and nowhere else."""

    request: str
    declaration: TableDeclaration
    within: int = 10_000_000


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a row of a table, wherever that is kept."""

    request: str
    table: str
    key: Value


@dataclass(frozen=True, slots=True)
class Suspend:
    """Tell me nothing for now; keep it, up to the broker's limit."""

    request: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Tell me what was kept, and go on."""

    request: str


@dataclass(frozen=True, slots=True)
class Redirect:
    """Tell me through this handler from now on; what I have not said I had, too [SIENA §3]."""

    request: str
    handler: str


@dataclass(frozen=True, slots=True)
class Told:
    """I have had everything up to this number: forget it."""

    number: int
    request: str = ""


@dataclass(frozen=True, slots=True)
class Bury:
    """What has this number could not be handed over: keep it as a dead letter, as had.

    0: it is a letter that was to be delivered again, and could not.
    """

    request: str
    number: int
    letter: Letter


@dataclass(frozen=True, slots=True)
class Revive:
    """Let these dead letters of mine be delivered again; None: all."""

    request: str
    letters: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Discard:
    """Throw these dead letters of mine away; None: all."""

    request: str
    letters: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Renew:
    """Let what is signed for me be signed with another secret from now on."""

    request: str


@dataclass(frozen=True, slots=True)
class Confirm:
    """Reply when all I said before is in effect everywhere, or say who did not answer in time."""

    request: str
    within: int = 10_000_000


@dataclass(frozen=True, slots=True)
class Interested:
    """Does anybody, anywhere, want some of what is advertised here? May say yes too often."""

    request: str
    says: Advertisement
    within: int = 10_000_000


@dataclass(frozen=True, slots=True)
class Observed:
    """The environment: a variable has this value now, None: nobody knows."""

    name: str
    value: Value | None
    request: str = ""


@dataclass(frozen=True, slots=True)
class Watch:
    """Ask me for a variable of the environment every so many microseconds; None: no longer."""

    name: str
    every: int | None
    request: str = ""


Request: TypeAlias = (
    Subscribe
    | Cancel
    | Unsubscribe
    | Advertise
    | Unadvertise
    | Publish
    | PublishMany
    | Leave
    | Declare
    | Delete
    | Suspend
    | Resume
    | Redirect
    | Told
    | Bury
    | Revive
    | Discard
    | Renew
    | Confirm
    | Interested
    | Observed
    | Watch
)
