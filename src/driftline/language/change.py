"""Which condition on the value last told do `moved(…)` and `crossed(…)` spell?

Radii and thresholds may be expressions over variables; where they are constant they are checked
here, because a radius of zero, for one, has no meaning [VALUE §2.1].
"""

from __future__ import annotations

from sqlglot import exp

from driftline.errors import LanguageError
from driftline.language.convert import Converter, shown
from driftline.model.expression import Attribute, Expression, Literal
from driftline.model.subscription import Crossed, Measure, Moved
from driftline.model.value import Kind, compare, kind_of
from driftline.model.variables import attributes_of, fold, variables_of
from driftline.model.view import Aggregate

_ZERO, _ONE = Literal(0), Literal(1)


def moved_condition(
    value: Expression,
    named: dict[str, Expression],
    strict: bool = False,
    shared: bool = False,
) -> Moved:
    """Build `moved` from its named radii, refusing combinations that mean nothing."""
    check_value(value, "moved")
    given = frozenset(named)
    if given == {"may", "must"}:
        may, must = named["may"], named["must"]
        _check_bound("may", may, above=_ZERO)
        _check_bound("must", must, above=_ZERO)
        if _order(may, must) == 1:
            raise LanguageError("may at most must", f"may => {may}, must => {must}")
        return Moved(value, Measure.BY, must, may, strict, shared)
    if len(given) != 1 or given & {"may", "must"}:
        raise LanguageError(
            "one of by, percent, factor, or may with must, in moved(…)",
            " and ".join(sorted(given)) or "none",
        )
    ((name, radius),) = named.items()
    measure = Measure(name)
    _check_bound(name, radius, above=_ONE if measure is Measure.FACTOR else _ZERO)
    return Moved(value, measure, radius, None, strict, shared)


def crossed_condition(value: Expression, named: dict[str, Expression]) -> Crossed:
    """Build `crossed` from its thresholds; without `clear` it re-arms at the threshold itself."""
    check_value(value, "crossed")
    sides = frozenset(named) & {"above", "below"}
    if len(sides) != 1:
        raise LanguageError(
            "above or below in crossed(…)", " and ".join(sorted(sides)) or "neither"
        )
    (side,) = sides
    threshold = named[side]
    clear = named.get("clear", threshold)
    for name, bound in ((side, threshold), ("clear", clear)):
        _check_bound(name, bound, above=None)
    above = side == "above"
    if _order(clear, threshold) == (1 if above else -1):
        wanted = "clear at most above" if above else "clear at least below"
        raise LanguageError(wanted, f"{side} => {threshold}, clear => {clear}")
    return Crossed(value, threshold, clear, above)


def check_value(value: Expression, name: str) -> None:
    """Only an attribute, or in HAVING an aggregate, can move."""
    if not isinstance(value, Attribute | Aggregate):
        raise LanguageError(f"an attribute in {name}(…)", str(value))


def _check_bound(name: str, bound: Expression, above: Literal | None) -> None:
    if attributes_of(bound):
        raise LanguageError(f"a number or variables for {name}", str(bound))
    constant = fold(bound)
    if not isinstance(constant, Literal):
        if not variables_of(constant):  # a division by zero, for one
            raise LanguageError(f"a number for {name}", str(bound))
        return
    if constant.value is None or kind_of(constant.value) is not Kind.NUMBER:
        raise LanguageError(f"a number for {name}", str(bound))
    if above is not None and _order(constant, above) != 1:
        raise LanguageError(f"{name} above {above}", str(bound))


def _order(a: Expression, b: Expression) -> int | None:
    a, b = fold(a), fold(b)
    if isinstance(a, Literal) and isinstance(b, Literal):
        return None if a.value is None or b.value is None else compare(a.value, b.value)
    return None


def read_change(converter: Converter, node: exp.Anonymous, value: Expression) -> Moved | Crossed:
    """The condition a call spells; `value` is its first argument, already converted."""
    name, arguments = converter.called(node)
    named: dict[str, Expression] = {}
    flags: dict[str, bool] = {}
    allowed = (
        ("by", "may", "must", "percent", "factor")
        if name == "moved"
        else ("above", "below", "clear")
    )
    for argument in arguments[1:]:
        if not isinstance(argument, exp.Kwarg):
            converter.refuse(argument, f"name => value in {name}(…)", shown(argument))
        word = argument.this.name.lower()
        if word in named or word in flags:
            converter.refuse(argument, f"{word} once", "twice")
        bound = converter.convert(argument.expression)
        if name == "moved" and word in ("strict", "shared"):
            if not (isinstance(bound, Literal) and isinstance(bound.value, bool)):
                converter.refuse(argument, f"TRUE or FALSE for {word}", str(bound))
            flags[word] = bound.value
        elif word in allowed:
            named[word] = bound
        else:
            converter.refuse(argument, f"one of {', '.join(allowed)} in {name}(…)", word)
    try:
        if name == "moved":
            return moved_condition(value, named, **flags)
        return crossed_condition(value, named)
    except LanguageError as error:
        converter.refuse(node, error.wanted, error.came)
