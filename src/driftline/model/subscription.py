"""What does a subscriber ask for?

A subscription selects columns of the events (FROM a type or any) for which a condition is true;
perhaps only when a value `moved` or `crossed` since the subscriber was last told [VALUE §2.1].
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass

from driftline.errors import InvalidValue, NotSupported
from driftline.model.event import Event, stamp_of
from driftline.model.expression import NOT, TRUE, Expression
from driftline.model.filter import Filter, filters_of
from driftline.model.predicate import conjuncts, truth_of
from driftline.model.remember import Remembering, remembered
from driftline.model.scope import Scope
from driftline.model.text import identifier
from driftline.model.truth import Outcome, Unknown
from driftline.model.value import Value, admit, admit_all, show
from driftline.model.variables import Variables, bind, variables_of


@dataclass(frozen=True, slots=True)
class Column:
    """One selected value and the name it is told under."""

    expression: Expression
    alias: str | None = None

    @property
    def name(self) -> str:
        """The alias, or the canonical text of the expression (such as `MIN(per)`)."""
        return str(self.expression) if self.alias is None else self.alias

    def __str__(self) -> str:
        alias = "" if self.alias is None else f" AS {identifier(self.alias)}"
        return f"{self.expression}{alias}"


class Measure(enum.Enum):
    """How far is far: a distance, a share of the last value, or a ratio to it."""

    BY = "by"
    PERCENT = "percent"
    FACTOR = "factor"


@dataclass(frozen=True, slots=True)
class Moved:
    """`moved(value, by => r)`: told when the value is at least r from the one last received.

    `may` is the smaller radius of a may/must pair: told *at the latest* at `radius`, and allowed
    from `may` on [VALUE §6.1].
    """

    value: Expression
    measure: Measure
    radius: Expression
    may: Expression | None = None
    strict: bool = False
    shared: bool = False

    def parts(self) -> tuple[Expression, ...]:
        """What it is made of."""
        return (self.value, self.radius, TRUE if self.may is None else self.may)

    def variables(self) -> Variables:
        """What the radii depend on."""
        may = variables_of(TRUE if self.may is None else self.may)
        return variables_of(self.radius) | may

    def __str__(self) -> str:
        if self.may is None:
            parts = [str(self.value), f"{self.measure.value} => {self.radius}"]
        else:
            parts = [str(self.value), f"may => {self.may}", f"must => {self.radius}"]
        parts += ["strict => TRUE"] * self.strict + ["shared => TRUE"] * self.shared
        return f"moved({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class Crossed:
    """`crossed(value, above => a, clear => c)`: hysteresis, with another threshold to re-arm."""

    value: Expression
    threshold: Expression
    clear: Expression
    above: bool = True

    def parts(self) -> tuple[Expression, ...]:
        """What it is made of."""
        return (self.value, self.threshold, self.clear)

    def variables(self) -> Variables:
        """What the thresholds depend on."""
        return variables_of(self.threshold) | variables_of(self.clear)

    def __str__(self) -> str:
        side = "above" if self.above else "below"
        return f"crossed({self.value}, {side} => {self.threshold}, clear => {self.clear})"


@dataclass(frozen=True, slots=True)
class Subscription(Remembering):
    """`SELECT columns FROM source WHERE where [AND change]`; no columns means `*`."""

    columns: tuple[Column, ...] = ()
    source: str | None = None
    where: Expression = TRUE
    change: Moved | Crossed | None = None

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            found = hash((self.columns, self.source, self.where, self.change))
            object.__setattr__(self, "_hash", found)
            return found

    def __reduce__(self) -> tuple[object, ...]:
        # Without the hash, which is another one in each process.
        return Subscription, (self.columns, self.source, self.where, self.change)

    def parts(self) -> tuple[object, ...]:
        """See `Remembering`."""
        change = () if self.change is None else self.change.parts()
        return (self.where, *(column.expression for column in self.columns), *change)

    def variables(self) -> Variables:
        """The variables that the condition, the columns and the radii depend on."""
        return _variables(self)

    def truth(self, scope: Scope) -> Outcome:
        """True, false or unknown for the scope's event: *the* definition of matching."""
        if self.change is not None:
            raise NotSupported(
                str(self.change), "depends on what was told before, not on one event"
            )
        if self.source is not None and (scope.event is None or scope.event.type != self.source):
            return False
        truth = self.where.evaluate(scope)
        return truth if type(truth) is bool else truth_of(truth)

    def matches(
        self,
        event: Event,
        params: Mapping[str, object] | None = None,
        env: Mapping[str, object] | None = None,
        elapsed: float = 0.0,
        now: int | None = None,
    ) -> bool:
        """Does the event satisfy it, with these variables? True only on true, not on unknown.

        `now` (microseconds) is what `now()` reads; by default the event's own stamp or time.
        """
        known = admit_all(params, "parameter"), admit_all(env, "environment variable")
        _check_event(event)
        scope = Scope(event, *known, stamp_of(now, "now"), check_elapsed(elapsed))
        return self.truth(scope) is True

    def filters(self, params: Mapping[str, Value] | None = None) -> tuple[Filter, ...]:
        """The condition as filters of which one must be true, with these parameters bound."""
        return filters_of(self.source, bind(self.where, params)) if params else _filters(self)

    def select(self, scope: Scope) -> dict[str, Value | None]:
        """The selected values of the scope's event; None where one is unknown."""
        if not self.columns:
            return dict(scope.attributes)
        return {column.name: known(column.expression.evaluate(scope)) for column in self.columns}

    def __str__(self) -> str:
        parts = [f"SELECT {', '.join(map(str, self.columns)) or '*'}"]
        if self.source is not None:
            parts.append(f"FROM {identifier(self.source)}")
        where = where_text(self.where, self.change)
        return " ".join([*parts, f"WHERE {where}"] if where else parts)


@remembered
def _variables(one: Subscription) -> Variables:
    found = variables_of(one.where)
    for column in one.columns:
        found |= variables_of(column.expression)
    return found if one.change is None else found | one.change.variables()


@remembered
def _filters(one: Subscription) -> tuple[Filter, ...]:
    return filters_of(one.source, one.where)


def _check_event(given: object) -> None:
    if not isinstance(given, Event):
        raise InvalidValue("event", "an Event", show(given))


def check_elapsed(elapsed: object) -> float:
    """Seconds since the start, which never lies in the future."""
    seconds = admit(elapsed, "elapsed")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        seconds = math.nan
    if 0 <= seconds < math.inf:
        return float(seconds)
    raise InvalidValue("elapsed", "seconds, 0 or more", show(elapsed))


def known(outcome: Outcome) -> Value | None:
    """A value for a person: unknown becomes None."""
    return None if isinstance(outcome, Unknown) else outcome


def where_text(where: Expression, change: Moved | Crossed | None = None) -> str:
    """The text after WHERE, empty where there is nothing to ask."""
    if change is None:
        return "" if where == TRUE else str(where)
    return " AND ".join([*(item.written(NOT) for item in conjuncts(where)), str(change)])
