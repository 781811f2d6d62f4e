"""Which tables are kept here, and what is said of them?

The home of a table hears of its rows like anybody else: it wants events of the table's type, and
requests to delete, from wherever they are published. So rows may be published anywhere. What it
makes of them, and of questions for snapshots, are messages that go out like events.

    $delete:stock     KEY                                          remove a row
    $ask:stock        TO, SUBSCRIPTION, ASKED, VIEW, KEEPS, LATER  what is this view now?
                      TO, SUBSCRIPTION, ASKED, LEFT                it is no longer wanted
    $snapshot:stock   TO, SUBSCRIPTION, ASKED, HOME_LIFE, HOME_SEQUENCE, PART, PARTS, DATA
                      TO, SUBSCRIPTION, ASKED, LATER               ask again, when that is known
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from driftline.broker.effects import Key
from driftline.broker.settings import Settings
from driftline.errors import DriftlineError, TableError
from driftline.model.advertisement import Advertisement
from driftline.model.constraint import Constraint, Operator
from driftline.model.event import Event
from driftline.model.expression import Literal
from driftline.model.filter import Filter
from driftline.model.standing import Standing
from driftline.model.table import Table, TableDeclaration
from driftline.model.text import literal
from driftline.model.value import Value
from driftline.model.view import View
from driftline.stateful.fold import Fold
from driftline.stateful.home import LIFE, SEQUENCE, Home
from driftline.stateful.plan import Moment, MovedPlan, Plan, plan_of
from driftline.stateful.value_based.address import MOVED
from driftline.wire.views import decode_view

if TYPE_CHECKING:
    from driftline.stateful.value_based.crowd import CrowdGroup

DELETE, ASK, SNAPSHOT = "$delete:", "$ask:", "$snapshot:"
HOME_OF = "$home:"
"""Who keeps a table is asked for by this type, by one who would keep it."""
FIND = "$find:"
"""The same, by one who would follow it."""

JOIN = Advertisement("$join")
"""Is all in effect, with everybody? Interest goes up a hierarchy only, but a table may be kept
anywhere in it: what its home wants must have come to meet what it is asked, too."""

TO, SUBSCRIPTION, ASKED, VIEW = "TO", "SUBSCRIPTION", "ASKED", "VIEW"
PART, PARTS, DATA, LATER = "PART", "PARTS", "DATA", "LATER"
KEEPS, LEFT = "KEEPS", "LEFT"
KEY = "KEY"

_PART_BYTES = 1 << 18


class Seen(NamedTuple):
    """A view as it is, by which numbers, and messages that are to go before."""

    numbers: dict[str, Value]
    fold: Fold
    messages: list[Event]


class Tables:
    """The tables of one broker. `put` journals."""

    __slots__ = ("_listens", "_put", "_since", "_stores", "forgot", "home", "refused")

    def __init__(
        self, put: Callable[[Key, object], None], count: Callable[[], int], settings: Settings
    ) -> None:
        self.home = Home(settings.label_bits, settings.many, count)
        self._put = put
        self._stores = settings.stores
        # What is journaled of those who asked for messages, by type.
        self._listens: dict[str, list[Key]] = {}
        # By types of messages, since when they are offered.
        self._since: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        """Of each table the last row that could not be taken, and why: it came from elsewhere."""
        self.forgot: list[str] = []
        """Types of messages whose home has forgotten what it was told of those who want them."""

    @property
    def version(self) -> int:
        """Another one when there is another table."""
        return len(self.home.tables)

    def __contains__(self, name: str) -> bool:
        return name in self.home.tables

    def __bool__(self) -> bool:
        return bool(self.home.tables)

    def get(self, name: str) -> Table:
        """A table that is kept here."""
        table = self.home.tables.get(name)
        if table is None:
            known = ", ".join(sorted(self.home.tables)) or "none"
            raise TableError(name, f"is not declared (declared: {known})")
        return table

    def declare(self, declaration: TableDeclaration, life: int) -> None:
        """Keep a table, in a life with a number above all before if it is the first."""
        if not self.home.tables:
            self.home.life = life
            self._put(("home",), life)
        self.home.declare(declaration)
        self._put(("table", declaration.name), declaration)

    def check_declared(self, declaration: TableDeclaration) -> bool:
        """Is it kept here already? Raise if it is under another declaration."""
        known = self.home.tables.get(declaration.name)
        if known is not None and known.declaration != declaration:
            other = known.declaration
            ticks = ", ".join(f"{name} {tick}" for name, tick in other.ticks.items()) or "none"
            why = f"already declared with another key or ticks: key {other.key}, ticks {ticks}"
            raise TableError(declaration.name, why)
        return known is not None

    def wants(self, name: str) -> list[Filter]:
        """What the home of a table wants to hear."""
        return [Filter(name), Filter(ASK + name), Filter(DELETE + name)]

    def admit(self, event: Event) -> None:
        """Raise if a table that is kept here would not take a row."""
        table = self.home.tables.get(event.type)
        if table is not None:
            table.declaration.admit(event)

    def keys_of(self, event: Event) -> tuple[Value, ...]:
        """Which row an event is of, if any."""
        table = self.home.tables.get(event.type)
        key = None if table is None else event.attributes.get(table.declaration.key)
        return () if key is None else (key,)

    def put(self, event: Event, now: int) -> list[Event]:
        """A row that was admitted: the messages."""
        table = self.get(event.type)
        key = event.attributes[table.declaration.key]
        self._put(("row", event.type, _text(key)), event)
        return self._numbered(self.home.put(event, now if event.stamp is None else event.stamp))

    def hear(self, event: Event, env: Mapping[str, Value], now: int, later: bool) -> list[Event]:
        """What follows from something that came: messages, which go out from here.

        With `later` a question is to be asked again that was put before it was known that there are
        such messages: they may not find their way yet to whoever asks.
        """
        kind, colon, name = event.type.partition(":")
        if not colon or kind + colon not in (ASK, DELETE):
            return self._row(event, now) if event.type in self else []
        if name not in self:
            return []
        if kind + colon == ASK:
            return list(self._answer(name, event, env, now, later))
        _, messages = self.delete(name, event.attributes.get(KEY), now)
        return messages

    def _row(self, event: Event, now: int) -> list[Event]:
        try:
            self.admit(event)
        except TableError as problem:
            # It was published elsewhere, where nobody knew, and has been told as an event.
            self.refused[event.type] = str(problem)
            return []
        return self.put(event, now)

    def delete(self, name: str, key: object, now: int) -> tuple[Event | None, list[Event]]:
        """Remove a row: what it was, if there was one, and the messages."""
        before, messages = self.home.remove(name, key, now)
        if before is not None:
            table = self.get(name)
            self._put(("row", name, _text(before.attributes[table.declaration.key])), None)
        return before, self._numbered(messages)

    def _numbered(self, messages: list[Event]) -> list[Event]:
        self._put(("sequence",), self.home.sequence)
        return messages

    def forget(self, type: str) -> None:
        """Make no more messages that nobody wants."""
        self._since.pop(type, None)
        self.home.forget(type)
        for key in self._listens.pop(type, ()):
            self._put(key, None)

    # Snapshots

    def view(self, standing: Standing, plan: Plan, moment: Moment) -> Seen:
        """A view of tables that are kept here, as it is now, and by which numbers."""
        self._listen(standing, plan)
        before = self.home.sequence
        fold, messages = self.home.snapshot(plan, standing, moment)
        if self.home.sequence != before:
            self._numbered(messages)
        numbers: dict[str, Value] = {LIFE: self.home.life, SEQUENCE: self.home.sequence}
        return Seen(numbers, fold, messages)

    def leave(self, table: str, who: str) -> None:
        """A view of a table's values is no longer wanted."""
        self.home.leave(table, who)

    def gather(self, who: str, standing: Standing, plan: MovedPlan) -> tuple[str, CrowdGroup]:
        """Begin a crowd over a table that is kept here: the name of its group, and its members."""
        self._listen(standing, plan)
        followed = self.home.followed(plan.view.source)
        assert followed is not None
        return followed.gather(who, plan.view, plan.move(standing, self.home.tables))

    def disperse(self, table: str, group: str) -> None:
        """A crowd is no more."""
        followed = self.home.followed(table)
        assert followed is not None
        followed.disperse(group)

    def put_many(self, name: str, last: Sequence[Event], changes: int) -> None:
        """Rows that were admitted have changed so often, and are these now, each once.

        Whoever follows them has been told.
        """
        self.home.put_many(name, last, changes)
        if self._stores:
            key = self.get(name).declaration.key
            for row in last:
                self._put(("row", name, _text(row.attributes[key])), row)
        self._numbered([])

    def _listen(self, standing: Standing, plan: Plan) -> None:
        assert isinstance(standing.statement, View)
        if not self.home.listen(plan, standing.statement.tables):
            return
        # By its interest, parameters and all: it says the type and which attributes are read.
        key = ("listens", str(plan.interest.source), str(plan.interest))
        # What was offered before, and was not any more, was so up to an earlier change.
        since = self._since.setdefault(key[1], f"{self.home.life} {self.home.sequence}")
        self._listens.setdefault(key[1], []).append(key)
        self._put(key, (standing, since))

    def _answer(
        self, name: str, question: Event, env: Mapping[str, Value], now: int, later: bool
    ) -> Iterator[Event]:
        said = {one: question.attributes[one] for one in (TO, SUBSCRIPTION, ASKED)}
        who = who_asks(str(said[TO]), str(said[SUBSCRIPTION]))
        if LEFT in question.attributes:
            self.leave(name, who)
            return
        try:
            asked = question.attributes[VIEW]
            assert isinstance(asked, bytes)
            standing = decode_view(asked)
            assert isinstance(standing.statement, View)
            plan = plan_of(standing.statement, standing.params)
            self._listen(standing, plan)
            since = self._since[str(plan.interest.source)]
            if later and question.attributes.get(LATER) != since:
                yield Event.of_admitted(SNAPSHOT + name, {**said, LATER: since}, now)
                return
            keeps = question.attributes.get(KEEPS) is True
            seen = self.view(standing, plan, Moment(env, now, who, keeps))
        except DriftlineError as problem:
            self.refused[name] = str(problem)
            return
        yield from seen.messages
        data = _bytes(seen.fold.dump())
        parts = [data[at : at + _PART_BYTES] for at in range(0, len(data), _PART_BYTES)]
        for at, part in enumerate(parts):
            attributes = {**said, **seen.numbers, PART: at, PARTS: len(parts), DATA: part}
            yield Event.of_admitted(SNAPSHOT + name, attributes, now)

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept."""
        for key, value in stored.items():
            if key[0] == "table":
                assert isinstance(value, TableDeclaration)
                self.home.declare(value)
        for key, value in stored.items():
            if key[0] == "row":
                assert isinstance(value, Event)
                self.home.put(value, 0)
        for key, value in stored.items():
            if key[0] == "listens":
                assert isinstance(value, tuple)
                standing, self._since[key[1]] = value
                plan = plan_of(standing.statement, standing.params)
                self.home.listen(plan, standing.statement.tables)
                self._listens.setdefault(key[1], []).append(key)
                if key[1].startswith(MOVED):
                    # What everybody was told is not in the journal: they are to come again.
                    self.forgot.append(key[1])
        self.home.life = stored.get(("home",), 0)  # type: ignore[assignment]  # as journaled
        self.home.sequence = stored.get(("sequence",), 0)  # type: ignore[assignment]

    def _check(self) -> None:
        self.home._check()


def who_asks(broker: str, subscription: str) -> str:
    """The name that a home knows a subscription by."""
    return f"{broker}\n{subscription}"


def snapshot_for(broker: str, table: str) -> Filter:
    """What a broker wants that asks the home of a table."""
    return Filter(SNAPSHOT + table, (Constraint(TO, Operator.EQ, Literal(broker)),))


def read_table(data: bytes) -> pa.Table:
    """The table that a snapshot's parts hold together."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _text(key: Value) -> str:
    """A row's key for the journal: the same for 1 and 1.0, which name one row."""
    if isinstance(key, float) and key.is_integer():
        key = int(key)
    return literal(key)
