"""What may differ from broker to broker?"""

from __future__ import annotations

from dataclasses import dataclass

from driftline.matching.matcher import Matcher
from driftline.stateful.value_based.address import LABEL_BITS
from driftline.stateful.value_based.items import MANY

_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a broker; `advertised` is the same in all of an overlay."""

    matcher: str | Matcher = "auto"
    advertised: bool = False
    """May a party publish only what it advertised? Then interest goes only where it is met."""
    keep: int = 1000
    """How much is kept for a suspended party."""
    keep_bytes: int = 256 << 20
    """About how many bytes that may take."""
    dead: int = 1000
    """How many dead letters are kept for a party."""
    dead_bytes: int = 64 << 20
    """About how many bytes they may take."""
    outbox: int = 100_000
    """How many events may be on their way to one link; beyond, the oldest are given up."""
    outbox_bytes: int = 256 << 20
    """About how many bytes they may take."""
    once: int = 100_000
    """How many events that were published once are remembered, of each identity."""
    patience: int = 30 * _DAY
    """How long (microseconds) half a pattern without WITHIN waits before it is a gap."""
    often: int | None = None
    """A variable that moves so often within a second, or more often, is told as a range that it
    stays in for a while [PARAM §6]; None: always by its value."""
    evolving: str = "adaptive"
    """How what moves with time and the environment is found: "lazy", "cached", "versioned", or
    whichever is least work. All give the same answer."""
    interval: int = 1_000_000
    """How long (microseconds) a version of something that evolves is good for."""
    as_of: bool = False
    """Are versions what held when they were made, as in the paper? Then what is told is up to an
    interval early or late; only for "cached" and "versioned"."""
    stamped: bool = True
    """Is an event judged everywhere by the time and the environment where it entered? Otherwise by
    those of each broker that it comes to. The same in all of an overlay."""
    label_bits: int = LABEL_BITS
    """How many bits the labels of followers have, at most 40; few make relabellings frequent."""
    many: int = MANY
    """With more followers than this an item has a structure, whose labels may run out."""
    hops: int = 64
    """An event that crossed so many links goes no further."""
    stores: bool = True
    """Is there a journal? Without one a broker that crashes begins empty."""
    even: bool = False
    """Does everybody who publishes wait for the journal, whether or not something of theirs is
    kept there? Otherwise how soon they are answered says whether somebody wants it, durably."""
    alone: bool = False
    """Is it one that never has links, in the process of its parties? What is told is then had, and
    nothing need be fit to travel."""
