"""What do the messages of a change of a row say? The home's side: only what views read is kept."""

from __future__ import annotations

from collections.abc import Mapping

from driftline.model.value import Value
from driftline.stateful.rows.change import ROWS, Change, attributes_of


class RowMessages:
    """Each change of a table's rows as it is."""

    __slots__ = ("_flags", "_table")

    def __init__(self, table: str) -> None:
        self._table = table
        self._flags: dict[str, frozenset[str]] = {}

    @property
    def type(self) -> str:
        """The type of its messages."""
        return ROWS + self._table

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables whose changes it must be told."""
        return (self._table,)

    def take(self, change: Change) -> list[dict[str, Value]]:
        """What the message says."""
        return [attributes_of(change, self._flags)]

    def notice(self, flags: Mapping[str, frozenset[str]]) -> bool:
        """Say these flags too from now on; is that new?"""
        known = flags.keys() <= self._flags.keys()
        self._flags.update(flags)
        return not known

    def flags(self) -> frozenset[str]:
        """The flags that messages may have."""
        return frozenset(self._flags)

    def retain(self, flags: set[str]) -> None:
        """Say no others."""
        self._flags = {flag: names for flag, names in self._flags.items() if flag in flags}

    def _check(self) -> None:
        """There is nothing that could be wrong."""
