"""Who moves, and what happens around them? A game and a market [EVOLVE VI].

*game*: characters walk straight on for 10 s, each in a direction and at a speed of its own, and
want what happens in the 6 by 4 rectangle around them, which shrinks when visibility does. The world
has room for so many characters that an event concerns about two of them. Some may stand still.

*market*: investors want quotes of one of 500 stocks in a narrow range of prices that drifts, and
think again every 60 s.

Time goes in ticks: first some think again and the environment may change, then events come. Whoever
thinks again begins at that time, with other values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from random import Random

from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.subscription import Subscription
from driftline.model.value import Value

SEED = 1
SECOND = 1_000_000
LEG = 10
"""A character walks straight on for so many seconds."""
STAY = 60
"""An investor's range drifts the same way for so many seconds."""
SYMBOLS = 500

_WORLD_PER_CHARACTER = 12.0
_TICKS = 10
"""A second, or more if the environment changes more often."""

_MOVING = (
    "SELECT * FROM seen WHERE "
    "x >= :x + (-3 + :dx * elapsed()) * env('visibility') AND "
    "x <= :x + (3 + :dx * elapsed()) * env('visibility') AND "
    "y >= :y + (-2 + :dy * elapsed()) * env('visibility') AND "
    "y <= :y + (2 + :dy * elapsed()) * env('visibility')"
)
_STILL = "SELECT * FROM seen WHERE x >= :x - 3 AND x <= :x + 3 AND y >= :y - 2 AND y <= :y + 2"
_DRIFTING = (
    "SELECT * FROM quote WHERE symbol = :s AND "
    "price >= :low + :d * elapsed() AND price <= :low + 0.5 + :d * elapsed()"
)


@dataclass(frozen=True, slots=True)
class Scene:
    """How much of everything."""

    kind: str = "game"
    subscriptions: int = 10_000
    rate: int = 100
    """Events a second."""
    changes: int = 0
    """Of the environment, a second."""
    share: int = 100
    """Percent of the subscriptions that evolve."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A subscription, or what has become of it."""

    id: str
    statement: Subscription
    params: dict[str, Value]
    start: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Some think again, the environment is this, and then events come."""

    at: int
    again: list[Wanted]
    env: dict[str, Value]
    events: list[Event]


def begun(scene: Scene) -> list[Wanted]:
    """What is wanted at first."""
    draw = Random(SEED)
    make = _character if scene.kind == "game" else _investor
    return [make(draw, scene, at, 0) for at in range(scene.subscriptions)]


def ticks(scene: Scene) -> Iterator[Tick]:
    """What happens then, without an end; the first tick is a second after the beginning."""
    draw = Random(SEED + 1)
    make = _character if scene.kind == "game" else _investor
    lasts = (LEG if scene.kind == "game" else STAY) * _TICKS
    parts = max(1, scene.changes // _TICKS)
    each_second = _TICKS * parts
    env: dict[str, Value] = {"visibility": 1.0}
    for number in count():
        at = SECOND + number * SECOND // each_second
        again = []
        if number % parts == 0:
            some = range(number // parts % lasts, scene.subscriptions, lasts)
            again = [make(draw, scene, one, at) for one in some if _evolves(scene, one)]
        if _due(scene.changes, number, each_second):
            env = {"visibility": draw.uniform(0.5, 1.0)}
        due = range(_due(scene.rate, number, each_second))
        stamps = sorted(at + draw.randrange(SECOND // each_second) for _ in due)
        yield Tick(at, again, env, [_event(draw, scene, stamp) for stamp in stamps])


def _due(rate: int, number: int, each_second: int) -> int:
    """How many of so many a second come in a tick."""
    return rate * (number + 1) // each_second - rate * number // each_second


def _evolves(scene: Scene, at: int) -> bool:
    # Mixed, so that of those who think again at the same time as many evolve.
    return at * 7919 // 100 % 100 < scene.share


def _side(scene: Scene) -> float:
    return float((scene.subscriptions * _WORLD_PER_CHARACTER) ** 0.5)


def _character(draw: Random, scene: Scene, at: int, start: int) -> Wanted:
    # It goes on from somewhere: where a walk has led does not matter to what a broker does.
    side = _side(scene)
    params: dict[str, Value] = {"x": draw.uniform(0, side), "y": draw.uniform(0, side)}
    if not _evolves(scene, at):
        return Wanted(str(at), _parsed(_STILL), params, start)
    params |= {"dx": draw.uniform(-1, 1), "dy": draw.uniform(-1, 1)}
    return Wanted(str(at), _parsed(_MOVING), params, start)


def _investor(draw: Random, scene: Scene, at: int, start: int) -> Wanted:
    params: dict[str, Value] = {
        "s": f"S{at % SYMBOLS:03}",
        "low": draw.uniform(0, 10),
        "d": draw.uniform(-0.02, 0.02),
    }
    return Wanted(str(at), _parsed(_DRIFTING), params, start)


def _event(draw: Random, scene: Scene, at: int) -> Event:
    if scene.kind == "game":
        side = _side(scene)
        return Event("seen", {"x": draw.uniform(0, side), "y": draw.uniform(0, side)}).stamped(at)
    symbol = f"S{draw.randrange(SYMBOLS):03}"
    return Event("quote", {"symbol": symbol, "price": draw.uniform(0, 10)}).stamped(at)


@lru_cache
def _parsed(text: str) -> Subscription:
    statement = parse(text)
    assert isinstance(statement, Subscription)
    return statement
