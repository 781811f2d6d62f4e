"""Which parameters do these filters use, and may they have these values?

Every matcher asks at its door, so that a refusal changes nothing and all refuse the same. A name
that no filter uses is passed over: a subscription may have parameters that only its columns use, or
only the part of its condition that `lazy` keeps to itself.

    >>> from driftline.language.sql import parse
    >>> filters = alternatives(parse("SELECT * WHERE x < :high OR x IS NULL").filters())
    >>> admitted(parameters_of(filters), {"high": 3, "elsewhere": 4})
    {'high': 3}
    >>> admitted(parameters_of(filters), {"low": 3})
    Traceback (most recent call last):
    driftline.errors.ParameterError: parameters refused, nothing changed: missing :high
"""

from __future__ import annotations

from collections.abc import Set

from driftline.errors import InvalidValue, ParameterError
from driftline.matching.matcher import NO_BOUNDS, Bounds, Filters
from driftline.model.filter import Filter
from driftline.model.remember import remembered
from driftline.model.value import Value, admit
from driftline.model.variables import variables_of


def alternatives(filters: Filters) -> tuple[Filter, ...]:
    """The filters as a tuple, also where it is a single one."""
    if type(filters) is tuple:
        return filters
    return (filters,) if isinstance(filters, Filter) else tuple(filters)


def parameters_of(filters: tuple[Filter, ...]) -> frozenset[str]:
    """The names of the parameters that some of them uses."""
    if len(filters) == 1:
        return _parameters_of(filters[0])
    return frozenset().union(*map(_parameters_of, filters))


@remembered
def _parameters_of(one: Filter) -> frozenset[str]:
    found: set[str] = set()
    for constraint in one.constraints:
        if not constraint.constant:
            found |= constraint.variables().parameters
    for condition in one.conditions:
        found |= variables_of(condition).parameters
    return frozenset(found)


def admitted(names: Set[str], bounds: Bounds) -> Bounds:
    """The values of these parameters, checked, and no others. O(names)."""
    if not names:
        return NO_BOUNDS
    values: dict[str, Value] = {}
    missing: list[str] = []
    ill_typed: list[str] = []
    for name in names:
        given = bounds.get(name)
        if given is None:
            missing.append(name)
            continue
        try:
            value = admit(given, f":{name}")
        except InvalidValue as error:
            ill_typed.append(str(error))
            continue
        if value != value:
            ill_typed.append(f":{name}: wanted a value that compares, came NaN")
        values[name] = value
    if missing or ill_typed:
        raise ParameterError(tuple(sorted(missing)), (), tuple(sorted(ill_typed)))
    return values
