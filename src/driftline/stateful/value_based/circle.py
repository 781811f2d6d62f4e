"""Could these centres have come to be, and in which order do they stand? [VALUE §4.2]

Those of one ring stand in a circle by their labels, and going round once their centres rise, but
for one place: where the highest is followed by the lowest. A table that says otherwise is refused,
for nothing would be right any more. A table without labels gets them here, as evenly as can be:
one at a time, in order, they would halve the same gap over and over. There are as many labels as
their bits can say, and who finds none left begins another ring.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from driftline.errors import InvalidValue
from driftline.model.value import show
from driftline.stateful.value_based.rule import Floats, Rule
from driftline.stateful.value_based.structure import Ids, Read

BITS_MIN = 4
"""With fewer bits for a label a circle is hardly one."""


@dataclass(frozen=True, slots=True)
class Arranged:
    """Subscriptions by radius and ring, and within a ring round the circle from the lowest centre.

    Labels are 64 bits, whatever their sign.
    """

    ids: Ids
    radii: Floats
    rings: Ids
    labels: Ids
    centres: Floats


def admit_label_bits(bits: object) -> int:
    """How many bits a label has that are not always 0."""
    if not isinstance(bits, int) or isinstance(bits, bool) or not BITS_MIN <= bits <= 64:
        raise InvalidValue("label_bits", f"an integer from {BITS_MIN} to 64", show(bits))
    return bits


def arranged(read: Read, joins: bool, label_bits: int) -> Arranged:
    """The subscriptions of a table in order; InvalidValue if they are in none.

    Where entries may have one centre only, `joins` is false.
    """
    if read.rings is None or read.labels is None:
        return _with_labels(read, joins, label_bits)
    return _as_labelled(read, joins, label_bits)


def _sorted(read: Read, keys: tuple[NDArray[np.generic], ...], rings: Ids, labels: Ids) -> Arranged:
    order = np.lexsort(keys)
    return Arranged(
        read.ids[order], read.radii[order], rings[order], labels[order], read.centres[order]
    )


def _groups(*keys: NDArray[np.generic]) -> list[tuple[int, int]]:
    """Where rows that are equal by these keys begin and end, if there are several."""
    if not len(keys[0]):
        return []
    begins = np.flatnonzero(np.any([key[1:] != key[:-1] for key in keys], axis=0)) + 1
    edges = np.concatenate(([0], begins, [len(keys[0])]))
    several = np.flatnonzero(np.diff(edges) > 1)
    return [(int(edges[at]), int(edges[at + 1])) for at in several]


def _with_labels(read: Read, joins: bool, label_bits: int) -> Arranged:
    zeros = np.zeros(len(read.ids), np.int64)
    made = _sorted(read, (read.ids, read.centres, read.radii), zeros, zeros)
    for begin, end in _groups(made.radii):
        centres, radius = made.centres[begin:end], float(made.radii[begin])
        made.rings[begin:end] = _rings(read.rule, radius, centres, joins, 1 << label_bits)
    for begin, end in _groups(made.radii, made.rings):
        classes = np.unique(made.centres[begin:end], return_inverse=True)[1]
        step = (1 << label_bits) // max(2, int(classes[-1]) + 1) << (64 - label_bits)
        made.labels[begin:end] = (classes.astype(np.uint64) * np.uint64(step)).view(np.int64)
    return made


def _rings(rule: Rule, radius: float, centres: Floats, joins: bool, labels_max: int) -> list[int]:
    """A ring for each of these centres, which rise; as few as can be, with so many to a ring."""
    rings, least, most, labels = [0], float(centres[0]), float(centres[0]), 1
    for centre in centres[1:].tolist():
        if centre == most:
            rings.append(rings[-1])
            continue
        joined = joins and labels < labels_max and rule.fits(least, centre, radius)
        rings.append(rings[-1] if joined else rings[-1] + 1)
        least, most, labels = (least, centre, labels + 1) if joined else (centre, centre, 1)
    return rings


def _as_labelled(read: Read, joins: bool, label_bits: int) -> Arranged:
    assert read.rings is not None
    assert read.labels is not None
    if len(read.rings) and not 0 <= read.rings.min() <= read.rings.max() < 2**31:
        raise InvalidValue("table", "ring numbers of 31 bits", "another")
    if (read.labels & np.uint64((1 << (64 - label_bits)) - 1)).any():
        raise InvalidValue("table", f"labels of {label_bits} bits", "another")
    keys = (read.centres, read.labels, read.rings, read.radii)
    made = _sorted(read, keys, read.rings, read.labels.view(np.int64))
    for begin, end in _groups(made.radii, made.rings):
        _turn(read.rule, made, slice(begin, end), joins)
    return made


def _turn(rule: Rule, made: Arranged, ring: slice, joins: bool) -> None:
    """Let a ring begin with its lowest centre; InvalidValue if there is no such order."""
    centres, labels, radius = made.centres[ring], made.labels[ring], float(made.radii[ring][0])
    least, most = float(centres.min()), float(centres.max())
    if least == most:
        return
    falls = np.flatnonzero(np.roll(centres, -1) < centres)
    parted = (labels[1:] == labels[:-1]) & (centres[1:] != centres[:-1])
    if len(falls) != 1 or parted.any() or not (joins and rule.fits(least, most, radius)):
        raise InvalidValue("table", "centres in the order of a circle", f"those of {radius!r}")
    by = -(int(falls[0]) + 1)
    for column in (made.ids, made.labels, made.centres):
        column[ring] = np.roll(column[ring], by)
