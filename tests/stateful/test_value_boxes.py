"""Do many boxes at once say what they say one by one, and does an index find whom they mean?"""

from __future__ import annotations

import numpy as np
import pytest

from driftline.model.subscription import Measure
from driftline.stateful.value_based.address import MOVED, Box, boxes_of, place_of
from driftline.stateful.value_based.addressed import Addressed
from driftline.stateful.value_based.boxes import Boxes, boxes_of_many, places_of
from driftline.stateful.value_based.choice import structure_for
from driftline.stateful.value_based.packed import Packed
from driftline.stateful.value_based.rule import Rule

RULES = [Rule(), Rule(strict=True), Rule(Measure.PERCENT), Rule(Measure.FACTOR)]


def built(rule: Rule, bits: int, draw: np.random.Generator) -> tuple[Packed, np.ndarray]:
    """A structure whose subscriptions came while the value moved, and the next values."""
    radii = draw.choice([1.5, 2.0, 2.5, 3.0, 9.0], 400)
    structure = structure_for(100.0, radii, rule, bits)
    values = np.abs(100.0 + np.cumsum(draw.integers(-6, 7, 240) / 4)) + 1
    for at, ids in enumerate(np.array_split(np.arange(400), 40)):
        structure.tell_many(values[at : at + 1])
        structure.insert_many(ids, radii[ids])
    return structure, values[40:]


@pytest.mark.parametrize("bits", [4, 40])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_many_boxes_are_the_same_as_one_by_one(rule: Rule, bits: int, seed: int) -> None:
    structure, values = built(rule, bits, np.random.default_rng(seed))
    told = structure.tell_many(values)
    found = boxes_of_many(told, ranked=structure.ranked)
    assert np.all(np.diff(found.of) >= 0)
    for at in range(len(values)):
        mine = found.of == at
        boxes = {Box(*box) for box in zip(*(one[mine].tolist() for one in found[1:]), strict=True)}
        assert boxes == {*boxes_of(told.of(at), ranked=structure.ranked)}


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_an_index_finds_those_who_are_told(rule: Rule, seed: int) -> None:
    structure, values = built(rule, 40, np.random.default_rng(seed))
    ids = np.arange(400)
    addresses = [structure.address(id) for id in ids.tolist()]
    radii = np.array([one.radius for one in addresses])
    places = places_of(*structure.addresses(ids))
    assert places.tolist() == [place_of(one.ring, one.label) for one in addresses]
    addressed = Addressed(MOVED + "stock")
    addressed.put(ids, radii, places)
    told = structure.tell_many(values)
    listed = structure.ids_of(told)
    boxes = boxes_of_many(told, ranked=structure.ranked)
    found = addressed.find(boxes)
    ends = found.offsets[np.searchsorted(boxes.of, np.arange(len(values) + 1))]
    for at in range(len(values)):
        mine = np.sort(found.members[ends[at] : ends[at + 1]])
        assert np.array_equal(mine, np.sort(listed.of(at)))


def test_no_box_reaches_who_was_taken_out() -> None:
    addressed = Addressed(MOVED + "stock")
    addressed.put(np.arange(3), np.full(3, 2.0), np.array([5, -1, 7]))
    addressed.take_out(np.array([0]))
    everywhere = Boxes.of_each([Box(0.0, np.inf, -1, 9), Box(2.0, 2.0, 7, 7)], [0, 1])
    found = addressed.find(everywhere)
    assert sorted(found.members[: found.offsets[1]].tolist()) == [1, 2]
    assert found.members[found.offsets[1] :].tolist() == [2]
    addressed._check(np.array([1, 2]), np.full(2, 2.0), np.array([-1, 7]))
