"""What does SQLite answer to the same condition?

A second implementation of the language, by people who never saw ours. Its printer walks the model
itself and shares nothing with the model's own text. It covers what `generate` makes, where SQLite
means the same: each column holds values of one type, NULL is a missing attribute, `/` is told to
divide reals, LIKE is told to mind case, and no integer overflows. Constants are bound and not
printed, so that no digit is lost on the way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from datetime import datetime

from driftline.model.event import Event
from driftline.model.expression import (
    Arithmetic,
    Attribute,
    Call,
    Case,
    Coalesce,
    Expression,
    Literal,
    Negate,
    Parameter,
)
from driftline.model.predicate import And, Between, Comparison, In, IsNull, Like, Not, Or
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Kind, Value, kind_of, microseconds_of

SqlValue = str | int | float | bytes | None


class Sqlite:
    """Events in a table; asks which of them satisfy a subscription."""

    def __init__(self, columns: Mapping[str, Kind], events: Iterable[Event]) -> None:
        self._columns = columns
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute("PRAGMA case_sensitive_like = ON")
        # Columns without a type, so that SQLite converts nothing.
        names = ", ".join(_quoted(name) for name in ("n", "type", *columns))
        self._connection.execute(f"CREATE TABLE events ({names})")
        marks = ", ".join("?" * (len(columns) + 2))
        rows = [
            (n, event.type, *(_stored(event.attributes.get(name)) for name in columns))
            for n, event in enumerate(events)
        ]
        self._connection.executemany(f"INSERT INTO events VALUES ({marks})", rows)

    def truths(self, standing: Standing) -> list[bool | None]:
        """For each event in order: true, false, or None for unknown."""
        statement = standing.statement
        assert isinstance(statement, Subscription)
        printer = _Printer(self._columns, standing.params)
        condition = printer.sql(statement.where)
        if statement.source is not None:
            condition = f"({_quoted('type')} = {printer.bound(statement.source)} AND {condition})"
        query = f"SELECT {condition} FROM events ORDER BY n"
        rows = self._connection.execute(query, printer.values).fetchall()
        return [None if truth is None else bool(truth) for (truth,) in rows]


class _Printer:
    """One condition as SQLite's SQL, every operation in parentheses, with its bound values."""

    def __init__(self, columns: Mapping[str, Kind], params: Mapping[str, Value]) -> None:
        self._columns = columns
        self._params = params
        self.values: list[SqlValue] = []

    def bound(self, value: Value | None) -> str:
        self.values.append(_stored(value))
        return f"?{len(self.values)}"

    def sql(self, node: Expression) -> str:
        match node:
            case Literal(value):
                return self.bound(value)
            case Parameter(name):
                return self.bound(self._params[name])
            case Attribute(name):
                return _quoted(name)
            case Negate(operand):
                return f"(- {self.sql(operand)})"
            case Arithmetic():
                return self._arithmetic(node)
            case Call(function, arguments) if function in ("abs", "min", "max"):
                return f"{function}({self._listed(arguments)})"
            case Coalesce(arguments):
                return f"coalesce({self._listed(arguments)})"
            case Case(branches, otherwise):
                whens = [f"WHEN {self.sql(when)} THEN {self.sql(then)}" for when, then in branches]
                return f"(CASE {' '.join(whens)} ELSE {self.sql(otherwise)} END)"
            case _:
                return self._predicate(node)

    def _predicate(self, node: Expression) -> str:
        match node:
            case Comparison(sign, left, right):
                return f"({self.sql(left)} {sign} {self.sql(right)})"
            case Between(operand, low, high):
                return f"({self.sql(operand)} BETWEEN {self.sql(low)} AND {self.sql(high)})"
            case In(operand, items):
                return f"({self.sql(operand)} IN ({self._listed(items)}))"
            case Like(operand, pattern):
                return f"({self.sql(operand)} LIKE {self.bound(pattern.text)} ESCAPE '\\')"
            case IsNull(operand):
                return f"({self.sql(operand)} IS NULL)"
            case Not(operand):
                return f"(NOT {self.sql(operand)})"
            case And(items):
                return "(" + " AND ".join(self.sql(item) for item in items) + ")"
            case Or(items):
                return "(" + " OR ".join(self.sql(item) for item in items) + ")"
            case _:
                raise TypeError(f"SQLite is not asked about {type(node).__name__}")

    def _arithmetic(self, node: Arithmetic) -> str:
        left, right = self.sql(node.left), self.sql(node.right)
        if node.operator == "/":
            return f"(CAST({left} AS REAL) / {right})"
        if self._is_time(node.left):  # microseconds underneath, seconds as the answer
            return f"(CAST({left} - {right} AS REAL) / 1000000.0)"
        return f"({left} {node.operator} {right})"

    def _is_time(self, node: Expression) -> bool:
        match node:
            case Attribute(name):
                return self._columns[name] is Kind.TIME
            case Literal(value) if value is not None:
                return kind_of(value) is Kind.TIME
            case Parameter(name):
                return kind_of(self._params[name]) is Kind.TIME
            case _:
                return False

    def _listed(self, nodes: Iterable[Expression]) -> str:
        return ", ".join(self.sql(node) for node in nodes)


def _stored(value: Value | None) -> SqlValue:
    """A value as SQLite keeps it: booleans as 0 and 1, times as microseconds."""
    if isinstance(value, datetime):
        return microseconds_of(value)
    return int(value) if isinstance(value, bool) else value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
