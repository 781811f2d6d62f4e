"""`driftline bench value-based`: its figures, and that it compares before it reports."""

from __future__ import annotations

import pytest

from driftline.bench import BENCHMARKS, value_based
from driftline.stateful.value_based.rule import Rule


@pytest.fixture(autouse=True)
def small(monkeypatch) -> None:
    monkeypatch.setattr(value_based, "SIZES", dict.fromkeys(value_based.STEPS, (300,)))
    monkeypatch.setattr(value_based, "EVENTS", 200)
    monkeypatch.setattr(value_based, "_PAPER_SIZE", 200)


def test_each_workload_and_step_is_reported() -> None:
    report = value_based.run(False, lambda text: None)
    assert report.name in BENCHMARKS
    assert [row[0] for row in report.rows] == [
        "different",
        "different",
        "different",
        "arriving",
        "same",
        "same",
        "any",
    ]
    assert report.as_data()["any_300_step_100"]["told"] > 0
    assert {row[1] for row in report.more[0].rows} >= {"BATree", "BWTree", "B2Tree", "Combined"}
    assert {claim.name: claim.holds for claim in report.claims}["different_1m_us"] is None


def test_who_is_told_wrongly_is_no_result(monkeypatch) -> None:
    nobody = lambda self, centres, radii, value: centres != centres  # noqa: E731
    monkeypatch.setattr(Rule, "tells_many", nobody)
    with pytest.raises(AssertionError, match="scan"):
        value_based.run(False, lambda text: None)
