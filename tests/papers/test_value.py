"""The examples of value-based notification conditions [VALUE 1 to 6]."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from driftline.model.subscription import Measure
from driftline.stateful.value_based.b2_tree import B2Tree
from driftline.stateful.value_based.ba_tree import BATree
from driftline.stateful.value_based.btree_c import BTreeC
from driftline.stateful.value_based.btree_lr import BTreeLR
from driftline.stateful.value_based.bw_tree import BWTree
from driftline.stateful.value_based.classes import Classes
from driftline.stateful.value_based.combined import Combined
from driftline.stateful.value_based.end_points import EndPoints
from driftline.stateful.value_based.may_must import told
from driftline.stateful.value_based.reference import Reference
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.scan_r import ScanR
from driftline.stateful.value_based.span import Span
from driftline.stateful.value_based.structure import Structure

Make = Callable[..., Structure]
ANY_RADII = [Reference, BTreeLR, ScanR, BATree, B2Tree, EndPoints, Combined]
RADIUS_RANGES = [BATree, partial(BATree, fanout=3), B2Tree, EndPoints, Combined]
ONE_RADIUS = [Reference, BTreeLR, BTreeC, BWTree, B2Tree, Classes, Combined]
CIRCLES = [BWTree, Classes]


def figure_1_left(make: Make) -> Structure:
    """Radii 2, 4 and 6 around 100. The text gives no centres: these are told as it says."""
    structure = make(100.0)
    for radius, centre in ((2, 100.5), (4, 98), (6, 99)):
        structure.insert(radius, radius, centre)
    return structure


def figure_1_right(make: Make) -> Structure:
    """Radius 4, created when the price was 101, 103 and 100."""
    structure = make(101.0)
    for id, price in ((1, 101), (2, 103), (3, 100)):
        assert structure.tell(price) == []
        structure.insert(id, 4)
    return structure


def figure_4(make: Make) -> Structure:
    """Six of radius 11 around 19; S3 has the centre 14, the others are not in the text."""
    structure = make(10.0)
    for id, value in ((1, 10), (2, 12), (3, 14), (4, 16), (5, 18), (6, 20)):
        assert structure.tell(value) == []
        structure.insert(id, 11)
    assert structure.tell(19) == []
    return structure


@pytest.mark.parametrize("make", ANY_RADII)
def test_example_1_there_is_no_order_of_radii(make: Make) -> None:
    """A move from 100 to 102 concerns radius 4, and neither 2 nor 6."""
    structure = figure_1_left(make)
    assert structure.tell(102) == [4]
    assert structure.centre(4) == 102
    structure._check()


@pytest.mark.parametrize("make", RADIUS_RANGES)
def test_example_1_as_a_range_of_radii(make: Make) -> None:
    """[4, 4] [§3.1]."""
    assert figure_1_left(make).event(102) == [Span(4, 4)]


@pytest.mark.parametrize("make", ONE_RADIUS)
def test_example_2_those_with_one_radius_are_told_of_different_values(make: Make) -> None:
    structure = figure_1_right(make)
    assert structure.tell(98) == [2]
    assert [structure.centre(id) for id in (1, 2, 3)] == [101, 98, 100]


@pytest.mark.parametrize("make", ONE_RADIUS)
def test_example_2_round_robin(make: Make) -> None:
    """A value just below the largest left end tells one, and each in turn, for ever."""
    structure, heard, prices = figure_1_right(make), [], set()
    for _ in range(12):
        lefts = sorted(structure.centre(id) - 4 for id in (1, 2, 3))
        price = (lefts[2] + lefts[1]) / 2
        heard += structure.tell(price)
        prices.add(price)
    assert heard == [2, 1, 3] * 4
    assert len(prices) == 12


@pytest.mark.parametrize("make", ONE_RADIUS)
def test_figure_4_the_lowest_become_the_highest(make: Make) -> None:
    """19 → 24: S1 and S2 are told, and S3 has the lowest centre now, 14."""
    structure = figure_4(make)
    assert sorted(structure.tell(24)) == [1, 2]
    assert [structure.centre(id) for id in range(1, 7)] == [24, 24, 14, 16, 18, 20]
    structure._check()


@pytest.mark.parametrize("make", CIRCLES)
def test_figure_4_as_an_arc_of_labels(make: Make) -> None:
    structure = figure_4(make)
    (span,) = structure.event(24)
    assert span.arc is not None
    assert [id for id in range(1, 7) if span.has(structure.address(id))] == [1, 2]
    # Next come S3 and S4; and from the other end all but they: round, over the end of the circle.
    (span,) = structure.event(27)
    assert [id for id in range(1, 7) if span.has(structure.address(id))] == [3, 4]
    (span,) = structure.event(13)
    assert [id for id in range(1, 7) if span.has(structure.address(id))] == [1, 2, 3, 4]


def test_figure_2_a_move_from_100_to_105() -> None:
    """Who does not contain the new value is told, and contains it then."""
    structure = Reference(100.0)
    for id, (left, right) in enumerate(((96, 104), (97, 107), (92, 105), (99, 103))):
        structure.insert(id, (right - left) / 2, (right + left) / 2)
    assert sorted(structure.tell(105)) == [0, 2, 3]
    structure._check()


def test_lemma_1_and_theorem_1(seed: int) -> None:
    """Centres are less than a radius apart, and going round the circle is the same for ever."""
    draw = random.Random(seed)
    for _ in range(30):
        structure, radius = Reference(0), draw.randrange(2, 30)
        for id in range(20):
            structure.tell(structure.value + draw.randrange(-9, 10))
            structure.insert(id, radius)
        order = sorted(structure, key=structure.centre)
        for _ in range(100):
            structure.tell(structure.value + draw.randrange(-9, 10))
            centres = {id: structure.centre(id) for id in structure}
            assert max(centres.values()) - min(centres.values()) < radius
            assert goes_round(order, centres)


def goes_round(order: list[int], centres: dict[int, float]) -> bool:
    """Do the centres rise, in this order, but for one place?"""
    ring = [centres[id] for id in order]
    return sum(two < one for one, two in zip(ring, ring[1:] + ring[:1], strict=True)) <= 1


def test_lemma_1_needs_more_than_centres_near_the_value() -> None:
    """We differ: two that are each less than a radius from the value may change their order."""
    structure = Reference(100.0)
    structure.insert(1, 10, 92.0)
    structure.insert(2, 10, 108.0)
    # 102 tells the first, which was lowest; its centre is not the highest then.
    assert structure.tell(102) == [1]
    assert structure.centre(1) < structure.centre(2)


@pytest.mark.parametrize("make", [BATree, EndPoints, Combined, Reference])
def test_a_new_subscription_may_share_the_centre_of_its_radius(make: Make) -> None:
    """§3: it is sent the value that those with its radius have, and is told with them."""
    structure = make(100.0)
    structure.insert(1, 5)
    structure.event(103)
    assert structure.insert(2, 5, shared=True) == 100
    assert structure.insert(3, 6, shared=True) == 103
    assert sorted(structure.tell(105)) == [1, 2]


def test_drift_goes_down_with_the_next_move() -> None:
    """§3.2: what nobody was told of is added up, as in the module's example."""
    tree = BATree(100.0, fanout=3)
    for radius in (2, 4, 6):
        tree.insert(radius, radius)
    assert tree.event(101.5) == []
    assert tree.event(102) == [Span(2, 2)]
    assert tree.event(104) == [Span(2, 4)]
    assert tree.event(98) == [Span(2, 4)]
    assert tree.event(94) == [Span(2, 6)]
    tree._check()


