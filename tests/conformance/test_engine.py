"""Does the engine tell exactly the cases that are true, one at a time and all at once?"""

from __future__ import annotations

import pytest

import driftline as dl
from driftline.errors import ParameterError
from tests.conformance.loader import Case, Run, cases, runs


class SetClock:
    """A clock that is put to any time, also back."""

    def __init__(self) -> None:
        self.us = 0

    def now(self) -> int:
        return self.us


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_the_engine_tells_only_on_true(case: Case) -> None:
    clock = SetClock()
    engine = dl.Engine(clock=clock)
    for name, value in case.env.items():
        engine.set_env(name, value)
    clock.us = case.start_us
    if case.unbound:
        with pytest.raises(ParameterError):
            engine.subscribe(case.text, case.params)
        return
    handle = engine.subscribe(case.text, case.params)
    assert case.event.entered is not None
    clock.us = case.event.entered
    assert engine.publish(case.event) == int(case.matches)
    assert [told.event for told in handle.pending()] == [case.event] * case.matches
    assert handle.explain(case.event).outcome is {"true": True, "false": False}.get(case.expect)


@pytest.mark.parametrize("run", runs(), ids=lambda run: repr(dict(run.env)))
def test_subscriptions_of_many_cases_do_not_disturb_one_another(run: Run) -> None:
    clock = SetClock()
    engine = dl.Engine(clock=clock)
    for name, value in run.env.items():
        engine.set_env(name, value)
    handles = {}
    for case in run.cases:
        clock.us = case.start_us
        handles[case.id] = engine.subscribe(case.text, case.params)
    told = {}
    for case in run.cases:
        clock.us = case.event.entered or 0
        engine.publish(case.event)
        told[case.id] = bool(handles[case.id].pending())
        for handle in handles.values():
            handle.pending()
    assert told == run.expected
