"""`driftline bench covering`: its figures, and that it compares before it reports."""

from __future__ import annotations

import pytest

from driftline.bench import BENCHMARKS, covering
from driftline.matching.relations import FEW, Relations


def test_each_size_of_each_workload_is_reported(monkeypatch) -> None:
    monkeypatch.setattr(covering, "SIZES", (FEW, 2 * FEW))
    report = covering.run(False, lambda text: None)
    assert report.name in BENCHMARKS
    assert [row[:2] for row in report.rows] == [
        (name, f"{size}") for name in ("overlap", "apart") for size in (FEW, 2 * FEW)
    ]
    assert report.as_data()[f"apart_{FEW}"]["roots"] == FEW
    assert report.as_data()[f"overlap_{2 * FEW}"]["edges"] > 0
    assert {claim.name: claim.holds for claim in report.claims}["add_apart_100k_us"] is None


def test_a_place_that_the_walk_does_not_find_is_no_result(monkeypatch) -> None:
    monkeypatch.setattr(covering, "SIZES", (FEW, 2 * FEW))
    wrong = lambda self, new: dict.fromkeys(list(self.roots)[:1])  # noqa: E731
    monkeypatch.setattr(Relations, "_nearest_above", wrong)
    with pytest.raises(AssertionError):
        covering.run(False, lambda text: None)
