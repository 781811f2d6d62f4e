"""Which values can one attribute have, given all that is asked of it?

A `Domain` describes a superset of the values that satisfy some constraints on one attribute. So
`empty` and `implies` may wrongly say no, never wrongly yes: if every value of the superset will
do, every value will.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from driftline.model.constraint import ORDERINGS, PATTERNS, Constraint, Operator
from driftline.model.like import LikePattern
from driftline.model.value import Kind, Value, compare, kind_of

_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


@dataclass(slots=True)
class Domain:
    """The values of one attribute that may satisfy the constraints it was built from."""

    present: bool = False
    absent: bool = False
    empty: bool = False
    kind: Kind | None = None
    low: Value | None = None
    low_open: bool = False
    high: Value | None = None
    high_open: bool = False
    values: list[Value] | None = None
    excluded: list[Value] = field(default_factory=list)
    patterns: list[LikePattern] = field(default_factory=list)
    refused: list[LikePattern] = field(default_factory=list)
    moving: list[Constraint] = field(default_factory=list)

    @classmethod
    def of(cls, constraints: Iterable[Constraint]) -> Domain:
        """The domain of an attribute under all of these."""
        domain = cls()
        constraints = tuple(constraints)
        for constraint in constraints:
            domain._narrow(constraint)
        domain._settle([c for c in constraints if c.constant])
        return domain

    def _narrow(self, constraint: Constraint) -> None:
        operator = constraint.operator
        if operator is Operator.ABSENT:
            self.absent = True
            return
        self.present = True
        if not constraint.constant:
            self.moving.append(constraint)
            return
        if isinstance(constraint.operand, LikePattern):
            self._take_kind(Kind.STRING)
            (self.refused if operator is Operator.NOT_LIKE else self.patterns).append(
                constraint.operand
            )
            if operator is not Operator.NOT_LIKE:
                self._take_prefix(constraint.operand.prefix)
            return
        values = constraint.values
        if operator is Operator.IN:
            self.values = list(values) if self.values is None else self.values
            return
        if not values:  # EXISTS asks for nothing more; NULL as operand is never true
            self.empty = self.empty or operator is not Operator.EXISTS
            return
        self._take_kind(kind_of(values[0]))
        if operator is Operator.EQ:
            self.values = [values[0]]
        elif operator is Operator.NE:
            self.excluded.append(values[0])
        elif operator in (Operator.LT, Operator.LE):
            self._take_high(values[0], operator is Operator.LT)
        elif operator in (Operator.GT, Operator.GE):
            self._take_low(values[0], operator is Operator.GT)

    def _take_kind(self, kind: Kind) -> None:
        if self.kind is not None and self.kind is not kind:
            self.empty = True
        self.kind = kind

    def _take_low(self, value: Value, is_open: bool) -> None:
        order = None if self.low is None else compare(value, self.low)
        if self.low is None or order == 1 or (order == 0 and is_open):
            self.low, self.low_open = value, is_open
        self._refuse_nan(value)

    def _take_high(self, value: Value, is_open: bool) -> None:
        order = None if self.high is None else compare(value, self.high)
        if self.high is None or order == -1 or (order == 0 and is_open):
            self.high, self.high_open = value, is_open
        self._refuse_nan(value)

    def _refuse_nan(self, value: Value) -> None:
        self.empty = self.empty or value != value

    def _take_prefix(self, prefix: str) -> None:
        self._take_low(prefix, False)
        after = successor(prefix)
        if after is not None:
            self._take_high(after, True)

    def _settle(self, constraints: list[Constraint]) -> None:
        """Turn what the bounds say together into values or emptiness."""
        if self.present and self.absent:
            self.empty = True
        if self.low is not None and self.high is not None:
            order = compare(self.low, self.high)
            if order == 1 or (order == 0 and (self.low_open or self.high_open)):
                self.empty = True
            elif order == 0 and self.values is None:
                self.values = [self.low]
        if self.kind is Kind.BOOLEAN and self.values is None:
            self.values = [False, True]
        if self.values is not None:
            self.values = [
                value
                for value in self.values
                if all(constraint.satisfied_by(value) for constraint in constraints)
            ]
            self.empty = self.empty or not self.values

    def implies(self, wanted: Constraint) -> bool:
        """Does every value of the domain satisfy the constraint?"""
        if self.empty:
            return True
        if wanted.operator is Operator.ABSENT:
            return self.absent
        if not self.present:
            return False
        if wanted.operator is Operator.EXISTS:
            return True
        if not wanted.constant:
            return not wanted.variables().private and wanted in self.moving
        if self.values is not None:
            return all(wanted.satisfied_by(value) for value in self.values)
        if wanted.operator in PATTERNS:
            assert isinstance(wanted.operand, LikePattern)
            return any(pattern_implies(pattern, wanted.operand) for pattern in self.patterns)
        if wanted.operator is Operator.NOT_LIKE:
            return wanted.operand in self.refused
        if wanted.operator is Operator.IN or not wanted.values:
            return False
        return self._implies_comparison(wanted.operator, wanted.values[0])

    def _implies_comparison(self, operator: Operator, value: Value) -> bool:
        if self.kind is not kind_of(value) or value != value:
            return False
        below, above = self._end(self.high, value, -1), self._end(self.low, value, 1)
        if operator in ORDERINGS:
            if operator in (Operator.LT, Operator.LE):
                touches = operator is Operator.LE or self.high_open
                return below == "apart" or (below == "touching" and touches)
            touches = operator is Operator.GE or self.low_open
            return above == "apart" or (above == "touching" and touches)
        if operator is Operator.NE:
            return (
                below == "apart"
                or above == "apart"
                or (below == "touching" and self.high_open)
                or (above == "touching" and self.low_open)
                or any(compare(value, other) == 0 for other in self.excluded)
                or any(not pattern.matches(str(value)) for pattern in self.patterns)
            )
        return False  # equality with one value: the domain would have had `values`

    @staticmethod
    def _end(end: Value | None, value: Value, sign: int) -> str:
        """Is the domain's end on the far side of the value (`apart`), on it, or neither?"""
        order = None if end is None else compare(end, value)
        return "touching" if order == 0 else "apart" if order == sign else "beyond"


def pattern_implies(specific: LikePattern, general: LikePattern) -> bool:
    """Does every string the first pattern takes match the second? May wrongly say no."""
    if specific.parts == general.parts:
        return True
    if specific.literal is not None:
        return general.matches(specific.literal)
    if general.is_prefix:
        return specific.prefix.startswith(general.prefix)
    if general.is_suffix:
        return specific.suffix.endswith(general.suffix)
    if general.is_substring:
        inner = "".join(general.substrings)
        return any(inner in run for run in specific.substrings) or not inner
    return False


def successor(prefix: str) -> str | None:
    r"""The least string above all with this prefix, in code point order; None if none is.

    >>> successor("ab"), successor("a\U0010ffff"), successor("")
    ('ac', 'b', None)
    """
    while prefix:
        last = ord(prefix[-1])
        prefix = prefix[:-1]
        if last < _LAST_CODE_POINT:
            after = last + 1
            return prefix + chr(_SURROGATES.stop if after in _SURROGATES else after)
    return None
