"""`driftline bench value-based`: its figures, and that it compares before it reports."""

from __future__ import annotations

import numpy as np
import pytest

from driftline.bench import BENCHMARKS, value_based, value_changes, value_peers, value_told
from driftline.bench.report import Report
from driftline.stateful.value_based.packed import Listed, Packed
from driftline.stateful.value_based.rule import Rule


@pytest.fixture(autouse=True)
def small(monkeypatch) -> None:
    for name, value in {
        "SIZES": dict.fromkeys(value_based.STEPS, (300,)),
        "EVENTS": 200,
        "ARRIVAL_EVENTS": 100,
        "PAPER_SIZES": (200,),
        "PAPER_EVENTS": 30,
        "RELABELLED": 60,
        "LABEL_BITS": (6, 40),
        "ITEMS": 2_000,
        "MEMBERS": 500,
        "SERVED": 300,
    }.items():
        monkeypatch.setattr(value_based, name, value)
    monkeypatch.setattr(value_changes, "TOGETHER", 25)
    monkeypatch.setattr(value_told, "BATCH", 20)
    monkeypatch.setattr(value_told, "BATCHES", 2)


def run() -> Report:
    return value_based.run(False, lambda text: None)


def test_each_workload_and_step_is_reported() -> None:
    report = run()
    assert report.name in BENCHMARKS
    steps = value_based.STEPS.items()
    assert [row[0] for row in report.rows] == [name for name, some in steps for _ in some]
    data = report.as_data()
    assert data["any_300_step_100"]["told"] > 0
    assert data["any_300_step_100"]["scan_us"] > 0
    assert data["any_300_step_100"]["bytes_per_subscription"] > 24
    assert data["told"]["told_per_event"] > 0
    assert data["relabelled"]["step_300_bits_6"]["labels"] > 0
    assert data["items"]["count"] == 2_000
    assert data["servers"]["ranges"] <= data["servers"]["reached"] <= data["servers"]["arcs"]
    rates = {name.rpartition("_")[2] for name in data["arrivals"]}
    assert rates == {"0", "0.5", "1", "2"}


def test_all_structures_are_there() -> None:
    (case,) = (name for name in run().figures["structures"] if name.startswith("same"))
    names = {row[1] for row in run().more[1].rows}
    assert names >= {kind.__name__ for some in value_peers.PAPER.values() for kind in some}
    assert names >= {"EndPoints", "Classes", "Combined", "Combined in batches"}
    assert case == "same_200"


def test_targets_are_not_measured_at_other_sizes() -> None:
    claims = {claim.name: claim.holds for claim in run().claims}
    assert claims["paper_structures"] is not None
    unmeasured = {name for name, holds in claims.items() if holds is None}
    assert unmeasured == claims.keys() - {"paper_structures"}


def test_who_is_told_wrongly_is_no_result(monkeypatch) -> None:
    nobody = lambda self, centres, radii, value: centres != centres  # noqa: E731
    monkeypatch.setattr(Rule, "tells_many", nobody)
    with pytest.raises(AssertionError, match="scan"):
        run()


def test_ours_is_compared_too(monkeypatch) -> None:
    nobody = Listed(np.zeros(0, np.int32), np.zeros(1_000, np.int64))
    monkeypatch.setattr(Packed, "ids_of", lambda self, told: nobody)
    with pytest.raises(AssertionError, match="scan"):
        run()


@pytest.mark.parametrize(
    "measure",
    [
        lambda: value_changes.arrivals(200, 300.0, 1.0, 100),
        lambda: value_told.measured(300, 100.0),
    ],
)
def test_what_comes_while_values_move_is_compared(measure, monkeypatch) -> None:
    """A scan that tells nobody is not what ours tells."""
    monkeypatch.setattr(value_peers, "scan", lambda radii, centres, value, ids: 0)
    with pytest.raises(AssertionError, match=r"scan|values"):
        measure()
