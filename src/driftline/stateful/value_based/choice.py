"""Which structure is used when?

| radii | structure |
|---|---|
| of everybody the same, and the rule keeps a circle in order | `Classes` |
| else | `Combined` |

`Combined` does for different radii what `EndPoints` does, in the same memory, and is as fast; so
`EndPoints` is there for those who want one centre to an entry.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.stateful.value_based.classes import Classes
from driftline.stateful.value_based.combined import Combined
from driftline.stateful.value_based.packed import Packed
from driftline.stateful.value_based.reference import DEFAULT
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.structure import read_table


def structure_for(
    value: float, radii: object, rule: Rule = DEFAULT, label_bits: int = 64
) -> Packed:
    """An empty structure for subscriptions with these radii.

    >>> type(structure_for(100.0, [2.0, 2.0])).__name__, type(structure_for(1.0, [2, 3])).__name__
    ('Classes', 'Combined')
    """
    return _kind(rule, np.asarray(radii))(value, rule, label_bits)


def load(table: pa.Table, label_bits: int = 64) -> Packed:
    """The subscriptions of a table in the structure that is best for them."""
    read = read_table(table)
    return _kind(read.rule, read.radii).load(table, label_bits)


def with_radii(structure: Packed, radii: object) -> Packed:
    """A structure that takes these radii too: the same one if it does, with all that is in it."""
    if not isinstance(structure, Classes):
        return structure
    wanted = np.asarray(radii)
    known = structure.radius
    if known is None and (wanted == wanted[:1]).all():
        return structure
    return structure if (wanted == known).all() else Combined.of(structure)


def _kind(rule: Rule, radii: NDArray[np.generic]) -> type[Packed]:
    same = len(radii) > 0 and bool((radii == radii[0]).all())
    return Classes if same and rule.circular else Combined
