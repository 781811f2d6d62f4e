"""A table's home and the way to a subscriber, as small as they can be.

Rows are drawn to collide: few keys (1 and 1.0 are one), few values, NULLs, integers and floats that
are equal or far apart, ticks, and now and then a value of another kind.
"""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from driftline.model.event import Event
from driftline.model.expression import Expression
from driftline.model.scope import Scope
from driftline.model.subscription import Subscription
from driftline.model.table import Table, TableDeclaration
from driftline.model.value import Value
from driftline.model.variables import variables_of
from driftline.stateful.fold import Fold, Message
from driftline.stateful.news import News
from driftline.stateful.rows.change import Change, change_of, changed, message_of
from driftline.stateful.rows.interest import flags_of
from driftline.testing import strategies

KEYS = (1, 1.0, 2, 3, "a", "b")
TICK = {"money": "0.01"}


def numbers() -> SearchStrategy[Value]:
    few = st.sampled_from((0, 1, 1.0, 2, 2.5, -1, -0.0, 0.1, 0.2, 3))
    far = st.sampled_from((2**53, 2.0**53, 2**53 + 1, 2**63 - 1, -(2**63), 1e300, -1e300, 5e-324))
    huge = st.sampled_from((1.7e308, -1.7e308))
    wild = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1)
    return st.one_of(few, few, few, far, huge, wild)


def money() -> SearchStrategy[Value]:
    cents = st.integers(-300, 300).map(lambda n: n / 100)
    large = st.sampled_from((9 * 10**16, 9e16, -9e16, 4_500_000_000_000_000, 10**18))
    return st.one_of(cents, cents, st.integers(-3, 3), large)


@st.composite
def rows(draw: DrawFn, table: str = "stock", links: bool = False) -> Event:
    """A row without its key."""
    columns: dict[str, SearchStrategy[Value]] = {
        "x": numbers() if not links else st.sampled_from((1, 1.0, 2, 3, "a")),
        "y": numbers(),
        "money": money(),
        "s": st.sampled_from(("", "a", "ab", "b")),
        "on": st.booleans(),
    }
    found: dict[str, object] = {}
    for name, usual in columns.items():
        shape = draw(st.integers(0, 11))
        if shape == 0 and name != "money":
            found[name] = draw(strategies.values(finite=True))
        elif shape > 2:
            found[name] = draw(usual)
    stamp = draw(st.sampled_from((0, 1, 1_000_000)))
    entered = draw(st.sampled_from((None, stamp)))
    id, source = (draw(st.sampled_from((None, "a", "ab"))) for _ in range(2))
    return Event(table, found, time=stamp, id=id, source=source, entered=entered)


Step = tuple[Value, Event | None]


def steps(table: str = "stock", links: bool = False) -> SearchStrategy[list[Step]]:
    """Upserts and deletions."""
    row = st.one_of(rows(table, links), rows(table, links), rows(table, links), st.none())
    return st.lists(st.tuples(st.sampled_from(KEYS), row), max_size=14)


@st.composite
def conditions(draw: DrawFn) -> Expression:
    """Any condition that does not move by itself."""
    return draw(strategies.predicates(2).filter(lambda node: not variables_of(node).evolving))


def parameters() -> SearchStrategy[dict[str, Value]]:
    return strategies.parameters(frozenset(strategies.PARAMETERS))


class Home:
    """The table, and what its home says of a step."""

    def __init__(self, table: str = "stock") -> None:
        self.table = Table(TableDeclaration.of(table, "key", TICK))

    def apply(self, step: Step) -> Change:
        key, row = step
        old = self.table.get(key)
        if row is None:
            self.table.remove(key)
            return changed(self.table.declaration.name, key, old, None)
        new = Event(
            row.type,
            {**row.attributes, "key": key},
            time=row.time,
            id=row.id,
            source=row.source,
            entered=row.entered,
        )
        self.table.declaration.admit(new)
        self.table.put(new)
        return changed(self.table.declaration.name, key, old, new)

    def rows(self) -> list[Event]:
        return [row for _, row in self.table.items()]


def delivered(interest: Subscription, params: Mapping[str, Value], change: Change) -> Change | None:
    """The change as it comes out of a network that forwards what one of the filters takes."""
    message = message_of(change, 0, flags_of(interest))
    truth = interest.truth(Scope(message, params)) is True
    filters = interest.filters(dict(params))
    assert truth == any(one.matches(Scope(message)) for one in filters)
    assert change_of(message) == change
    return change_of(message) if truth else None


def taken(fold: Fold, change: Change) -> News | None:
    """What the message of a change tells."""
    return fold.take(Message(message_of(change, 0), {}))
