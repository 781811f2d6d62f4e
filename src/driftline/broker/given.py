"""How much do the values take that somebody has given to parameters?

Of a connection all of its subscriptions count together, and of an identity all that are durable.

    >>> given = Given()
    >>> given.change("alice/alerts", {}, {"firm": "IBM"})
    >>> given.of("alice/others"), given.of("alice~laptop")
    (57, 0)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from driftline.broker.identity import durable_name
from driftline.broker.sizes import size_of_values
from driftline.model.value import Value


class Given:
    """About how many bytes, by who has given them."""

    __slots__ = ("_bytes",)

    def __init__(self) -> None:
        self._bytes: dict[str, int] = {}

    def of(self, party: str) -> int:
        """By whom this party is a connection of, or a durable subscription."""
        return self._bytes.get(_giver(party), 0)

    def change(self, party: str, before: Mapping[str, Value], after: Mapping[str, Value]) -> None:
        """A subscription of a party has other parameters; none before it began and when it ends."""
        who, more = _giver(party), size_of_values(after) - size_of_values(before)
        if more:
            self._bytes[who] = self._bytes.get(who, 0) + more
            if not self._bytes[who]:
                del self._bytes[who]

    def _check(self, said: Iterable[tuple[str, Mapping[str, Value]]]) -> None:
        wanted: dict[str, int] = {}
        for party, params in said:
            wanted[_giver(party)] = wanted.get(_giver(party), 0) + size_of_values(params)
        assert self._bytes == {who: size for who, size in wanted.items() if size}


def _giver(party: str) -> str:
    name = durable_name(party)
    # As it stands in the party's name no identity has a slash in it, and no connection ends so.
    return party if name is None else party[: len(party) - len(name)]
