"""Which filters were written or read a moment ago?

A filter that crosses a broker is read once and then written for each further neighbour, and the
same one comes again when a link begins anew. So those that are short and plain (constants compared
with attributes) are remembered with their bytes. What is remembered was valid, and is again.
"""

from __future__ import annotations

from typing import TypeGuard

from driftline.model.filter import Filter

_BYTES_MAX = 512
_PARTS_MAX = 1 << 17
"""Constraints and constants of all that is remembered: about 40 MB of them."""


class Memory:
    """Filters by their bytes, bytes by their filters, and of how many parts each is."""

    __slots__ = ("_of", "_parts", "_said")

    def __init__(self) -> None:
        self._of: dict[bytes, tuple[Filter, int]] = {}
        self._said: dict[Filter, tuple[bytes, int]] = {}
        self._parts = 0

    def filter_of(self, raw: bytes) -> tuple[Filter, int] | None:
        """The filter that these bytes are."""
        return self._of.get(raw)

    def bytes_of(self, one: object) -> tuple[bytes, int] | None:
        """The bytes of a filter; not asked of what may be no filter, or one too deep to look up."""
        return self._said.get(one) if _is_plain(one) else None

    def wrote(self, one: object, raw: bytes, parts: int) -> None:
        """A filter was written as these bytes."""
        if _is_plain(one) and self._has_room(raw, parts):
            self._said[one] = (raw, parts)
            self._of[raw] = (one, parts)

    def read(self, one: Filter, raw: bytes, parts: int) -> None:
        """These bytes were read as a filter. We may write it with others, so that is left open."""
        if _is_plain(one) and self._has_room(raw, parts):
            self._of[raw] = (one, parts)

    def _has_room(self, raw: bytes, parts: int) -> bool:
        if len(raw) > _BYTES_MAX:
            return False
        self._parts += parts + 1
        if self._parts > _PARTS_MAX:
            self._of.clear()
            self._said.clear()
            self._parts = parts + 1
        return True


def _is_plain(one: object) -> TypeGuard[Filter]:
    if type(one) is not Filter or one.conditions:
        return False
    for constraint in one.constraints:  # noqa: SIM110  # Asked for every filter of every message.
        if not constraint.constant:
            return False
    return True
