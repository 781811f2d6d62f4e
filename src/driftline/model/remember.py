"""What was worked out of a value is remembered; of a large one as long as it is there itself.

The same few shapes are asked for again and again. But a neighbour or a client may send filters and
texts of any size, and thousands of large ones must not stay in memory when they have gone. So of
small values a table has what was found last, for all that are equal; a large one has what was
worked out of it with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, wraps
from typing import Any, TypeVar

from driftline.model.expression import Expression

_REMEMBERED = 4096
"""As many shapes as are in use at a time, or nearly."""
_SMALL = 256
"""Nodes, at most, of what is small."""


class Remembering:
    """A value made of expressions, which are looked up far more often than made."""

    __slots__ = ("_hash", "_small", "_worked")
    _hash: int
    _small: bool
    _worked: dict[Callable[..., Any], Any]

    def parts(self) -> Iterable[object]:
        """The expressions, or tuples of them, that it is made of."""
        raise NotImplementedError

    @property
    def small(self) -> bool:
        """Has it few enough nodes to be kept in a memory of many?"""
        try:
            return self._small
        except AttributeError:
            object.__setattr__(self, "_small", is_small(self.parts()))
            return self._small

    @property
    def worked(self) -> dict[Callable[..., Any], Any]:
        """What was worked out of it, by what did so; it goes when this goes."""
        try:
            return self._worked
        except AttributeError:
            object.__setattr__(self, "_worked", {})
            return self._worked


def is_small(parts: Iterable[object]) -> bool:
    """Have these expressions few nodes together?"""
    stack, left = [*parts], _SMALL
    while stack and left > 0:
        node = stack.pop()
        left -= 1
        if isinstance(node, tuple):
            stack.extend(node)
        elif isinstance(node, Expression):
            stack.extend(node.children())
    return not stack


R = TypeVar("R", bound=Remembering)
T = TypeVar("T")


def remembered(function: Callable[[R], T]) -> Callable[[R], T]:
    """The same function, which does not work out twice what a value gives."""
    kept = lru_cache(maxsize=_REMEMBERED)(function)

    @wraps(function)
    def asked(one: R) -> T:
        if one.small:
            return kept(one)
        worked = one.worked
        if function not in worked:
            worked[function] = function(one)
        found: T = worked[function]
        return found

    return asked
