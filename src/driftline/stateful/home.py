"""What does a change of a table become? The tables of one home, and all that is said of them.

A table has one home, which alone reformulates. Each change has a number, and messages carry it
beside the number of the home's life: whoever has a snapshot knows which messages are in it already,
and that all is to be asked for anew when a home has lost what it had.

Messages are made of the types that somebody has asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from driftline.errors import TableError
from driftline.matching.columns import Columns
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.table import Table, TableDeclaration
from driftline.model.value import Value
from driftline.stateful.entering import Places
from driftline.stateful.fold import Fold
from driftline.stateful.plan import Moment, Plan, Reformulator
from driftline.stateful.range_min.many import Moves
from driftline.stateful.range_min.reformulate import RangeMessages
from driftline.stateful.rows.change import Change, changed
from driftline.stateful.rows.interest import flags_of
from driftline.stateful.value_based.address import LABEL_BITS, MOVED
from driftline.stateful.value_based.items import MANY
from driftline.stateful.value_based.reformulate import MovedMessages

LIFE, SEQUENCE = "HOME_LIFE", "HOME_SEQUENCE"


class Home:
    """Tables, and the reformulators that are told of their changes."""

    __slots__ = ("_count", "_reformulators", "label_bits", "life", "many", "sequence", "tables")

    def __init__(
        self,
        label_bits: int = LABEL_BITS,
        many: int = MANY,
        count: Callable[[], int] | None = None,
    ) -> None:
        """`count` gives numbers above all before, in earlier lives too."""
        self._count = count or itertools.count(1).__next__
        self.tables: dict[str, Table] = {}
        self.label_bits = label_bits
        self.many = many
        self.life = 0
        self.sequence = 0
        self._reformulators: dict[str, Reformulator] = {}

    def declare(self, declaration: TableDeclaration) -> None:
        """Keep a table from now on."""
        self.tables[declaration.name] = Table(declaration)

    def put(self, row: Event, at: int) -> list[Event]:
        """Replace or insert a row, which the table has admitted: the messages."""
        table = self.tables[row.type]
        key = row.attributes[table.declaration.key]
        before = table.get(key)
        table.put(row)
        return self._say(changed(row.type, key, before, row), at)

    def remove(self, name: str, key: object, at: int) -> tuple[Event | None, list[Event]]:
        """Remove a row: what it was, and the messages."""
        table = self.tables[name]
        before = table.remove(key)
        if before is None:
            return None, []
        # The key as the row had it: 1 and 1.0 name the same row.
        gone = changed(name, before.attributes[table.declaration.key], before, None)
        return before, self._say(gone, at)

    def _say(self, change: Change, at: int) -> list[Event]:
        self.sequence += 1
        messages: list[Event] = []
        for one in self._reformulators.values():
            if change.table in one.tables:
                messages += self._messages(one.type, one.take(change), at)
        return messages

    def _messages(self, type: str, all_said: list[dict[str, Value]], at: int) -> list[Event]:
        for said in all_said:
            said[LIFE], said[SEQUENCE] = self.life, self.sequence
        return [Event.of_admitted(type, said, at) for said in all_said]

    @property
    def mark(self) -> str:
        """See `Kept`."""
        return str(self._count())

    def listen(self, plan: Plan, tables: tuple[str, ...]) -> bool:
        """Make the messages of a plan from now on; was that new?"""
        for name in tables:
            if name not in self.tables:
                raise TableError(name, "is not kept here")
        type = plan.interest.source
        assert type is not None
        new = type not in self._reformulators
        if new:
            self._reformulators[type] = plan.reformulator(self)
        return self._reformulators[type].notice(flags_of(plan.interest)) or new

    def forget(self, type: str) -> None:
        """Make messages of a type no longer: nobody wants them."""
        self._reformulators.pop(type, None)

    def types(self, table: str | None = None) -> list[str]:
        """The types of messages that are made, of a table or of all."""
        return [
            type
            for type, one in self._reformulators.items()
            if table is None or table in one.tables
        ]

    def flags(self, type: str) -> frozenset[str]:
        """The flags that messages of a type may have."""
        return self._reformulators[type].flags()

    def retain(self, type: str, flags: set[str]) -> None:
        """Let messages of a type have no others."""
        self._reformulators[type].retain(flags)

    def snapshot(self, plan: Plan, standing: Standing, moment: Moment) -> tuple[Fold, list[Event]]:
        """The view as it is now, and what is to be said before; its messages are being made."""
        type = plan.interest.source
        assert type is not None
        by = self._reformulators[type]
        fold = plan.begin(standing, by, self.tables, moment)
        unsaid = by.take_unsaid() if isinstance(by, MovedMessages) else []
        if unsaid:
            # Behind all that others know, and in what the snapshot has.
            self.sequence += 1
        return fold, self._messages(type, unsaid, moment.now)

    def followed(self, table: str) -> MovedMessages | None:
        """What is known of those who follow a table's values, if anybody does."""
        found = self._reformulators.get(MOVED + table)
        return found if isinstance(found, MovedMessages) else None

    def at_once(self, name: str) -> list[RangeMessages] | None:
        """Whom many rows of a table can be told at once, beside crowds; None: somebody cannot."""
        found: list[RangeMessages] = []
        for type in self.types(name):
            one = self._reformulators[type]
            if isinstance(one, RangeMessages):
                found.append(one)
            elif not isinstance(one, MovedMessages) or not one.only_crowds:
                return None
        return found

    def say_many(self, moves: Moves, start: int, end: int, at: int) -> tuple[Columns, Places]:
        """Some of the changes that rows at once make: the messages, and of which row each is."""
        said = moves.say(start, end)
        numbers = {LIFE: np.full(len(said), self.life), SEQUENCE: self.sequence + 1 + said.of}
        return said.columns(numbers, at), said.of

    def put_many(self, name: str, last: Sequence[Event], changes: int) -> None:
        """Rows have changed so often, and are these now. Whoever follows them has been told."""
        table = self.tables[name]
        for row in last:
            table.put(row)
        self.sequence += changes

    def leave(self, table: str, who: str) -> None:
        """Somebody follows a table's values no longer."""
        followed = self.followed(table)
        if followed is not None:
            followed.leave(who)

    def _check(self) -> None:
        for table in self.tables.values():
            table._check()
        for type, one in self._reformulators.items():
            assert one.type == type
            one._check()
