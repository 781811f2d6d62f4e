"""Which conjunctions of constraints say the same as this condition?

A filter is a conjunction: an event type, constraints on single attributes, and conditions that no
single-attribute constraint can say. `filters_of` brings any condition to a disjunction of filters.
That is exact under Kleene's logic (a distributive lattice with De Morgan's laws), so the condition
is true of an event if and only if one of its filters is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from driftline.model.comparison import FLIPPED, NEGATED
from driftline.model.constraint import Constraint, Operator, string_constraint
from driftline.model.expression import FALSE, NOT, TRUE, Attribute, Expression, Literal
from driftline.model.predicate import And, Between, Comparison, In, IsNull, Like, Not, Or
from driftline.model.remember import Remembering, is_small
from driftline.model.scope import NO_EVENT, Scope
from driftline.model.truth import Unknown
from driftline.model.value import Value
from driftline.model.variables import attributes_of, bind, fold, variables_of

# Beyond this many filters a condition is cheaper to evaluate than to spread; the part that would
# go over is kept whole as one condition, which is exact but cannot be indexed or compared.
FILTERS_MAX = 64


@dataclass(frozen=True, slots=True)
class Filter(Remembering):
    """A conjunction; true of an event when the type, every constraint and condition are."""

    type: str | None
    constraints: tuple[Constraint, ...] = ()
    conditions: tuple[Expression, ...] = ()

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            found = hash((self.type, self.constraints, self.conditions))
            object.__setattr__(self, "_hash", found)
            return found

    def parts(self) -> tuple[object, ...]:
        """See `Remembering`."""
        return (*self.conditions, *(part.operand for part in self.constraints))

    def __reduce__(self) -> tuple[object, ...]:
        # Without the hash: that of a text is another in every process.
        return (Filter, (self.type, self.constraints, self.conditions))

    def matches(self, scope: Scope) -> bool:
        """Is every part true of the scope's event?"""
        if self.type is not None and (scope.event is None or scope.event.type != self.type):
            return False
        return all(constraint.holds(scope) for constraint in self.constraints) and all(
            condition.evaluate(scope) is True for condition in self.conditions
        )

    def bound(self, params: Mapping[str, Value]) -> Filter:
        """The filter with these parameters replaced by their values.

        >>> from driftline import attr, param
        >>> (moving,) = filters_of(None, (attr.x < 2 * param.p).expression)
        >>> str(moving), str(moving.bound({"p": 3}))
        ('x < 2 * :p', 'x < 6')
        """
        if not params:
            return self
        conditions = (fold(bind(condition, params)) for condition in self.conditions)
        return Filter(
            self.type,
            tuple(constraint.bound(params) for constraint in self.constraints),
            tuple(condition for condition in conditions if condition != TRUE),
        )

    def on(self, attribute: str) -> tuple[Constraint, ...]:
        """The constraints on one attribute."""
        return tuple(c for c in self.constraints if c.attribute == attribute)

    def __str__(self) -> str:
        parts = [*map(str, self.constraints), *(part.written(NOT) for part in self.conditions)]
        source = "" if self.type is None else f"{self.type}: "
        return source + (" AND ".join(parts) or "TRUE")


# Matchers, covering and reviews ask for the filters of the same condition again and again.
_REMEMBERED = 4096


def filters_of(source: str | None, where: Expression) -> tuple[Filter, ...]:
    """The filters of which one must be true; none at all if the condition can never be.

    >>> from driftline import attr
    >>> where = (attr.firm == "IBM") & ~attr.price.between(1, 2)
    >>> [str(f) for f in filters_of("quote", where.expression)]
    ["quote: firm = 'IBM' AND price < 1", "quote: firm = 'IBM' AND price > 2"]
    """
    if is_small((where,)):
        return _remembered_filters_of(source, where)
    return _filters_of(source, where)


