"""`driftline bench overlay`: its figures, and that it compares before it reports."""

from __future__ import annotations

import pytest

from driftline.bench import BENCHMARKS, overlay
from driftline.broker.edge import Edge

SMALL = {"brokers": 5, "subscriptions": 300, "events": 400}


def test_each_topology_is_reported() -> None:
    report = overlay.run(True, lambda text: None, **SMALL)
    assert report.name in BENCHMARKS
    assert [row[0] for row in report.rows] == ["alone", *overlay.TOPOLOGIES]
    figures = report.as_data()
    assert figures["alone"]["publish_frames"] == 0 < figures["acyclic"]["publish_frames"]
    deliveries = {figures[name]["deliveries"] for name in ("alone", *overlay.TOPOLOGIES)}
    assert len(deliveries) == 1
    assert 0 not in deliveries
    assert all(claim.holds is None for claim in report.claims), "of another size"


def test_one_topology_can_be_chosen() -> None:
    report = overlay.run(False, lambda text: None, **SMALL, topology="hierarchical")
    assert [row[0] for row in report.rows] == ["alone", "hierarchical"]


def test_somebody_who_is_not_told_is_no_result(monkeypatch) -> None:
    take = Edge.take
    monkeypatch.setattr(Edge, "take", lambda self, *event: take(self, *event)[1:])
    with pytest.raises(AssertionError, match="not those whom it concerns"):
        overlay.run(False, lambda text: None, **SMALL)
