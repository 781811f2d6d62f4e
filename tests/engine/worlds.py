"""What can be done to an engine? Steps drawn at random, and done to several engines alike.

Engines that were treated alike, but for what a test is about, must tell the same.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import driftline as dl
from driftline import Engine, Event, Handle, ManualClock
from driftline.crowd import Crowd
from driftline.errors import DriftlineError
from driftline.sim import texts

PLAIN = [
    "SELECT * FROM t WHERE y < :low",
    "SELECT y FROM t WHERE k = 1 AND y BETWEEN :low AND :high",
    "SELECT k, y + :low AS moved FROM t WHERE k IN (1, :z)",
    "SELECT * WHERE y > 3 - elapsed() OR x LIKE 'b%'",
    "SELECT * WHERE y < :low * env('v')",
    "SELECT y FROM t WHERE y < :low * env('v') + 0.5 * elapsed() AND z = :z",
    "SELECT y FROM t WHERE (y - :low) * (y - :low) <= 4 * env('v') - 0.1 * elapsed()",
    "SELECT * FROM m WHERE v > :low AND v = env('v')",
]
SWARMS = [
    "SELECT y FROM t WHERE y < :low + 0.5 * elapsed()",
    "SELECT * FROM t WHERE y < :low * env('v') - 0.1 * elapsed()",
]
"""What so many ask for that arrays, and versions in an index, are worth it."""
PATTERNS = [
    "SELECT * FROM t WHERE y > :low THEN SELECT v FROM m",
    "SELECT * FROM t THEN SELECT * FROM t WHERE y < 3 WITHIN 3",
    "SELECT * THEN SELECT * FROM m THEN SELECT * WHERE v > 2 WITHIN 5",
]
ROWS = [
    "SELECT k, y FROM t WHERE x >= :low",
    "SELECT * FROM t WHERE x < :high OR y IS NULL",
    "SELECT y FROM t WHERE z = :z",
    "SELECT k FROM t WHERE elapsed() > x",
    "SELECT k, x FROM t WHERE x < :low + 0.5 * elapsed() AND z = 1",
    "SELECT k FROM t WHERE x < :low * env('v')",
]
CROWDS = [
    "SELECT k, y FROM t WHERE k = 1 AND moved(y, by => :r)",
    "SELECT y FROM t WHERE k = 1 AND x >= 3 AND moved(y, by => :r, strict => TRUE)",
    "SELECT y, x FROM t WHERE k = 2 AND moved(y, percent => :r)",
    "SELECT y FROM t WHERE k = 1 AND moved(y, by => :r, shared => TRUE)",
]
RANGES = [
    "SELECT MIN(y) FROM t WHERE x BETWEEN :low AND :high",
    "SELECT MAX(y) FROM t WHERE x BETWEEN :low AND :high",
    "SELECT MAX(y) FROM t WHERE x > :low AND x < :high",
    "SELECT MIN(y) AS least FROM t WHERE x >= :low",
    "SELECT MIN(y) FROM t WHERE x < :high HAVING moved(MIN(y), by => :r)",
    "SELECT MIN(y) FROM t",
]
LARGE = [1 << 60, (1 << 60) + 1]
"""One float to a compiled index, so that the definition must tell them apart."""
CHANGED = ["silent", "reevaluate", "follow"]


@dataclass
class World:
    """An engine, its clock, and what its subscribers hold, which go by numbers of their own."""

    clock: ManualClock
    engine: Engine
    handles: dict[int, Handle] = field(default_factory=dict)
    crowds: dict[int, Crowd] = field(default_factory=dict)

    @classmethod
    def new(cls, matcher: str = "auto", evolving: str = "adaptive", few: bool = False) -> World:
        """With tables; where followers are `few` for a structure, and labels many, they are not."""
        clock = ManualClock()
        engine = Engine(clock=clock, matcher=matcher, evolving=evolving)
        home = engine._broker.tables.home
        home.many, home.label_bits = (64, 40) if few else (2, 4)
        engine.table("t", key="k")
        engine.table("u", key="j")
        return cls(clock, engine)

    def do(self, step: Step) -> object:
        """Do one step: what it gave, or how it was refused."""
        try:
            return getattr(self, step.name)(*step.given)
        except DriftlineError as refused:
            return type(refused), str(refused)

    def subscribe(self, number: int, text: str, params: dict, **how: object) -> None:
        self.handles[number] = self.engine.subscribe(text, params, **how)

    def subscribe_rows(self, number: int, text: str, params: dict, on_change: str) -> None:
        self.subscribe(number, text, params, rows=True, on_change=on_change)

    def subscribe_as(self, number: int, text: str, params: dict, party: str) -> None:
        self.subscribe(number, text, params, party=party)

    def subscribe_many(self, numbers: list[int], text: str, params: list[dict]) -> None:
        for number, some in zip(numbers, params, strict=True):
            self.subscribe(number, text, some)

    def gather(self, number: int, text: str, radii: list[float]) -> None:
        self.crowds[number] = self.engine.crowd(text, {"r": radii})

    def join(self, number: int, radii: list[float]) -> list[int]:
        return self.crowds[number].add(r=radii).tolist()

    def leave(self, number: int, members: list[int]) -> None:
        self.crowds[number].remove(members)

    def resize(self, number: int, members: list[int], radii: list[float]) -> int:
        return self.crowds[number].set(members, r=radii)

    def set(self, number: int, params: dict) -> int:
        return self.handles[number].set(**params)

    def cancel(self, number: int) -> None:
        self.handles.pop(number).cancel()

    def disperse(self, number: int) -> None:
        self.crowds.pop(number).cancel()

    def publish(self, event: Event) -> int:
        return self.engine.publish(event)

    def publish_many(self, type: str, columns: dict) -> int:
        return self.engine.publish_many(type, columns)

    def delete(self, table: str, key: int) -> bool:
        return self.engine.delete(table, key)

    def observe(self, value: float | None) -> None:
        self.engine.set_env("v", value)

    def advance(self, us: int) -> int:
        self.clock.advance(us=us)
        return self.engine.wake()

    def suspend(self, party: str) -> None:
        self.engine.suspend(party)

    def resume(self, party: str) -> None:
        self.engine.resume(party)

    def told(self) -> dict[int, list[object]]:
        """All that was told since this was asked last, by whom."""
        found: dict[int, list[object]] = {
            number: list(handle.pending()) for number, handle in self.handles.items()
        }
        for number, crowd in self.crowds.items():
            found[number] = [
                (one.kind, one.values, sorted(one.members.tolist()), one.time, one.event)
                for one in crowd.pending()
            ]
        return found


@dataclass(frozen=True)
class Step:
    """What is done, to any world."""

    name: str
    given: tuple[object, ...]


class Steps:
    """Draws what comes next, from what a world is like that all others are like."""

    def __init__(self, seed: int, views: list[str] | None = None) -> None:
        """`views`: nobody asks for anything else, and all of it is about t."""
        self.draw = random.Random(seed)
        self.views = views
        self.numbers = 0
        # Few rows, or so many that a structure is worth it.
        self.keys = self.draw.choice([5, 80])
        self.begins = [self.plain, self.view, self.view, self.followed, self.rows, self.gather]
        self.begins += [self.swarm]
        self.goes_on = [self.publish] * 8 + [self.publish_many, self.advance]
        self.goes_on += [self.set, self.set, self.cancel, self.observe, self.delete]
        self.goes_on += [self.join, self.leave, self.resize, self.suspend, self.resume]
        if views is not None:
            self.begins = [self.view] * 5 + [self.gather]
            self.goes_on = [self.publish_many] * 6 + [self.publish, self.set, self.cancel]
            self.goes_on += [self.advance, self.delete, self.join, self.leave]

    def next(self, world: World) -> Step:
        few = len(world.handles) + len(world.crowds) < 50
        begins = few and self.draw.random() < 0.3
        step = self.draw.choice(self.begins if begins else self.goes_on)(world)
        return Step("advance", (0,)) if step is None else step

    # What is drawn.

    def params(self, names: frozenset[str]) -> dict:
        draw = self.draw
        low, r = draw.randrange(7), draw.choice([0.5, 1, 2, 2.5])
        if draw.random() < 0.05:
            low = draw.choice(LARGE)
        of = {"low": low, "high": low + draw.randrange(4), "z": draw.randrange(3), "r": r}
        of |= {"s": r + draw.randrange(3), "p": draw.choice([10, 40]), "f": draw.choice([1.1, 2])}
        return {name: of[name] for name in sorted(names)}

    def row(self, table: str) -> dict:
        draw = self.draw
        if table == "u":
            return {"j": draw.randrange(3), "w": draw.randrange(6), "z": draw.randrange(3)}
        if table == "m":
            return {"v": draw.randrange(7), "x": draw.randrange(7), "y": draw.randrange(7)}
        row = {"k": draw.randrange(self.keys), "x": draw.randrange(8), "z": draw.randrange(3)}
        row["y"] = draw.choice([draw.randrange(9), draw.randrange(90) / 10])
        chance = draw.random()
        if chance < 0.1:
            del row[draw.choice("xyz")]
        elif chance < (0.15 if self.views is None else 0.101):
            row[draw.choice("xyz")] = draw.choice(LARGE)
        return row

    def radii(self, count: int) -> list[float]:
        return [self.draw.choice([0.5, 1.0, 1.0, 2.0, 3.5]) for _ in range(count)]

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def members(self, world: World) -> tuple[int, list[int]] | None:
        if not world.crowds:
            return None
        number = self.draw.choice([*world.crowds])
        held = [*world.crowds[number]]
        return number, self.draw.sample(held, self.draw.randrange(len(held) + 1))

    # Beginnings.

    def subscribed(self, text: str) -> Step:
        params = self.params(dl.parse(text).variables().parameters)
        party = self.draw.choice(["", "p"])
        return Step("subscribe_as", (self.number(), text, params, party))

    def plain(self, world: World) -> Step:
        return self.subscribed(self.draw.choice(PLAIN + PATTERNS))

    def view(self, world: World) -> Step:
        return self.subscribed(self.draw.choice(self.views or texts._VIEWS))

    def followed(self, world: World) -> Step:
        text = self.draw.choice(texts._FOLLOWED)
        return self.subscribed(text.format(k=self.draw.randrange(3), j=self.draw.randrange(3)))

    def swarm(self, world: World) -> Step:
        numbers = [self.number() for _ in range(20)]
        params = [self.params(frozenset({"low"})) for _ in numbers]
        return Step("subscribe_many", (numbers, self.draw.choice(SWARMS), params))

    def rows(self, world: World) -> Step:
        text = self.draw.choice(ROWS)
        params = self.params(dl.parse(text).variables().parameters)
        on_change = self.draw.choice(CHANGED)
        return Step("subscribe_rows", (self.number(), text, params, on_change))

    def gather(self, world: World) -> Step:
        radii = self.radii(self.draw.randrange(30))
        return Step("gather", (self.number(), self.draw.choice(CROWDS), radii))

    # What goes on.

    def publish(self, world: World) -> Step:
        type = self.draw.choice("ttttum") if self.views is None else "t"
        return Step("publish", (Event(type, self.row(type)),))

    def publish_many(self, world: World) -> Step:
        type = self.draw.choice("ttttum") if self.views is None else "t"
        rows = [self.row(type) for _ in range(self.draw.randrange(30))]
        if self.draw.random() < 0.4:
            # Columns of integers, which stay integers.
            rows = [{name: int(value) for name, value in row.items()} for row in rows]
        if rows and self.draw.random() < 0.05:
            # One that is refused, if it is of a table.
            self.draw.choice(rows)["kj"["tu".find(type)]] = None
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
        return Step("publish_many", (type, columns))

    def delete(self, world: World) -> Step:
        return Step("delete", ("t", self.draw.randrange(self.keys)))

    def observe(self, world: World) -> Step:
        return Step("observe", (self.draw.choice([None, 0, 0.5, 1]),))

    def advance(self, world: World) -> Step:
        return Step("advance", (self.draw.randrange(3_000_000),))

    def suspend(self, world: World) -> Step:
        return Step("suspend", ("p",))

    def resume(self, world: World) -> Step:
        return Step("resume", ("p",))

    def set(self, world: World) -> Step | None:
        if not world.handles:
            return None
        number = self.draw.choice([*world.handles])
        params = self.params(frozenset(world.handles[number].params))
        return Step("set", (number, params))

    def cancel(self, world: World) -> Step | None:
        if world.crowds and self.draw.random() < 0.3:
            return Step("disperse", (self.draw.choice([*world.crowds]),))
        if not world.handles:
            return None
        return Step("cancel", (self.draw.choice([*world.handles]),))

    def join(self, world: World) -> Step | None:
        some = self.members(world)
        return some and Step("join", (some[0], self.radii(self.draw.randrange(9))))

    def leave(self, world: World) -> Step | None:
        some = self.members(world)
        return some and Step("leave", some)

    def resize(self, world: World) -> Step | None:
        some = self.members(world)
        return some and Step("resize", (*some, self.radii(len(some[1]))))
