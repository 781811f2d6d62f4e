"""Which events of a type that is no table came to a broker, and in which order?

As a witness there was told. What a follower beside it makes of them is kept in its broker's memory,
so each life of the broker is a history of its own.
"""

from __future__ import annotations

from driftline.broker.broker import COUNTED_BITS
from driftline.broker.effects import MISSING
from driftline.sim.checkers import number_of
from driftline.sim.history import NEVER, Change, Moment, Placed
from driftline.sim.party import Party


class EventLog:
    """The events that came to one broker, by its lives; moments are where they stand in these."""

    def __init__(self, witness: Party) -> None:
        self._witness = witness
        self._read = 0
        self._changes: dict[int, list[Change]] = {}
        self._moments: dict[int, Moment] = {}
        self.latest = NEVER
        # May something be missing before the next one?
        self._doubtful = False

    def read(self) -> None:
        """Take what the witness was told since."""
        for deliver in self._witness.told[self._read :]:
            if deliver.event == MISSING:
                self._doubtful = True
                continue
            life = deliver.number >> COUNTED_BITS
            changes = self._changes.setdefault(life, [])
            number = 1 + len(changes)
            known = not (deliver.gap or self._doubtful)
            self._doubtful = False
            changes.append(Change(number, (), deliver.event, known=known))
            self.latest = self._moments[number_of(deliver.event)] = life, number
        self._read = len(self._witness.told)

    def moment(self, number: int) -> Moment | None:
        """Where the event with this number stands."""
        return self._moments.get(number)

    def changes(self, table: str, after: Moment, upto: Moment) -> list[Change]:
        """See `History`."""
        known = self._changes.get(after[0], [])
        return known[after[1] : upto[1]]

    def rows(self, table: str, moment: Moment) -> tuple[Placed, ...]:
        """See `History`: there are none."""
        return ()
