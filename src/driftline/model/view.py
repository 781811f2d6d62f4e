"""What is the current answer to a query over tables? [DBNET §2.1]

A view is a subscription over a table's state: aggregates over a range, DISTINCT values, a join, the
live set of the rows that satisfy a condition, or such rows whose value moved since it was told.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace

from driftline.errors import NotSupported
from driftline.model.event import Event
from driftline.model.expression import TRUE, Attribute, Expression
from driftline.model.remember import Remembering, remembered
from driftline.model.scope import Scope
from driftline.model.subscription import Column, Crossed, Moved, Subscription, where_text
from driftline.model.text import identifier
from driftline.model.truth import Outcome, Unknown
from driftline.model.variables import Variables, variables_of


class AggregateFunction(enum.Enum):
    """What can be computed over the rows in range."""

    MIN = "MIN"
    MAX = "MAX"
    COUNT = "COUNT"
    SUM = "SUM"
    AVG = "AVG"


@dataclass(frozen=True, slots=True)
class Aggregate(Expression):
    """`MIN(per)`; without an argument it is `COUNT(*)`."""

    function: AggregateFunction
    argument: Attribute | None = None

    def evaluate(self, scope: Scope) -> Outcome:
        return Unknown(self, "has a value only in a view")

    def children(self) -> tuple[Expression, ...]:
        return () if self.argument is None else (self.argument,)

    def rebuilt(self, children: tuple[Expression, ...]) -> Aggregate:
        argument = children[0] if children else None
        assert argument is None or isinstance(argument, Attribute)
        return Aggregate(self.function, argument)

    def __str__(self) -> str:
        return f"{self.function.value}({'*' if self.argument is None else self.argument})"


class ViewKind(enum.Enum):
    """What a view keeps up to date: one row of values, a set of values, of rows or of pairs.

    `MOVED`: what was last told of each row, with a condition on how far that is from now.
    """

    AGGREGATES = "aggregates"
    DISTINCT = "distinct"
    ROWS = "rows"
    PAIRS = "pairs"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Join:
    """`JOIN table ON on`."""

    table: str
    on: Expression

    def __str__(self) -> str:
        return f"JOIN {identifier(self.table)} ON {self.on}"


@dataclass(frozen=True, slots=True)
class View(Remembering):
    """`SELECT columns FROM source [JOIN …] WHERE where [HAVING having]`."""

    columns: tuple[Column, ...]
    source: str
    where: Expression = TRUE
    distinct: bool = False
    join: Join | None = None
    having: Moved | Crossed | None = None

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            parts = (self.columns, self.source, self.where, self.distinct, self.join, self.having)
            object.__setattr__(self, "_hash", hash(parts))
            return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        # Without the hash, which is another one in each process.
        parts = (self.columns, self.source, self.where, self.distinct, self.join, self.having)
        return View, parts

    @classmethod
    def of_rows(cls, rows: Subscription) -> View:
        """The live set of the rows that satisfy a condition. No text says it: `rows=True` does."""
        assert rows.source is not None
        return cls(rows.columns, rows.source, rows.where)

    @classmethod
    def of_change(cls, asked: Subscription) -> View:
        """A subscription with `moved` or `crossed`, which has state; of any type if it has none."""
        assert asked.change is not None
        return cls(asked.columns, asked.source or "", asked.where, having=asked.change)

    @property
    def of(self) -> ViewKind:
        """What is kept up to date."""
        if self.join is not None:
            return ViewKind.PAIRS
        if self.distinct:
            return ViewKind.DISTINCT
        if any(isinstance(one.expression, Aggregate) for one in self.columns):
            return ViewKind.AGGREGATES
        return ViewKind.ROWS if self.having is None else ViewKind.MOVED

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it reads."""
        if not self.source:
            return ()
        return (self.source,) if self.join is None else (self.source, self.join.table)

    def condition(self) -> Subscription:
        """The rows of its table that it is about, as a subscription."""
        return Subscription(self.columns, self.source or None, self.where)

    def asked(self) -> Subscription | View:
        """What its subscriber has written: not every view is written as one."""
        match self.of:
            case ViewKind.ROWS:
                return self.condition()
            case ViewKind.MOVED:
                return replace(self.condition(), change=self.having)
        return self

    def parts(self) -> tuple[object, ...]:
        """See `Remembering`."""
        on = () if self.join is None else (self.join.on,)
        having = () if self.having is None else self.having.parts()
        return (self.where, *(column.expression for column in self.columns), *on, *having)

    def variables(self) -> Variables:
        """The variables the condition, the columns and the radii depend on."""
        return _variables(self)

    def matches(
        self,
        event: Event,
        params: Mapping[str, object] | None = None,
        env: Mapping[str, object] | None = None,
        elapsed: float = 0.0,
        now: int | None = None,
    ) -> bool:
        """Refused: a view follows a table's state, it does not match single events."""
        raise NotSupported(str(self), "a view follows a table, it does not match single events")

    def __str__(self) -> str:
        if self.of is ViewKind.MOVED:
            return str(self.asked())
        distinct = "DISTINCT " if self.distinct else ""
        parts = [f"SELECT {distinct}{', '.join(map(str, self.columns)) or '*'}"]
        parts.append(f"FROM {identifier(self.source)}")
        if self.join is not None:
            parts.append(str(self.join))
        where = where_text(self.where)
        if where:
            parts.append(f"WHERE {where}")
        if self.having is not None:
            parts.append(f"HAVING {self.having}")
        return " ".join(parts)


@remembered
def _variables(one: View) -> Variables:
    found = variables_of(one.where)
    for column in one.columns:
        found |= variables_of(column.expression)
    if one.join is not None:
        found |= variables_of(one.join.on)
    return found if one.having is None else found | one.having.variables()
