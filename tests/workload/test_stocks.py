"""Stocks whose ratio changes are what they are said to be."""

from __future__ import annotations

import numpy as np
import pytest

from driftline.workload.stocks import DOMAIN, MEDIAN, SPREAD, Stocks, Walk, ranges, stocks


def _last_points(drawn: Stocks) -> np.ndarray:
    """What the table is after all updates, one after the other."""
    points = np.where(drawn.present[:, None], drawn.points, np.nan)
    for id, point, present in zip(
        drawn.updates.ids, drawn.updates.points, drawn.updates.present, strict=True
    ):
        points[id] = point if present else np.nan
    return points


def test_the_same_seed_draws_the_same() -> None:
    walk = Walk(complex=0.1, deletes=0.1)
    one, same, other = (stocks(500, 3_000, walk, seed) for seed in (1, 1, 2))
    for a, b in ((one.points, same.points), (one.updates.points, same.updates.points)):
        assert np.array_equal(a, b)
    assert np.array_equal(one.updates.ids, same.updates.ids)
    assert np.array_equal(one.updates.present, same.updates.present)
    assert not np.array_equal(one.updates.points, other.updates.points)
    assert np.array_equal(ranges(100, 1), ranges(100, 1))
    assert not np.array_equal(ranges(100, 1), ranges(100, 2))


@pytest.mark.parametrize("step", [0.05, 0.3, 0.5])
def test_y_is_distributed_in_the_end_as_in_the_beginning(step: float) -> None:
    drawn = stocks(2_000, 100_000, Walk(step=step, spikes=0))
    for points in (drawn.points, _last_points(drawn)):
        logs = np.log(points[:, 1])
        assert logs.mean() == pytest.approx(np.log(MEDIAN), abs=0.05)
        assert logs.std() == pytest.approx(SPREAD, rel=0.05)
        assert points.min() >= 0
        assert points.max() <= DOMAIN


def test_a_step_is_as_large_as_it_is_said_to_be_and_smaller_for_a_small_y() -> None:
    drawn = stocks(1, 20_000, Walk(step=0.05, spikes=0))
    y = drawn.updates.points[:, 1]
    assert np.diff(np.log(y)).std() == pytest.approx(0.05, rel=0.03)
    low = y[:-1] < np.median(y)
    moved = np.abs(np.diff(y))
    assert moved[low].mean() < 0.8 * moved[~low].mean()


def test_a_spike_drops_and_the_next_update_takes_it_back() -> None:
    drawn = stocks(1_000, 40_000, Walk(spikes=0.02, depth=0.1))
    updates = drawn.updates
    at = np.flatnonzero(updates.spikes)
    assert len(at) / len(updates) == pytest.approx(0.02, rel=0.1)
    assert np.array_equal(updates.ids[at], updates.ids[at + 1])
    was = dict(enumerate(drawn.points[:, 1].tolist()))
    before = np.zeros(len(updates))
    for number, (id, y) in enumerate(zip(updates.ids, updates.points[:, 1], strict=True)):
        before[number] = was[id]
        was[id] = y
    assert updates.points[at, 1] == pytest.approx(0.1 * before[at], abs=0.02)
    assert np.array_equal(updates.points[at + 1, 1], before[at])


def test_only_y_changes_unless_it_is_said_that_more_does() -> None:
    drawn = stocks(1_000, 10_000)
    assert drawn.present.all()
    assert drawn.updates.present.all()
    assert np.array_equal(drawn.updates.points[:, 0], drawn.points[drawn.updates.ids, 0])


def test_there_are_as_many_complex_updates_inserts_and_deletes_as_is_said() -> None:
    drawn = stocks(1_000, 50_000, Walk(complex=0.2, deletes=0.1, spikes=0))
    points = np.where(drawn.present[:, None], drawn.points, np.nan)
    counts = {"insert": 0, "delete": 0, "complex": 0, "plain": 0}
    updates = drawn.updates
    for id, new, present in zip(updates.ids, updates.points, updates.present, strict=True):
        old = points[id].copy()
        points[id] = new if present else np.nan
        assert present or not np.isnan(old[0]), "what is not there cannot be deleted"
        if not present:
            counts["delete"] += 1
        elif np.isnan(old[0]):
            counts["insert"] += 1
        else:
            counts["complex" if old[0] != new[0] else "plain"] += 1
    shares = {kind: count / len(updates) for kind, count in counts.items()}
    assert shares["delete"] == pytest.approx(0.1, rel=0.05)
    assert shares["insert"] == pytest.approx(0.1, rel=0.05)
    assert shares["complex"] == pytest.approx(0.2 * 0.8, rel=0.05)


def test_x_is_uniform_and_may_be_one_of_a_few() -> None:
    x = stocks(20_000, 10).points[:, 0]
    assert np.histogram(x, 10, (0, DOMAIN))[0] == pytest.approx(2_000, rel=0.1)
    assert len(np.unique(x)) == len(x)
    few = stocks(20_000, 10, Walk(places=41)).points[:, 0]
    assert len(np.unique(few)) == 41


def test_ranges_lie_as_the_paper_says_and_none_is_negative() -> None:
    low, high = ranges(50_000)
    assert (low <= high).all()
    middle = (low + high) / 2
    assert middle.mean() == pytest.approx(5_000, abs=30)
    assert middle.std() == pytest.approx(1_500, rel=0.02)
    # A normal distribution without its negative part: N(1000, 1000) has then a mean of 1288.
    assert (high - low).mean() == pytest.approx(1_288, rel=0.02)
