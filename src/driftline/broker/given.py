"""How much has somebody asked for: what do their parameters take, and their subscriptions weigh?

Of parameters those of a connection count together, and of an identity those of all that is durable.
What subscriptions weigh counts for whom they let others wait: for an identity, whatever they are,
or for a connection of whoever does not say who it is.

    >>> from driftline.language.sql import parse
    >>> given = Given()
    >>> asked = Standing.of(parse("SELECT * FROM quote WHERE price * 2 > :p"), {"p": 10})
    >>> given.change("alice/alerts", None, asked)
    >>> given.bytes("alice/others"), given.bytes("alice~laptop")
    (51, 0)
    >>> given.weight("alice~laptop"), given.weight("bob~laptop")
    (5, 0)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from driftline.broker.identity import durable_name, owner_of
from driftline.broker.sizes import size_of_values
from driftline.broker.weight import weight_of
from driftline.model.standing import Standing


class Given:
    """By who has asked for it."""

    __slots__ = ("_bytes", "_weights", "all_weight")

    def __init__(self) -> None:
        self._bytes: Counter[str] = Counter()
        self._weights: Counter[str] = Counter()
        self.all_weight = 0
        """Of all subscriptions of everybody."""

    def bytes(self, party: str) -> int:
        """Of the parameters, by whom this party is a connection of, or a durable subscription."""
        return self._bytes[_giver(party)]

    def weight(self, party: str) -> int:
        """Of the subscriptions, by whose this party is."""
        return self._weights[owner_of(party)]

    def change(self, party: str, before: Standing | None, after: Standing | None) -> None:
        """A subscription of a party is another; None before it began and when it has ended."""
        _add(self._bytes, _giver(party), more_bytes(before, after))
        more = more_weight(before, after)
        _add(self._weights, owner_of(party), more)
        self.all_weight += more

    def _check(self, said: Iterable[tuple[str, Standing]]) -> None:
        wanted = Given()
        for party, standing in said:
            wanted.change(party, None, standing)
        assert (self._bytes, self._weights) == (wanted._bytes, wanted._weights)
        assert self.all_weight == wanted.all_weight == self._weights.total()


def more_bytes(before: Standing | None, after: Standing | None) -> int:
    """How much more the parameters take."""
    return _bytes(after) - _bytes(before)


def more_weight(before: Standing | None, after: Standing | None) -> int:
    """How much more the subscription weighs."""
    return _weight(after) - _weight(before)


def _bytes(one: Standing | None) -> int:
    return 0 if one is None else size_of_values(one.params)


def _weight(one: Standing | None) -> int:
    return 0 if one is None else weight_of(one)


def _add(counter: Counter[str], who: str, more: int) -> None:
    if more:
        counter[who] += more
        if not counter[who]:
            # Whoever came once is not remembered.
            del counter[who]


def _giver(party: str) -> str:
    name = durable_name(party)
    # As it stands in the party's name no identity has a slash in it, and no connection ends so.
    return party if name is None else party[: len(party) - len(name)]
