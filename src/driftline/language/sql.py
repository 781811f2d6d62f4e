"""Which subscription does this SQL text ask for?

>>> from driftline.language.sql import parse
>>> str(parse("select * from quote where firm='IBM' and price<:limit"))
"SELECT * FROM quote WHERE firm = 'IBM' AND price < :limit"
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token

from driftline.errors import LanguageError, LimitExceeded
from driftline.language.accounting import check_accounts
from driftline.language.change import read_change
from driftline.language.convert import STATEFUL, Converter, shown
from driftline.language.dialect import read
from driftline.language.limits import LENGTH_MAX
from driftline.model.covering import Statement
from driftline.model.expression import TRUE, Attribute, Expression
from driftline.model.pattern import Pattern
from driftline.model.predicate import conjunction
from driftline.model.subscription import Column, Crossed, Moved, Subscription
from driftline.model.value import admit
from driftline.model.view import Aggregate, AggregateFunction, Join, View

_AGGREGATES = {function.value.lower(): function for function in AggregateFunction}


def parse(text: str) -> Statement:
    """The subscription, view or pattern a text asks for; a `LanguageError` if it cannot be had."""
    syntax = read(text)
    statements = [
        _statement(select, said, text)
        for select, said in zip(syntax.selects, syntax.tokens, strict=True)
    ]
    if len(text) > LENGTH_MAX // 4:
        # The canonical text may be longer, and must be readable too: the margin is ample.
        canonical = sum(len(str(statement)) for statement in statements)
        if canonical > LENGTH_MAX:
            raise LimitExceeded(
                f"at most {LENGTH_MAX} characters in canonical form", f"{canonical}"
            )
    if len(statements) == 1:
        return statements[0]
    steps = []
    for select, step in zip(syntax.selects, statements, strict=True):
        if not isinstance(step, Subscription) or step.change is not None:
            wanted, place = "plain filters as the steps of a pattern", Converter(text).place(select)
            raise LanguageError(wanted, str(step)[:60], *place)
        steps.append(step)
    return Pattern(tuple(steps), syntax.within)


def _statement(select: exp.Select, said: tuple[Token, ...], text: str) -> Statement:
    try:
        statement = _Select(select, text).statement()
        check_accounts(select, said)
        return statement
    except LanguageError as error:
        if error.line is not None:
            raise
        # Not every part of a syntax tree knows its place; what the SELECT begins with does.
        place = Converter(text).place(select)
        raise type(error)(error.wanted, error.came, *place) from None


def parse_condition(text: str) -> Expression:
    """A condition alone, as it would stand after WHERE."""
    if not isinstance(text, str):
        raise LanguageError("a text", type(text).__name__)
    # The condition is parsed in its place, so that limits and refusals are the same; a text that
    # smuggles in another clause is no plain condition and is refused below.
    before = "SELECT * WHERE "
    try:
        statement = parse(before + text)
    except LanguageError as error:
        if error.line == 1 and error.column is not None:
            column = max(1, error.column - len(before))
            raise type(error)(error.wanted, error.came, 1, column) from None
        raise
    if not isinstance(statement, Subscription) or statement.change or statement.source:
        raise LanguageError("a condition", text[:60])
    return statement.where


class _Select:
    """One SELECT on its way into the model."""

    def __init__(self, select: exp.Select, text: str) -> None:
        self.select = select
        self.source, tables = self._sources(Converter(text))
        self.converter = Converter(text, tables)
        self.converter.only(select, "expressions", "from_", "joins", "where", "having", "distinct")
        if select.args.get("distinct") is not None:
            self.converter.only(select.args["distinct"])

    def statement(self) -> Statement:
        """The model of this SELECT."""
        columns = self._columns()
        where, change = self._where()
        having = self._having(columns)
        distinct = self.select.args.get("distinct") is not None
        join = self._join()
        self._check_aliases()
        aggregates = [isinstance(column.expression, Aggregate) for column in columns]
        if not (distinct or join or any(aggregates)):
            if having is not None:
                raise LanguageError("an aggregate in SELECT beside HAVING", str(having))
            return Subscription(columns, self.source, where, change)
        self._check_view(columns, aggregates, change, having, distinct, join)
        assert self.source is not None
        return View(columns, self.source, where, distinct, join, having)

    def _sources(self, converter: Converter) -> tuple[str | None, dict[str, str]]:
        """The event type, and what each name before a dot stands for."""
        from_ = self.select.args.get("from_")
        if from_ is None:
            return None, {}
        converter.only(from_, "this")
        source, tables = self._table(converter, from_.this)
        for join in self.select.args.get("joins") or ():
            joined, more = self._table(converter, join.this)
            if joined == source or tables.keys() & more.keys():
                converter.refuse(join, "two different tables in a join", joined)
            tables |= more
        return source, tables

    def _table(self, converter: Converter, table: exp.Expr) -> tuple[str, dict[str, str]]:
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            converter.refuse(table, "the name of an event type or table", shown(table))
        converter.only(table, "this", "alias")
        if not table.name:
            converter.refuse(table, "the name of an event type or table", "an empty one")
        names = {str(admit(table.name, "table")): table.name}
        alias = table.args.get("alias")
        if alias is not None:
            converter.only(alias, "this")
            names[self._alias(converter, alias.this)] = table.name
        return table.name, names

    def _check_aliases(self) -> None:
        """Refuse an alias that nothing uses: `FROM t FINAL` means something else elsewhere."""
        for name, table in self.converter.tables.items():
            if name != table and name not in self.converter.used:
                wanted = f"a column that uses the alias {name}, or no alias"
                self.converter.refuse(self.select.args["from_"], wanted, f"{table} {name}")

    def _columns(self) -> tuple[Column, ...]:
        trees = self.select.expressions
        if len(trees) == 1 and isinstance(trees[0], exp.Star):
            self.converter.only(trees[0])
            return ()
        columns = tuple(self._column(tree) for tree in trees)
        names: set[str] = set()
        for column in columns:
            if column.name in names:
                raise LanguageError("columns with different names", f"{column.name[:60]} twice")
            names.add(column.name)
        if not columns:
            raise LanguageError("* or columns after SELECT", "nothing", 1, 1)
        return columns

    def _column(self, tree: exp.Expr) -> Column:
        alias = None
        if isinstance(tree, exp.Alias):
            self.converter.only(tree, "this", "alias")
            alias, tree = self._alias(self.converter, tree.args["alias"]), tree.this
        if isinstance(tree, exp.Star) or (
            isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star)
        ):
            self.converter.refuse(tree, "* alone, or columns", shown(tree))
        return Column(self._value(tree), alias)

    def _alias(self, converter: Converter, name: exp.Expr) -> str:
        if not isinstance(name, exp.Identifier) or not name.name:
            converter.refuse(name, "a name after AS", shown(name))
        return name.name

    def _value(self, tree: exp.Expr) -> Expression:
        """A column's expression, which may be an aggregate."""
        if isinstance(tree, exp.Anonymous) and isinstance(tree.this, str):
            function = _AGGREGATES.get(tree.this.lower())
            if function is not None and len(tree.expressions) == 1:
                return self._aggregate(function, tree)
        return self.converter.convert(tree)

    def _aggregate(self, function: AggregateFunction, tree: exp.Anonymous) -> Aggregate:
        self.converter.only(tree, "this", "expressions")
        (argument,) = tree.expressions
        if isinstance(argument, exp.Star):
            self.converter.only(argument)
            if function is not AggregateFunction.COUNT:
                self.converter.refuse(tree, f"an attribute in {function.value}(…)", "*")
            return Aggregate(function)
        attribute = self.converter.convert(argument)
        if not isinstance(attribute, Attribute):
            self.converter.refuse(tree, f"an attribute in {function.value}(…)", str(attribute))
        return Aggregate(function, attribute)

    def _where(self) -> tuple[Expression, Moved | Crossed | None]:
        where = self.select.args.get("where")
        if where is None:
            return TRUE, None
        self.converter.only(where, "this")
        parts: list[Expression] = []
        change: Moved | Crossed | None = None
        for tree in _conjunct_trees(where.this):
            if isinstance(tree, exp.Anonymous) and str(tree.this).lower() in STATEFUL:
                if change is not None:
                    self.converter.refuse(tree, "moved or crossed once", "it again")
                value = self._first_argument(tree)
                if isinstance(value, Aggregate):
                    self.converter.refuse(
                        tree, f"HAVING {tree.this}(…) over an aggregate", str(value)
                    )
                change = read_change(self.converter, tree, value)
            else:
                parts.append(self.converter.convert(tree))
        return conjunction(tuple(parts)), change

    def _having(self, columns: tuple[Column, ...]) -> Moved | Crossed | None:
        having = self.select.args.get("having")
        if having is None:
            return None
        self.converter.only(having, "this")
        tree = having.this
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if not (isinstance(tree, exp.Anonymous) and str(tree.this).lower() in STATEFUL):
            self.converter.refuse(tree, "moved(…) or crossed(…) in HAVING", shown(tree))
        value = self._first_argument(tree)
        if value not in [column.expression for column in columns]:
            self.converter.refuse(tree, "an aggregate that is selected in HAVING", str(value))
        return read_change(self.converter, tree, value)

    def _first_argument(self, tree: exp.Anonymous) -> Expression:
        if not tree.expressions or isinstance(tree.expressions[0], exp.Kwarg):
            self.converter.refuse(tree, f"what {tree.this} watches, first", shown(tree))
        return self._value(tree.expressions[0])

    def _join(self) -> Join | None:
        joins = self.select.args.get("joins") or []
        if not joins:
            return None
        if len(joins) > 1:
            self.converter.refuse(joins[1], "a join of two tables", "a third")
        (join,) = joins
        self.converter.only(join, "this", "on", "kind")
        if (join.args.get("kind") or "INNER").upper() != "INNER" or join.args.get("on") is None:
            self.converter.refuse(join, "JOIN … ON …", shown(join))
        return Join(join.this.name, self.converter.convert(join.args["on"]))

    def _check_view(
        self,
        columns: tuple[Column, ...],
        aggregates: list[bool],
        change: Moved | Crossed | None,
        having: Moved | Crossed | None,
        distinct: bool,
        join: Join | None,
    ) -> None:
        if self.source is None:
            raise LanguageError("FROM a table in a view", "none")
        if change is not None:
            raise LanguageError(f"HAVING {change} in a view", f"{change} in WHERE")
        if any(aggregates) and not all(aggregates):
            raise LanguageError("aggregates only, or none (there are no groups)", "both")
        if any(aggregates) and (distinct or join):
            raise LanguageError("aggregates over one table, without DISTINCT", "more")
        if distinct and join:
            raise LanguageError("DISTINCT over one table", "a join")
        if not columns:
            raise LanguageError("columns in a view", "*")
        if having is not None and not any(aggregates):
            raise LanguageError("an aggregate in SELECT beside HAVING", str(having))


def _conjunct_trees(tree: exp.Expr) -> list[exp.Expr]:
    """The top-level conjuncts in reading order; parentheses around all of them do not hide them."""
    found: list[exp.Expr] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.And):
            stack += [node.expression, node.this]
        elif isinstance(node, exp.Paren) and isinstance(
            node.this, exp.And | exp.Paren | exp.Anonymous
        ):
            stack.append(node.this)
        else:
            found.append(node)
    return found
