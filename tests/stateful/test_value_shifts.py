"""Does an address change only by the shifts that are reported? [VALUE §4.2]

Somebody who was told each address once, and shifts since, must find in every span exactly those who
are told.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from driftline.errors import InvalidValue
from driftline.model.subscription import Measure
from driftline.stateful.value_based.choice import load, structure_for, with_radii
from driftline.stateful.value_based.classes import Classes
from driftline.stateful.value_based.combined import Combined
from driftline.stateful.value_based.packed import Packed
from driftline.stateful.value_based.reference import Reference
from driftline.stateful.value_based.span import LABELS, Address, Shift
from tests.stateful.value_kinds import CIRCULAR, KINDS, OURS


class Followed:
    """A structure, the definition, and the addresses as somebody far away knows them."""

    def __init__(self, name: str, bits: int, draw: random.Random) -> None:
        kind, self.draw, self.bits = KINDS[name], draw, bits
        self.rule = draw.choice(kind.rules if draw.random() < 0.5 else CIRCULAR)
        factor = self.rule.measure is Measure.FACTOR
        count = kind.radii or draw.choice((1, 2, 30))
        self.radii = [
            1.5 + draw.random() if factor else draw.randrange(20, 60) for _ in range(count)
        ]
        self.fast: Packed = kind.make(100.0, self.rule, bits)
        self.slow = Reference(100.0, self.rule)
        self.known: dict[int, Address] = {}
        self.ids = draw.choice((10, 80, 300))
        self.shifts = 0

    def heard(self, ids: list[int]) -> None:
        """Some have come or changed: their addresses are told, and to all others the shifts."""
        for id in ids:
            self.known.pop(id, None)
        for shift in self.fast.take_shifts():
            self.shifts += 1
            assert shift.by
            self.known = {id: shift.of(one) for id, one in self.known.items()}
        for id in ids:
            self.known[id] = self.fast.address(id)

    def event(self) -> None:
        draw, value = self.draw, self.slow.value
        step = draw.choice((0.01, 1, 9)) * draw.gauss(0, 1)
        value = max(value + step, 1) if draw.random() < 0.9 else 100 + draw.randrange(50)
        spans = self.fast.event(value)
        told = [id for id, one in self.known.items() for span in spans if span.has(one)]
        assert sorted(told) == sorted(self.slow.tell(value))
        assert self.fast.take_shifts() == []

    def insert(self, count: int) -> None:
        free = [id for id in range(self.ids) if id not in self.slow]
        ids = self.draw.sample(free, min(count, len(free)))
        radii = [self.draw.choice(self.radii) for _ in ids]
        centres = None
        if self.draw.random() < 0.5:
            centres = [self._centre(radius) for radius in radii]
        shared = centres is None and self.draw.random() < 0.2
        if count == 1 and ids:
            centre = None if centres is None else centres[0]
            self.fast.insert(ids[0], radii[0], centre, shared=shared)
            self.slow.insert(ids[0], radii[0], centre, shared=shared)
        else:
            self.fast.insert_many(
                np.array(ids, int), np.array(radii, float), centres, shared=shared
            )
            for at, (id, radius) in enumerate(zip(ids, radii, strict=True)):
                centre = None if centres is None else centres[at]
                self.slow.insert(id, radius, centre, shared=shared)
        self.heard(ids)

    def _centre(self, radius: float) -> float:
        """One who is not overdue, often next to another."""
        near = [self.slow.centre(id) for id in self.slow if self.slow.address(id).radius == radius]
        value = self.slow.value
        for _ in range(10):
            centre = self.draw.choice(near) if near and self.draw.random() < 0.7 else value
            centre = max(1.0, centre + self.draw.choice((0, 1e-6, -1e-6, 1, -1)))
            if not self.rule.tells(centre, radius, value):
                return centre
        return value

    def delete(self) -> None:
        share = self.draw.choice((0.02, 0.1, 1))
        gone = [id for id in self.slow if self.draw.random() < share]
        self.fast.delete_many(np.array(gone, int))
        for id in gone:
            self.slow.delete(id)
            del self.known[id]
        self.heard([])

    def change(self) -> None:
        if not len(self.slow):
            return
        id, radius = self.draw.choice(list(self.slow)), self.draw.choice(self.radii)
        same = self.slow.address(id).radius == radius
        assert self.fast.change(id, radius) == self.slow.change(id, radius)
        self.heard([] if same else [id])

    def again(self) -> None:
        """Into other memory, by way of a table or not."""
        if self.draw.random() < 0.5:
            self.fast._pack(self.fast._unpack(), self.fast.value, self.fast._ids_cap)
        else:
            self.fast = type(self.fast).load(self.fast.dump(), self.bits)

    def step(self) -> None:
        draw = self.draw
        what = draw.choices(("event", "insert", "delete", "change", "again"), (9, 9, 1, 3, 1))[0]
        if what == "insert":
            self.insert(draw.choice((1, 1, 1, 5, 40)))
        else:
            getattr(self, what)()

    def check(self) -> None:
        self.fast._check()
        assert self.known == {id: self.fast.address(id) for id in self.slow}
        assert self.fast.ranked == any(one.ring for one in self.known.values())
        assert all(one.label % (LABELS >> self.bits) == 0 for one in self.known.values())


@pytest.mark.parametrize("bits", [4, 5, 8, 40, 64])
@pytest.mark.parametrize("name", OURS)
def test_addresses_follow_from_the_shifts(name: str, bits: int, seed: int) -> None:
    draw, shifts = random.Random(seed), 0
    for _ in range(12):
        followed = Followed(name, bits, draw)
        for _ in range(12):
            for _ in range(15):
                followed.step()
            followed.check()
        shifts += followed.shifts
    # A ring of one centre needs one label, and of many labels few are moved.
    assert name == "end points" or bits > 4 or shifts


@pytest.mark.parametrize("bits", [6, 24, 64])
def test_labels_stay_in_order_where_gaps_are_used_up(bits: int) -> None:
    """Each comes next to the one at 0, above or below it: every gap is half of the one before."""
    ring, reference = Classes(0.0, label_bits=bits), Reference(0.0)
    known: dict[int, Address] = {}
    shifted = 0
    for id in range(600):
        value = (-1) ** id * 40 * 2.0**-id if id else 0
        told = [one for span in ring.event(value) for one in known if span.has(known[one])]
        assert sorted(told) == sorted(reference.tell(value))
        assert ring.insert(id, 100) == reference.insert(id, 100)
        for shift in ring.take_shifts():
            known = {one: shift.of(address) for one, address in known.items()}
            shifted += 1
        known[id] = ring.address(id)
    assert shifted > 5
    assert known == {id: ring.address(id) for id in range(600)}
    assert ring.ranked == (bits == 6)
    ring._check()
    again = Classes.load(ring.dump(), bits)
    for value in (59.0, -30.0, 75.0, -41.5):
        assert (
            sorted(again.tell(value)) == sorted(ring.tell(value)) == sorted(reference.tell(value))
        )
    again._check()


def test_a_full_circle_is_followed_by_another() -> None:
    """16 labels: the 17th centre begins a ring, and who shares a centre needs no label."""
    ring = Classes(0.0, label_bits=4)
    for id in range(40):
        ring.insert(id, 100, id / 10)
    assert [ring.address(id).ring for id in range(40)] == [0] * 16 + [1] * 16 + [2] * 8
    assert len({ring.address(id) for id in range(40)}) == 40
    ring.insert(40, 100, 3.9)
    assert ring.address(40) == ring.address(39)
    ring._check()
    assert ring.ranked
    assert sorted(ring.tell(101.5)) == list(range(16))
    assert len(ring.event(103.95)) == 1
    ring.delete_many(np.arange(16, 41))
    assert not ring.ranked
    ring._check()


def test_labels_that_are_given_by_a_table_have_as_many_bits() -> None:
    reference = Reference(0.0)
    for id in range(40):
        reference.insert(id, 100, id / 10)
    for kind in (Classes, Combined):
        made = kind.load(reference.dump(), 4)
        made._check()
        assert [made.address(id).ring for id in range(40)] == [0] * 16 + [1] * 16 + [2] * 8
        assert made.address(1).label == LABELS >> 4
        assert sorted(made.tell(101.5)) == sorted(Reference.load(reference.dump()).tell(101.5))
        with pytest.raises(InvalidValue, match="labels of 30"):
            kind.load(Classes.load(reference.dump(), 40).dump(), 30)


def test_few_bits_are_passed_on() -> None:
    for made in (
        structure_for(0.0, [1.0], label_bits=9),
        structure_for(0.0, [1.0, 2.0], label_bits=9),
        load(Reference(0.0).dump(), 9),
    ):
        assert made.label_bits == 9
    for bits in (3, 65, 0, -1, 8.0, True, None):
        with pytest.raises(InvalidValue, match="label_bits"):
            Combined(0.0, label_bits=bits)


def test_shifts_that_were_not_taken_are_not_lost_with_another_radius() -> None:
    ring = Classes(0.0, label_bits=4)
    for id in range(10):
        ring.insert(id, 100, 2.0**-id if id else 0)
    wider = with_radii(ring, [3.0])
    assert type(wider) is Combined
    assert wider.label_bits == 4
    shifts = wider.take_shifts()
    assert shifts
    assert wider.take_shifts() == []


def test_a_shift_is_of_one_ring_and_goes_round() -> None:
    shift = Shift(2.0, 1, LABELS - 2, 3, 5)
    assert [
        shift.of(Address(2.0, 1, label)).label for label in (LABELS - 3, LABELS - 2, 0, 3, 4)
    ] == [
        LABELS - 3,
        3,
        5,
        8,
        4,
    ]
    assert shift.of(Address(2.0, 0, 1)) == Address(2.0, 0, 1)
    assert shift.of(Address(3.0, 1, 1)) == Address(3.0, 1, 1)
    assert shift._replace(by=-2).of(Address(2.0, 1, 1)).label == LABELS - 1


def test_who_keeps_its_radius_keeps_its_address() -> None:
    ring = Classes(0.0)
    for id in range(3):
        ring.insert(id, 100, id)
    before = [ring.address(id) for id in range(3)]
    assert ring.change_many([0, 1, 2], [100.0, 100.0, 100.0]).tolist() == [False] * 3
    assert [ring.address(id) for id in range(3)] == before
