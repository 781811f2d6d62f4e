"""Which members of a crowd do boxes concern? Each is a filter at its address, in an index.

It is the filter that a single follower has (see `address`), but for item and group, which all that
comes here is about. Numbers of the index are in the order in which members came first: who goes is
put where no box is, and whoever comes by its number takes its filter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftline.matching.choice import make_matcher
from driftline.matching.index import Index
from driftline.model.expression import Attribute, Parameter
from driftline.model.predicate import Comparison, conjunction
from driftline.model.subscription import Subscription
from driftline.stateful.value_based.address import HI, LO, RADIUS_L, RADIUS_R
from driftline.stateful.value_based.boxes import Boxes
from driftline.stateful.value_based.members import WAITING
from driftline.stateful.value_based.rule import Floats
from driftline.stateful.value_based.structure import Ids

AWAY = WAITING - 1
"""The place of one who is gone."""

_ASKED = (
    (RADIUS_L, "<=", "radius"),
    (RADIUS_R, ">=", "radius"),
    (LO, "<=", "place"),
    (HI, ">=", "place"),
)
"""The radius comes first: in the order of radii most boxes are runs of few slabs."""


class Found(NamedTuple):
    """The members that boxes concern: those of box i from offsets[i] to offsets[i + 1]."""

    offsets: NDArray[np.int64]
    members: NDArray[np.int32]


class Addressed:
    """Members by number, and where each is found. `type` is that of the messages."""

    def __init__(self, type: str) -> None:
        self._type = type
        matcher = make_matcher("index")
        assert isinstance(matcher, Index)
        self._matcher = matcher
        parts = tuple(Comparison(sign, Attribute(on), Parameter(name)) for on, sign, name in _ASKED)
        self._filters = Subscription(source=type, where=conjunction(parts)).filters()
        self._radii = np.zeros(0)
        self._places = np.zeros(0, np.int64)
        # Of each number of the index whose it is.
        self._members = np.zeros(0, np.int32)
        self._in_order = True

    def put(self, numbers: Ids, radii: Floats, places: Ids) -> None:
        """These members, new or not, are found there from now on."""
        known = numbers < len(self._radii)
        fresh = numbers[~known]
        room = len(fresh)
        # Numbers come without a gap, so the new ones are those that follow.
        assert np.array_equal(fresh, np.arange(len(self._radii), len(self._radii) + room))
        self._radii = np.concatenate((self._radii, np.zeros(room)))
        self._places = np.concatenate((self._places, np.full(room, AWAY)))
        moved = (self._radii[numbers] != radii) | (self._places[numbers] != places)
        self._radii[numbers], self._places[numbers] = radii, places
        if room:
            bounds = {"radius": radii[~known], "place": places[~known]}
            self._matcher.add_batch([*map(str, fresh.tolist())], self._filters, bounds)
        moved &= known
        if moved.any():
            ids = [*map(str, numbers[moved].tolist())]
            bounds = {"radius": radii[moved], "place": places[moved]}
            self._matcher.change_batch(ids, bounds)

    def take_out(self, numbers: Ids) -> None:
        """These are found nowhere any more."""
        self.put(numbers, self._radii[numbers], np.full(len(numbers), AWAY))

    def find(self, boxes: Boxes) -> Found:
        """Whom each of the boxes concerns."""
        found = self._matcher.match_batch(boxes.messages(self._type))
        if len(found.names) > len(self._members):
            more = [int(name) for name in found.names[len(self._members) :]]
            self._members = np.concatenate((self._members, np.array(more, np.int32)))
            self._in_order = np.array_equal(self._members, np.arange(len(self._members)))
        # An index counts from 0 too, so there is nothing to be looked up.
        members = found.numbers if self._in_order else self._members[found.numbers]
        return Found(found.offsets, members)

    def _check(self, numbers: Ids, radii: Floats, places: Ids) -> None:
        """Assert that these are found where they are said to be, and nobody else anywhere."""
        self._matcher._check()
        gone = np.ones(len(self._places), np.bool_)
        gone[numbers] = False
        assert (self._places[gone] == AWAY).all()
        assert np.array_equal(self._places[numbers], places)
        assert np.array_equal(self._radii[numbers], radii)
        found = self.find(Boxes(np.arange(len(numbers)), radii, radii, places, places))
        counts = np.diff(found.offsets)
        mine = found.members == np.repeat(numbers, counts)
        assert np.array_equal(
            np.repeat(np.arange(len(numbers)), counts)[mine], np.arange(len(numbers))
        )
