"""What does W4 mix?

Every event has a symbol and a price; it lacks each of `name`, `venue` and `volume` in half of the
cases. Half of the filters are those of W2, the other half use what is awkward: attributes that are
missing, strings, inequality, presence and absence, a disjunction. Some name no symbol at all. About
one filter in 4,000 matches.

    share  kind       condition
     50 %  band       symbol = s AND price in 0.0056
      9 %  volume     volume in 0.04 AND price in 0.04
      6 %  venue      venue = v AND price in 0.0056
      6 %  basket     venue IN (v, w, z) AND price in 0.0056
      6 %  prefix     symbol = s AND price in 0.1 AND name LIKE 'a%'
      5 %  suffix     symbol = s AND price in 0.1 AND name LIKE '%a'
      4 %  substring  symbol = s AND price in 0.1 AND name LIKE '%ab%'
      5 %  unequal    symbol = s AND price in 0.0056 AND venue != v
      3 %  present    symbol = s AND price in 0.0056 AND volume IS NOT NULL
      3 %  absent     symbol = s AND price in 0.0056 AND venue IS NULL
      3 %  either     symbol = s AND price < x OR symbol = t AND price > y, each 0.0056 at most

Each kind of pattern comes in at most `PATTERNS` different ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.model.constraint import Operator
from driftline.workload.draws import (
    GRID,
    NARROW,
    SYMBOLS,
    band,
    chosen,
    coded,
    letters,
    names,
    quotes,
    ranges,
)
from driftline.workload.prepared import Group, Test, between

VENUES = tuple(f"V{at:02}" for at in range(40))
PATTERNS = 100
MISSING = 0.5

_Numbers = NDArray[np.int32]
_WIDE = GRID // 10
_MIDDLE = GRID // 25


def _volume(draw: np.random.Generator, numbers: _Numbers) -> Group:
    operands = {}
    operands["lo"], operands["hi"] = ranges(draw, len(numbers), _MIDDLE)
    operands["least"], operands["most"] = ranges(draw, len(numbers), _MIDDLE)
    tests = (*between("price"), *between("volume", "least", "most"))
    return Group("quote", (tests,), numbers, operands)


def _venue(draw: np.random.Generator, numbers: _Numbers) -> Group:
    low, high = ranges(draw, len(numbers), NARROW)
    operands = {"v": chosen(draw, VENUES, len(numbers)), "lo": low, "hi": high}
    return Group(
        "quote", ((Test("venue", Operator.EQ, ("v",)), *between("price")),), numbers, operands
    )


def _basket(draw: np.random.Generator, numbers: _Numbers) -> Group:
    operands = {name: chosen(draw, VENUES, len(numbers)) for name in ("v", "w", "z")}
    operands["lo"], operands["hi"] = ranges(draw, len(numbers), NARROW)
    tests = (Test("venue", Operator.IN, ("v", "w", "z")), *between("price"))
    return Group("quote", (tests,), numbers, operands)


def _pattern(operator: Operator, length: int) -> Callable[[np.random.Generator, _Numbers], Group]:
    def draw_group(draw: np.random.Generator, numbers: _Numbers) -> Group:
        texts = letters(draw, PATTERNS, length)[draw.integers(0, PATTERNS, len(numbers))]
        patterns = pa.array(texts, pa.string())
        test = Test("name", operator, ("pattern",))
        return _and(band(draw, numbers, _WIDE), test, pattern=patterns)

    return draw_group


def _unequal(draw: np.random.Generator, numbers: _Numbers) -> Group:
    test = Test("venue", Operator.NE, ("v",))
    return _and(band(draw, numbers), test, v=chosen(draw, VENUES, len(numbers)))


def _present(draw: np.random.Generator, numbers: _Numbers) -> Group:
    return _and(band(draw, numbers), Test("volume", Operator.EXISTS))


def _absent(draw: np.random.Generator, numbers: _Numbers) -> Group:
    return _and(band(draw, numbers), Test("venue", Operator.ABSENT))


def _either(draw: np.random.Generator, numbers: _Numbers) -> Group:
    operands = {
        "s": chosen(draw, SYMBOLS, len(numbers)),
        "x": draw.integers(1, NARROW, len(numbers)),
        "t": chosen(draw, SYMBOLS, len(numbers)),
        "y": GRID - 1 - draw.integers(1, NARROW, len(numbers)),
    }
    below = (Test("symbol", Operator.EQ, ("s",)), Test("price", Operator.LT, ("x",)))
    above = (Test("symbol", Operator.EQ, ("t",)), Test("price", Operator.GT, ("y",)))
    return Group("quote", (below, above), numbers, operands)


def _and(group: Group, test: Test, **operands: object) -> Group:
    (tests,) = group.alternatives
    return Group(group.type, ((*tests, test),), group.numbers, {**group.operands, **operands})


_MIX: tuple[tuple[float, Callable[[np.random.Generator, _Numbers], Group]], ...] = (
    (0.50, band),
    (0.09, _volume),
    (0.06, _venue),
    (0.06, _basket),
    (0.06, _pattern(Operator.PREFIX, 1)),
    (0.05, _pattern(Operator.SUFFIX, 1)),
    (0.04, _pattern(Operator.SUBSTRING, 2)),
    (0.05, _unequal),
    (0.03, _present),
    (0.03, _absent),
    (0.03, _either),
)


def groups(draw: np.random.Generator, count: int) -> list[Group]:
    """So many filters of the mix, one group for each kind that occurs."""
    kinds = draw.choice(len(_MIX), count, p=[share for share, _ in _MIX])
    drawn = []
    for at, (_, kind) in enumerate(_MIX):
        numbers = np.flatnonzero(kinds == at).astype(np.int32)
        if len(numbers):
            drawn.append(kind(draw, numbers))
    return drawn


def events(draw: np.random.Generator, count: int) -> pa.RecordBatch:
    """So many events of the mix; what is missing is null."""
    volume = pa.array(draw.integers(0, GRID, count), mask=draw.random(count) < MISSING)
    return (
        quotes(draw, count)
        .append_column("name", names(draw, count, MISSING))
        .append_column("venue", coded(draw, VENUES, count, MISSING))
        .append_column("volume", volume)
    )
