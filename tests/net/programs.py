"""Random programs of subscriptions, moves, advertisements, tables and events, as the simulator has.

A program is a list of steps, each done by a party at some broker. It can be run by anybody who can
subscribe and publish: brokers that are processes, or the engine, which says what must be told.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from driftline.broker.links import Role
from driftline.model.value import Value
from driftline.model.view import ViewKind
from driftline.sim import texts
from driftline.sim.overlay import Overlay
from driftline.sim.texts import bounds, condition, followed, viewed
from driftline.sim.topologies import build

_MOVING = "SELECT * FROM q WHERE x > :low AND y = :y"
_EVOLVING = (
    "SELECT * FROM q WHERE x < :low * env('v')",
    "SELECT * FROM q WHERE x > :low AND y = env('mode')",
)
_PATTERNS = (
    "SELECT * FROM q WHERE x = :a THEN SELECT * FROM q WHERE x = :b",
    "SELECT * FROM q WHERE x > :a THEN SELECT * FROM w WHERE x < :b THEN SELECT * FROM q",
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what is done, at which broker, and to what."""

    does: str
    broker: str
    id: str = ""
    text: str = ""
    values: dict[str, Value] = field(default_factory=dict)
    rows: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """Brokers, what the second of each link is to the first, and steps."""

    seed: int
    topology: str
    brokers: list[str]
    links: list[tuple[str, str, Role]]
    steps: list[Step]


def program(seed: int, topology: str, brokers: int, steps: int) -> Program:
    """A program that a seed says."""
    draw = random.Random(f"{topology} {seed} {brokers}")
    overlay = Overlay()
    build(overlay, topology, brokers, draw)
    names = overlay.names()
    links = []
    for here, there in overlay.links():
        if (there, here) not in [(a, b) for a, b, _ in links]:
            links.append((here, there, overlay.role(here, there)))
    return Program(seed, topology, names, links, [*_steps(draw, names, steps)])


def _steps(draw: random.Random, brokers: list[str], many: int) -> Iterator[Step]:
    # What is joined must have one home.
    home = draw.choice(brokers)
    for table, key in texts.KEYS.items():
        yield Step("declare", home, table, key)
    for name, value in (("v", 2), ("mode", 1)):
        yield Step("observe", "", name, values={"value": value})
    for broker in brokers:
        yield Step("advertise", broker, text="SELECT * FROM q WHERE x IS NOT NULL")
    standing: dict[str, Step] = {}
    n = 0
    while n < many:
        broker, chance = draw.choice(brokers), draw.random()
        if chance < 0.25 or len(standing) < 6:
            step = _wanted(draw, broker, f"s{n}")
            standing[step.id] = step
            yield step
        elif chance < 0.33:
            id = draw.choice([*standing])
            moved = standing[id]
            if moved.values:
                values = {name: draw.randrange(7) for name in moved.values if name != "r"}
                yield Step("set", moved.broker, id, values={**moved.values, **values})
        elif chance < 0.38:
            ended = standing.pop(draw.choice([*standing]))
            yield Step("cancel", ended.broker, ended.id)
        elif chance < 0.42:
            yield Step("observe", "", "v", values={"value": draw.randrange(4)})
        elif chance < 0.46:
            yield Step("delete", broker, draw.choice("t"), values={"key": draw.randrange(5)})
        elif chance < 0.65:
            yield Step("publish", broker, "t", values=dict(texts.row(draw)))
        elif chance < 0.72:
            yield Step("publish", broker, "u", values=dict(texts.other_row(draw)))
        else:
            values = {"x": draw.randrange(8), "y": draw.randrange(3), "n": n}
            yield Step("publish", broker, draw.choice("qqqw"), values=values)
        n += 1


def _wanted(draw: random.Random, broker: str, id: str) -> Step:
    chance = draw.random()
    if chance < 0.25:
        return Step("subscribe", broker, id, f"SELECT * FROM q WHERE {condition(draw)}")
    if chance < 0.45:
        values: dict[str, Value] = {"low": draw.randrange(7), "y": draw.randrange(3)}
        return Step("subscribe", broker, id, _MOVING, values)
    if chance < 0.55:
        text = draw.choice(_EVOLVING)
        return Step("subscribe", broker, id, text, {"low": draw.randrange(7)})
    if chance < 0.7:
        pair: dict[str, Value] = {"a": draw.randrange(4), "b": draw.randrange(4)}
        return Step("subscribe", broker, id, draw.choice(_PATTERNS), pair)
    view = viewed(draw) if chance < 0.9 else followed(draw)
    asked = view.asked()
    given: dict[str, Value] = {
        name: value for name, value in bounds(view, draw).items() if isinstance(value, int | float)
    }
    return Step("subscribe", broker, id, str(asked), given, rows=view.of is ViewKind.ROWS)