def test_ranges_are_maximal() -> None:
    """§3.2: of a thousand radii, those next to each other are said as one."""
    for make in RADIUS_RANGES:
        structure = make(0.0)
        for id in range(1000):
            structure.insert(id, id + 1)
        assert structure.event(300) == [Span(1, 300)]
        assert structure.event(500) == [Span(1, 200), Span(301, 500)]
        assert structure.event(2000) == [Span(1, 1000)]


def test_drift_on_floats_is_not_the_definition() -> None:
    """Why `end_points` has none: moves that are added up round, end points do not."""
    rng = np.random.default_rng(7)
    tree, ours, reference = BATree(0.0), EndPoints(0.0), Reference(0.0)
    for id, radius in enumerate(rng.integers(1, 50, 60) / 10):
        for structure in (tree, ours, reference):
            structure.insert(id, float(radius), shared=True)
    wrong = 0
    for value in np.cumsum(rng.integers(-20, 21, 500)) / 10:
        wanted = sorted(reference.tell(float(value)))
        assert sorted(ours.tell(float(value))) == wanted
        wrong += sorted(tree.tell(float(value))) != wanted
    assert wrong > 0


def test_may_and_must_join_ranges() -> None:
    """§6.1: two that must be told are parted by one that may; a third that may be stays alone."""
    may = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    must = np.array([1.5, 9.0, 3.5, 20.0, 5.5, 9.0])
    centres = np.array([100.0, 100.0, 100.0, 103.0, 103.0, 100.0])
    heard = told(Rule(), may, must, centres, 106.0)
    assert heard.tolist() == [True, True, True, False, False, False]


def test_relative_conditions() -> None:
    """§6.2: 10 percent of what was received last; a factor, by multiplying and dividing."""
    for make in (Reference, EndPoints, Combined):
        percent = make(100.0, Rule(Measure.PERCENT))
        percent.insert(1, 10)
        assert [value for value in (109, 110, 120, 121, 109, 108) if percent.tell(value)] == [
            110,
            121,
            108,
        ]
        factor = make(100.0, Rule(Measure.FACTOR))
        factor.insert(1, 2)
        assert [value for value in (199, 200, 101, 100, 51, 50) if factor.tell(value)] == [
            200,
            100,
            50,
        ]
