"""What does a party do with what its broker tells it, and what does it ask?

It awaits a reply to everything it asks, passes over what it has been told before, and evaluates
what it is told once more with what it wants by then (`moving/parametric/strict.py`). What it was
told is kept as it came, beside what it made of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from driftline.broker.effects import Deliver, Reply
from driftline.broker.requests import (
    Advertise,
    Cancel,
    Declare,
    Publish,
    Request,
    Resume,
    Subscribe,
    Suspend,
    Unadvertise,
    Unsubscribe,
)
from driftline.model.advertisement import Advertisement
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.moving.parametric.strict import still_wanted

# Requests that change what a party wants, offers and keeps.
_CHANGES = (Subscribe, Cancel, Unsubscribe, Advertise, Unadvertise, Declare)


@dataclass(frozen=True, slots=True)
class Decided:
    """What a party let through of one delivery, after it had asked for so many things."""

    ids: tuple[str, ...]
    asked: int


@dataclass(slots=True)
class Party:
    """One identity at one broker, and all it was told, each thing once."""

    name: str
    broker: str
    away: int = 0
    """How long (microseconds) what it asks, or is told, takes."""
    wants: dict[str, Standing] = field(default_factory=dict)
    offers: dict[str, Advertisement] = field(default_factory=dict)
    keeps: dict[str, TableDeclaration] = field(default_factory=dict)
    """The tables that are to be kept at its broker."""
    anew: int = 0
    """The life of its broker in which it last began anew."""
    told: list[Deliver] = field(default_factory=list)
    told_at: list[int] = field(default_factory=list)
    decided: list[Decided] = field(default_factory=list)
    """For each of these what came of its own evaluation."""
    repeated: list[Deliver] = field(default_factory=list)
    """What it was told again as if it were new."""
    suspended: bool = False
    disturbed: list[Deliver] = field(default_factory=list)
    """What it was told while it was suspended."""
    had: int = 0
    had_of: dict[str, int] = field(default_factory=dict)
    handles: dict[str, int] = field(default_factory=dict)
    """What it calls its subscriptions, in notices."""
    asked: int = 0
    unanswered: dict[str, Request] = field(default_factory=dict)
    answered: dict[str, Reply] = field(default_factory=dict)
    answered_at: dict[str, int] = field(default_factory=dict)
    done: dict[int, int] = field(default_factory=dict)
    """By their numbers, when requests were answered: not refused, and with nobody silent."""

    def ask(self, asked: Request) -> Request:
        """A request with its number, to which a reply is awaited from now on."""
        self.asked += 1
        asked = replace(asked, request=f"{self.asked} {asked.request}")
        if isinstance(asked, Resume):
            self.suspended = False
        if isinstance(asked, Publish):
            asked = replace(asked, number=self.asked)
        if isinstance(asked, Subscribe):
            handle = self.handles.setdefault(asked.id, len(self.handles) + 1)
            asked = replace(asked, handle=handle)
        self.unanswered[asked.request] = asked
        return asked

    def begin_anew(self, life: int) -> None:
        """Ask for all it wants, offers and keeps: its broker, in this life, has forgotten it.

        What it changed while the broker was away is in that; asked again it would be undone.
        """
        waiting = self.unanswered
        self.unanswered = {}
        self.anew = life
        for name, declaration in self.keeps.items():
            self.ask(Declare(f"declare {name}", declaration))
        for id, says in self.offers.items():
            self.ask(Advertise(f"again {id}", id, says))
        for id, standing in self.wants.items():
            self.ask(Subscribe(f"again {id}", id, standing))
        for name, asked in waiting.items():
            if not isinstance(asked, _CHANGES):
                self.unanswered[name] = asked

    def answer(self, reply: Reply, now: int) -> None:
        """A reply has come."""
        asked = self.unanswered.pop(reply.request, None)
        if asked is None:
            return
        number, _, request = reply.request.partition(" ")
        self.answered[request], self.answered_at[request] = reply, now
        if reply.refused is None and not reply.silent:
            self.done[int(number)] = now
        resumed = any(isinstance(one, Resume) for one in self.unanswered.values())
        self.suspended |= isinstance(asked, Suspend) and not resumed

    def tell(self, deliver: Deliver, now: int) -> bool:
        """A delivery has come; is it news?"""
        if self.suspended:
            self.disturbed.append(deliver)
        if deliver.number <= self.had:
            return False
        self.had = deliver.number
        # By this a party knows what it was told before its broker lost its journal.
        if deliver.position <= self.had_of.get(deliver.origin, 0):
            self.repeated.append(deliver)
            return False
        self.had_of[deliver.origin] = deliver.position
        self.told.append(deliver)
        self.told_at.append(now)
        self.decided.append(Decided(self._still(deliver), self.asked))
        return True

    def _still(self, deliver: Deliver) -> tuple[str, ...]:
        return still_wanted(
            self.wants, deliver.event, deliver.subscriptions, deliver.sequences, deliver.stamps
        )
