"""Which messages tell a follower of values what moved, before its place is known?

    SELECT price FROM stock WHERE symbol = 'IBM' AND moved(price, by => 2)

    FROM "$moved:stock" WHERE NEW AND NEW_symbol = 'IBM' OR NEW IS NULL

is wide enough wherever it will be: all that moved among the rows that count, and all that is said
of labels. When its home has said where it is found, it asks for that alone (see `address`). Where
its home does not know it, it gets the changes of rows that count, and those that are gone.
"""

from __future__ import annotations

from driftline.errors import NotSupported
from driftline.model.expression import Attribute, Expression
from driftline.model.predicate import Comparison, IsNull, Or, conjunction, conjuncts
from driftline.model.subscription import Crossed, Moved, Subscription
from driftline.model.variables import variables_of
from driftline.model.view import View
from driftline.stateful.rows.change import NEW, ROWS
from driftline.stateful.rows.interest import renamed
from driftline.stateful.value_based.address import MOVED


def check_change(change: Moved | Crossed) -> None:
    """Refuse a radius that moves by itself: nothing would say when it has."""
    if change.variables().evolving:
        why = "a radius follows parameters, not now(), elapsed() and env()"
        raise NotSupported(str(change), why)


def interest_in_moves(view: View) -> Subscription:
    """All that may concern a follower, wherever it is."""
    return Subscription(source=MOVED + view.source, where=Or((_now(view.where), _GONE)))


def interest_in_rows(view: View) -> Subscription:
    """The changes of rows that count, and those that are gone.

    What moves by itself is judged where the subscriber is: the network leaves it out. So it is with
    values that cannot have crossed anything.
    """
    still = tuple(part for part in conjuncts(view.where) if not variables_of(part).evolving)
    now = _now(conjunction((*still, *_crossing(view.having))))
    return Subscription(source=ROWS + view.source, where=Or((now, _GONE)))


def _now(where: Expression) -> Expression:
    return conjunction((Attribute(NEW), *conjuncts(renamed(where, f"{NEW}_"))))


_GONE = IsNull(Attribute(NEW))


def _crossing(change: Moved | Crossed | None) -> tuple[Expression, ...]:
    """What lies between the thresholds arms nothing and tells nothing."""
    if not isinstance(change, Crossed):
        return ()
    reached, cleared = (">=", "<=") if change.above else ("<=", ">=")
    ends = ((reached, change.threshold), (cleared, change.clear))
    return (Or(tuple(Comparison(sign, change.value, end) for sign, end in ends)),)
