"""Does a widened filter take in the moving one, wherever its variables are?"""

from __future__ import annotations

import random

import pytest

from driftline import Event, parse
from driftline.model.scope import Scope
from driftline.moving.hull import span_of, widened

TEXTS = [
    "x < :p",
    "x <= :p + :q",
    "x > :p * :q - 3",
    "x >= :p / (:q + 20)",
    "x = :p",
    "x = -(:p) * 2",
    "x != :p",
    "x IN (:p, :q)",
    "x BETWEEN :p AND :q",
    "x < :p / :q",
    "x + y < :p AND y > :q",
    "NOT (x < :p OR y = :q)",
    "x < :p AND s = 'a' AND abs(y) < :q",
]
NUMBERS = [-5, -1, 0, 1, 2, 3.5, 7, 2**53, 2**53 + 1, -(2.0**53), 0.1, 0.30000000000000004]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("seed", range(15))
def test_what_satisfies_the_moving_filter_satisfies_the_widened_one(text: str, seed: int) -> None:
    draw = random.Random(f"{text} {seed}")
    for one in parse(f"SELECT * WHERE {text}").filters():
        ends = {name: sorted(draw.choices(NUMBERS, k=2)) for name in "pq"}
        wide = widened(one, {name: (low, high) for name, (low, high) in ends.items()})
        for _ in range(60):
            params = {name: _within(draw, *ends[name]) for name in "pq"}
            near = [*NUMBERS, *params.values(), params["p"] + params["q"]]
            event = Event("q", {"x": draw.choice(near), "y": draw.choice(near), "s": "a"})
            inside = all(ends[name][0] <= params[name] <= ends[name][1] for name in "pq")
            if inside and one.bound(params).matches(Scope(event)):
                assert wide.matches(Scope(event)), (params, event, str(wide))


def _within(draw: random.Random, low: float, high: float) -> float:
    inside = [number for number in NUMBERS if low <= number <= high]
    return draw.choice([low, high, low + (high - low) * draw.random(), *inside])


def test_a_filter_that_does_not_move_is_not_widened() -> None:
    (one,) = parse("SELECT * FROM q WHERE x < :p AND s = :t AND y + x < :p").filters()
    assert widened(one, {"p": (3, 3), "t": ("a", "a")}) == one.bound({"p": 3, "t": "a"})


def test_where_nothing_can_be_said_everything_passes() -> None:
    (one,) = parse("SELECT * FROM q WHERE x < sqrt(:p) AND y = 1").filters()
    assert str(widened(one, {"p": (1, 4)})) == "q: y = 1"
    (one,) = parse("SELECT * FROM q WHERE x < 1 / :p").filters()
    assert str(widened(one, {"p": (-1, 1)})) == "q: TRUE"
    (one,) = parse("SELECT * FROM q WHERE x < :p").filters()
    assert span_of(one.constraints[0].operand, {}) is None
