"""Does an explanation give the answer of the definition, and point at what decided?"""

from __future__ import annotations

from hypothesis import given

from driftline import Event, parse
from driftline.model.explanation import explain
from driftline.model.scope import Scope
from driftline.model.truth import Unknown
from driftline.testing import strategies


@given(strategies.subscriptions(), strategies.scopes())
def test_an_explanation_has_the_outcome_of_the_definition(wanted, scope) -> None:
    truth = wanted.truth(scope)
    explanation = explain(wanted, scope)
    assert explanation.outcome is (None if isinstance(truth, Unknown) else truth)
    assert explanation.deciding()
    assert str(explanation)


def test_the_part_that_decided_is_marked() -> None:
    wanted = parse("SELECT * FROM quote WHERE x > 1 AND (y = 2 OR z = 3)")
    event = Event("quote", {"x": 5, "y": 1})
    explanation = explain(wanted, Scope(event))
    assert explanation.outcome is None
    assert [part.text for part in explanation.deciding()] == ["z = 3"]
    assert "z is missing" in str(explanation)


def test_the_wrong_type_decides_alone() -> None:
    explanation = explain(parse("SELECT * FROM quote WHERE x > 1"), Scope(Event("stock", {"x": 5})))
    assert explanation.outcome is False
    assert [part.text for part in explanation.deciding()] == ["FROM quote"]
