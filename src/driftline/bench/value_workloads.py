"""Which subscriptions wait for which value, in the benchmarks of value-based conditions?

Three kinds of radii [VALUE §7.1], each with a value that walks at random. The paper gives neither
its steps nor the moments of its radii: these are ours, and steps are swept.

- *different*: radii of a normal distribution (100,000 ± 50,000) between 1 and 200,000, nearly all
  different; all come first. *arriving*: they come while the value moves, so that neighbours have
  different centres, and there are more ranges until they have been told together.
- *same*: one radius, 1,000; subscriptions come while the value moves, so they have many centres.
- *any*: a tenth at random between $0.01 and $100, in cents; the others at whole dollars around $20
  (± 20, from 1 to 100). They come while the value moves too.

A walk begins at 10,000; its steps are normal with the deviation that is said, rounded to whole
numbers: cents, for *any*, so that a step of 100 is $1.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from driftline.stateful.value_based.choice import structure_for
from driftline.stateful.value_based.packed import Packed
from driftline.stateful.value_based.rule import Floats

SEED = 7
START = 10_000.0
ONE_RADIUS = 1_000.0
ROUNDS = 100
"""In so many parts subscriptions come while the value moves."""
SETTLED = 5_000
"""So many events come before those that are measured: nobody has its first centre any more."""


@dataclass(frozen=True, slots=True)
class Built:
    """A structure whose subscriptions have been told many values, and the values to come."""

    structure: Packed
    radii: Floats
    values: Floats
    insert_us: float


def radii_of(workload: str, size: int, draw: np.random.Generator) -> Floats:
    """The radii of so many subscriptions."""
    if workload == "same":
        return np.full(size, ONE_RADIUS)
    if workload != "any":
        return _normal(draw, 100_000, 50_000, 1, 200_000, size)
    anything = draw.integers(1, 10_001, size // 10).astype(float)
    dollars = np.round(_normal(draw, 20, 20, 1, 100, size - len(anything))) * 100
    return draw.permutation(np.concatenate((anything, dollars)))


def _normal(
    draw: np.random.Generator, mean: float, spread: float, low: float, high: float, size: int
) -> Floats:
    """Numbers of a normal distribution that is cut off at both ends."""
    found = np.zeros(0)
    while len(found) < size:
        more = draw.normal(mean, spread, size)
        found = np.concatenate((found, more[(low <= more) & (more <= high)]))
    return found[:size]


def walk(draw: np.random.Generator, step: float, count: int) -> Floats:
    """So many values."""
    return np.round(START + np.cumsum(draw.normal(0, step, count)))


def built(workload: str, size: int, step: float, events: int, label_bits: int = 64) -> Built:
    """The structure that is chosen for a workload, with all subscriptions, settled."""
    draw = np.random.default_rng(SEED)
    radii = radii_of(workload, size, draw)
    values = walk(draw, step, ROUNDS + SETTLED + events)
    structure = structure_for(START, radii, label_bits=label_bits)
    spent = 0.0
    rounds = 1 if workload == "different" else ROUNDS
    for at, ids in enumerate(np.array_split(np.arange(size), rounds)):
        structure.tell_many(values[at : at + 1])
        start = time.process_time()
        structure.insert_many(ids, radii[ids])
        spent += time.process_time() - start
    structure.tell_many(values[ROUNDS : ROUNDS + SETTLED])
    return Built(structure, radii, values[ROUNDS + SETTLED :], spent / size * 1e6)
