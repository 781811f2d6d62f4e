"""What does a join ask, and of which pairs of rows?

Of its condition, the equalities between a column of the one table and a column of the other say
which pairs there are at all: they are the *pairing*, and the home makes pairs by a hash of them.
The rest is asked of each pair. A join without any such equality is refused: all rows of both tables
would be pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

from driftline.errors import NotSupported
from driftline.model.expression import Attribute, Expression
from driftline.model.predicate import Comparison, conjunction, conjuncts
from driftline.model.subscription import Column, Subscription
from driftline.model.view import View
from driftline.stateful.rows.interest import check_still, interest, renamed

PAIRS = "$pairs:"


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which columns of two tables must be equal; tables and columns in order of their names.

    So views that say it in another order have the same one, and share its messages.
    """

    tables: tuple[str, str]
    columns: tuple[tuple[str, str], ...]

    @property
    def type(self) -> str:
        """The type of the messages about its pairs.

        >>> Pairing(("news", "stock"), (("symbol", "symbol"),)).type
        '$pairs:news.symbol = stock.symbol'
        """
        first, second = self.tables
        equal = (f"{Attribute(a, first)} = {Attribute(b, second)}" for a, b in self.columns)
        return PAIRS + " AND ".join(equal)


@dataclass(frozen=True, slots=True)
class JoinSubscription:
    """A join, taken apart: the pairing, and what is asked of its pairs."""

    view: View
    pairing: Pairing
    pairs: Subscription
    """The view as a subscription to pairs, whose attributes are called `stock.price`."""

    @classmethod
    def of(cls, view: View) -> JoinSubscription:
        """Take a join apart, or refuse it."""
        if view.join is None:
            raise NotSupported(str(view), "wanted a join")
        parts = (*conjuncts(view.join.on), *conjuncts(view.where))
        for expression in (*parts, *(column.expression for column in view.columns)):
            check_still(expression)
        tables = (view.source, view.join.table)
        tables = tables if tables[0] < tables[1] else tables[::-1]
        equal = [_columns(part, tables) for part in parts]
        columns = tuple(sorted({pair for pair in equal if pair is not None}))
        if not columns:
            why = "a join needs an equality, such as ON a.k = b.k, of a column of each table"
            raise NotSupported(str(view), why)
        pairing = Pairing(tables, columns)
        rest = (part for part, pair in zip(parts, equal, strict=True) if pair is None)
        where = renamed(conjunction(tuple(rest)), "")
        selected = tuple(Column(renamed(c.expression, ""), c.name) for c in view.columns)
        return cls(view, pairing, Subscription(selected, pairing.type, where))

    def interest(self) -> Subscription:
        """The subscription to the messages about its pairs."""
        columns = [column.expression for column in self.pairs.columns]
        return interest(self.pairing.type, self.pairs.where, columns)

    @property
    def turned(self) -> bool:
        """Has the subscriber written the tables the other way round?"""
        return self.view.source != self.pairing.tables[0]


def _columns(part: Expression, tables: tuple[str, str]) -> tuple[str, str] | None:
    """The columns of the first and of the second table that this part says are equal."""
    if not isinstance(part, Comparison) or part.sign != "=":
        return None
    found = {side.table: side.name for side in part.children() if isinstance(side, Attribute)}
    first, second = tables
    return (found[first], found[second]) if found.keys() == set(tables) else None
