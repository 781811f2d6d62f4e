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
from driftline.model.view import View, ViewKind

_REMEMBERED = 4096

KEYS = {"t": "k", "u": "j"}
"""The tables, and their keys."""
CROWDED = 1
"""The key of the row of t that most follow."""
NO_TABLE = "m"
"""A type whose events are no rows."""

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
_FOLLOWED = (
    "SELECT k, y FROM t WHERE k = {k} AND moved(y, by => :r)",
    "SELECT k, y FROM t WHERE moved(y, by => :r)",
    "SELECT y, x FROM t WHERE k = {k} AND x >= 3 AND moved(y, by => :r)",
    "SELECT k, y FROM t WHERE x < 5 AND moved(y, by => 2)",
    "SELECT k, y FROM t WHERE x < 5 AND moved(y, by => :r, strict => TRUE)",
    "SELECT k, y FROM t WHERE k = {k} AND moved(y, percent => :p)",
    "SELECT k, y FROM t WHERE z > 0 AND moved(y, factor => :f)",
    "SELECT k, y FROM t WHERE k = {k} AND moved(y, by => 3, shared => TRUE)",
    "SELECT k, y FROM t WHERE moved(y, by => 3, shared => TRUE)",
    "SELECT k, y FROM t WHERE k = {k} AND moved(y, may => :r, must => :s)",
    "SELECT k, y FROM t WHERE moved(y, may => :r, must => :s)",
    "SELECT k, y FROM t WHERE z = 1 AND moved(y, may => 1, must => 2)",
    "SELECT k, y FROM t WHERE x >= :low AND moved(y, by => :r)",
    "SELECT k, y FROM t WHERE k = {k} AND z = :z AND moved(y, by => 2)",
    "SELECT k, y FROM t WHERE x >= :low AND moved(y, may => :r, must => :s)",
    "SELECT k, y FROM t WHERE crossed(y, above => 4, clear => 2)",
    "SELECT k, y FROM t WHERE k = {k} AND crossed(y, below => :low, clear => :high)",
    "SELECT k, y FROM t WHERE x >= :z AND crossed(y, above => :high, clear => :low)",
    "SELECT j, w FROM u WHERE moved(w, by => :r)",
    "SELECT j, w FROM u WHERE j = {j} AND z < 2 AND moved(w, by => 2)",
    "SELECT j, w FROM u WHERE crossed(w, above => 3, clear => 1)",
    "SELECT v FROM m WHERE moved(v, by => :r)",
    "SELECT v, x FROM m WHERE x > :low AND moved(v, by => 2)",
    "SELECT v FROM m WHERE moved(v, may => :r, must => :s)",
    "SELECT v WHERE v < 6 AND crossed(v, above => 4, clear => 2)",
)
_CROWD = "SELECT k, y FROM t WHERE k = {k} AND moved(y, by => {r})"
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


def followed(draw: random.Random) -> View:
    """What moved or crossed, over a table or over a type that is none."""
    text = draw.choice(_FOLLOWED)
    return _moved(text.format(k=draw.randrange(5), j=draw.randrange(3)))


def crowded(draw: random.Random) -> View:
    """What moved, as so many ask for it that their places become scarce."""
    return _moved(_CROWD.format(k=CROWDED, r=draw.choice((2, 6, 6, 6))))


def _moved(text: str) -> View:
    asked = parsed(text)
    assert isinstance(asked, Subscription)
    return View.of_change(asked)


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
    found: dict[str, object] = {
        "low": low,
        "high": low + draw.randrange(4),
        "z": draw.randrange(3),
    }
    if view.of is ViewKind.MOVED:
        found |= _radii(draw)
    return {name: found[name] for name in sorted(view.variables().parameters)}


def _radii(draw: random.Random) -> dict[str, object]:
    may = draw.choice((0.5, 1, 2, 3))
    return {
        "r": may,
        "s": may + draw.choice((0, 0.5, 1, 2)),
        "p": draw.choice((25, 50, 100)),
        "f": draw.choice((1.5, 2)),
    }


def crowded_row(y: float, draw: random.Random) -> Mapping[str, Value]:
    """The row that most follow, at some value."""
    return {"k": CROWDED, "x": draw.randrange(8), "y": y, "z": draw.randrange(3)}


def event(draw: random.Random) -> Mapping[str, Value]:
    """What an event says that is no row."""
    values: dict[str, Value] = {"v": draw.randrange(7), "x": draw.randrange(4)}
    if draw.random() < 0.1:
        values["v"] = "odd"
    return values


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
