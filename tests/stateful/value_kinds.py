"""The structures for moved values, and random steps that each must take as the reference does.

Few radii and steps that are often a radius, so that ties are everywhere: values that are an end
point, two that were told the same, one that is told what another was told before.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from driftline.errors import InvalidValue
from driftline.model.subscription import Measure
from driftline.stateful.value_based.b2_tree import B2Tree
from driftline.stateful.value_based.ba_tree import BATree
from driftline.stateful.value_based.btree_c import BTreeC
from driftline.stateful.value_based.btree_lr import BTreeLR
from driftline.stateful.value_based.bw_tree import BWTree
from driftline.stateful.value_based.classes import Classes
from driftline.stateful.value_based.combined import Combined
from driftline.stateful.value_based.end_points import EndPoints
from driftline.stateful.value_based.reference import Reference
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.scan_r import ScanR
from driftline.stateful.value_based.structure import Structure

EVERY_RULE = tuple(Rule(measure, strict) for measure in Measure for strict in (False, True))
MONOTONE = tuple(rule for rule in EVERY_RULE if rule.measure is not Measure.PERCENT)
CIRCULAR = tuple(rule for rule in EVERY_RULE if rule.circular)


@dataclass(frozen=True)
class Kind:
    """A structure, and what it is for."""

    make: Callable[..., Structure]
    rules: tuple[Rule, ...] = EVERY_RULE
    radii: int | None = None
    """How many there may be."""
    shared: bool = False
    """Must those with one radius have one centre?"""
    exact: bool = False
    """Must sums be exact, as those of ticks are?"""
    names: bool = False
    """Does it say who is told by naming them, and not in spans?"""
    circles: bool = False
    """Is a radius refused that would part a circle?"""


KINDS = {
    "reference": Kind(Reference),
    "end points": Kind(EndPoints),
    "combined": Kind(Combined),
    "classes": Kind(Classes, CIRCULAR, radii=1),
    "B-tree(lr)": Kind(BTreeLR, names=True),
    "Scan(r)": Kind(ScanR),
    "BA-tree": Kind(BATree, (Rule(),), shared=True, exact=True),
    "narrow BA-tree": Kind(partial(BATree, fanout=3), (Rule(),), shared=True, exact=True),
    "B-tree(c)": Kind(BTreeC, MONOTONE, radii=1, names=True),
    "BW-tree": Kind(BWTree, CIRCULAR, radii=1),
    "B2-tree": Kind(B2Tree, (Rule(),), exact=True, circles=True),
    "narrow B2-tree": Kind(partial(B2Tree, fanout=3), (Rule(),), exact=True, circles=True),
}
OURS = ["end points", "combined", "classes"]


@dataclass
class Walk:
    """Random steps for a structure and for the reference, which must say the same."""

    kind: Kind
    draw: random.Random
    ids: int = 60

    def __post_init__(self) -> None:
        draw = self.draw
        self.rule = draw.choice(self.kind.rules)
        self.ticks = self.kind.exact or draw.random() < 0.5
        factor = self.rule.measure is Measure.FACTOR
        count = min(self.kind.radii or 99, draw.choice((1, 3, 40)))
        self.radii = [1 + draw.random() / 2 if factor else self._radius() for _ in range(count)]
        self.stride = draw.choice((1, 6, 30))
        start = self.rule.admit_value(100)
        self.fast, self.slow = self.kind.make(start, self.rule), Reference(start, self.rule)

    def _radius(self) -> float:
        if self.ticks or self.draw.random() < 0.5:
            return self.draw.randrange(1, 40)
        return self.draw.random() * 40 + 0.001

    def _value(self) -> float:
        draw, value = self.draw, self.slow.value
        if draw.random() < 0.2:
            value += draw.choice((-1, 1)) * draw.choice(self.radii)
        else:
            value += draw.gauss(0, self.stride)
        value = round(value) if self.ticks else value
        return max(value, 1) if self.rule.measure is Measure.FACTOR else value

    def step(self) -> None:
        draw, held = self.draw, [id for id in range(self.ids) if id in self.slow]
        what = draw.choices(("event", "insert", "delete", "change"), (9, 6, 3, 2))[0]
        if what == "event":
            self.event(self._value(), held)
        elif what == "insert" and len(held) < self.ids:
            id = draw.choice([id for id in range(self.ids) if id not in self.slow])
            radius, shared = draw.choice(self.radii), self.kind.shared or draw.random() < 0.3
            told = self.fast.insert(id, radius, shared=shared)
            assert told == self.slow.insert(id, radius, shared=shared)
        elif what == "delete" and held:
            id = draw.choice(held)
            self.fast.delete(id)
            self.slow.delete(id)
        elif what == "change" and held and not self.kind.shared and self.kind.radii is None:
            id, radius = draw.choice(held), draw.choice(self.radii)
            self.change(id, radius)
        assert len(self.fast) == len(self.slow)
        assert self.fast.value == self.slow.value

    def change(self, id: int, radius: float) -> None:
        try:
            told = self.fast.change(id, radius)
        except InvalidValue:
            assert self.kind.circles
        else:
            assert told == self.slow.change(id, radius)

    def event(self, value: float, held: list[int]) -> None:
        wanted = sorted(self.slow.tell(value))
        if self.draw.random() < 0.5:
            assert sorted(self.fast.tell(value)) == wanted, value
            return
        spans = self.fast.event(value)
        addresses = {id: self.fast.address(id) for id in held}
        told = [id for id in held for span in spans if span.has(addresses[id])]
        assert sorted(told) == wanted, (value, spans)
        assert self.kind.names or self._gaps(spans, addresses, set(told)), spans

    def _gaps(self, spans: list, addresses: dict, told: set[int]) -> bool:
        """Is there somebody who is not told between any two spans? Else one would do."""
        whole = [span for span in spans if span.arc is None]
        return all(
            any(
                one.high <= address.radius <= two.low and id not in told
                for id, address in addresses.items()
            )
            for one, two in pairwise(whole)
        )

    def check(self) -> None:
        self.fast._check()
        self.slow._check()
        for id in range(self.ids):
            assert (id in self.fast) == (id in self.slow)
            if id in self.slow:
                assert self.fast.centre(id) == self.slow.centre(id)
