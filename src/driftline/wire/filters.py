"""How do filters and advertisements look as arrays of MessagePack?

    filter          [type or nil, [constraint, …], [condition, …]]
    update          [slot, constant, slot, constant, …]
    sequence        [latest (microseconds since 1970), [filter, …], [filter, …], …]
    advertisement   [type or nil, [attribute, [constraint, …], …], …]
                    behind the type stands true if attributes that are not named may come too
    constraint      [attribute, operator, operand, …]

The operators are spelled as in `Operator`. An operand is an expression; a string operator has its
LIKE pattern instead, IN has one operand or more, IS NULL and IS NOT NULL have none. Behind an
advertised attribute stand its alternatives.

An expression that is a constant is written as itself: a string, integer, float, boolean, bytes, or
nil for NULL; a time is `["@", microseconds since 1970]`. Any other is an array, as `shapes` says.

    >>> from driftline.language.sql import parse
    >>> (one,) = parse("SELECT * FROM quote WHERE firm = 'IBM' AND low < high * 2").filters()
    >>> Writer("it").filter(one)
    ['quote', [['firm', '=', 'IBM']], [['<', ['a', 'low'], ['*', ['a', 'high'], 2]]]]
    >>> Reader("it").filter(Writer("it").filter(one)) == one
    True
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from driftline.errors import FrameRefused, InvalidValue
from driftline.model.advertisement import Advertisement
from driftline.model.constraint import Constraint, Operand, Operator
from driftline.model.event import EARLIEST_US, LATEST_US
from driftline.model.expression import Expression, Literal
from driftline.model.filter import Filter
from driftline.model.like import LikePattern, MalformedPattern
from driftline.model.message import Sequence
from driftline.model.predicate import Like
from driftline.model.value import (
    INTEGER_MAX,
    INTEGER_MIN,
    KIND_OF,
    Value,
    admit,
    microseconds_of,
    show,
    time_of,
)
from driftline.wire.limits import CALLS_MAX, NAME_BYTES_MAX, PARTS_MAX, PATTERN_PARTS
from driftline.wire.refusal import described, refused, utf8
from driftline.wire.rules import (
    STRING_OPERATORS,
    UNARY_OPERATORS,
    Fault,
    fault_of_attributes,
    fault_of_constraint,
    fault_of_node,
    fault_of_sequence,
    fault_of_update,
)
from driftline.wire.shapes import SHAPES, Shape, head_of

Array: TypeAlias = list[Any]

TIME = "@"

_OPERATORS = {operator.value: operator for operator in Operator}
_CONSTANTS = frozenset(KIND_OF) - {datetime}


class Writer:
    """Turns the filters and advertisements of one message into arrays, and counts their parts.

    `where` names the place in errors; whoever holds the writer keeps it up to date.
    """

    __slots__ = ("parts", "where")

    def __init__(self, where: str) -> None:
        self.where = where
        self.parts = 0

    def filter(self, one: Filter) -> Array:
        """The array of a filter; InvalidValue if a link would not let it pass."""
        return [
            self._type(one.type),
            [self._constraint(constraint) for constraint in one.constraints],
            [self._expression(condition, 0) for condition in one.conditions],
        ]

    def update(self, moved: Mapping[int, Value]) -> Array:
        """The array of new values by their slots; InvalidValue likewise."""
        self._check(fault_of_update(moved))
        pairs = ((slot, self._expression(Literal(value), 0)) for slot, value in moved.items())
        return [part for pair in pairs for part in pair]

    def sequence(self, one: Sequence) -> Array:
        """The array of a sequence; InvalidValue likewise."""
        self._check(fault_of_sequence(one))
        return [one.latest, *([*map(self.filter, step)] for step in one.steps)]

    def advertisement(self, one: Advertisement) -> Array:
        """The array of an advertisement; InvalidValue likewise."""
        self._check(fault_of_attributes(one.attributes))
        return [
            self._type(one.type),
            *([True] * one.anything),
            *(
                [self._name(name), *([*map(self._constraint, option)] for option in options)]
                for name, options in one.attributes
            ),
        ]

    def expression(self, node: Expression) -> object:
        """The array, or constant, of an expression; InvalidValue likewise."""
        return self._expression(node, 0)

    def _constraint(self, constraint: Constraint) -> Array:
        self.count()
        self._check(fault_of_constraint(constraint))
        operand = constraint.operand
        array: Array = [self._name(constraint.attribute), constraint.operator.value]
        if isinstance(operand, LikePattern):
            self.count(_weight(operand.text))
            array.append(self._name(operand.text))
        elif isinstance(operand, tuple):
            array.extend([self._expression(item, 0) for item in operand])
        elif operand is not None:
            array.append(self._expression(operand, 0))
        return array

    def _expression(self, node: Expression, calls: int) -> object:
        self.count()
        if isinstance(node, Literal):
            value = None if node.value is None else admit(node.value, self.where)
            return [TIME, microseconds_of(value)] if isinstance(value, datetime) else value
        head = head_of(node)
        shape = None if head is None else SHAPES.get(head[0])
        if head is None or shape is None or shape.node is not type(node):
            raise InvalidValue(self.where, "a node of the language", type(node).__name__)
        below = node.children()
        calls += shape.calls
        self._check(_fault_of_size(shape, len(below), calls) or fault_of_node(node))
        if shape.node is Like:
            self.count(_weight(head[1]))
        array: Array = [head[0], *map(self._name, head[1:])]
        for child in below:
            array.append(self._expression(child, calls))
        return array

    def _type(self, name: str | None) -> str | None:
        self._check(("an event type, or none", "an empty one") if name == "" else None)
        return None if name is None else self._name(name)

    def _name(self, text: str) -> str:
        utf8(text, self.where)
        return text

    def count(self, parts: int = 1) -> None:
        """Let so many parts more be in the message."""
        self.parts += parts
        if self.parts > PARTS_MAX:
            self._check((f"at most {PARTS_MAX} constraints and nodes in a message", "more"))

    def _check(self, fault: Fault | None) -> None:
        if fault is not None:
            raise InvalidValue(self.where, *fault)


class Reader:
    """Turns arrays back into what `Writer` made them of, or refuses them; counts their parts too.

    An array is what msgspec makes of MessagePack when it is told nothing: anything at all.
    """

    __slots__ = ("parts", "where")

    def __init__(self, where: str) -> None:
        self.where = where
        self.parts = 0

    def filter(self, array: object) -> Filter:
        """The filter of an array."""
        type, constraints, conditions = self._array(array, "a filter of three parts", 3, 3)
        return Filter(
            self._type(type),
            tuple([self._constraint(one) for one in self._array(constraints, "constraints", 0)]),
            tuple([self._expression(one, 0) for one in self._array(conditions, "conditions", 0)]),
        )

    def update(self, array: object) -> dict[int, Value]:
        """The new values of an array, by their slots."""
        items = self._array(array, "slots with a value behind each", 0)
        if len(items) % 2:
            raise self.refused("slots with a value behind each", f"{len(items)} in all")
        found: dict[int, Any] = {}
        for slot, item in zip(items[::2], items[1::2], strict=True):
            constant = self._expression(item, 0)
            if type(slot) is not int or slot in found or not isinstance(constant, Literal):
                raise self.refused("each slot once, and a constant", described(slot))
            found[slot] = constant.value
        self._check(fault_of_update(found))
        return found

    def sequence(self, array: object) -> Sequence:
        """The sequence of an array."""
        latest, *steps = self._array(array, "a time and two steps or more", 3)
        if type(latest) is not int:
            raise self.refused("microseconds since 1970", described(latest))
        read = [
            tuple([self.filter(one) for one in self._array(step, "filters", 1)]) for step in steps
        ]
        found = Sequence(tuple(read), latest)
        self._check(fault_of_sequence(found))
        return found

    def advertisement(self, array: object) -> Advertisement:
        """The advertisement of an array."""
        type, *attributes = self._array(array, "an advertisement of one part or more", 1)
        anything = bool(attributes) and attributes[0] is True
        found = tuple([self._advertised(attribute) for attribute in attributes[anything:]])
        self._check(fault_of_attributes(found))
        return Advertisement(self._type(type), found, anything)

    def expression(self, item: object) -> Expression:
        """The expression of an array or a constant."""
        return self._expression(item, 0)

    def _advertised(self, array: object) -> tuple[str, tuple[tuple[Constraint, ...], ...]]:
        name, *options = self._array(array, "an attribute and its alternatives", 2)
        read = [
            tuple([self._constraint(part) for part in self._array(option, "constraints", 1)])
            for option in options
        ]
        return self._name(name), tuple(read)

    def _constraint(self, array: object) -> Constraint:
        self.count()
        items = self._array(array, "an attribute, an operator and operands", 2)
        attribute, symbol = self._name(items[0]), self._name(items[1])
        operator = _OPERATORS.get(symbol)
        if operator is None:
            raise self.refused(f"one of the operators {' '.join(_OPERATORS)}", show(symbol))
        operands = items[2:]
        least = 0 if operator in UNARY_OPERATORS else 1
        if len(operands) < least or (len(operands) > least and operator is not Operator.IN):
            raise self.refused(f"{least} operands of {symbol}", f"{len(operands)}")
        constraint = Constraint(attribute, operator, self._operand(operator, operands))
        self._check(fault_of_constraint(constraint))
        return constraint

    def _operand(self, operator: Operator, operands: Array) -> Operand:
        if operator in UNARY_OPERATORS:
            return None
        if operator in STRING_OPERATORS:
            text = self._name(operands[0])
            self.count(_weight(text))
            try:
                return LikePattern(text)
            except MalformedPattern as error:
                raise self.refused(str(error), show(text)) from None
        if operator is Operator.IN:
            return tuple([self._expression(operand, 0) for operand in operands])
        return self._expression(operands[0], 0)

    def _expression(self, item: object, calls: int) -> Expression:
        self.count()
        if not isinstance(item, list):
            return Literal(self._constant(item))
        tag = item[0] if item else None
        if tag == TIME:
            return Literal(self._time(item))
        shape = SHAPES.get(tag) if isinstance(tag, str) else None
        if shape is None or not isinstance(tag, str):
            raise self.refused("the tag of a node", described(tag))
        names = [self._name(name) for name in item[1 : 1 + shape.names]]
        if len(names) < shape.names:
            raise self.refused(f"{shape.names} names in a node {tag}", f"{len(names)}")
        if shape.node is Like:
            self.count(_weight(names[0]))
        children = item[1 + shape.names :]
        calls += shape.calls
        self._check(_fault_of_size(shape, len(children), calls))
        below = []
        for child in children:
            below.append(self._expression(child, calls))
        try:
            node = shape.build(tag, names, tuple(below))
        except ValueError as error:  # a count or a pattern that the model itself refuses
            raise self.refused(f"a node {tag} as the language has it", str(error)) from None
        self._check(fault_of_node(node))
        return node

    def _constant(self, item: object) -> Value | None:
        if type(item) is int and not INTEGER_MIN <= item <= INTEGER_MAX:
            raise self.refused("an integer of 64 bits", show(item))
        if item is not None and type(item) not in _CONSTANTS:
            raise self.refused("a constant or a node", described(item))
        return item  # type: ignore[return-value]  # one of `_CONSTANTS`

    def _time(self, item: Array) -> datetime:
        if len(item) != 2 or type(item[1]) is not int or not EARLIEST_US <= item[1] <= LATEST_US:
            wanted = "a time in microseconds between the years 1 and 9999"
            raise self.refused(wanted, described(item[1] if len(item) == 2 else item))
        return time_of(item[1])

    def _type(self, item: object) -> str | None:
        if item is None or (isinstance(item, str) and item):
            return None if item is None else self._name(item)
        raise self.refused("an event type, or nil", described(item))

    def _name(self, item: object) -> str:
        if not isinstance(item, str):
            raise self.refused("a text", described(item))
        if len(item) > NAME_BYTES_MAX // 4 and len(item.encode()) > NAME_BYTES_MAX:
            raise self.refused(f"a text of at most {NAME_BYTES_MAX} bytes", described(item))
        return item

    def _array(self, item: object, wanted: str, least: int, most: int | None = None) -> Array:
        if not isinstance(item, list) or not least <= len(item) <= (most or len(item)):
            raise self.refused(wanted, described(item))
        return item

    def count(self, parts: int = 1) -> None:
        """Let so many parts more be in the message."""
        self.parts += parts
        if self.parts > PARTS_MAX:
            raise self.refused(f"at most {PARTS_MAX} constraints and nodes in a message", "more")

    def _check(self, fault: Fault | None) -> None:
        if fault is not None:
            raise self.refused(*fault)

    def refused(self, wanted: str, came: str) -> FrameRefused:
        """The refusal of what is being read."""
        return refused(self.where, wanted, came)


def _weight(pattern: str) -> int:
    return PATTERN_PARTS + len(pattern) // 2


def _fault_of_size(shape: Shape, below: int, calls: int) -> Fault | None:
    if calls > CALLS_MAX:
        return f"an expression of at most {CALLS_MAX // 4} levels", "a deeper one"
    if shape.least <= below and (shape.most is None or below <= shape.most):
        return None
    most = "more" if shape.most is None else shape.most
    return f"{shape.least} to {most} expressions below a {shape.node.__name__}", f"{below}"
