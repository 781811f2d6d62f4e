"""What does an expression depend on, and what is left of it once some of that is known?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from driftline.model.expression import (
    Arithmetic,
    Attribute,
    Call,
    Case,
    Elapsed,
    Environment,
    Expression,
    Literal,
    Negate,
    Now,
    Parameter,
)
from driftline.model.functions import FUNCTIONS
from driftline.model.predicate import And, Between, Comparison, In, Like, Not, Or
from driftline.model.scope import NO_EVENT
from driftline.model.truth import Unknown
from driftline.model.value import Kind, Value, kind_of

_VARIABLES = frozenset([Parameter, Environment, Now, Elapsed])


@dataclass(frozen=True, slots=True)
class Variables:
    """Everything that can move a condition besides the event itself."""

    parameters: frozenset[str] = frozenset()
    environment: frozenset[str] = frozenset()
    now: bool = False
    elapsed: bool = False

    @property
    def evolving(self) -> bool:
        """Does it move with time or the environment?"""
        return bool(self.environment) or self.now or self.elapsed

    @property
    def private(self) -> bool:
        """Does it depend on what is each subscription's own: equal texts, different values?"""
        return bool(self.parameters) or self.elapsed

    def __bool__(self) -> bool:
        return bool(self.parameters) or self.evolving

    def __or__(self, other: Variables) -> Variables:
        return Variables(
            self.parameters | other.parameters,
            self.environment | other.environment,
            self.now or other.now,
            self.elapsed or other.elapsed,
        )


def walk(expression: Expression) -> Iterator[Expression]:
    """Every node of the tree, parents first."""
    stack = [expression]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children()))


def variables_of(expression: Expression) -> Variables:
    """The variables an expression depends on.

    >>> from driftline import attr, elapsed, param
    >>> variables_of((attr.x < param.mx + elapsed()).expression)
    Variables(parameters=frozenset({'mx'}), environment=frozenset(), now=False, elapsed=True)
    """
    # By their own types: of the many nodes of a long text hardly any are looked for.
    found = [node for node in walk(expression) if type(node) in _VARIABLES]
    return Variables(
        frozenset(node.name for node in found if isinstance(node, Parameter)),
        frozenset(node.name for node in found if isinstance(node, Environment)),
        any(isinstance(node, Now) for node in found),
        any(isinstance(node, Elapsed) for node in found),
    )


def attributes_of(expression: Expression) -> frozenset[str]:
    """The attributes an expression reads."""
    return frozenset(node.name for node in walk(expression) if isinstance(node, Attribute))


def bind(expression: Expression, params: Mapping[str, Value]) -> Expression:
    """The expression with these parameters replaced by their values."""
    if isinstance(expression, Parameter) and expression.name in params:
        return Literal(params[expression.name])
    children = expression.children()
    if not children:
        return expression
    bound = tuple(bind(child, params) for child in children)
    changed = any(new is not old for new, old in zip(bound, children, strict=True))
    return expression.rebuilt(bound) if changed else expression


def fold(expression: Expression) -> Expression:
    """The expression with every constant part computed; what has no value is left as it is.

    >>> str(fold(Comparison("<", Attribute("x"), Arithmetic("*", Literal(2), Literal(5)))))
    'x < 10'
    """
    children = expression.children()
    if not children:
        return expression
    folded = tuple(fold(child) for child in children)
    if any(new is not old for new, old in zip(folded, children, strict=True)):
        expression = expression.rebuilt(folded)
    if all(isinstance(child, Literal) for child in folded):
        value = expression.evaluate(NO_EVENT)
        if not isinstance(value, Unknown):
            return Literal(value)
    return expression


def parameter_kinds(
    condition: Expression, at_top: frozenset[Kind] = frozenset({Kind.BOOLEAN})
) -> dict[str, frozenset[Kind]]:
    """The kinds a parameter may have, for those whose use says so; contradictions give none.

    Read from where it stands: in arithmetic it is a number (or a time, in a difference), as a
    condition a boolean, beside a constant of the constant's kind. `at_top` is for one that is the
    whole expression.
    """
    kinds: dict[str, frozenset[Kind]] = {}

    def narrow(node: Expression, *allowed: Kind) -> None:
        if isinstance(node, Parameter):
            kinds[node.name] = kinds.get(node.name, frozenset(Kind)) & frozenset(allowed)

    def alike(nodes: tuple[Expression, ...]) -> None:
        known = {kind for kind in map(_constant_kind, nodes) if kind is not None}
        if len(known) == 1:
            for node in nodes:
                narrow(node, *known)

    narrow(condition, *at_top)
    for node in walk(condition):
        if isinstance(node, And | Or):
            for item in node.items:
                narrow(item, Kind.BOOLEAN)
        elif isinstance(node, Not):
            narrow(node.operand, Kind.BOOLEAN)
        elif isinstance(node, Case):
            for when, _ in node.branches:
                if node.subject is None:
                    narrow(when, Kind.BOOLEAN)
                else:
                    alike((node.subject, when))
        elif isinstance(node, Like):
            narrow(node.operand, Kind.STRING)
        elif isinstance(node, Comparison | Between):
            alike(node.children())
        elif isinstance(node, In):
            for item in node.items:
                alike((node.operand, item))
        elif isinstance(node, Negate):
            narrow(node.operand, Kind.NUMBER)
        elif isinstance(node, Arithmetic):
            allowed = (Kind.NUMBER, Kind.TIME) if node.operator == "-" else (Kind.NUMBER,)
            for operand in node.children():
                narrow(operand, *allowed)
        elif isinstance(node, Call):
            for argument, kind in zip(
                node.arguments, FUNCTIONS[node.function].kinds or (), strict=False
            ):
                narrow(argument, kind)
    return kinds


def _constant_kind(node: Expression) -> Kind | None:
    """The kind this operand is sure to have, if it can be told without an event."""
    if isinstance(node, Literal):
        return None if node.value is None else kind_of(node.value)
    if isinstance(node, Elapsed | Negate):
        return Kind.NUMBER
    if isinstance(node, Arithmetic):
        # Whatever the operands are, a difference of times is seconds and the rest are numbers.
        return Kind.NUMBER
    if isinstance(node, Now):
        return Kind.TIME
    return None
