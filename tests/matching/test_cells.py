"""Do cells find all that contains a box, and all that it contains, or say that they do not know?"""

from __future__ import annotations

import random

import pytest

from driftline.matching.box import EVERYWHERE, TYPE, Box
from driftline.matching.cells import Cells

SPOTS = [0.0, 1.0, 1.5, 2.0, 3.0, 1e-9, 0.1, 0.3, -4.0, 1024.0, 2.0**53 - 1, -(2.0**53 - 1)]


def drawn(draw: random.Random, names: str, values) -> Box:
    ends = {}
    for name in sorted(draw.sample(names, draw.randrange(len(names) + 1))):
        chance = draw.random()
        one, other = values(draw), values(draw)
        low, high = min(one, other), max(one, other)
        if chance < 0.3:
            high = low
        elif chance < 0.4:
            high = EVERYWHERE[1]
        elif chance < 0.5:
            low, high = EVERYWHERE
        ends[name] = (low, high)
    ends[TYPE] = EVERYWHERE if draw.random() < 0.2 else (7.0, 7.0)
    return Box(frozenset(ends), ends)


def spot(draw: random.Random) -> float:
    return draw.choice(SPOTS)


def anywhere(draw: random.Random) -> float:
    return draw.uniform(0, 10 ** draw.randrange(-3, 9))


@pytest.mark.parametrize("values", [spot, anywhere])
@pytest.mark.parametrize("names", ["a", "ab", "abc"])
@pytest.mark.parametrize("seed", range(25))
def test_nothing_is_missed(seed: int, names: str, values) -> None:
    draw = random.Random(seed)
    cells: Cells[object] = Cells()
    held: dict[object, Box] = {}
    knew = 0
    for _ in range(150):
        if held and draw.random() < 0.3:
            gone = draw.choice(list(held))
            cells.discard(held.pop(gone), gone)
        else:
            one, box = object(), drawn(draw, names, values)
            held[one] = box
            cells.add(box, one)
        box = drawn(draw, names, values)
        around, inside = cells.around(box), cells.inside(box)
        if around is not None:
            knew += 1
            assert {one for one in held if held[one].may_contain(box)} <= {*around}
        if inside is not None:
            assert {one for one in held if box.may_contain(held[one])} <= {*inside}
    cells._check(held)
    assert knew


def test_few_are_looked_at_where_many_fix_the_same() -> None:
    cells: Cells[int] = Cells()
    boxes = [Box(frozenset("ab"), {"a": (5.0, 5.0), "b": (at, at + 10.0)}) for at in range(10_000)]
    for at, box in enumerate(boxes):
        cells.add(box, at)
    inner = Box(frozenset("ab"), {"a": (5.0, 5.0), "b": (500.0, 509.0)})
    assert cells.around(inner) == [499, 500]
    assert cells.inside(boxes[500]) == [500]


def test_where_boxes_fix_more_somebody_else_must_know() -> None:
    cells: Cells[str] = Cells()
    cells.add(Box(frozenset("ab"), {"a": (1.0, 1.0), "b": (0.0, 9.0)}), "one")
    general = Box(frozenset("b"), {"b": (0.0, 9.0)})
    assert cells.inside(general) is None
    assert cells.around(general) == []
