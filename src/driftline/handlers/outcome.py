"""What became of something that was handed over?"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol

from driftline.handlers.outgoing import Outgoing


class Fate(enum.Enum):
    """What to do about it."""

    TAKEN = "taken"
    """It was had."""
    LATER = "later"
    """Not now: to be tried again."""
    REFUSED = "refused"
    """Never: it is a dead letter."""
    GONE = "gone"
    """Nothing at all is wanted there any more."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of it, why, and after how many seconds to try again, if somebody said so."""

    fate: Fate
    why: str = ""
    after: float | None = None
    ours: bool = False
    """Is something wrong with us or what we send through, whatever is sent? Then none of it is
    given up because of that."""


TAKEN = Outcome(Fate.TAKEN)


class Patient(Protocol):
    """The settings of how often something is tried; times are seconds."""

    @property
    def attempts(self) -> int:
        """So often."""

    @property
    def first(self) -> float:
        """Waiting so long after the first failure, then twice as long each time."""

    @property
    def longest(self) -> float:
        """And never longer than this."""

    @property
    def give_up(self) -> float:
        """Not when so much time has passed."""


class Way(Protocol):
    """A way to hand things over to the address of one handler."""

    @property
    def patience(self) -> Patient:
        """How often it is tried."""

    def wait(self, party: str) -> float:
        """How long to wait before something is handed over, so that it is not too often."""

    def count(self, party: str, waiting: int) -> int:
        """Of so many things, how many are handed over at once?"""

    async def hand_over(
        self, party: str, mark: str, generation: int, handler: str, some: list[Outgoing]
    ) -> Outcome:
        """Try it once. The mark is what the subscription is known by, and no other ever was."""
