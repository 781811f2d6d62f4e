"""How far does a change of a tuple reach, and what does it expose? [DBNET §2.4.1]

The paper's definitions, by going through a set of points, and its messages made from them: for
updates of y alone, where an insert comes from y = +inf and a delete goes there [§3.1.3]. `rule`
gives the same messages without classifying anything, and is what the structures follow.

We differ, where the paper's text does not hold:
- Points are reduced to the least y at each x: two equal ones would keep each other out of a hull.
- A hull has only points below its peak (Definition 2 asks only that nearer ones be higher, so a
  point above the peak would be told as a minimum).
- Corollary 1's Mar(t) is that of the update. It is that of the lower of both y, which reaches
  further; and an update from y to the same y is ignorable, whatever its Mar.
- EMar is defined by the footnotes of §3.1.2; "the last point in LHull" is the nearest to x0, and
  where no hull point ends it, it goes as far as Mar.
- A peak at infinity is told too: the result has become NULL.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from dataclasses import dataclass

from driftline.stateful.range_min.change import Change
from driftline.stateful.range_min.structure import Point

Span = tuple[float, float]


class Kind(enum.Enum):
    """What an update of y is good for [DBNET Corollary 1]."""

    IGNORABLE = "affects nobody"
    GOOD = "everybody affected gets the new y"
    BAD = "exposes other minima"


def lowest(points: Iterable[Point]) -> list[Point]:
    """The least y at each x, by x."""
    least: dict[float, float] = {}
    for x, y in points:
        least[x] = min(y, least.get(x, math.inf))
    return sorted(least.items())


def mar(points: Iterable[Point], x: float, y: float) -> Span | None:
    """The largest open range around x without a point of at most y; None if one is at x [Def. 1].

    >>> mar([(20, 3), (30, 8), (100, 2)], 50, 5)
    (20, 100)
    """
    low = [at for at, least in points if least <= y]
    if x in low:
        return None
    left = max((at for at in low if at < x), default=-math.inf)
    right = min((at for at in low if at > x), default=math.inf)
    return left, right


def classify(others: list[Point], x: float, old: float, new: float) -> Kind:
    """The kind of an update, given all tuples but the one that is updated [Corollary 1]."""
    reach = mar(others, x, min(old, new))
    if old == new or reach is None:
        return Kind.IGNORABLE
    # Mar shrinks as y grows: that of the old y is inside that of the new one, or goes beyond it.
    return Kind.GOOD if mar(others, x, new) == reach else Kind.BAD


@dataclass(frozen=True, slots=True)
class Hull:
    """What shows when a point is taken away; each side from the nearest to the farthest."""

    peak: Point
    left: tuple[Point, ...]
    right: tuple[Point, ...]


def hull(points: Iterable[Point], x: float, y: float) -> Hull | None:
    """The upper hull of a point that is not among the points; None where its Mar is [Def. 2].

    >>> hull([(20, 3), (30, 8), (40, 12), (50, 9), (70, 6), (100, 2)], 50, 5)
    Hull(peak=(50, 9), left=((30, 8),), right=((70, 6),))
    """
    points = lowest(points)
    reach = mar(points, x, y)
    if reach is None:
        return None
    peak = dict(points).get(x, math.inf)
    left = [point for point in points if reach[0] < point[0] < x]
    right = [point for point in points if x < point[0] < reach[1]]
    return Hull((x, peak), _skyline(left[::-1], peak), _skyline(right, peak))


def _skyline(points: list[Point], peak: float) -> tuple[Point, ...]:
    """Those that are lower than the peak and than all before them."""
    return tuple(
        (x, y)
        for at, (x, y) in enumerate(points)
        if y < peak and all(y < before for _, before in points[:at])
    )


def emar(points: Iterable[Point], x: float, point: Point) -> Span:
    """Within which range do those lie that get the y of this hull point, seen from x? [§3.1.2]

    As far as there is nothing less. Where two points, left and right of x, have the same y, those
    that contain both are told by the left one only: hence the asymmetry.
    """
    points = list(points)
    at, y = point
    least_left, least_right = min(at, x), max(at, x)
    stops = [there for there, other in points if other < y or (other == y and there < x < at)]
    left = max((there for there in stops if there < least_left), default=-math.inf)
    right = min((there for there in stops if there > least_right), default=math.inf)
    return left, right


def messages(others: list[Point], x: float, old: float, new: float) -> list[Change]:
    """What an update of y is reformulated into, given all other tuples [§2.4.1]."""
    kind = classify(others, x, old, new)
    if kind is Kind.IGNORABLE:
        return []
    if kind is Kind.GOOD:
        reach = mar(others, x, new)
        assert reach is not None
        return [_message(new, x, x, reach)]
    after = others if math.isinf(new) else [*others, (x, new)]
    shown = hull(after, x, old)
    assert shown is not None
    return [
        _message(y, min(x, at), max(x, at), emar(after, x, (at, y)))
        for at, y in (shown.peak, *shown.left, *shown.right)
    ]


def _message(y: float, inner_left: float, inner_right: float, outer: Span) -> Change:
    return Change(None if math.isinf(y) else y, inner_left, inner_right, *outer)
