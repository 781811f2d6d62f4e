"""Which model expression does a syntax tree stand for?

Every node type that the language has is converted here; any other, and any argument of a node
that the conversion does not use, is refused. So nothing of a text is ever silently ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from driftline.errors import InvalidValue, LanguageError, LimitExceeded
from driftline.language.dialect import number
from driftline.language.limits import DEPTH_MAX
from driftline.model.expression import (
    Arithmetic,
    Attribute,
    Call,
    Case,
    Coalesce,
    Elapsed,
    Environment,
    Expression,
    Literal,
    Negate,
    Now,
    Parameter,
)
from driftline.model.functions import FUNCTIONS, is_zone
from driftline.model.like import LikePattern, MalformedPattern
from driftline.model.predicate import And, Between, Comparison, In, IsNull, Like, Not, Or
from driftline.model.text import read_timestamp
from driftline.model.value import INTEGER_MAX, admit

_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_OPERATORS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_CONDITIONS = frozenset({*_SIGNS, exp.Is, exp.In, exp.Like, exp.Between, exp.Not})
SPECIAL = ("env", "elapsed", "now", "coalesce")
STATEFUL = ("moved", "crossed")
# What a person would call an argument of a syntax node, where sqlglot's name says little.
_CLAUSES = {
    "db": "second dot",
    "kind": "AS",
    "locks": "FOR UPDATE",
    "method": "NATURAL or ASOF",
    "query": "SELECT",
    "sample": "TABLESAMPLE",
    "side": "outer join",
}
KNOWN = ", ".join(sorted({*FUNCTIONS, *SPECIAL, *STATEFUL}))


class Converter:
    """Converts the nodes of one SELECT; knows its text (for places) and its tables."""

    def __init__(self, text: str, tables: dict[str, str] | None = None) -> None:
        self.text = text
        # Each name a column may be qualified with, and the table it stands for.
        self.tables = tables or {}
        self.used: set[str] = set()
        self.depth = 0

    def refuse(self, node: exp.Expr, wanted: str, came: str) -> NoReturn:
        """Raise the refusal with the place of the node."""
        line, column = self.place(node)
        raise LanguageError(wanted, came[:120], line, column)

    def place(self, node: exp.Expr) -> tuple[int | None, int | None]:
        """Line and column where the node begins, as far as the syntax tree tells."""
        starts = [inner.meta["start"] for inner in node.walk() if "start" in inner.meta]
        if not starts:
            return None, None
        start = min(starts)
        return self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start)

    def only(self, node: exp.Expr, *used: str) -> None:
        """Refuse the node if it says anything besides these arguments."""
        for name, value in node.args.items():
            if value and name not in used:
                word = _CLAUSES.get(name, name.rstrip("_").upper())
                values = value if isinstance(value, list) else [value]
                trees = [inner for inner in values if isinstance(inner, exp.Expr)]
                self.refuse(
                    trees[0] if trees else node,
                    f"no {word} here",
                    ", ".join(shown(inner) for inner in trees)[:60]
                    or (value if isinstance(value, str) else word),
                )

    def convert(self, node: exp.Expr) -> Expression:
        """The expression a node stands for."""
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise LimitExceeded(f"a tree of at most {DEPTH_MAX} levels", "a deeper one")
        try:
            converter = _CONVERTERS.get(type(node))
            if converter is None:
                self.refuse(
                    node, "an expression of the language", f"{shown(node)} ({node.key.upper()})"
                )
            return converter(self, node)
        except InvalidValue as error:
            self.refuse(node, error.wanted, error.came)
        finally:
            self.depth -= 1

    def operand(self, node: exp.Expr) -> Expression:
        """The expression of an operand, which is no condition unless parentheses say so.

        SQL dialects differ in how they read `a < b IS NOT NULL`, so nobody should have to know.
        """
        bare = type(node) in _CONDITIONS
        if isinstance(node, exp.Paren) and isinstance(node.this, exp.Not):
            # sqlglot puts parentheses of its own around IS NOT NULL; only written ones count.
            bare = not self._is_parenthesised(node.this)
        if bare:
            self.refuse(node, "parentheses around a condition inside another", shown(node))
        return self.convert(node)

    def _is_parenthesised(self, node: exp.Not) -> bool:
        if not isinstance(node.this, exp.Is):
            return True
        starts = [inner.meta["start"] for inner in node.walk() if "start" in inner.meta]
        return not starts or self.text[: min(starts)].rstrip().endswith("(")

    def literal(self, node: exp.Literal) -> Expression:
        if node.is_string:
            return Literal(admit(node.this, "text"))
        value = number(node.this, *self.place(node))
        if isinstance(value, int) and value > INTEGER_MAX:
            self.refuse(node, "an integer of 64 bits", node.this)
        return Literal(value)

    def negation(self, node: exp.Neg) -> Expression:
        self.only(node, "this")
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return Literal(-number(inner.this, *self.place(inner)))
        return Negate(self.operand(inner))

    def column(self, node: exp.Column) -> Expression:
        self.only(node, "this", "table")
        if not isinstance(node.this, exp.Identifier):
            self.refuse(node, "an attribute's name", shown(node))
        if not node.name:
            self.refuse(node, "an attribute's name", "an empty one")
        table = node.args.get("table")
        if table is None:
            if len(set(self.tables.values())) > 1:
                self.refuse(node, f"table.{node.name} (there are two tables)", node.name)
            return Attribute(node.name)
        if table.name not in self.tables:
            known = " or ".join(sorted(self.tables)) or f'the attribute alone, or "{node.sql()}"'
            self.refuse(node, f"a column of {known}" if self.tables else known, shown(node))
        self.used.add(table.name)
        joined = len(set(self.tables.values())) > 1
        return Attribute(node.name, self.tables[table.name] if joined else None)

    def placeholder(self, node: exp.Placeholder) -> Expression:
        self.only(node, "this")
        name = node.this
        if not isinstance(name, str) or not name.isidentifier():
            self.refuse(node, "a parameter such as :limit", shown(node))
        return Parameter(name)

    def junction(self, node: exp.Connector) -> Expression:
        """AND and OR chains of any length, without recursion along the chain."""
        kind = type(node)
        items: list[Expression] = []
        stack: list[exp.Expr] = [node]
        while stack:
            inner = stack.pop()
            if type(inner) is kind:
                self.only(inner, "this", "expression")
                stack += [inner.expression, inner.this]
            else:
                items.append(self.convert(inner))
        return And(tuple(items)) if kind is exp.And else Or(tuple(items))

    def comparison(self, node: exp.Binary) -> Expression:
        self.only(node, "this", "expression")
        left, right = self.operand(node.this), self.operand(node.expression)
        return Comparison(_SIGNS[type(node)], left, right)

    def arithmetic(self, node: exp.Binary) -> Expression:
        self.only(node, "this", "expression")
        left, right = self.operand(node.this), self.operand(node.expression)
        return Arithmetic(_OPERATORS[type(node)], left, right)

    def between(self, node: exp.Between) -> Expression:
        self.only(node, "this", "low", "high")
        low, high = self.operand(node.args["low"]), self.operand(node.args["high"])
        return Between(self.operand(node.this), low, high)

    def in_(self, node: exp.In) -> Expression:
        if node.args.get("field") is not None:
            self.refuse(node, "IN (a, b, …) with parentheses", shown(node))
        self.only(node, "this", "expressions")
        items = tuple(self.convert(item) for item in node.expressions)
        for item, tree in zip(items, node.expressions, strict=True):
            allowed = isinstance(item, Literal | Parameter | Environment)
            if not allowed or item == Literal(None):
                self.refuse(tree, "literals and variables in IN", str(item))
        if not items:
            self.refuse(node, "one value or more in IN", "none")
        return In(self.operand(node.this), items)

    def like(self, node: exp.Like) -> Expression:
        self.only(node, "this", "expression", "negate")
        pattern = node.expression
        if not (isinstance(pattern, exp.Literal) and pattern.is_string):
            self.refuse(node, "a string literal as LIKE pattern", shown(pattern))
        try:
            like = Like(self.operand(node.this), LikePattern(str(admit(pattern.this, "text"))))
            return Not(like) if node.args.get("negate") else like
        except MalformedPattern as error:
            self.refuse(pattern, str(error), shown(pattern))

    def is_null(self, node: exp.Is) -> Expression:
        self.only(node, "this", "expression")
        if not isinstance(node.expression, exp.Null):
            self.refuse(node, "IS NULL or IS NOT NULL", shown(node))
        operand = self.convert(node.this)
        if not isinstance(operand, Attribute):
            self.refuse(node, "an attribute before IS NULL", str(operand))
        return IsNull(operand)

    def case(self, node: exp.Case) -> Expression:
        self.only(node, "this", "ifs", "default")
        subject = None if node.this is None else self.operand(node.this)
        branches = []
        for branch in node.args["ifs"]:
            self.only(branch, "this", "true")
            branches.append((self.convert(branch.this), self.convert(branch.args["true"])))
        default = node.args.get("default")
        otherwise = Literal(None) if default is None else self.convert(default)
        return Case(tuple(branches), otherwise, subject)

    def time(self, node: exp.Cast) -> Expression:
        self.only(node, "this", "to")
        target, value = node.args["to"], node.this
        is_text = isinstance(value, exp.Literal) and value.is_string
        if not is_text or target.sql().upper() != "TIMESTAMP":
            self.refuse(node, "TIMESTAMP '…' as the only conversion", shown(node))
        try:
            return Literal(read_timestamp(value.this))
        except ValueError as error:
            self.refuse(value, str(error), repr(value.this))

    def bytes_(self, node: exp.HexString) -> Expression:
        try:
            return Literal(bytes.fromhex(node.this))
        except ValueError:
            self.refuse(node, "an even number of hexadecimal digits", repr(node.this))

    def call(self, node: exp.Anonymous) -> Expression:
        name, arguments = self.called(node)
        if name in ("elapsed", "now"):
            self.count(node, name, 0, 0)
            return Elapsed() if name == "elapsed" else Now()
        if name == "env":
            self.count(node, name, 1, 1)
            return self._environment(arguments[0])
        if name == "coalesce":
            self.count(node, name, 1, 64)
            return Coalesce(tuple(self.convert(argument) for argument in arguments))
        if name in STATEFUL:
            self.refuse(node, f"{name}(…) once, as a condition of its own joined by AND", "it here")
        function = FUNCTIONS.get(name)
        if function is None:
            self.refuse(node, f"one of the functions {KNOWN}", f"{name}(…)")
        self.count(node, name, function.arguments_min, function.arguments_max)
        converted = tuple(self.convert(argument) for argument in arguments)
        if name in ("hour", "minute", "weekday") and len(converted) == 2:
            self._check_zone(arguments[1], converted[1])
        return Call(name, converted)

    def called(self, node: exp.Anonymous) -> tuple[str, list[exp.Expr]]:
        """The function's name in lower case and its argument trees."""
        self.only(node, "this", "expressions")
        if not isinstance(node.this, str):
            self.refuse(node, "a function's name without quotes", shown(node))
        return node.this.lower(), node.expressions

    def count(self, node: exp.Anonymous, name: str, least: int, most: int) -> None:
        """Refuse a call with the wrong number of arguments."""
        found = len(node.expressions)
        if not least <= found <= most:
            plural = "" if most == 1 else "s"
            wanted = f"{least}" if least == most else f"{least} to {most}"
            hint = (
                "; as an aggregate it stands in SELECT or HAVING" if name in ("min", "max") else ""
            )
            self.refuse(node, f"{wanted} argument{plural} for {name}", f"{found}{hint}")

    def _environment(self, node: exp.Expr) -> Expression:
        if not (isinstance(node, exp.Literal) and node.is_string and node.this):
            self.refuse(node, "a quoted name, as in env('visibility')", shown(node))
        return Environment(str(admit(node.this, "name")))

    def _check_zone(self, node: exp.Expr, zone: Expression) -> None:
        if not (isinstance(zone, Literal) and isinstance(zone.value, str) and is_zone(zone.value)):
            self.refuse(node, "a zone's name such as 'Europe/Berlin'", str(zone))


