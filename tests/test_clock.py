"""Clocks: the machine's never goes back, and a manual one goes only forward."""

import time

import pytest

from driftline import ManualClock, SystemClock


def test_the_machines_clock_repeats_its_last_reading_when_time_jumps_back(monkeypatch):
    readings = iter([5_000_000, 3_000_000, 6_000_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(readings))
    clock = SystemClock()
    assert [clock.now() for _ in range(3)] == [5_000, 5_000, 6_000]


def test_a_manual_clock_is_moved_by_seconds_and_microseconds():
    clock = ManualClock(7)
    clock.advance(0.5, us=3)
    assert clock.now() == 500_010
    with pytest.raises(ValueError, match="forward"):
        clock.advance(-1)
