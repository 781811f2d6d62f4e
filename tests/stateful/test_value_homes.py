"""Are addresses of many items what a network was told of them, however an item is kept?

Each item has a reference of its own. Somebody far away was told each address once, and shifts
since: in the spans of each value it must find exactly those who are told.
"""

from __future__ import annotations

import random

import pytest

from driftline.model.subscription import Measure
from driftline.stateful.value_based.few import Few
from driftline.stateful.value_based.items import MANY, Items
from driftline.stateful.value_based.numbered import Numbered
from driftline.stateful.value_based.reference import Reference
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.span import LABELS, Address, Span

RULES = [Rule(), Rule(Measure.PERCENT), Rule(strict=True), Rule(Measure.FACTOR)]


class Home:
    """Items, a reference for each that has a value, the radii of those who wait, and addresses."""

    def __init__(self, rule: Rule, bits: int, draw: random.Random, many: int = MANY) -> None:
        self.rule, self.bits, self.draw = rule, bits, draw
        self.items: Items[str] = Items(rule, bits, many)
        self.alone: dict[str, Reference] = {}
        self.waiting: dict[str, dict[int, float]] = {item: {} for item in "abcd"}
        self.known: dict[str, dict[int, Address]] = {item: {} for item in "abcd"}
        self.shifts = 0
        self.ids = draw.choice((2, 7, 60))
        few = (1.5, 2.5) if rule.measure is Measure.FACTOR else (7, 30)
        self.radii = few if draw.random() < 0.7 else few[1:]

    def hear(self, item: str, id: int | None = None) -> None:
        """One has come or changed: it tells its address, and all others hear of the shifts."""
        for where, shift in self.items.take_shifts():
            self.shifts += 1
            for one, address in self.known[where].items():
                if (where, one) != (item, id):
                    self.known[where][one] = shift.of(address)
        if id is not None:
            self.known[item][id] = self.items.address(item, id)

    def value(self, item: str) -> float:
        old = self.alone[item].value if item in self.alone else 100.0
        return max(1.0, old + self.draw.choice((0, 1, -1, 0.1, -0.1, 12, -12)))

    def event(self, item: str) -> None:
        value, one = self.value(item), self.alone.get(item)
        if one is None:
            wanted = self.waiting[item]
            if wanted:
                self.alone[item] = Reference(value, self.rule)
                for id, radius in wanted.items():
                    self.alone[item].insert(id, radius)
                self.waiting[item] = {}
            told = list(wanted)
        else:
            told = one.tell(value)
        if self.draw.random() < 0.3:
            assert sorted(self.items.tell(item, value)) == sorted(told)
            return
        spans = self.items.event(item, value)
        heard = [id for id, at in self.known[item].items() for span in spans if span.has(at)]
        assert sorted(heard) == sorted(told)

    def insert(self, item: str, id: int) -> None:
        radius, shared, one = self.draw.choice(self.radii), self.draw.random() < 0.2, None
        if item in self.alone:
            one = self.alone[item].insert(id, radius, shared=shared)
        else:
            self.waiting[item][id] = radius
        assert self.items.insert(item, id, radius, shared=shared) == one
        self.hear(item, id)

    def change(self, item: str, id: int) -> None:
        radius, told = self.draw.choice(self.radii), False
        if item in self.alone:
            told = self.alone[item].change(id, radius)
        else:
            self.waiting[item][id] = radius
        same = self.known[item][id].radius == radius
        assert self.items.change(item, id, radius) == told
        self.hear(item, None if same else id)

    def delete(self, item: str, id: int) -> None:
        self.items.delete(item, id)
        del self.known[item][id]
        if item not in self.alone:
            del self.waiting[item][id]
            return
        self.alone[item].delete(id)
        if not len(self.alone[item]):
            del self.alone[item]

    def end(self, item: str) -> None:
        one = self.alone.pop(item, None)
        assert sorted(self.items.end(item)) == sorted(one or ())
        if one is not None:
            self.waiting[item] = {id: one.address(id).radius for id in one}
            self.known[item] = {id: Address(one.address(id).radius) for id in one}

    def step(self) -> None:
        draw = self.draw
        item, id = draw.choice("abcd"), draw.randrange(self.ids) + 10**9
        if draw.random() < 0.4:
            self.event(item)
        elif draw.random() < 0.01:
            self.end(item)
        elif id not in self.known[item]:
            self.insert(item, id)
        elif draw.random() < 0.5:
            self.change(item, id)
        elif draw.random() < 0.7:
            self.delete(item, id)

    def check(self) -> None:
        self.items._check()
        assert len(self.items) == sum(map(len, self.known.values()))
        for item, known in self.known.items():
            assert known == {id: self.items.address(item, id) for id in known}
            assert self.items.ranked(item) == any(one.ring for one in known.values())
            assert all(one.label % (LABELS >> self.bits) == 0 for one in known.values())
            one = self.alone.get(item)
            assert self.items.value(item) == (None if one is None else one.value)
            for id in known:
                centre = None if one is None else one.centre(id)
                assert self.items.centre(item, id) == centre


