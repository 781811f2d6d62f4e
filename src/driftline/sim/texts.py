"""What may the parties of a run want and offer?

Texts on small numbers: they meet, overlap and cover one another often, and the same few come up in
every run, so each is read once.
"""

from __future__ import annotations

import random
from functools import lru_cache

from driftline.language.advertising import advertisement
from driftline.language.sql import parse
from driftline.model.advertisement import Advertisement
from driftline.model.covering import Statement

_REMEMBERED = 4096


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
