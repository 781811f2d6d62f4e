"""What is offered to a connection, and what is it to send?"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

Handle: TypeAlias = Hashable
"""What a connection calls one of its subscriptions."""


class Item(NamedTuple):
    """A notification for some subscriptions of a connection, each of them named once.

    `size` is what it takes on the connection. `keys` has a key for each of the handles, which is
    looked at where the policy is to conflate; none: they have no keys. Equal keys are the same key.

    A tuple: one is made of each notification that somebody slow is told.
    """

    handles: tuple[Handle, ...]
    data: bytes
    number: int
    size: int
    keys: tuple[Hashable, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """What to send now: an item to these of its handles; without one only that there is a gap.

    `lost` says for each handle how many notifications were lost before this one, 0: there is no
    gap. A repeat is what the subscription was told last, told again because nothing else came.
    """

    handles: tuple[Handle, ...]
    lost: tuple[int, ...]
    item: Item | None = None
    repeat: bool = False


@dataclass(slots=True)
class Losses:
    """What all queues of a broker have lost, also those that are no more."""

    dropped: int = 0
    conflated: int = 0


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of what was offered to a subscription, and how much of it waits."""

    offered: int = 0
    sent: int = 0
    dropped: int = 0
    conflated: int = 0
    repeated: int = 0
    waiting: int = 0
    waiting_bytes: int = 0
