"""`driftline bench parametric`: its figures, and that it compares before it reports."""

from __future__ import annotations

import pytest

from driftline.bench import BENCHMARKS, parametric
from driftline.broker.edge import Edge


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("TYPES", 6), ("CHANGES", 40), ("EVENTS", 40), ("_REPEATS", 1)):
        monkeypatch.setattr(parametric, name, size)


def test_both_ways_are_measured_at_each_coverage() -> None:
    report = parametric.run(False, lambda text: None)
    assert report.name in BENCHMARKS
    assert len(report.rows) == len(parametric.MATCHERS) * len(parametric.COVERAGES)
    figures = report.as_data()
    for matcher in parametric.MATCHERS:
        assert figures[matcher]["33"]["update_us"] > 0
        assert figures[matcher]["33"]["throughput_ratio"]["0"] == 1


def test_an_update_that_is_not_made_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Edge, "move", lambda self, id, standing: None)
    with pytest.raises(AssertionError):
        parametric.run(False, lambda text: None)
