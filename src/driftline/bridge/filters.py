"""By which topic filter is a message taken?

The first that fits wins. A broker may send a message once for each subscription that it fits, or
once with all of them named [MQTT 5 §3.3.4]: only where the first is named is it published, and what
else comes of it is a copy.

The numbers by which subscriptions are named are made from all filters in their order, so those of
another configuration are not taken for these: what waited since then may have had no first one.

A session may have subscriptions from another configuration, and nobody can ask which. What comes by
one says what it may be: one of the filters that its topic fits.

Which way it may err: a message may be taken twice, never not at all. What names no subscription of
ours is taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from itertools import product

_NUMBERS = 268_435_455
"""So many numbers there are for subscriptions [MQTT 5 §3.8.2.1.2]."""
_DEEPEST = 8
"""A topic of so many levels fits 767 filters, one of more levels twice as many for each."""


class Filters:
    """The topic filters of a configuration, and what each is called at the MQTT broker."""

    def __init__(self, topics: Sequence[str]) -> None:
        self.topics = tuple(topics)
        self._levels = [one.split("/") for one in topics]
        said = hashlib.sha256("\0".join(self.topics).encode()).digest()
        # From 1, and with room for all of them.
        first = 1 + int.from_bytes(said[:8], "big") % (_NUMBERS - len(self.topics))
        self.numbers = range(first, first + len(self.topics))

    def first(self, topic: str) -> int | None:
        """The place of the first filter that fits; None: none does.

        >>> Filters(["sensors/+/heat", "sensors/#"]).first("sensors/attic/heat")
        0
        """
        levels = topic.split("/")
        for place, wanted in enumerate(self._levels):
            if _fits(wanted, levels):
                return place
        return None

    def is_copy(self, place: int, came_by: Collection[int]) -> bool:
        """Did it come by others of these filters only, and not by the first that fits?

        They are subscribed to in their order: when there is any, there are those before it.
        """
        return self.numbers[place] not in came_by and any(one in self.numbers for one in came_by)

    def is_foreign(self, came_by: Collection[int]) -> bool:
        """Did it come by subscriptions that are none of these?"""
        return bool(came_by) and not any(one in self.numbers for one in came_by)

    def others(self, topic: str) -> list[str]:
        """All other filters that fit a topic; none for one of too many levels.

        >>> Filters(["a/+"]).others("a/b")
        ['a/b', '+/b', '+/+', '#', 'a/#', '+/#', 'a/b/#', 'a/+/#', '+/b/#', '+/+/#']
        """
        levels = topic.split("/")
        if len(levels) > _DEEPEST:
            return []
        choices: list[tuple[str, ...]] = [(one, "+") for one in levels]
        if topic.startswith("$"):
            choices[0] = choices[0][:1]
        whole = [*product(*choices)]
        below = [
            (*one, "#") for depth in range(len(levels) + 1) for one in product(*choices[:depth])
        ]
        found = ["/".join(one) for one in (*whole, *below)]
        return [one for one in found if one not in self.topics and _fits(one.split("/"), levels)]


def _fits(wanted: Sequence[str], levels: Sequence[str]) -> bool:
    # What is the broker's own is never meant by a wildcard [MQTT 5 §4.7.2].
    if levels[0].startswith("$") and wanted[0] != levels[0]:
        return False
    if wanted[-1] == "#":
        # With all that is below a level comes the level itself.
        wanted = wanted[:-1]
        levels = levels[: len(wanted)]
    return len(wanted) == len(levels) and all(
        one in ("+", level) for one, level in zip(wanted, levels, strict=True)
    )
