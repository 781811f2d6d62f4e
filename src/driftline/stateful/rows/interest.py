"""Which messages concern somebody who asks for the rows that satisfy a condition?

    price < :limit
    (OLD AND OLD_price < :limit) OR (NEW AND NEW_price < :limit)

The condition is renamed, not rewritten, so it is true of a side of a message exactly where it is
true of that row, whatever is missing or unknown in it. Parameters stay parameters: moving them
moves the bounds of two filters. What comes back is an ordinary subscription, with a text.
"""

from __future__ import annotations

from collections.abc import Iterable

from driftline.errors import NotSupported
from driftline.model.expression import Attribute, Expression
from driftline.model.predicate import And, Or, conjunction, conjuncts
from driftline.model.subscription import Subscription
from driftline.model.variables import variables_of, walk
from driftline.model.view import View
from driftline.stateful.rows.change import CHANGED, NEW, OLD, ROWS, flag_of, names_of


def interest(
    type: str, where: Expression, reads: Iterable[Expression] | None = None
) -> Subscription:
    """The subscription to the changes of rows that satisfy, or did satisfy, the condition.

    With `reads`, what the subscriber computes from a row, it is only to those that may change that:
    rows that come or go, and attributes read there or in the condition.

    >>> from driftline import attr
    >>> str(interest("$rows:stock", (attr.price < 10).expression).where)
    'OLD AND OLD_price < 10 OR NEW AND NEW_price < 10'
    """
    check_still(where)
    either = Or((_side(where, OLD), _side(where, NEW)))
    if reads is None:
        return Subscription(source=type, where=either)
    reads = tuple(reads)
    for expression in reads:
        check_still(expression)
    return Subscription(source=type, where=And((either, _noticed((where, *reads)))))


def interest_of_view(view: View) -> Subscription:
    """The interest of a view over one table."""
    return interest(ROWS + view.source, view.where, [column.expression for column in view.columns])


def check_still(expression: Expression) -> None:
    """Refuse what moves by itself: it would change a view while no row changes."""
    if variables_of(expression).evolving:
        why = "a view follows changes of rows, so now(), elapsed() and env() have no place in it"
        raise NotSupported(str(expression), why)


def renamed(expression: Expression, prefix: str) -> Expression:
    """The expression over attributes with this prefix; `stock.price` is a name in full."""
    if isinstance(expression, Attribute):
        return Attribute(prefix + full_name(expression))
    children = expression.children()
    if not children:
        return expression
    return expression.rebuilt(tuple(renamed(child, prefix) for child in children))


def full_name(attribute: Attribute) -> str:
    """Its name, with that of its table where it has one; quoted so that no two are alike."""
    return attribute.name if attribute.table is None else str(attribute)


def _side(where: Expression, side: str) -> Expression:
    return conjunction((Attribute(side), *conjuncts(renamed(where, f"{side}_"))))


def _noticed(read: tuple[Expression, ...]) -> Expression:
    """Did the row come or go, or one of these attributes change?"""
    return Attribute(
        flag_of(
            full_name(node)
            for expression in read
            for node in walk(expression)
            if isinstance(node, Attribute)
        )
    )


def flags_of(interest: Subscription) -> dict[str, frozenset[str]]:
    """The flags that an interest asks for, and the names that each stands for."""
    nodes = (node for node in walk(interest.where) if isinstance(node, Attribute))
    flags = {node.name for node in nodes if node.name.startswith(CHANGED)}
    return {flag: names_of(flag) for flag in flags}
