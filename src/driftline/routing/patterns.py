"""Which part of a pattern can a neighbour look after, and which events are of use? [SIENA §5.3]

A pattern is *factored*: for each step the table of what is offered says who may send such events.
Neighbouring steps that one neighbour alone can provide are *delegated* to it as one sequence; for
all other steps the events are asked for one by one. Whoever is given a sequence does the same with
it, towards the sources, and runs a *monitor*.

We differ. In the paper the monitor sends each sequence that it has found, and then starts anew. But
where the whole pattern started anew is not known to it, and then the answer is another one: of

    f1 g1 f2 h1 f3 g2 h2                    the pattern f THEN g THEN h

matches f1 g1 h1 and f3 g2 h2, while f THEN g by itself gives f1 g1 and f2 g2, of which the second
began before h1. So here a monitor holds back only what no match can use, wherever it began: an
event of a later step if nothing has come that it could follow. What passes goes as single events in
their order, and the party's own broker finds the pattern in them, exactly.

    >>> monitor = Monitor(2)
    >>> monitor.take([1], 10)   # g: nobody knows what the asker had matched before
    True
    >>> monitor.take([1], 20)   # g again: there was no f
    False
    >>> monitor.take([0], 30), monitor.take([1], 40), monitor.take([1], 50)
    (True, True, False)
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from driftline.model.filter import Filter
from driftline.model.message import Steps

_EVER = -(1 << 63)

REMEMBERED = 64
"""So many times are kept for a step; beyond it two become one, and more passes than must."""


@dataclass(frozen=True, slots=True)
class Factor:
    """Neighbouring steps of a pattern, and who alone provides them; None: several, or nobody."""

    first: int
    steps: Steps
    provider: str | None


def factored(steps: Steps, provider: Callable[[tuple[Filter, ...]], str | None]) -> list[Factor]:
    """A pattern as factors: those with a provider are delegated, and have two steps or more."""
    factors: list[Factor] = []
    for at, step in enumerate(steps):
        source = provider(step)
        last = factors[-1] if factors else None
        if last is not None and source is not None and last.provider == source:
            factors[-1] = Factor(last.first, (*last.steps, step), source)
        else:
            factors.append(Factor(at, (step,), source))
    return [
        factor if len(factor.steps) > 1 else Factor(factor.first, factor.steps, None)
        for factor in factors
    ]


@dataclass(frozen=True, slots=True)
class _Open:
    """Matches so far whose last event was generated between these times, at most."""

    low: int
    high: int


class Monitor:
    """Which events can a match of the sequence use, wherever it began?

    For each step but the last it knows when the last events were generated of the matches that have
    come so far. At first there may be any, none newer than `latest`.
    """

    __slots__ = ("_open",)

    def __init__(self, steps: int, latest: int = _EVER) -> None:
        # By how many steps are matched, less one.
        self._open: list[list[_Open]] = [[] for _ in range(steps - 1)]
        self.reopen(latest)

    def reopen(self, latest: int) -> None:
        """There may be other matches so far, none newer than this."""
        for step, waiting in enumerate(self._open):
            newer = [one for one in waiting if one.high > latest]
            self._open[step] = [_Open(_EVER, latest), *newer]

    def take(self, fits: Collection[int], time: int) -> bool:
        """An event comes that fits these steps and was generated then: is it of use?"""
        used = False
        # In any order: what an event has just matched, it cannot follow.
        for step in fits:
            waiting = self._open[step - 1] if step else [_Open(_EVER, _EVER)]
            if any(one.low < time for one in waiting):
                used = True
                if step:
                    self._open[step - 1] = [one for one in waiting if one.high >= time]
                self._matched(step, time)
        return used

    def _matched(self, step: int, time: int) -> None:
        if step == len(self._open):
            return  # A match is complete.
        waiting = self._open[step]
        if _Open(time, time) not in waiting:
            waiting.append(_Open(time, time))
        if len(waiting) > REMEMBERED:
            waiting.sort(key=lambda one: one.low)
            first, second, *others = waiting
            self._open[step] = [_Open(first.low, max(first.high, second.high)), *others]
