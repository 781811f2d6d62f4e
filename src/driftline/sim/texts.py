"""What may the parties of a run want and offer?

Texts on small numbers: they meet, overlap and cover one another often, and the same few come up in
every run, so each is read once.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import lru_cache

from driftline.language.advertising import advertisement
from driftline.language.sql import parse
from driftline.model.advertisement import Advertisement
from driftline.model.covering import Statement
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.view import View

_REMEMBERED = 4096

_VIEWS = (
    "SELECT MIN(y) FROM t WHERE x BETWEEN :low AND :high",
    "SELECT MAX(y) FROM t WHERE x BETWEEN :low AND :high",
    "SELECT MIN(y) FROM t WHERE x >= :low",
    "SELECT MAX(y) FROM t WHERE x > :low AND x < :high",
    "SELECT MIN(y) FROM t WHERE z = :z AND x <= :high",
    "SELECT MAX(y) FROM t WHERE z = :z",
    "SELECT MIN(y) FROM t",
    "SELECT MIN(y) FROM t WHERE x > :low AND y < :high",
    "SELECT MIN(y) FROM t WHERE x BETWEEN :low AND :high HAVING moved(MIN(y), by => 2)",
    "SELECT COUNT(*), SUM(y), AVG(y) FROM t WHERE x BETWEEN :low AND :high",
    "SELECT COUNT(*) FROM t WHERE x >= :low HAVING moved(COUNT(*), by => 2)",
    "SELECT MIN(y), MAX(x), COUNT(z) FROM t WHERE x < :high",
    "SELECT DISTINCT z FROM t WHERE x >= :low",
    "SELECT DISTINCT y, z FROM t",
    "SELECT t.k, u.w FROM t JOIN u ON t.z = u.z WHERE t.x >= :low",
    "SELECT u.w, t.y FROM u JOIN t ON t.z = u.z AND u.w < :high",
)
_ROWS = (
    "SELECT k, y FROM t WHERE x >= :low",
    "SELECT * FROM t WHERE x < :high OR y IS NULL",
    "SELECT y FROM t WHERE z = :z",
)


@lru_cache(maxsize=_REMEMBERED)
def parsed(text: str) -> Statement:
    """What a text wants."""
    return parse(text)


@lru_cache(maxsize=_REMEMBERED)
def advertised(text: str) -> Advertisement:
    """What a text offers."""
    return advertisement(text)


def condition(draw: random.Random) -> str:
    """A condition on x and y."""
    low = draw.randrange(7)
    shapes = ("x > {low}", "x BETWEEN {low} AND {high}", "x = {low}", "x = {low} OR y = 1")
    rest = draw.choice(("", " AND y = 1", " AND y < 2", ""))
    return f"({draw.choice(shapes).format(low=low, high=low + draw.randrange(4))}){rest}"


def evolving(draw: random.Random) -> str:
    """A condition on x and y that follows time and the environment, with a parameter."""
    slowly = draw.choice(("0.01", "0.001", "-0.01"))
    shapes = (
        "x BETWEEN :low + {slowly} * elapsed() AND :low + 3 + {slowly} * elapsed()",
        "x < :low * env('v')",
        "x < :low * env('v') + {slowly} * elapsed() AND y <= env('v')",
        "(x - :low) * (x - :low) <= 4 * env('v') - {slowly} * elapsed()",
        "x > :low AND y = env('mode')",
        "x = :low OR y < env('v') AND minute(now()) >= 0",
    )
    return draw.choice(shapes).format(slowly=slowly)


def offered(draw: random.Random) -> str:
    """What an advertisement may say of x."""
    low = draw.randrange(7)
    shapes = ("x > {low}", "x BETWEEN {low} AND {high}", "x = {low} OR x = {high}", "x IS NOT NULL")
    return f"({draw.choice(shapes).format(low=low, high=low + draw.randrange(4))})"


def viewed(draw: random.Random) -> View:
    """A view over the tables t and u, whose bounds may be parameters."""
    text = draw.choice((*_VIEWS, *_ROWS))
    return rows_of(text) if text in _ROWS else _view(text)


def rows_of(text: str) -> View:
    """The live set of the rows that a text asks for."""
    rows = parsed(text)
    assert isinstance(rows, Subscription)
    return View.of_rows(rows)


def _view(text: str) -> View:
    view = parsed(text)
    assert isinstance(view, View)
    return view


def bounds(view: View, draw: random.Random) -> dict[str, object]:
    """Parameters for a view."""
    low = draw.randrange(7)
    found = {"low": low, "high": low + draw.randrange(4), "z": draw.randrange(3)}
    return {name: found[name] for name in sorted(view.variables().parameters)}


def row(draw: random.Random) -> Mapping[str, Value]:
    """What a row of t says: numbers mostly; now and then something is missing, or odd."""
    values: dict[str, Value] = {
        "k": draw.randrange(5),
        "x": draw.randrange(8),
        "y": draw.randrange(6),
        "z": draw.randrange(3),
    }
    chance = draw.random()
    if chance < 0.1:
        del values[draw.choice("xyz")]
    elif chance < 0.16:
        values[draw.choice("xy")] = draw.choice(("odd", 1 << 60, (1 << 60) + 1))
    elif chance < 0.2:
        values[draw.choice("xy")] += 0.5  # type: ignore[operator]  # a number
    return values


def other_row(draw: random.Random) -> Mapping[str, Value]:
    """What a row of u says."""
    return {"j": draw.randrange(3), "z": draw.randrange(3), "w": draw.randrange(6)}
