"""Can many rows of a table be told at once, and who is told what?

Where crowds and views over ranges are all that a table concerns. The home makes the messages of
many changes in one call, they go to the matcher of local parties as columns, and whoever is found
is told as if each had come by itself: an event is made of a row that somebody is told of, and of
the last one of each item, which the table keeps. Where anybody else is concerned, or a function is
called that may do anything when it is told, rows are published one after the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from driftline.broker.broker import Broker
from driftline.broker.effects import Deliver
from driftline.crowding import Crowding
from driftline.model.event import Event
from driftline.outlets import Outlets
from driftline.stateful.entering import Rows
from driftline.stateful.range_min.many import Moves

TOGETHER = 256
"""So many changes are told together at first: whoever is told of them is in one array."""
TOLD_TOGETHER = 1 << 20
"""Then as many as tell about so many views, but no more than four times as many as before."""
TOGETHER_MAX = 1 << 16


class Together:
    """The short way for many rows. `tell` makes the notifications of a delivery, of its cause, the
    row at a place.
    """

    def __init__(
        self,
        broker: Broker,
        crowding: Crowding,
        outlets: Outlets,
        tell: Callable[[Deliver, Event, int], int],
    ) -> None:
        self._broker = broker
        self._crowding = crowding
        self._outlets = outlets
        self._tell = tell

    def can_take(self, type: str, *, is_heard: bool = False) -> bool:
        """Is nobody concerned by a type who must be told of one event after the other?

        `is_heard`: somebody only listens to what is told.
        """
        broker, concern = self._broker, self._broker.edge.concern
        return (
            type in broker.tables
            and not broker.settings.advertised
            and broker.tables.home.at_once(type) is not None
            and concern.only_ranges(type)
            and (is_heard or self._outlets.direct or not concern.anybody(type))
        )

    def take(self, type: str, rows: Rows, now: int) -> int | None:
        """Rows that enter: how many are told. If one is refused nothing changes.

        None if they must be told one after the other after all; then nothing has changed either.
        """
        home = self._broker.tables.home
        views = home.at_once(type)
        assert views is not None
        declaration = home.tables[type].declaration
        rows.check(declaration)
        if not len(rows):
            return 0
        if not all(view.takes_many(rows) for view in views):
            return None
        items = rows.items(declaration.key)
        last = rows.take(items.last())
        found = {
            view.type: self._tell_views(view.take_many(rows, items, last), rows, now)
            for view in views
        }
        told = self._crowding.take_many(type, rows, items) + sum(found.values())
        self._broker.tables.put_many(type, last, len(rows))
        self._broker.passing.forget_unwanted(type, {one for one in found if found[one]})
        return told

    def _tell_views(self, moves: Moves, rows: Rows, now: int) -> int:
        told = start = 0
        together = TOGETHER
        while start < len(moves):
            end = start + together
            told += self._tell_some(moves, start, end, rows, now)
            fitting = max(1, TOLD_TOGETHER * end // max(told, 1))
            together = min(fitting, 4 * together, TOGETHER_MAX)
            start = end
        return told

    def _tell_some(self, moves: Moves, start: int, end: int, rows: Rows, now: int) -> int:
        broker = self._broker
        messages, of = broker.tables.home.say_many(moves, start, end, now)
        env = broker.environment.values
        found = broker.edge.take_many(messages, broker.name, broker.at(), env)
        places, which = np.unique(of[[at for at, _ in found]], return_inverse=True)
        causes = rows.take(places)
        return sum(
            self._tell(deliver, causes[at], int(places[at]))
            for (_, deliver), at in zip(found, which.tolist(), strict=True)
        )
