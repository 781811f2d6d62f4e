"""What may be asked for here, and how is it kept?"""

from __future__ import annotations

from collections.abc import Mapping

from driftline.broker.access import asked_of
from driftline.broker.weight import prepare_weight
from driftline.errors import NotSupported
from driftline.matching.bounds import parameters_of as bound_by
from driftline.model.covering import Statement
from driftline.model.pattern import Pattern
from driftline.model.standing import Standing, parameters_of
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.view import View, ViewKind
from driftline.model.wholeness import fault_of_view
from driftline.moving.evolving.plan import evolves
from driftline.stateful.plan import plan_of
from driftline.stateful.rows.change import is_derived
from driftline.stateful.value_based.states import condition_of


def check_executable(statement: Statement, params: Mapping[str, Value] | None = None) -> None:
    """Raise unless it is something that is executed here, by these parameters if they are known."""
    if isinstance(statement, View):
        fault = fault_of_view(statement)
        if fault is not None:
            raise NotSupported(str(statement), f"wanted {fault}")
        plan_of(statement, params or {})
        if params is not None and statement.of is ViewKind.MOVED:
            condition_of(Standing(statement, params))
    steps = statement.steps if isinstance(statement, Pattern) else (statement,)
    sources = [step.source for step in steps if step.source is not None]
    for source in (*sources, *(statement.tables if isinstance(statement, View) else ())):
        if is_derived(source):
            raise NotSupported(source, "types that begin with $ are the system's own")


def prepare(statement: Statement) -> None:
    """Work out beforehand what is remembered of a statement, where nobody waits for it."""
    parameters_of(statement)
    prepare_weight(statement)
    asked_of(statement)
    for step in statement.steps if isinstance(statement, Pattern) else (statement,):
        if isinstance(step, Subscription):
            filters = step.filters()
            hash(filters)
            any(map(evolves, filters))
            bound_by(filters)


def rows_of(statement: Statement) -> View:
    """The live set of the rows that a statement asks for."""
    if not isinstance(statement, Subscription):
        raise NotSupported(str(statement), "a live set of rows is asked for by a plain SELECT")
    if statement.change is not None:
        why = "a live set of rows tells every change: moved and crossed are asked for without it"
        raise NotSupported(str(statement), why)
    if statement.source is None:
        raise NotSupported(str(statement), "a live set of rows is of one table: FROM it")
    return View.of_rows(statement)


def stated(statement: Statement) -> Statement:
    """A statement as it is kept: what depends on what was told before is a view."""
    if isinstance(statement, Subscription) and statement.change is not None:
        return View.of_change(statement)
    return statement


def check_remote(statement: Statement) -> None:
    """Raise if it cannot be followed from another broker than the one that keeps the table."""
    if isinstance(statement, View) and statement.source and statement.variables().evolving:
        why = "what moves by itself is followed where the table is, in one process"
        raise NotSupported(str(statement), why)
