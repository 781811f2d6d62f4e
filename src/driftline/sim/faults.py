"""What can go wrong, on links and with brokers?

>>> faults_of("loss=0.2,reordering,crashes=0.01")
Faults(link=LinkFaults(fastest=1000, slowest=10000, loss=0.2, duplicates=0.0, corruption=0.0,
reordering=True, bandwidth=None), crashes=0.01, lost=0.0, trouble=0.0)
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, fields, replace

from driftline.errors import InvalidValue
from driftline.model.value import show

MILLISECOND = 1_000
SECOND = 1_000_000

RANDOM, NONE = "random", "none"


@dataclass(frozen=True, slots=True)
class LinkFaults:
    """How a link treats what is put on it. Chances are per frame; times are microseconds."""

    fastest: int = 1 * MILLISECOND
    slowest: int = 10 * MILLISECOND
    loss: float = 0.0
    duplicates: float = 0.0
    corruption: float = 0.0
    """A byte is changed; whoever gets it notices by the checksum."""
    reordering: bool = False
    """May what is sent later arrive earlier?"""
    bandwidth: int | None = None
    """Bytes a second; what does not fit waits. None: as many as one likes."""

    def leaves(self, now: int, busy: int, size: int) -> int:
        """When the last byte of a frame has left that is sent now on a link that is busy."""
        if self.bandwidth is None:
            return now
        return max(now, busy) + size * SECOND // self.bandwidth

    def arrivals(self, left: int, last: int, draw: random.Random) -> list[int]:
        """When a frame that has left arrives: never, once, or twice."""
        if draw.random() < self.loss:
            return []
        copies = 2 if draw.random() < self.duplicates else 1
        times = [left + draw.randrange(self.fastest, self.slowest + 1) for _ in range(copies)]
        return times if self.reordering else [max(time, last) for time in times]

    def harmed(self, data: bytes, draw: random.Random) -> bytes:
        """The bytes as they arrive."""
        if draw.random() >= self.corruption:
            return data
        at = draw.randrange(len(data))
        return data[:at] + bytes([data[at] ^ draw.randrange(1, 256)]) + data[at + 1 :]


GOOD = LinkFaults()
"""A link that is only slow."""


@dataclass(frozen=True, slots=True)
class Faults:
    """All that goes wrong in a run."""

    link: LinkFaults = field(default_factory=LinkFaults)
    crashes: float = 0.0
    """A chance per effect that its broker crashes just before it."""
    lost: float = 0.0
    """A chance per crash that the journal is lost with it."""
    trouble: float = 0.0
    """A chance per step that a broker crashes or pauses, or a link is cut or healed."""


def drawn(draw: random.Random) -> Faults:
    """Something of everything."""
    link = LinkFaults(
        slowest=draw.choice([10, 100, 400]) * MILLISECOND,
        loss=draw.choice([0.0, 0.05, 0.3]),
        duplicates=draw.choice([0.0, 0.1]),
        corruption=draw.choice([0.0, 0.02]),
        reordering=draw.random() < 0.5,
        bandwidth=draw.choice([None, None, 20_000]),
    )
    crashes = draw.choice([0.0, 0.002, 0.01, 0.05])
    return Faults(link, crashes, draw.choice([0.0, 0.0, 0.3]), 0.15)


def faults_of(text: str) -> Faults | None:
    """The faults that a list such as `loss=0.1,reordering,crashes=0.01` names; None: a chance's."""
    if text == RANDOM:
        return None
    faults = Faults()
    for item in [] if text == NONE else text.split(","):
        name, _, value = item.strip().partition("=")
        faults = _with(faults, name, value or None)
    return faults


_CHANCES = ("loss", "duplicates", "corruption", "crashes", "lost", "trouble")
_NUMBERS = ("fastest", "slowest", "bandwidth")


def _with(faults: Faults, name: str, value: str | None) -> Faults:
    if name == "reordering" and value is None:
        return replace(faults, link=replace(faults.link, reordering=True))
    if name in _CHANCES:
        change: dict[str, float] = {name: _chance(name, value)}
    elif name in _NUMBERS:
        change = {name: _number(name, value)}
    else:
        known = ", ".join((*_CHANCES, *_NUMBERS, "reordering"))
        raise InvalidValue("faults", f"{RANDOM}, {NONE} or some of {known}", show(name))
    if name in {one.name for one in fields(Faults)}:
        return replace(faults, **change)  # type: ignore[arg-type]  # a chance
    link = replace(faults.link, **change)  # type: ignore[arg-type]  # a chance or a number
    if link.fastest > link.slowest:
        link = replace(link, fastest=link.slowest)
    return replace(faults, link=link)


def _chance(name: str, value: str | None) -> float:
    try:
        chance = float(value or "")
    except ValueError:
        chance = -1.0
    # With certainty nothing would ever arrive, or get anywhere between two crashes.
    if not 0 <= chance <= 0.9:
        raise InvalidValue(f"faults, {name}", "a chance from 0 to 0.9", show(value))
    return chance


def _number(name: str, value: str | None) -> int:
    unit = "bytes a second" if name == "bandwidth" else "microseconds"
    if value is None or not value.isdecimal() or int(value) == 0:
        raise InvalidValue(f"faults, {name}", unit, show(value))
    return int(value)
