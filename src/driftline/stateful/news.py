"""What is there to tell, and who decides whether it is told?"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

from driftline.model.notification import NotificationKind
from driftline.model.value import Value, comparable

Values: TypeAlias = dict[str, Value | None]


class News(NamedTuple):
    """One thing to tell: the selected columns now, and those told before.

    `keys` names what it is about: the row by its key, a pair of rows by theirs, nothing for an
    aggregate or a DISTINCT value.
    """

    kind: NotificationKind
    values: Values
    old: Values | None = None
    keys: tuple[Value, ...] = ()


NOTHING = News(NotificationKind.SNAPSHOT, {})
"""The end of a snapshot that has nothing in it, for whoever cannot see that by its returning."""


class Gate(Protocol):
    """Decides whether a view's values are told: the place of `moved` and `crossed` in HAVING.

    It is asked once for each message that may have changed the values, in order, so it may keep
    state of its own (`crossed` must see the values that are not told). On True they become what was
    last told.
    """

    def tells(self, told: Values, now: Values) -> bool:
        """Are these values told, where `told` were last?"""

    def succeed(self, before: Gate) -> None:
        """Take over what another gate of the view has seen: it joined anew, or moved."""


class WhenDifferent:
    """The rule without HAVING: told when a selected value differs from the one last told."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "WHEN_DIFFERENT"  # There is one, which is known by its identity.

    def tells(self, told: Values, now: Values) -> bool:
        """Does a value differ? By value, as the language compares: 1 is 1.0, and not TRUE."""
        return any(value_key(told[name]) != value_key(now[name]) for name in now)

    def succeed(self, before: Gate) -> None:
        """See `Gate`: what was told is all there is to know."""


WHEN_DIFFERENT = WhenDifferent()


def value_key(value: Value | None) -> object:
    """A hashable key, equal for values that are equal in the language, NULL being one of them."""
    return None if value is None else comparable(value)
