"""Which filters and advertisements may cross a link?

Those that the language can say: whatever is done with a filter later on (it is folded, compared,
indexed, evaluated for each event) then meets only what it was written for. The rules are asked of
the model, so that they are the same for what is written and for what was read. Each answers with
what was wanted and what came, or with None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from driftline.model.constraint import Constraint, Operator
from driftline.model.event import EARLIEST_US, LATEST_US
from driftline.model.expression import (
    Attribute,
    Call,
    Environment,
    Expression,
    Literal,
    Parameter,
)
from driftline.model.functions import FUNCTIONS, is_zone
from driftline.model.like import LikePattern
from driftline.model.message import Sequence
from driftline.model.predicate import In
from driftline.model.value import show
from driftline.model.variables import attributes_of
from driftline.wire.limits import SLOTS_MAX
from driftline.wire.refusal import described

Fault: TypeAlias = tuple[str, str]
Advertised: TypeAlias = tuple[tuple[str, tuple[tuple[Constraint, ...], ...]], ...]

_PATTERNS: dict[Operator, Callable[[LikePattern], bool]] = {
    Operator.PREFIX: lambda pattern: pattern.is_prefix,
    Operator.SUFFIX: lambda pattern: pattern.is_suffix,
    Operator.SUBSTRING: lambda pattern: pattern.is_substring,
    Operator.LIKE: lambda pattern: True,
    Operator.NOT_LIKE: lambda pattern: True,
}
STRING_OPERATORS = frozenset(_PATTERNS)
UNARY_OPERATORS = frozenset({Operator.EXISTS, Operator.ABSENT})

# There are some six hundred zones, and looking for one reads a file.
_known_zone = lru_cache(maxsize=1024)(is_zone)


def fault_of_node(node: Expression) -> Fault | None:
    """What is wrong with the node itself; those below it are asked for themselves."""
    rule = _RULES.get(type(node))
    return None if rule is None else rule(node)


def fault_of_constraint(constraint: Constraint) -> Fault | None:
    """What is wrong with a constraint, its operand's nodes aside."""
    if not constraint.attribute:
        return "an attribute's name", "an empty one"
    operator, operand = constraint.operator, constraint.operand
    if operator in UNARY_OPERATORS:
        fits = operand is None
    elif operator in STRING_OPERATORS:
        # Covering trusts the operator: `prefix` of what is no prefix would lose events.
        fits = isinstance(operand, LikePattern) and _PATTERNS[operator](operand)
    elif operator is Operator.IN:
        fits = isinstance(operand, tuple) and bool(operand) and all(map(_is_plain, operand))
    else:
        fits = isinstance(operand, Expression) and not attributes_of(operand)
    if fits:
        return None
    came = show(operand.text) if isinstance(operand, LikePattern) else described(operand)
    return f"an operand for {operator.value}", came


def fault_of_attributes(attributes: Advertised) -> Fault | None:
    """What is wrong with what an advertisement says, its constraints aside."""
    names = [name for name, _ in attributes]
    if len(set(names)) < len(names):
        return "each attribute once in an advertisement", "one of them again"
    for name, options in attributes:
        fault = None if options else ("an alternative or more", "none")
        for option in options:
            fault = fault or _fault_of_option(name, option)
        if fault is not None:
            return fault
    return None


def fault_of_sequence(one: Sequence) -> Fault | None:
    """What is wrong with a part of a pattern, its filters aside."""
    if len(one.steps) < 2 or not all(one.steps):
        return "two steps or more, each of a filter or more", "fewer"
    if type(one.latest) is not int or not EARLIEST_US <= one.latest <= LATEST_US:
        return "a time that exists", show(one.latest)
    return None


def fault_of_update(moved: Mapping[int, object]) -> Fault | None:
    """What is wrong with new values for a filter."""
    for slot, value in moved.items():
        if type(slot) is not int or not 0 <= slot < SLOTS_MAX:
            return f"slots from 0 to {SLOTS_MAX - 1}", show(slot)
        if value is None or value != value:
            return "values that compare", show(value)
    return None


def _fault_of_option(name: str, option: tuple[Constraint, ...]) -> Fault | None:
    operators = [part.operator for part in option]
    if len(operators) != 1 and operators != [Operator.GE, Operator.LE]:
        signs = " ".join(operator.value for operator in operators[:8])
        return "one constraint, or the >= and <= of BETWEEN", signs or "none"
    if any(part.attribute != name for part in option):
        return f"constraints on {show(name)}", f"one on {show(option[0].attribute)}"
    if not all(part.constant for part in option):
        return "constants in an advertisement", "an operand that moves"
    return None


def _is_plain(item: object) -> bool:
    return isinstance(item, Literal | Parameter | Environment)


def _named(node: Attribute | Environment) -> Fault | None:
    return None if node.name else ("a name", "an empty one")


def _parameter(node: Parameter) -> Fault | None:
    return None if node.name.isidentifier() else ("a parameter's name", show(node.name))


def _in(node: In) -> Fault | None:
    return None if all(map(_is_plain, node.items)) else ("literals and variables in IN", "others")


def _call(node: Call) -> Fault | None:
    function = FUNCTIONS.get(node.function)
    if function is None:
        return f"one of the functions {', '.join(sorted(FUNCTIONS))}", show(node.function)
    count = len(node.arguments)
    if not function.arguments_min <= count <= function.arguments_max:
        wanted = f"{function.arguments_min} to {function.arguments_max} arguments"
        return f"{wanted} of {node.function}", f"{count}"
    if node.function in ("hour", "minute", "weekday") and count == 2:
        zone = node.arguments[1]
        name = zone.value if isinstance(zone, Literal) else zone
        if not isinstance(name, str) or not _known_zone(name):
            return "a zone's name such as 'Europe/Berlin'", described(name)
    return None


_RULES: dict[type[Expression], Callable[[Any], Fault | None]] = {
    Attribute: _named,
    Environment: _named,
    Parameter: _parameter,
    In: _in,
    Call: _call,
}
