"""Does the definition of matching answer every case as the specification says?"""

from __future__ import annotations

import pytest

from driftline.errors import ParameterError
from driftline.model.explanation import explain
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.truth import Unknown
from tests.conformance.loader import Case, cases, runs

CASES = cases()
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
unknown_case = pytest.mark.parametrize(
    "case", [case for case in CASES if case.expect == "unknown"], ids=lambda case: case.id
)


def subscription(case: Case) -> Subscription:
    statement = case.standing.statement
    assert isinstance(statement, Subscription)
    return statement


@every_case
def test_the_truth_is_the_specified_one(case: Case) -> None:
    outcome = subscription(case).truth(case.standing.scope(case.event, case.env))
    wanted = {"true": True, "false": False}.get(case.expect)
    if wanted is None:
        assert isinstance(outcome, Unknown), f"wanted unknown, came {outcome!r}"
        assert (case.because or "") in str(outcome)
    else:
        assert outcome is wanted, f"wanted {wanted}, came {outcome!r}"


@every_case
def test_an_event_matches_only_on_true(case: Case) -> None:
    assert case.standing.matches(case.event, case.env) is case.matches


@every_case
def test_the_filters_of_a_condition_say_the_same_as_the_condition(case: Case) -> None:
    scope = case.standing.scope(case.event, case.env)
    filters = subscription(case).filters(case.params)
    assert any(one.matches(scope) for one in filters) is case.matches


@unknown_case
def test_an_explanation_shows_what_was_unknown(case: Case) -> None:
    explanation = explain(subscription(case), case.standing.scope(case.event, case.env))
    assert explanation.outcome is None
    assert (case.because or "") in str(explanation.reason)


@pytest.mark.parametrize("case", [case for case in CASES if case.unbound], ids=lambda case: case.id)
def test_an_unbound_variable_cannot_be_subscribed_with(case: Case) -> None:
    with pytest.raises(ParameterError):
        Standing.of(case.standing.statement, case.params)


def test_no_two_cases_have_the_same_id() -> None:
    assert len({case.id for case in CASES}) == len(CASES)


def test_every_case_that_can_be_subscribed_is_in_one_run() -> None:
    in_runs = sorted(case.id for run in runs() for case in run.cases)
    assert in_runs == sorted(case.id for case in CASES if not case.unbound)


def test_no_two_runs_share_an_environment() -> None:
    environments = [repr(sorted(run.env.items())) for run in runs()]
    assert len(set(environments)) == len(environments)