@pytest.mark.parametrize("many", [2, 8, 64])
@pytest.mark.parametrize("bits", [4, 64])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_home_tells_whom_each_item_would_tell_alone(
    rule: Rule, bits: int, many: int, seed: int
) -> None:
    draw = random.Random(seed)
    for _ in range(4):
        home = Home(rule, bits, draw, many)
        for _ in range(30):
            for _ in range(25):
                home.step()
            home.check()


def test_labels_of_an_item_move() -> None:
    """Each comes between the two that came last: every gap is half of the one before."""
    home = Home(Rule(), 8, random.Random(1), many=2)
    home.radii = (100,)
    for id in range(45):
        home.insert("a", id)
        value = 100 + (-0.5) ** id
        assert home.items.event("a", value) == ([] if id else [Span(100, 100)])
        if not id:
            home.alone["a"] = Reference(value)
            home.alone["a"].insert(0, 100)
        home.alone["a"].tell(value)
    assert home.shifts > 0
    home.check()


def test_an_item_is_kept_as_its_subscriptions_ask_for_and_never_as_less() -> None:
    items: Items[str] = Items(many=3)
    items.insert("a", 5, 2)
    assert items.value("a") is None
    assert items.address("a", 5) == Address(2)
    assert items.event("a", 10) == [Span(2, 2)]
    assert "a" in items._rows
    items.tell("a", 11)
    items.insert("a", 6, 2)
    items.insert("a", 7, 2)
    assert type(items._several["a"]) is Few
    # Two began with the same centre, and the third with another.
    assert [items.address("a", id) for id in (5, 6, 7)] == [(2, 0, 0), (2, 1, 0), (2, 1, 0)]
    assert items.ranked("a")
    items.delete("a", 5)
    items.insert("a", 8, 3)
    assert not items.change("a", 8, 2)
    assert items.address("a", 8) == (2, 1, 0)
    items.tell("a", 12)
    items.insert("a", 9, 2)
    assert type(items._several["a"]) is Numbered
    assert [items.address("a", id).ring for id in (6, 7, 8, 9)] == [1, 1, 1, 0]
    for id in (6, 7, 8):
        items.delete("a", id)
    assert type(items._several["a"]) is Numbered
    assert items.end("a") == [9]
    assert items.address("a", 9) == Address(2)
    assert items.value("a") is None
    items.delete("a", 9)
    assert "a" not in items
    assert not items.ranked("a")


def test_a_first_value_is_told_to_all_who_wait() -> None:
    items: Items[str] = Items()
    for id in range(200):
        items.insert("a", id, 2 + id % 3)
    assert items.event("a", 10) == [Span(2, 4)]
    assert {items.address("a", id) for id in range(200)} == {Address(2), Address(3), Address(4)}
    assert items.event("b", 10) == []
    assert items.event("a", 12.5) == [Span(2, 2)]
