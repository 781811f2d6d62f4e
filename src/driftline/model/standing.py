"""A subscription as it stands: with its parameters, its start and its epoch.

Parameters are set as a whole. A missing, extra or ill-typed name refuses the change and nothing
changes; each accepted change is a new epoch, counted from 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from driftline.errors import InvalidValue, ParameterError
from driftline.model.covering import Statement
from driftline.model.event import Event
from driftline.model.expression import Expression
from driftline.model.pattern import Pattern
from driftline.model.remember import remembered
from driftline.model.scope import Scope
from driftline.model.subscription import Moved, Subscription
from driftline.model.value import Kind, Value, admit, identity, items_of, kind_of, type_name
from driftline.model.variables import parameter_kinds
from driftline.model.view import View


@dataclass(frozen=True, slots=True)
class Standing:
    """One subscriber's live request. A value: `moved_to` gives the next one."""

    statement: Statement
    params: Mapping[str, Value]
    start_us: int = 0
    epoch: int = 0

    @classmethod
    def of(
        cls, statement: Statement, params: Mapping[str, object] | None = None, start_us: int = 0
    ) -> Standing:
        """Begin, with all parameters bound."""
        return cls(statement, admitted_params(statement, params or {}), start_us)

    def moved_to(self, params: Mapping[str, object], start_us: int | None = None) -> Standing:
        """The same request under other parameters, one epoch later; `elapsed()` goes on counting.

        With a start it counts from there.
        """
        admitted = admitted_params(self.statement, params, self.params)
        start = self.start_us if start_us is None else start_us
        return replace(self, params=admitted, start_us=start, epoch=self.epoch + 1)

    def restated(self, statement: Statement, params: Mapping[str, object]) -> Standing:
        """Another request in its place, one epoch later, with values for what is new in it."""
        kept = {
            name: self.params[name]
            for name in statement.variables().parameters & self.params.keys()
        }
        admitted = admitted_params(statement, {**kept, **params})
        return replace(self, statement=statement, params=admitted, epoch=self.epoch + 1)

    def same(self, other: Standing) -> bool:
        """Is it the same request? To Python TRUE is 1; to a subscription it is not."""
        return self == other and all(
            identity(value) == identity(other.params[name]) for name, value in self.params.items()
        )

    def scope(self, event: Event, env: Mapping[str, Value], at: int | None = None) -> Scope:
        """What its condition sees of this event; `at` an instant, if it is seen again later."""
        now_us = event.stamp if at is None else at
        elapsed = None if now_us is None else max(0.0, float(now_us - self.start_us) / 1e6)
        return Scope(event, self.params, env, now_us, elapsed)

    def matches(self, event: Event, env: Mapping[str, Value]) -> bool:
        """Does the event satisfy it now? For plain subscriptions."""
        assert isinstance(self.statement, Subscription)
        source = self.statement.source
        if source is not None and source != event.type:
            return False
        return self.statement.truth(self.scope(event, env)) is True


def admitted_params(
    statement: Statement,
    params: Mapping[str, object],
    previous: Mapping[str, Value] | None = None,
) -> dict[str, Value]:
    """The parameters checked against the text, and against the kinds they had before."""
    wanted, kinds = parameters_of(statement)
    params = {str(name): value for name, value in items_of(params, "parameters")}
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    if wanted != params.keys():
        missing = tuple(sorted(wanted - params.keys()))
        extra = tuple(sorted(params.keys() - wanted))
    admitted: dict[str, Value] = {}
    ill_typed = []
    for name in sorted(wanted & params.keys()):
        try:
            value = admit(params[name], f":{name}")
        except InvalidValue as error:
            ill_typed.append(str(error))
            continue
        problem = _problem(name, value, kinds.get(name), (previous or {}).get(name))
        if problem:
            ill_typed.append(problem)
        admitted[name] = value
    if missing or extra or ill_typed:
        raise ParameterError(missing, extra, tuple(ill_typed))
    return admitted


@remembered
def parameters_of(statement: Statement) -> tuple[frozenset[str], dict[str, frozenset[Kind]]]:
    """The parameters of a text and the kinds each may have: the same for all that stand for it."""
    return statement.variables().parameters, kinds_of(statement)


def _problem(
    name: str, value: Value, kinds: frozenset[Kind] | None, before: Value | None
) -> str | None:
    if value != value:
        return f":{name}: wanted a value that compares, came NaN"
    if kinds is not None and kind_of(value) not in kinds:
        wanted = " or ".join(sorted(kind.value for kind in kinds)) or "nothing that exists"
        return f":{name}: wanted a {wanted}, came {type_name(value)}"
    if before is not None and kind_of(before) is not kind_of(value):
        return f":{name}: wanted a {kind_of(before).value} as before, came {type_name(value)}"
    return None


def kinds_of(statement: Statement) -> dict[str, frozenset[Kind]]:
    """The kinds each parameter may have, for those whose use in the text says so."""
    kinds: dict[str, frozenset[Kind]] = {}
    for condition in conditions_of(statement):
        for name, allowed in parameter_kinds(condition).items():
            kinds[name] = kinds.get(name, frozenset(Kind)) & allowed
    for value, allowed_at_top in (
        *((bound, frozenset({Kind.NUMBER})) for bound in _change_bounds(statement)),
        *((column, frozenset(Kind)) for column in _columns(statement)),
    ):
        for name, allowed in parameter_kinds(value, allowed_at_top).items():
            kinds[name] = kinds.get(name, frozenset(Kind)) & allowed
    return kinds


def _columns(statement: Statement) -> tuple[Expression, ...]:
    parts = statement.steps if isinstance(statement, Pattern) else (statement,)
    return tuple(column.expression for part in parts for column in part.columns)


def _change_bounds(statement: Statement) -> tuple[Expression, ...]:
    """The radii of `moved` and the thresholds of `crossed`, which are numbers."""
    if isinstance(statement, Pattern):
        return ()
    change = statement.having if isinstance(statement, View) else statement.change
    if isinstance(change, Moved):
        return (change.radius,) if change.may is None else (change.radius, change.may)
    return () if change is None else (change.threshold, change.clear)


def conditions_of(statement: Statement) -> tuple[Expression, ...]:
    """Every condition of the text: one, or one per step or side."""
    if isinstance(statement, Pattern):
        return tuple(step.where for step in statement.steps)
    if isinstance(statement, View) and statement.join is not None:
        return (statement.where, statement.join.on)
    return (statement.where,)
