"""Why is a value told, or not, to one who was told another before?

The part of an explanation that is about `moved` or `crossed`: what was last told, and whether this
would be now. Asking changes nothing.
"""

from __future__ import annotations

from copy import copy

from driftline.errors import InvalidValue
from driftline.model.explanation import Explanation
from driftline.model.subscription import Crossed, Moved
from driftline.model.value import Value
from driftline.stateful.value_based.conditions import number_of
from driftline.stateful.value_based.fold import Crossing, Moving

Seen = dict[str, Value | None]


def explain_change(
    change: Moved | Crossed,
    judge: Moving | Crossing,
    value: Value | None,
    params: dict[str, Value],
) -> Explanation:
    """Would one whose state this is be told of a value, as far as that depends on nobody else?"""
    used = sorted(change.variables().parameters)
    seen: Seen = {str(change.value): value, **{f":{name}": params[name] for name in used}}
    try:
        if isinstance(judge, Moving):
            outcome, reason = _moving(judge, value, seen)
        else:
            outcome, reason = _crossing(judge, value)
    except InvalidValue as problem:
        outcome, reason = None, str(problem)
    return Explanation(str(change), outcome, reason, seen)


def _moving(judge: Moving, value: Value | None, seen: Seen) -> tuple[bool | None, str | None]:
    move = judge.move
    if move.number(value) is None:
        return None, "there is no value that could have moved"
    if judge.centre is None:
        return True, "nothing was told yet"
    ticks = move.ticks
    seen["last told"] = judge.centre if ticks is None else float(ticks.value(judge.centre))
    if copy(judge).take(value):
        return True, None
    if move.may is not None and copy(judge).take(value, move.may):
        return None, "it may be told, and is if somebody else must be"
    return False, None


def _crossing(judge: Crossing, value: Value | None) -> tuple[bool | None, str | None]:
    if number_of(value) is None:
        return None, "there is no value that could have crossed"
    if copy(judge).take(value):
        return True, None
    return False, "it had not cleared since it was told" if judge.beyond else None
