"""What are the variables of the environment worth here, and who says so? [EVOLVE III.D]

A provider pushes a value when it changes, or is polled every so often; an operator sets a mode.
Where an event enters, what is known there is stamped on it, and by that it is judged everywhere. So
every broker gives the answer that one broker alone would.

What begins with `broker.` is each broker's own, is read where an event is and never stamped:
`broker.outgoing` is what it sends, in bytes a second. A condition on it sheds load at each broker,
whatever others do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from driftline.broker.effects import Key
from driftline.errors import InvalidValue
from driftline.model.value import Value, admit, show

OWN = "broker."
OUTGOING = "broker.outgoing"
NEVER = 1 << 62

_SECOND = 1_000_000
# All of it travels with every event.
_VARIABLES_MAX = 100
_BYTES_MAX = 4096


class Environment:
    """The variables that a broker knows."""

    __slots__ = ("_before", "_bytes", "_polls", "_put", "_second", "values")

    def __init__(self, put: Callable[[Key, object], None]) -> None:
        self.values: dict[str, Value] = {}
        self._put = put
        self._polls: dict[str, tuple[int, int]] = {}
        # The second that is counted now, what was sent in it, and in the one before.
        self._second, self._bytes, self._before = 0, 0, 0

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept."""
        for key, value in stored.items():
            if key[0] == "env":
                self.values[key[1]] = value  # type: ignore[assignment]  # as it was put

    def observe(self, name: object, value: object) -> None:
        """A variable has a value, None: nobody knows. Raises if it cannot, and changes nothing."""
        known = check_variable(name)
        admitted = None if value is None else admit(value, f"environment variable {known}")
        # What is stamped on events is another mapping than before.
        values = {one: held for one, held in self.values.items() if one != known}
        if admitted is not None:
            values[known] = admitted
            _check_size(values)
        self.values = values
        self._put(("env", known), admitted)

    def stamps(self) -> Mapping[str, Value]:
        """What is known of the environment now; this mapping does not change."""
        return self.values

    def own(self, now: int) -> dict[str, Value]:
        """What only this broker knows."""
        return {OUTGOING: self._outgoing(now)}

    # Polling

    def poll(self, name: object, every: int | None, now: int) -> None:
        """Ask for a variable every so many microseconds, at once for the first time; None: stop."""
        known = check_variable(name)
        if every is None:
            self._polls.pop(known, None)
            return
        if type(every) is not int or every <= 0:
            raise InvalidValue("every", "microseconds, more than none", show(every))
        self._polls[known] = now, every

    def due(self, now: int) -> list[str]:
        """The variables to be asked for; the next time for each is an interval from now."""
        names = [name for name, (at, _) in self._polls.items() if at <= now]
        for name in names:
            every = self._polls[name][1]
            self._polls[name] = now + every, every
        return names

    def wake_at(self) -> int:
        """When something is due."""
        return min((at for at, _ in self._polls.values()), default=NEVER)

    # Load

    def sent(self, size: int, now: int) -> None:
        """So many bytes have been sent."""
        self._turn(now)
        self._bytes += size

    def _turn(self, now: int) -> None:
        second = now // _SECOND
        if second != self._second:
            self._before = self._bytes if second == self._second + 1 else 0
            self._second, self._bytes = second, 0

    def _outgoing(self, now: int) -> float:
        """Bytes sent within a second: what is left of the one before, and what is new."""
        self._turn(now)
        return self._bytes + self._before * (1 - now % _SECOND / _SECOND)


def check_variable(name: object) -> str:
    """The name of a variable, if somebody may set it."""
    if not isinstance(name, str) or not name:
        raise InvalidValue("environment variable", "a name", show(name))
    if name.startswith(OWN):
        raise InvalidValue(
            "environment variable", f"a name that does not begin with {OWN}", show(name)
        )
    return name


def _check_size(values: Mapping[str, Value]) -> None:
    if len(values) > _VARIABLES_MAX:
        raise InvalidValue("environment", f"at most {_VARIABLES_MAX} variables", str(len(values)))
    size = sum(len(name.encode()) + _size(value) for name, value in values.items())
    if size > _BYTES_MAX:
        raise InvalidValue("environment", f"at most {_BYTES_MAX} bytes in all", str(size))


def _size(value: Value) -> int:
    if isinstance(value, str):
        return len(value.encode())
    return len(value) if isinstance(value, bytes) else 8
