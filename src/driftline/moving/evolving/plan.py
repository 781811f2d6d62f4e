r"""Which part of a filter is asked of whom?

A filter that evolves has parts that do not (they are in the ordinary matcher), parts that move in
the same way for everybody (asked once an event), and parts that are each subscription's own: a
start, parameters. Of these, bounds that move by polynomials are for the kernel, comparisons of
other arithmetic for arrays, and the rest is for the definition.

    >>> from driftline.language.sql import parse
    >>> text = ("SELECT * FROM seen WHERE kind = 'apple' AND :on AND hour(now()) > 8 "
    ...         "AND x >= (-3 + elapsed()) * env('visibility') AND sqrt(x) < :r + elapsed()")
    >>> plan = plan_of(parse(text).filters()[0])
    >>> print(plan.fixed)
    seen: kind = 'apple' AND :on
    >>> [str(one) for one in plan.common], plan.shared
    (['hour(now()) > 8'], {'\n0': Environment(name='visibility')})
    >>> [(one.attribute, one.side, len(one.motion)) for one in plan.bounds]
    [('x', 1, 2)]
    >>> [str(one) for one in plan.comparisons], plan.rest
    (['sqrt(x) < :r + elapsed()'], False)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from driftline.model.constraint import Constraint, Operator
from driftline.model.expression import Expression, Parameter
from driftline.model.filter import Filter
from driftline.model.predicate import Comparison
from driftline.model.remember import remembered
from driftline.model.variables import Variables, attributes_of, variables_of, walk
from driftline.moving.evolving.arrays import supported
from driftline.moving.evolving.motion import motion_of, sizes_of
from driftline.moving.evolving.started import parts_of, replaced
from driftline.moving.parametric.slots import Values, opened

# What is larger is for the definition: to take it apart takes time that grows with its square.
_NODES_MAX = 256

# The sides on which a value must be: at or above the bound, at or below. To be equal is both.
_SIDES = {
    Operator.GT: (1,),
    Operator.GE: (1,),
    Operator.LT: (-1,),
    Operator.LE: (-1,),
    Operator.EQ: (1, -1),
}


@dataclass(frozen=True, slots=True)
class Bound:
    """An attribute must be on one side of something that moves by a polynomial."""

    attribute: str
    side: int
    motion: tuple[Expression, ...]
    sizes: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A filter in parts. `shared` are values that all rows have, by names of their own."""

    whole: Filter
    fixed: Filter
    common: tuple[Expression, ...]
    shared: dict[str, Expression]
    bounds: tuple[Bound, ...]
    comparisons: tuple[Comparison, ...]
    rest: bool

    degree: int = field(init=False)
    """The highest of all motions."""
    sides: NDArray[np.float64] = field(init=False, compare=False)
    columns: tuple[str, ...] = field(init=False)
    """The parameters that bounds and comparisons read, each row its own."""
    fixed_names: tuple[str, ...] = field(init=False)
    """The parameters that the fixed part reads."""
    environment: frozenset[str] = field(init=False)
    """The variables of the environment that some part reads."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "degree", max((len(one.motion) for one in self.bounds), default=1) - 1)
        put(self, "sides", np.array([one.side for one in self.bounds], np.float64))
        parts = (*(part for one in self.bounds for part in one.motion), *self.comparisons)
        names = {name for part in parts for name in variables_of(part).parameters}
        put(self, "columns", tuple(sorted(names - self.shared.keys())))
        put(self, "fixed_names", tuple(sorted(_parameters(self.fixed))))
        read = (variables_of(part).environment for part in parts_of(self.whole))
        put(self, "environment", frozenset().union(*read))


def evolves(one: Filter) -> bool:
    """Does a part of it move with time or the environment?"""
    if not one.conditions and all(part.constant for part in one.constraints):
        return False  # as nearly all
    return _evolves(one)


@remembered
def _evolves(one: Filter) -> bool:
    return any(part.variables().evolving for part in one.constraints) or any(
        variables_of(part).evolving for part in one.conditions
    )


@remembered
def shape_of(one: Filter) -> tuple[Filter, Values]:
    """What a filter has in common with those that differ in constants alone, and its constants.

    Those of a part that moves in the same way for everybody stay in it: it is asked once.

    >>> from driftline.language.sql import parse
    >>> (late,) = parse("SELECT * WHERE hour(now()) > 8 AND x < 3 + elapsed()").filters()
    >>> shape, values = shape_of(late)
    >>> str(shape), values
    ('x < :0 + elapsed() AND hour(now()) > 8', (3,))
    """
    alike = [part for part in one.constraints if _common(part.variables())]
    asked = [part for part in one.conditions if _common(variables_of(part))]
    if not alike and not asked:
        return opened(one)
    own = Filter(
        one.type,
        tuple(part for part in one.constraints if not _common(part.variables())),
        tuple(part for part in one.conditions if not _common(variables_of(part))),
    )
    shape, values = opened(own)
    whole = Filter(one.type, (*shape.constraints, *alike), (*shape.conditions, *asked))
    return whole, values


def _common(variables: Variables) -> bool:
    return bool(variables.evolving) and not variables.private


@remembered
def plan_of(whole: Filter) -> Plan:
    """The parts of a filter."""
    fixed = replace(
        whole,
        constraints=tuple(one for one in whole.constraints if not one.variables().evolving),
        conditions=tuple(one for one in whole.conditions if not variables_of(one).evolving),
    )
    plan = _Planning()
    for constraint in whole.constraints:
        if constraint.variables().evolving:
            plan.take(constraint.condition(), constraint)
    for condition in whole.conditions:
        if variables_of(condition).evolving:
            plan.take(condition, None)
    return Plan(
        whole,
        fixed,
        tuple(plan.common),
        plan.shared,
        tuple(plan.bounds),
        tuple(plan.comparisons),
        plan.rest,
    )


class _Planning:
    """The evolving parts, taken one by one."""

    def __init__(self) -> None:
        self.common: list[Expression] = []
        self.shared: dict[str, Expression] = {}
        self.bounds: list[Bound] = []
        self.comparisons: list[Comparison] = []
        self.rest = False

    def take(self, condition: Expression, constraint: Constraint | None) -> None:
        """Find out by whom a part can be judged."""
        if _common(variables_of(condition)):
            self.common.append(condition)
            return
        if sum(1 for _ in islice(walk(condition), _NODES_MAX + 1)) > _NODES_MAX:
            self.rest = True
            return
        if constraint is not None and constraint.operator in _SIDES:
            assert isinstance(constraint.operand, Expression)
            known = dict(self.shared)
            operand = self._apart(constraint.operand)
            motion = motion_of(operand) if supported(operand) else None
            if motion is not None and all(map(supported, motion)):
                sizes = sizes_of(operand)
                assert sizes is not None
                sides = _SIDES[constraint.operator]
                self.bounds += (Bound(constraint.attribute, side, motion, sizes) for side in sides)
                return
            self.shared = known
        if isinstance(condition, Comparison):
            known = dict(self.shared)
            both = Comparison(
                condition.sign, self._apart(condition.left), self._apart(condition.right)
            )
            if supported(both.left) and supported(both.right):
                self.comparisons.append(both)
                return
            self.shared = known
        self.rest = True

    def _apart(self, node: Expression) -> Expression:
        """The expression with names for those of its values that are the same for all rows."""
        return replaced(node, self._named)

    def _named(self, node: Expression) -> Expression:
        variables = variables_of(node)
        if not variables.evolving or variables.private or attributes_of(node):
            return node
        for name, known in self.shared.items():
            if known == node:
                return Parameter(name)
        name = f"\n{len(self.shared)}"
        self.shared[name] = node
        return Parameter(name)


def _parameters(one: Filter) -> set[str]:
    found = {name for part in one.constraints for name in part.variables().parameters}
    return found.union(*(variables_of(part).parameters for part in one.conditions))
