"""What may an attribute hold, and how do two values compare?

Six types: string, integer (64 bit), float, boolean, time (UTC, microseconds) and bytes
[SIENA §3.1]. Values compare within a *kind*: integers and floats are one kind and compare by
value, exactly (Python never rounds an integer to compare it with a float); every other type is a
kind of its own. Across kinds, and with NaN, a comparison has no answer.
"""

from __future__ import annotations

import enum
import math
import numbers
from collections.abc import Hashable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from driftline.errors import InvalidValue

Value: TypeAlias = str | int | float | bool | datetime | bytes

INTEGER_MIN = -(2**63)
INTEGER_MAX = 2**63 - 1
WANTED = "a string, integer, float, boolean, time or bytes"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Kind(enum.Enum):
    """Which values compare with which."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    TIME = "time"
    BYTES = "bytes"


# Exact types only: `admit` has removed subclasses, so a dictionary look-up is enough and is what
# keeps booleans (a subclass of int in Python) out of the numbers.
KIND_OF: dict[type, Kind] = {
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.STRING,
    bool: Kind.BOOLEAN,
    datetime: Kind.TIME,
    bytes: Kind.BYTES,
}

_TYPE_NAMES: dict[type, str] = {
    int: "integer",
    float: "float",
    str: "string",
    bool: "boolean",
    datetime: "time",
    bytes: "bytes",
}


def kind_of(value: Value) -> Kind:
    """The kind an admitted value belongs to."""
    return KIND_OF[type(value)]


def type_name(value: object) -> str:
    """The language's word for a value's type; Python's for anything else."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def show(value: object) -> str:
    """A value for a person to read in an error or an explanation, cut to a sensible length."""
    try:
        text = value.isoformat() if isinstance(value, datetime) else repr(value)
    except ValueError:  # an integer of more digits than Python will write
        text = f"a very long {type_name(value)}"
    return text if len(text) <= 80 else text[:77] + "..."


def admit(value: object, where: str) -> Value:
    """Bring a Python object to its canonical type, or refuse it saying what was wanted.

    >>> admit(True, "x"), admit(3, "x"), admit("a", "x")
    (True, 3, 'a')
    >>> admit(2**63, "attribute volume")
    Traceback (most recent call last):
    driftline.errors.InvalidValue: attribute volume: wanted an integer of 64 bits, came 92233...
    """
    kind = type(value)
    if kind is float or kind is bool:
        return value  # type: ignore[return-value]  # narrowed by the identity test above
    if kind is str:
        return _admit_string(value, where)  # type: ignore[arg-type]
    if kind is int and INTEGER_MIN <= value <= INTEGER_MAX:  # type: ignore[operator]
        return value  # type: ignore[return-value]
    if isinstance(value, bool):
        return bool(value)
    if isinstance(value, numbers.Integral):
        number = int(value)
        if not INTEGER_MIN <= number <= INTEGER_MAX:
            raise InvalidValue(where, "an integer of 64 bits", show(number))
        return number
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational):
        return float(value)
    if isinstance(value, str):
        # Not str(value): an enumeration of strings would give its own name.
        return _admit_string(str.__str__(value), where)
    if isinstance(value, datetime):
        return _admit_time(value, where)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    # NumPy's boolean is no subclass of bool and is registered with no abstract number.
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise InvalidValue(where, WANTED, f"{show(value)} ({type(value).__name__})")


def admit_all(values: Mapping[str, object] | None, what: str) -> dict[str, Value]:
    """Bring named values to their canonical types; None among them means there is no such value."""
    return {
        str(name): admit(value, f"{what} {name}")
        for name, value in items_of(values, what)
        if value is not None
    }


def items_of(values: object, what: str) -> Iterable[tuple[object, object]]:
    """The names and values of a mapping, none for None; anything else is refused."""
    if values is None:
        return ()
    if not isinstance(values, Mapping):
        raise InvalidValue(what, "names and values", show(values))
    return values.items()


def _admit_string(value: str, where: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidValue(where, "well-formed Unicode", "a lone surrogate") from None
    return value


def _admit_time(value: datetime, where: str) -> datetime:
    try:
        if value.utcoffset() is None:
            raise InvalidValue(where, "a time with a zone", f"{show(value)} without one")
        moved = value.astimezone(UTC)
    except OverflowError:
        raise InvalidValue(where, "a time between the years 1 and 9999", show(value)) from None
    except ValueError:  # pandas.NaT is a datetime of which nothing can be asked
        raise InvalidValue(where, "a time", repr(value)) from None
    if getattr(value, "nanosecond", 0):
        raise InvalidValue(where, "whole microseconds", show(value))
    # A plain datetime, whatever subclass came (pandas.Timestamp is one).
    return datetime.combine(moved.date(), moved.time(), tzinfo=UTC)


def compare(a: Value, b: Value) -> int | None:
    """-1, 0 or 1 as a is below, equal to or above b; None where they do not compare.

    >>> compare(2**53 + 1, float(2**53)), compare(1, True), compare(float("nan"), 1.0)
    (1, None, None)
    """
    if KIND_OF[type(a)] is not KIND_OF[type(b)] or a != a or b != b:
        return None
    if a == b:
        return 0
    return -1 if a < b else 1  # type: ignore[operator]  # one kind, so ordered


def same(a: object, b: object) -> bool:
    """Is it the very same value: same type too, NaN equal to NaN, 0.0 apart from -0.0?"""
    if type(a) is not type(b):
        return False
    if isinstance(a, float) and isinstance(b, float):
        return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b


def comparable(value: Value) -> Hashable:
    """A hashable key, equal for values that compare equal and for no others: 1 and 1.0, not TRUE.

    NaN, which compares with nothing, must be kept out by the caller.
    """
    # Only booleans are equal to values of another kind, in Python.
    return (Kind.BOOLEAN, value) if value is True or value is False else value


def identity(value: object) -> tuple[str, object]:
    """A hashable key such that keys are equal exactly where `same` holds."""
    return (type(value).__name__, value.hex() if isinstance(value, float) else value)


def time_of(microseconds: int) -> datetime:
    """The time that is so many microseconds after 1970 began."""
    return _EPOCH + timedelta(microseconds=microseconds)


def microseconds_of(time: datetime) -> int:
    """Microseconds since 1970 began: the inverse of `time_of`."""
    return (time - _EPOCH) // _MICROSECOND
