"""How does one value stand to another: `=`, `!=`, `<`, `<=`, `>`, `>=`?"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from driftline.model.truth import Outcome, Unknown
from driftline.model.value import KIND_OF, type_name

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATED = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def compared(sign: str, left: Outcome, right: Outcome) -> bool | Unknown:
    """`left sign right`, unknown where either is, across kinds, and with NaN."""
    if type(left) is Unknown:
        return left
    if type(right) is Unknown:
        return right
    if KIND_OF[type(left)] is not KIND_OF[type(right)]:
        return Unknown(f"{type_name(left)} {sign} {type_name(right)}", "does not compare")
    if left != left or right != right:
        return Unknown("NaN", "does not compare")
    return COMPARISONS[sign](left, right)
