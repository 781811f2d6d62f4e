"""Which functions may an expression call, and what do they give?

A function sees only known values; an `Unknown` argument makes the call unknown before it is
called (`coalesce` alone looks past unknowns, and is an expression of its own). A function that
has no answer returns an `Unknown` with its own reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from driftline.model.truth import Outcome, Unknown
from driftline.model.value import INTEGER_MAX, Kind, Value, compare, kind_of


def _absolute(x: int | float) -> Outcome:
    if x == -INTEGER_MAX - 1 and isinstance(x, int):
        return Unknown("abs", "overflows 64 bits")
    return abs(x)


def _square_root(x: int | float) -> Outcome:
    return math.sqrt(x) if x >= 0 else Unknown("sqrt", "of a negative number")


def _floor(x: int | float) -> Outcome:
    return x if isinstance(x, int) or math.isinf(x) else float(math.floor(x))


def _ceil(x: int | float) -> Outcome:
    return x if isinstance(x, int) or math.isinf(x) else float(math.ceil(x))


def _least(*values: Value) -> Outcome:
    return _extreme(values, -1)


def _greatest(*values: Value) -> Outcome:
    return _extreme(values, 1)


def _extreme(values: tuple[Value, ...], sign: int) -> Outcome:
    """The first of the values than which no other is further in the direction of `sign`."""
    best = values[0]
    for value in values[1:]:
        order = compare(value, best)
        if order is None:
            return Unknown("min/max", "of values that do not compare")
        if order == sign:
            best = value
    return best


def is_zone(name: str) -> bool:
    """Is it the name of a time zone, such as `Europe/Berlin`, and the same on every machine?"""
    if name == "localtime":
        return False
    try:
        ZoneInfo(name).utcoffset(datetime(2000, 1, 1, tzinfo=UTC))
    except (KeyError, ValueError, OSError):  # unknown, a path out of the database, a directory
        return False
    return True


def _in_zone(time: datetime, zone: str) -> datetime | None:
    try:
        return time.astimezone(ZoneInfo(zone))
    except OverflowError:  # within a day of the year 1 or 9999
        return None


def _hour(time: datetime, zone: str = "UTC") -> Outcome:
    local = _in_zone(time, zone)
    return Unknown("hour", "is beyond the calendar") if local is None else local.hour


def _minute(time: datetime, zone: str = "UTC") -> Outcome:
    local = _in_zone(time, zone)
    return Unknown("minute", "is beyond the calendar") if local is None else local.minute


def _weekday(time: datetime, zone: str = "UTC") -> Outcome:
    """0 is Monday, 6 is Sunday, as in Python."""
    local = _in_zone(time, zone)
    return Unknown("weekday", "is beyond the calendar") if local is None else local.weekday()


@dataclass(frozen=True, slots=True)
class Function:
    """One function: how many arguments, of which kinds (None: any one kind), what it does."""

    name: str
    arguments_min: int
    arguments_max: int
    kinds: tuple[Kind, ...] | None
    call: Callable[..., Outcome]

    def apply(self, values: list[Value]) -> Outcome:
        """Call it, or say why these values will not do."""
        if self.kinds is not None:
            for value, kind in zip(values, self.kinds, strict=False):
                if kind_of(value) is not kind:
                    return Unknown(self.name, f"wants a {kind.value}")
        for value in values:
            if value != value:
                return Unknown(self.name, "of NaN")
        return self.call(*values)


FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        Function("abs", 1, 1, (Kind.NUMBER,), _absolute),
        Function("sqrt", 1, 1, (Kind.NUMBER,), _square_root),
        Function("floor", 1, 1, (Kind.NUMBER,), _floor),
        Function("ceil", 1, 1, (Kind.NUMBER,), _ceil),
        Function("min", 2, 64, None, _least),
        Function("max", 2, 64, None, _greatest),
        Function("hour", 1, 2, (Kind.TIME, Kind.STRING), _hour),
        Function("minute", 1, 2, (Kind.TIME, Kind.STRING), _minute),
        Function("weekday", 1, 2, (Kind.TIME, Kind.STRING), _weekday),
    )
}
