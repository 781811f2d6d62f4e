"""What does a subscriber want when it does not take its notifications fast enough?

    overflow    what gives way when too much waits: nothing (publishers are held back), the oldest,
                or all but the latest of each key
    limit       how many notifications, and how many bytes, may wait
    interval    at most one notification in so long; the latest again after so long

[What each promises](docs/reference/slow-consumers.md); `queue` keeps it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, fields

from driftline.errors import InvalidValue
from driftline.model.value import show

_MILLION = 1_000_000
LIMIT_MAX = 1 << 40
"""More than a trillion of anything is a mistake, not a wish."""
INTERVAL_US_MAX = 1_000_000_000 * _MILLION


class Overflow(enum.StrEnum):
    """What gives way when a queue is full; compares equal to its word."""

    DROP_OLDEST = "drop_oldest"
    CONFLATE = "conflate"
    BLOCK = "block"

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Policy:
    """How a subscription is told; 0 for an interval: none.

    `key` names the attribute whose values are told apart when conflating; None: rows of a table by
    their keys, everything else as one. Who offers an item finds the value, and gives it along.

    >>> Policy(min_interval_us=2_000_000, max_interval_us=1_000_000)
    Traceback (most recent call last):
    driftline.errors.InvalidValue: policy.max_interval_us: wanted 0, or at least the min_interval_us
    of 2000000, came 1000000
    """

    overflow: Overflow = Overflow.DROP_OLDEST
    limit: int = 1000
    limit_bytes: int = 1 << 20
    key: str | None = None
    min_interval_us: int = 0
    max_interval_us: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "overflow", _word(self.overflow))
        _whole("limit", self.limit, 1, LIMIT_MAX)
        _whole("limit_bytes", self.limit_bytes, 1, LIMIT_MAX)
        _whole("min_interval_us", self.min_interval_us, 0, INTERVAL_US_MAX)
        _whole("max_interval_us", self.max_interval_us, 0, INTERVAL_US_MAX)
        if 0 < self.max_interval_us < self.min_interval_us:
            wanted = f"0, or at least the min_interval_us of {self.min_interval_us}"
            raise InvalidValue("policy.max_interval_us", wanted, str(self.max_interval_us))
        if self.key is None:
            return
        _name("key", self.key)
        if self.overflow is not Overflow.CONFLATE:
            # It would be ignored, which is never what somebody meant who gave it.
            wanted = f"none unless overflow is {Overflow.CONFLATE!r}"
            raise InvalidValue("policy.key", wanted, show(self.key))

    @property
    def plain(self) -> bool:
        """May a notification go out whenever the connection takes it?"""
        return not (self.min_interval_us or self.max_interval_us)

    @classmethod
    def of_options(cls, options: Mapping[str, object]) -> Policy:
        """The policy that a user or a message names; an interval may be in seconds instead.

        >>> Policy.of_options({"overflow": "conflate", "key": "symbol", "min_interval": 0.5})
        Policy(overflow='conflate', limit=1000, limit_bytes=1048576, key='symbol',
               min_interval_us=500000, max_interval_us=0)
        """
        if not isinstance(options, Mapping):
            raise InvalidValue("policy", "names and values", show(options))
        given: dict[str, object] = {}
        for name, value in options.items():
            if name in _SECONDS:
                name, value = _SECONDS[name], _microseconds(name, value)
                if name in options:
                    raise InvalidValue(f"policy.{name}", "seconds or microseconds", "both")
            elif name not in _NAMES:
                wanted = f"only {', '.join((*_NAMES, *_SECONDS))}"
                raise InvalidValue("policy", wanted, show(name))
            given[name] = value
        return cls(**given)  # type: ignore[arg-type]  # which refuses what is of another type

    def options(self) -> dict[str, str | int]:
        """What differs from the default, for `of_options` to read."""
        said = {name: getattr(self, name) for name in _NAMES if getattr(self, name) != _usual(name)}
        return {name: str(one) if name == "overflow" else one for name, one in said.items()}


_NAMES = tuple(one.name for one in fields(Policy))
_SECONDS = {"min_interval": "min_interval_us", "max_interval": "max_interval_us"}


def _usual(name: str) -> object:
    return next(one.default for one in fields(Policy) if one.name == name)


def _word(given: object) -> Overflow:
    # Not Overflow(given) at once: an enum would look for its members in whatever it is given.
    if isinstance(given, str) and given in tuple(Overflow):
        return Overflow(given)
    raise InvalidValue("policy.overflow", " or ".join(map(repr, Overflow)), show(given))


def _whole(name: str, given: object, low: int, high: int) -> None:
    if type(given) is not int or not low <= given <= high:
        raise InvalidValue(f"policy.{name}", f"an integer from {low} to {high}", show(given))


def _name(name: str, given: object) -> None:
    if not isinstance(given, str) or not given:
        raise InvalidValue(f"policy.{name}", "the name of an attribute", show(given))


def _microseconds(name: str, given: object) -> int:
    number = isinstance(given, int | float) and not isinstance(given, bool)
    # Written so that NaN does not get further. Less than a microsecond would become "none".
    if number and (given == 0 or 1e-6 <= given <= INTERVAL_US_MAX / _MILLION):  # type: ignore[operator]
        return round(given * _MILLION)  # type: ignore[operator]
    wanted = "0, or seconds from a millionth to a thousand million"
    raise InvalidValue(f"policy.{name}", wanted, show(given))
