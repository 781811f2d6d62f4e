"""Who may do what? The place where it is asked, before anything is done.

A party is asked about by its name, which says whose it is (see `identity`). What is published is
asked about by type and attributes: once for each form on a connection, not for each event. What a
refusal says is what was asked for, and nothing of what there is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from driftline.broker.grants import ALL_NAMES, NO_NAMES, Grants, Names, Operation
from driftline.broker.identity import identity_of
from driftline.broker.place import place_of
from driftline.errors import NotAllowed
from driftline.model.advertisement import Advertisement
from driftline.model.covering import Statement
from driftline.model.event import ENVELOPE
from driftline.model.expression import Attribute, Expression
from driftline.model.notification import NotificationKind
from driftline.model.pattern import Pattern
from driftline.model.remember import remembered
from driftline.model.subscription import Crossed, Moved, Subscription
from driftline.model.variables import walk
from driftline.model.view import View, ViewKind
from driftline.stateful.news import News, Values, value_key


class Access(Protocol):
    """Each raises `NotAllowed`, or lets it be."""

    def publish(self, party: str, type: str, attributes: Collection[str]) -> None:
        """May it publish such events?"""

    def subscribe(self, party: str, statement: Statement) -> None:
        """May it be told this?"""

    def tell_apart(self, party: str, statement: Statement, key: str) -> None:
        """May what waits for it be told apart by this attribute?"""

    def hold(self, party: str, statement: Statement) -> None:
        """May it let publishers wait so that nothing of this is lost?"""

    def set(self, party: str, statement: Statement) -> None:
        """May it move the parameters of this, or restate it?"""

    def advertise(self, party: str, says: Advertisement) -> None:
        """May it say that it will publish such events, or ask who would want them?"""

    def declare(self, party: str, table: str) -> None:
        """May it declare this table?"""

    def delete(self, party: str, table: str) -> None:
        """May it remove rows of this table?"""

    def observe(self, party: str, variable: str) -> None:
        """May it say what a variable of the environment is worth?"""

    def handle(self, party: str, handler: str) -> None:
        """May it be told through this handler?"""

    def operate(self, party: str) -> None:
        """May it see how the broker does, and change its links?"""

    def sight(self, party: str, type: str, *, kept: bool = False) -> Names:
        """Which attributes may it see of events of a type, or of what is kept of these?"""

    def sees_all(self, party: str) -> bool:
        """May it be told all there is, whatever it asks for?"""


class Anyone:
    """Anyone may do everything."""

    def publish(self, party: str, type: str, attributes: Collection[str]) -> None:
        """See `Access`."""

    def subscribe(self, party: str, statement: Statement) -> None:
        """See `Access`."""

    def tell_apart(self, party: str, statement: Statement, key: str) -> None:
        """See `Access`."""

    def hold(self, party: str, statement: Statement) -> None:
        """See `Access`."""

    def set(self, party: str, statement: Statement) -> None:
        """See `Access`."""

    def advertise(self, party: str, says: Advertisement) -> None:
        """See `Access`."""

    def declare(self, party: str, table: str) -> None:
        """See `Access`."""

    def delete(self, party: str, table: str) -> None:
        """See `Access`."""

    def observe(self, party: str, variable: str) -> None:
        """See `Access`."""

    def handle(self, party: str, handler: str) -> None:
        """See `Access`."""

    def operate(self, party: str) -> None:
        """See `Access`."""

    def sight(self, party: str, type: str, *, kept: bool = False) -> Names:
        """See `Access`."""
        return ALL_NAMES

    def sees_all(self, party: str) -> bool:
        """See `Access`."""
        return True


class Granted:
    """A party may do what was granted to whose it is."""

    def __init__(self, grants: Grants) -> None:
        self._grants = grants

    def publish(self, party: str, type: str, attributes: Collection[str]) -> None:
        """See `Access`."""
        self._check(party, Operation.PUBLISH, type, attributes, "publish")

    def subscribe(self, party: str, statement: Statement) -> None:
        """See `Access`."""
        operation = Operation.VIEW if is_kept(statement) else Operation.SUBSCRIBE
        self._check_read(party, operation, statement, "be told of")

    def tell_apart(self, party: str, statement: Statement, key: str) -> None:
        """See `Access`."""
        operation = Operation.VIEW if is_kept(statement) else Operation.SUBSCRIBE
        for type, _ in asked_of(statement):
            self._check(party, operation, type, (key,), "be told of")

    def hold(self, party: str, statement: Statement) -> None:
        """See `Access`."""
        for type, _ in asked_of(statement):
            self._check(party, Operation.HOLD, type, (), "let publishers wait for")

    def set(self, party: str, statement: Statement) -> None:
        """See `Access`."""
        self._check_read(party, Operation.SET, statement, "move what it asks of")

    def _check_read(
        self, party: str, operation: Operation, statement: Statement, verb: str
    ) -> None:
        for type, names in asked_of(statement):
            self._check(party, operation, type, names, verb)
        for variable in sorted(statement.variables().environment):
            self._check(party, Operation.READ, variable, (), "read the variable")

    def advertise(self, party: str, says: Advertisement) -> None:
        """See `Access`."""
        names = [name for name, _ in says.attributes]
        self._check(party, Operation.ADVERTISE, says.type, names, "advertise")

    def declare(self, party: str, table: str) -> None:
        """See `Access`."""
        self._check(party, Operation.DECLARE, table, (), "declare the table")

    def delete(self, party: str, table: str) -> None:
        """See `Access`."""
        self._check(party, Operation.DELETE, table, (), "delete rows of")

    def observe(self, party: str, variable: str) -> None:
        """See `Access`."""
        self._check(party, Operation.OBSERVE, variable, (), "say the variable")

    def handle(self, party: str, handler: str) -> None:
        """See `Access`."""
        who = identity_of(party)
        if self._grants.names(who, Operation.HANDLE, handler) is None:
            raise NotAllowed(who, f"be told through {place_of(handler)}")

    def operate(self, party: str) -> None:
        """See `Access`."""
        who = identity_of(party)
        if not self._grants.may(who, Operation.OPERATE):
            raise NotAllowed(who, "operate this broker")

    def sight(self, party: str, type: str, *, kept: bool = False) -> Names:
        """See `Access`."""
        operation = Operation.VIEW if kept else Operation.SUBSCRIBE
        return self._grants.names(identity_of(party), operation, type) or NO_NAMES

    def sees_all(self, party: str) -> bool:
        """See `Access`."""
        who, names = identity_of(party), self._grants.names
        told = (names(who, one, None) for one in (Operation.SUBSCRIBE, Operation.VIEW))
        return all(one is not None and one.is_all for one in told) and (
            names(who, Operation.READ, None) is not None
        )

    def _check(
        self,
        party: str,
        operation: Operation,
        type: str | None,
        attributes: Collection[str],
        verb: str,
    ) -> None:
        who = identity_of(party)
        names = self._grants.names(who, operation, type)
        what = "events of any type" if type is None else type
        if names is None:
            raise NotAllowed(who, f"{verb} {what}")
        denied = sorted(name for name in attributes if name not in names and name not in ENVELOPE)
        if denied:
            raise NotAllowed(who, f"{verb} {what} with {', '.join(denied[:5])}")


def may_be_told(access: Access, party: str, statement: Statement) -> bool:
    """May it be told this still? What was allowed once may have been withdrawn."""
    try:
        access.subscribe(party, statement)
    except NotAllowed:
        return False
    return True


def seen_news(
    access: Access, party: str, statement: Statement, news: Collection[News]
) -> Collection[News]:
    """What a view tells, without changes of nothing that its party may see.

    They do not wait for it either: how much does, and up to which number, would tell of them.
    """
    if not shows_rows(statement):
        return news
    assert isinstance(statement, View)
    names = access.sight(party, statement.source, kept=True)
    return news if names.is_all else [one for one in news if not is_unseen(one, names)]


def shows_rows(statement: Statement) -> bool:
    """Does it tell of rows whatever its party may see of them?

    That something moved or crossed is told for itself: all that it depends on may be seen.
    """
    return isinstance(statement, View) and statement.of is ViewKind.ROWS and not statement.columns


def is_unseen(news: News, names: Names) -> bool:
    """Is it a change, of nothing that has one of these names?"""
    if news.kind is not NotificationKind.CHANGE or news.old is None:
        return False
    return _seen(news.values, names) == _seen(news.old, names)


def _seen(values: Values, names: Names) -> dict[str, object]:
    return {name: value_key(value) for name, value in values.items() if name in names}


def is_kept(statement: Statement) -> bool:
    """Is what it tells kept somewhere, so that it tells of what was before too?"""
    if isinstance(statement, Subscription):
        return statement.change is not None and statement.source is not None
    return isinstance(statement, View) and bool(statement.source)


@remembered
def asked_of(statement: Statement) -> tuple[tuple[str | None, frozenset[str]], ...]:
    """The types that a statement is about (None: any), each with the attributes that it names."""
    if isinstance(statement, Pattern):
        return tuple(asked for step in statement.steps for asked in asked_of(step))
    found = {node for one in _expressions(statement) for node in walk(one)}
    attributes = [node for node in found if isinstance(node, Attribute)]
    if isinstance(statement, View) and statement.join is not None:
        # One that does not say whose it is may be of either.
        return tuple(
            (table, frozenset(a.name for a in attributes if a.table in (None, table)))
            for table in statement.tables
        )
    return ((statement.source or None, frozenset(one.name for one in attributes)),)


def _expressions(statement: Subscription | View) -> Iterator[Expression]:
    yield statement.where
    for column in statement.columns:
        yield column.expression
    change = statement.having if isinstance(statement, View) else statement.change
    if isinstance(change, Moved):
        yield from (change.value, change.radius)
        if change.may is not None:
            yield change.may
    elif isinstance(change, Crossed):
        yield from (change.value, change.threshold, change.clear)
    if isinstance(statement, View) and statement.join is not None:
        yield statement.join.on