def shown(node: exp.Expr) -> str:
    """A syntax tree for a refusal, cut to a sensible length."""
    try:
        return node.sql(unsupported_level=ErrorLevel.IGNORE)[:60]
    except (RecursionError, ValueError):  # a tree too deep to write, or one that no SQL has
        return node.key.upper()


def _boolean(converter: Converter, node: exp.Expr) -> Expression:
    return Literal(bool(node.this))


def _null(converter: Converter, node: exp.Expr) -> Expression:
    return Literal(None)


def _parentheses(converter: Converter, node: exp.Expr) -> Expression:
    converter.only(node, "this")
    return converter.convert(node.this)


def _not(converter: Converter, node: exp.Expr) -> Expression:
    converter.only(node, "this")
    return Not(converter.convert(node.this))


_CONVERTERS: dict[type[exp.Expr], Callable[..., Expression]] = {
    exp.Literal: Converter.literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.HexString: Converter.bytes_,
    exp.Cast: Converter.time,
    exp.Column: Converter.column,
    exp.Placeholder: Converter.placeholder,
    exp.Anonymous: Converter.call,
    exp.Case: Converter.case,
    exp.Paren: _parentheses,
    exp.Neg: Converter.negation,
    exp.Not: _not,
    exp.And: Converter.junction,
    exp.Or: Converter.junction,
    exp.Between: Converter.between,
    exp.In: Converter.in_,
    exp.Like: Converter.like,
    exp.Is: Converter.is_null,
    **dict.fromkeys(_SIGNS, Converter.comparison),
    **dict.fromkeys(_OPERATORS, Converter.arithmetic),
}
