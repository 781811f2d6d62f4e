"""Do many items say what each would say alone, however few subscribe to it?"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from driftline.errors import InvalidValue
from driftline.model.subscription import Measure
from driftline.stateful.value_based.choice import load, structure_for, with_radii
from driftline.stateful.value_based.classes import Classes
from driftline.stateful.value_based.combined import Combined
from driftline.stateful.value_based.end_points import EndPoints
from driftline.stateful.value_based.items import MANY, Items
from driftline.stateful.value_based.reference import Reference
from driftline.stateful.value_based.rule import Rule


@pytest.mark.parametrize("ids", [3, 20, 4 * MANY])
@pytest.mark.parametrize("rule", [Rule(), Rule(Measure.PERCENT), Rule(strict=True)], ids=str)
def test_each_item_is_told_as_if_it_were_alone(ids: int, rule: Rule, seed: int) -> None:
    draw = random.Random(seed)
    items: Items[str] = Items(rule)
    alone: dict[str, Reference] = {}
    waiting: dict[str, dict[int, float]] = {}
    for step in range(4000):
        item, id = draw.choice("abcde"), draw.randrange(ids) + 10**6
        one, radius = alone.get(item), draw.choice((1, 2, 7, 0.5))
        known = one if one is not None else waiting.setdefault(item, {})
        what = draw.random()
        if what < 0.3:
            value = draw.randrange(90, 110)
            wanted = list(waiting.pop(item, {}).items()) if one is None else None
            if one is None and wanted:
                alone[item] = Reference(value, rule)
                for key, far in wanted:
                    alone[item].insert(key, far)
                assert sorted(items.tell(item, value)) == sorted(dict(wanted))
            elif one is not None:
                assert sorted(items.tell(item, value)) == sorted(one.tell(value))
            else:
                assert items.tell(item, value) == []
        elif what < 0.7 and id not in known:
            if one is None:
                assert items.insert(item, id, radius) is None
                known[id] = radius
            else:
                assert items.insert(item, id, radius) == one.insert(id, radius)
        elif what < 0.8 and id in known:
            if one is None:
                assert not items.change(item, id, radius)
                known[id] = radius
            else:
                assert items.change(item, id, radius) == one.change(id, radius)
        elif what < 0.93 and id in known:
            items.delete(item, id)
            known.pop(id) if one is None else one.delete(id)
            if one is not None and not len(one):
                del alone[item]
        elif what > 0.995 and one is not None:
            assert sorted(items.end(item)) == sorted(one)
            waiting[item] = {key: one.address(key).radius for key in one}
            del alone[item]
        if step % 50 == 0:
            items._check()
            assert len(items) == sum(map(len, alone.values())) + sum(map(len, waiting.values()))
            for name, reference in alone.items():
                for key in reference:
                    assert items.centre(name, key) == reference.centre(key)


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(InvalidValue):
        call()


def test_what_may_not_be_is_refused() -> None:
    items: Items[int] = Items()
    items.insert(1, 5, 2.0)
    for _ in range(2):
        refused(lambda: items.insert(1, 5, 2.0))
        refused(lambda: items.insert(1, 6, 0))
        refused(lambda: items.delete(1, 6))
        refused(lambda: items.delete(2, 5))
        refused(lambda: items.change(1, 5, -1))
        refused(lambda: items.tell(1, float("nan")))
        refused(lambda: items.centre(1, 6))
        assert items.tell(1, 10.0) in ([5], [])
    assert len(items) == 1
    assert items.centre(1, 5) == 10
    items.delete(1, 5)
    assert 1 not in items
    assert items.end(1) == []


def test_the_structure_fits_the_radii() -> None:
    assert type(structure_for(1.0, [3.0, 3.0])) is Classes
    assert type(structure_for(1.0, [3.0, 4.0])) is Combined
    assert type(structure_for(1.0, [3.0, 3.0], Rule(strict=True))) is Combined
    ring = Classes(1.0)
    assert with_radii(ring, [3.0]) is ring
    ring.insert(1, 3.0)
    ring.event(2.0)
    ring.insert(2, 3.0)
    label = ring.address(2)
    assert with_radii(ring, [3.0]) is ring
    wider = with_radii(ring, [4.0])
    assert type(wider) is Combined
    assert wider.address(2) == label
    assert with_radii(wider, [9.0]) is wider


def test_a_table_is_loaded_into_what_fits_it() -> None:
    for kind, radii, wanted in (
        (EndPoints, [3.0, 3.0], Classes),
        (Combined, [3.0, 4.0], Combined),
        (Reference, [3.0, 3.0], Classes),
    ):
        made = kind(1.0)
        for id, radius in enumerate(radii):
            made.insert(id, radius)
        assert type(load(made.dump())) is wanted
    far = Reference(100.0)
    far.insert(1, 9, 92.0)
    far.insert(2, 9, 108.0)
    assert load(far.dump()).ranked
