"""A random program with thousands of filters, on an index and on `Scan` side by side.

`check_matcher` draws any filter, but few; here the shapes are few and the filters many, so that
lists become grids and families, tiles merge and split, rulers change, and everything goes back.
Run as a script it is one such program: `python -m tests.matching.crowd SEED STEPS`.
"""

from __future__ import annotations

import random
import sys

from driftline.language.sql import parse
from driftline.matching.columns import Columns
from driftline.matching.index import Index
from driftline.matching.scan import Scan
from driftline.model.event import Event

SHAPES = [
    (parse(f"SELECT * FROM q WHERE {condition}").filters(), names)
    for condition, names in (
        ("s = :s AND x BETWEEN :a AND :b", "sab"),
        ("x BETWEEN :a AND :b AND y BETWEEN :c AND :d", "abcd"),
        ("x < :a", "a"),
        ("s = :s AND y >= :a", "sa"),
        ("x < :a AND y > :b AND z BETWEEN :c AND :d", "abcd"),
        (
            "x BETWEEN :a AND :b AND y BETWEEN :c AND :d AND z > :e AND w < :f AND v != :g",
            "abcdefg",
        ),
        ("x BETWEEN :a AND :b OR y BETWEEN :c AND :d", "abcd"),
        ("s LIKE 'a%' AND x > :a", "a"),
        ("s != :s AND x = :a", "sa"),
        ("s IN ('a', 'bb', 'longer than seven') AND x > :a", "a"),
        ("x > :a AND u IS NULL", "a"),
        ("x + y < :a", "a"),
        ("z = :a", "a"),
        ("w BETWEEN :a AND :b", "ab"),
        ("il >= :a AND ol < :a AND ir <= :b AND xr > :b", "ab"),
        ("il > :a AND ol <= :a AND ir < :b AND xr >= :b AND s = :s", "abs"),
        ("il >= :a AND ol < :a AND ir <= :b AND xr > :b AND v != :g", "abg"),
        ("il > :a AND ol <= :a AND xr > 1.7976931348623157e308", "a"),
        ("ol < -1.7976931348623157e308 AND ir <= :a AND xr > :a", "a"),
        ("il >= :a AND ol < :a OR x BETWEEN :a AND :b", "ab"),
    )
]
TEXTS = ["a", "bb", "ccc", "longer than seven", "longer than eight", "abc"]
ODD = [0, -0.0, float("inf"), -float("inf"), 2**53, 2**53 + 1, -(2**60), 1e300, -5]
WIDTHS = [0, 1, 5, 50, 300]


class Crowd:
    """One program. With `drift` the bounds wander off, which old rulers do not fit."""

    def __init__(self, seed: int, drift: int = 0) -> None:
        self.draw = random.Random(seed)
        self.drift = drift
        self.index = Index()
        self.scan = Scan()
        self.live: list[str] = []
        self.names: dict[str, str] = {}

    def run(self, steps: int, checks: int = 40, asks: int = 60) -> None:
        for step in range(steps):
            shift = self.drift * step // steps
            growing = (4 * step // steps) % 2 == 0
            self._change(str(step), growing, shift)
            if step % max(1, steps // checks) == 0:
                self.index._check()
            if step % max(1, steps // asks) == 0:
                self._ask(shift)
        while self.live:
            self.index.discard(self.live.pop())
        self.index._check()

    def _change(self, id: str, growing: bool, shift: int) -> None:
        chance = self.draw.random()
        if not self.live or chance < (0.5 if growing else 0.15):
            filters, names = self.draw.choice(SHAPES)
            bounds = self._bounds(names, shift)
            self.index.add(id, filters, bounds)
            self.scan.add(id, filters, bounds)
            self.live.append(id)
            self.names[id] = names
        elif chance < 0.7:
            id = self.draw.choice(self.live)
            bounds = self._bounds(self.names[id], shift)
            self.index.change(id, bounds)
            self.scan.change(id, bounds)
        elif chance < (0.75 if growing else 0.98):
            at = self.draw.randrange(len(self.live))
            id, self.live[at] = self.live[at], self.live[-1]
            self.live.pop()
            self.index.discard(id)
            self.scan.discard(id)

    def _ask(self, shift: int) -> None:
        events = [self._event(shift) for _ in range(5)]
        batch = self.index.match_batch(Columns.of_events(events))
        for at, event in enumerate(events):
            wanted = self.scan.match(event)
            assert self.index.match(event) == wanted, event
            assert sorted(batch.ids(at)) == sorted(wanted), event

    def _number(self, shift: int) -> float:
        chance = self.draw.random()
        if chance < 0.5:
            return self.draw.randint(0, 1000) + shift
        return self.draw.uniform(0, 1000) + shift if chance < 0.9 else self.draw.choice(ODD)

    def _bounds(self, names: str, shift: int) -> dict[str, object]:
        bounds: dict[str, object] = {name: self._number(shift) for name in names if name != "s"}
        for low, high in (("a", "b"), ("c", "d")):
            if high in bounds and abs(bounds[low]) < 1e6 and self.draw.random() < 0.9:  # type: ignore[arg-type]
                bounds[high] = bounds[low] + self.draw.choice(WIDTHS)  # type: ignore[operator]
        if "s" in names:
            bounds["s"] = self.draw.choice(TEXTS)
        return bounds

    def _event(self, shift: int) -> Event:
        draw = self.draw
        attributes: dict[str, object] = {}
        for name in "xyzwvu":
            if draw.random() < (0.85 if name != "u" else 0.3):
                odd = draw.choice(["a", True, float("nan")])
                attributes[name] = self._number(shift) if draw.random() < 0.95 else odd
        ends = sorted(self._number(shift) for _ in range(4))
        for name, end in zip(("ol", "il", "ir", "xr"), ends, strict=True):
            if draw.random() < 0.95:
                far = {"ol": -float("inf"), "xr": float("inf")}.get(name, "a")
                attributes[name] = end if draw.random() < 0.9 else far
        if draw.random() < 0.9:
            attributes["s"] = draw.choice([*TEXTS, 7])
        return Event(draw.choice(["q", "q", "q", "p"]), attributes)


if __name__ == "__main__":
    Crowd(int(sys.argv[1]), drift=2000 * (int(sys.argv[1]) % 2)).run(int(sys.argv[2]))
