"""Stocks whose ratio changes, and who asks for the least of it in a range? [DBNET §5.3]

Tuples lie anywhere in 0 to 10,000 by x; y changes, a tuple drawn at random at a time. The paper
says that the step of y depends on where y is, that there is a stationary distribution, and that
some updates are spikes; it gives neither step nor depth. We choose, and both can be swept:

- y multiplies: `ln(y')` is `ln(y)`, drawn back to its mean, plus a normal step. At rest it is
  normal with a standard deviation of 0.5 about ln(1000), and so it begins. The step is that of the
  logarithm: a small one remembers where y was, one of 0.5 forgets it. That is the default, because
  it makes as many messages as the paper's tables say. Rounded to cents and at most 10,000, so that
  the chain is finite.
- A spike takes y to a share of what it was, and the update after it, of the same tuple, takes it
  back. (If it stayed until its tuple is drawn again, one tuple in 200 would be down at any time, no
  range would be without one, and a spike would be nothing special.)

Ranges have a midpoint of N(5000, 1500) and a length of N(1000, 1000). One in six lengths would be
negative: those are drawn again.

Everything is arrays, and the k-th updates of all tuples are made together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SEED = 1
DOMAIN = 10_000.0
"""Of x and of y."""
MEDIAN, SPREAD = 1_000.0, 0.5
"""Of y: where its logarithm is drawn to, and its standard deviation there."""
STEP = 0.5
DEPTH = 0.01

_MIDPOINT, _MIDPOINT_SPREAD = 5_000.0, 1_500.0
_LENGTH, _LENGTH_SPREAD = 1_000.0, 1_000.0
_MEAN = float(np.log(MEDIAN))
_DIGITS = 2

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Walk:
    """How y walks, and what else happens."""

    step: float = STEP
    """The standard deviation of one step of ln(y); up to that of y at rest."""
    spikes: float = 0.005
    """The share of updates that drop; as many bounce back."""
    depth: float = DEPTH
    """What a spike leaves of y."""
    complex: float = 0.0
    """The share of updates that change x, too."""
    deletes: float = 0.0
    """The share of updates that delete their tuple; as many insert one."""
    places: int | None = None
    """How many different x there are; None: as many as tuples."""


AS_PUBLISHED = Walk()
"""Of the paper, as far as it says."""


@dataclass(frozen=True, slots=True)
class Updates:
    """Changes in their order: which tuple, its x and y from now on, and whether it is there."""

    ids: NDArray[np.int64]
    points: Floats
    present: NDArray[np.bool_]
    spikes: NDArray[np.bool_]
    """Which of them drop."""

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, start: int, end: int) -> Updates:
        """Some of them."""
        at = slice(start, end)
        return Updates(self.ids[at], self.points[at], self.present[at], self.spikes[at])


@dataclass(frozen=True, slots=True)
class Stocks:
    """A table to begin with, by id, and what happens to it."""

    points: Floats
    present: NDArray[np.bool_]
    """Those that are there at first; the others come with an insert."""
    updates: Updates


def stocks(tuples: int, updates: int, walk: Walk = AS_PUBLISHED, seed: int = SEED) -> Stocks:
    """So many tuples, and so many updates of them; the same for the same seed."""
    draw = np.random.default_rng(seed)
    first = np.column_stack((_xs(draw, walk, tuples), _ys(_at_rest(draw, tuples))))
    present = draw.random(tuples) >= walk.deletes
    ids = draw.integers(0, tuples, updates)
    spikes = draw.random(updates) < walk.spikes
    spikes[-1:] = False  # It could not bounce.
    ids[1:][spikes[:-1]] = ids[:-1][spikes[:-1]]
    return Stocks(first, present, _walked(draw, walk, first, present, ids, spikes))


def ranges(count: int, seed: int = SEED) -> tuple[Floats, Floats]:
    """The ends of so many subscriptions."""
    draw = np.random.default_rng(seed)
    midpoints = draw.normal(_MIDPOINT, _MIDPOINT_SPREAD, count)
    lengths = draw.normal(_LENGTH, _LENGTH_SPREAD, count)
    while (negative := lengths < 0).any():
        lengths[negative] = draw.normal(_LENGTH, _LENGTH_SPREAD, int(negative.sum()))
    return midpoints - lengths / 2, midpoints + lengths / 2


@dataclass(frozen=True, slots=True)
class _Lots:
    """What is drawn for each update, whatever becomes of it."""

    steps: Floats
    fresh: Floats
    """The x and ln(y) it gets if it is new; the x alone if it moves."""
    moves: NDArray[np.bool_]
    deletes: NDArray[np.bool_]

    @classmethod
    def drawn(cls, draw: np.random.Generator, walk: Walk, count: int) -> _Lots:
        return cls(
            draw.normal(0, walk.step, count),
            np.column_stack((_xs(draw, walk, count), _at_rest(draw, count))),
            draw.random(count) < walk.complex,
            # Of all updates, those that insert included, so many delete.
            draw.random(count) < walk.deletes / (1 - walk.deletes),
        )


def _walked(
    draw: np.random.Generator,
    walk: Walk,
    first: Floats,
    alive: NDArray[np.bool_],
    ids: NDArray[np.int64],
    spikes: NDArray[np.bool_],
) -> Updates:
    """Make the first updates of all tuples, then the second ones, and so on."""
    lots = _Lots.drawn(draw, walk, len(ids))
    x, log_y = first[:, 0].copy(), np.log(first[:, 1])
    alive, down = alive.copy(), np.zeros(len(first), np.bool_)
    points, present = np.zeros((len(ids), 2)), np.zeros(len(ids), np.bool_)
    keep = np.sqrt(max(0.0, 1 - (walk.step / SPREAD) ** 2))
    for at in _rounds(ids):
        one = ids[at]
        back, born = down[one], ~alive[one]
        drops = spikes[at] & ~back & ~born
        dies = lots.deletes[at] & ~(back | born | drops)
        plain = ~(back | born | drops | dies)
        stepped = _MEAN + keep * (log_y[one] - _MEAN) + lots.steps[at]
        log_y[one] = np.select((born, plain), (lots.fresh[at, 1], stepped), log_y[one])
        x[one] = np.where(born | (plain & lots.moves[at]), lots.fresh[at, 0], x[one])
        alive[one], down[one] = ~dies, drops
        points[at, 0] = x[one]
        points[at, 1] = _ys(log_y[one] + drops * np.log(walk.depth))
        present[at], spikes[at] = ~dies, drops
    return Updates(ids, points, present, spikes)


def _rounds(ids: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Where the first update of each tuple stands, where the second of each that has one, …"""
    order = np.argsort(ids, kind="stable")
    starts = np.flatnonzero(np.diff(ids[order], prepend=-1))
    turn = np.arange(len(ids)) - np.repeat(starts, np.diff(starts, append=len(ids)))
    by_turn = order[np.argsort(turn, kind="stable")]
    yield from np.split(by_turn, np.cumsum(np.bincount(turn))[:-1])


def _xs(draw: np.random.Generator, walk: Walk, count: int) -> Floats:
    if walk.places is None:
        return draw.uniform(0, DOMAIN, count)
    return draw.integers(0, walk.places, count).astype(np.float64) * (DOMAIN / walk.places)


def _at_rest(draw: np.random.Generator, count: int) -> Floats:
    return draw.normal(_MEAN, SPREAD, count)


def _ys(log_y: Floats) -> Floats:
    y: Floats = np.exp(log_y)
    return y.round(_DIGITS).clip(10.0**-_DIGITS, DOMAIN)