def _filters_of(source: str | None, where: Expression) -> tuple[Filter, ...]:
    return tuple(
        Filter(
            source,
            tuple(atom for atom in atoms if isinstance(atom, Constraint)),
            tuple(atom for atom in atoms if not isinstance(atom, Constraint)),
        )
        for atoms in _spread(fold(where), negated=False)
    )


_remembered_filters_of = lru_cache(maxsize=_REMEMBERED)(_filters_of)


_Atom = Constraint | Expression
_Atoms = tuple[_Atom, ...]


def _spread(node: Expression, negated: bool) -> list[_Atoms]:
    """The disjuncts of the condition, or of its negation; each is a tuple of atoms."""
    if isinstance(node, Not):
        return _spread(node.operand, not negated)
    if isinstance(node, And | Or):
        parts = [_spread(item, negated) for item in node.items]
        if isinstance(node, And) is not negated:
            return _product(list(zip(node.items, parts, strict=True)), negated)
        alternatives = [atoms for part in parts for atoms in part]
        return alternatives if len(alternatives) <= FILTERS_MAX else [_whole(node, negated)]
    if isinstance(node, Between):
        low = Comparison(">=", node.operand, node.low)
        high = Comparison("<=", node.operand, node.high)
        return _spread(And((low, high)), negated)
    if isinstance(node, In) and (negated or not isinstance(node.operand, Attribute)):
        equalities = tuple(Comparison("=", node.operand, item) for item in node.items)
        either = Or(equalities) if len(equalities) > 1 else equalities[0]
        return _spread(either, negated)
    atom = _atom(node, negated)
    if atom is None or _never(atom):
        return []
    return [()] if atom == TRUE else [(atom,)]


def _product(parts: list[tuple[Expression, list[_Atoms]]], negated: bool) -> list[_Atoms]:
    result: list[_Atoms] = [()]
    for item, alternatives in parts:
        if len(result) * len(alternatives) > FILTERS_MAX:
            alternatives = [_whole(item, negated)]
        result = [(*left, *right) for left in result for right in alternatives]
    return result


def _whole(node: Expression, negated: bool) -> _Atoms:
    return (Not(node) if negated else node,)


def _atom(node: Expression, negated: bool) -> _Atom | None:
    """One indivisible condition as a constraint if it is one; None if it is constantly not true."""
    if isinstance(node, Literal):
        return TRUE if node == (FALSE if negated else TRUE) else None
    if isinstance(node, Attribute) and node.table is None:
        return Constraint(node.name, Operator.EQ, FALSE if negated else TRUE)
    if isinstance(node, IsNull):
        return Constraint(node.operand.name, Operator.EXISTS if negated else Operator.ABSENT)
    if isinstance(node, Like) and isinstance(node.operand, Attribute):
        return string_constraint(node.operand.name, node.pattern, negated)
    if isinstance(node, In) and isinstance(node.operand, Attribute):
        return Constraint(node.operand.name, Operator.IN, node.items)
    if isinstance(node, Comparison):
        return _comparison(node, NEGATED[node.sign] if negated else node.sign)
    return Not(node) if negated else node


def _comparison(node: Comparison, sign: str) -> _Atom:
    if isinstance(node.left, Attribute) and not attributes_of(node.right):
        return Constraint(node.left.name, Operator(sign), node.right)
    if isinstance(node.right, Attribute) and not attributes_of(node.left):
        return Constraint(node.right.name, Operator(FLIPPED[sign]), node.left)
    return Comparison(sign, node.left, node.right)


def _never(atom: _Atom) -> bool:
    """Is it without hope: a comparison with something that has no value whatever happens?"""
    if isinstance(atom, Constraint):
        operand = atom.operand
        if not isinstance(operand, Expression) or variables_of(operand):
            return False
        return isinstance(operand.evaluate(NO_EVENT), Unknown)
    constant = not attributes_of(atom) and not variables_of(atom)
    return constant and atom.evaluate(NO_EVENT) is not True
