"""What does a change of a table become? The tables of one home, and all that is said of them.

A table has one home, which alone reformulates. Each change has a number, and messages carry it
beside the number of the home's life: whoever has a snapshot knows which messages are in it already,
and that all is to be asked for anew when a home has lost what it had.

Messages are made of the types that somebody has asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

from driftline.errors import TableError
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.table import Table, TableDeclaration
from driftline.model.value import Value
from driftline.stateful.fold import Fold
from driftline.stateful.plan import Moment, Plan, Reformulator
from driftline.stateful.rows.change import Change, changed
from driftline.stateful.rows.interest import flags_of

LIFE, SEQUENCE = "HOME_LIFE", "HOME_SEQUENCE"


class Home:
    """Tables, and the reformulators that are told of their changes."""

    __slots__ = ("_reformulators", "life", "sequence", "tables")

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
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
        table.put(key, row)
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
        messages = []
        for one in self._reformulators.values():
            if change.table not in one.tables:
                continue
            for said in one.take(change):
                said[LIFE], said[SEQUENCE] = self.life, self.sequence
                messages.append(Event.of_admitted(one.type, said, at))
        return messages

    def listen(self, plan: Plan, tables: tuple[str, ...]) -> bool:
        """Make the messages of a plan from now on; was that new?"""
        for name in tables:
            if name not in self.tables:
                raise TableError(name, "is not kept here")
        type = plan.interest.source
        assert type is not None
        new = type not in self._reformulators
        if new:
            self._reformulators[type] = plan.reformulator(self.tables)
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

    def snapshot(self, plan: Plan, standing: Standing, env: Mapping[str, Value], now: int) -> Fold:
        """The view as it is now; its messages are being made."""
        type = plan.interest.source
        assert type is not None
        return plan.begin(standing, self._reformulators[type], self.tables, Moment(env, now))

    def _check(self) -> None:
        for table in self.tables.values():
            table._check()
        for type, one in self._reformulators.items():
            assert one.type == type
            one._check()
