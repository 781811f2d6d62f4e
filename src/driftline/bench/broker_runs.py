"""What does a contestant do with a job, run after run?

All servers are started first, and take turns: what else happens on the machine then befalls them
alike. The first run of each is not counted. Of the others the median counts; CPU time of the
broker's processes is trusted more than the clock, because the driver and whoever else is on the
machine share the cores with it. `other_cores` is how many cores these others took.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from statistics import median
from typing import Any

from driftline.bench.broker_contestant import Address, Contestant, Load
from driftline.bench.broker_driver import BUSY_MAX, WINDOW, Driver, Received
from driftline.bench.broker_job import Job, Truth, truth_of
from driftline.bench.cpu_clocks import machine_cpu_s

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Figures:
    """One run, or the median of some."""

    events_per_s: float
    useful_per_s: float
    messages_per_s: float
    messages_per_event: float
    useful_per_event: float
    mb_per_100k: float
    """Megabytes that all subscribers received, per 100,000 events."""
    cpu_s_per_1m: float
    """Seconds of the broker's processes per million events."""
    broker_cores: float
    """How many cores the broker kept busy."""
    driver_busy: float
    other_cores: float

    def as_data(self) -> dict[str, Any]:
        """As JSON, and whether the driver may have been what was measured."""
        return {**asdict(self), "driver_bound": self.driver_busy > BUSY_MAX}


@dataclass(frozen=True, slots=True)
class Latency:
    """Notifications at a fixed rate, in microseconds since their events were due."""

    per_second: float
    p50_us: float
    p99_us: float
    sent_late_p50_us: float
    """How late the driver itself was."""
    sent_late_p99_us: float
    broker_cores: float
    driver_busy: float
    other_cores: float

    def as_data(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Started:
    """A contestant whose server takes connections."""

    contestant: Contestant
    address: Address


@contextmanager
def started(contestants: Sequence[Contestant]) -> Iterator[list[Started]]:
    """All of them, until the end."""
    with ExitStack() as stack:
        found = []
        for one in contestants:
            address = one.start()
            stack.callback(one.stop)
            found.append(Started(one, address))
        yield found


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job in the protocol of a contestant, with what must come of it."""

    started: Started
    events: int
    load: Load
    truth: Truth

    @classmethod
    def of(
        cls, one: Started, job: Job, truth: Truth | None = None, together: int = 100
    ) -> Prepared:
        """The truth is computed unless it is known."""
        load = one.contestant.load(job, together)
        return cls(one, len(job.events), load, truth or truth_of(job))

    def saturated(self, window: int = WINDOW) -> Figures:
        """One run, as fast as the broker takes it."""
        with Driver(self.started.address, self.load, self.truth) as driver:
            received, cpu, others = self._timed(lambda: driver.saturated(window))
        seconds = received.seconds
        return Figures(
            self.events / seconds,
            received.useful / seconds,
            received.messages / seconds,
            received.messages / self.events,
            received.useful / self.events,
            received.bytes / self.events / 10,
            cpu / self.events * 1e6,
            cpu / seconds,
            received.busy,
            others,
        )

    def paced(self, per_second: float) -> Latency:
        """One run, each event at its time."""
        with Driver(self.started.address, self.load, self.truth) as driver:
            received, cpu, others = self._timed(lambda: driver.paced(per_second))
        assert received.latency_us is not None
        assert received.sent_late_us is not None
        return Latency(
            per_second,
            received.latency_us.p50,
            received.latency_us.p99,
            received.sent_late_us.p50,
            received.sent_late_us.p99,
            cpu / received.seconds,
            received.busy,
            others,
        )

    def _timed(self, run: Callable[[], Received]) -> tuple[Received, float, float]:
        """What a run received, the broker's CPU seconds, and how many cores others took."""
        clocks = (self.started.contestant.cpu_s, time.process_time, machine_cpu_s, time.monotonic)
        before = [clock() for clock in clocks]
        received = run()
        broker, driver, machine, wall = (
            clock() - start for clock, start in zip(clocks, before, strict=True)
        )
        return received, broker, max(0.0, machine - broker - driver) / wall


def in_turns(
    prepared: Sequence[Prepared], repeats: int, say: Say, window: int = WINDOW
) -> list[list[Figures]]:
    """Runs at saturation, by contestant; the first of each is only to warm up."""
    runs: list[list[Figures]] = [[] for _ in prepared]
    for turn in range(repeats + 1):
        for one, into in zip(prepared, runs, strict=True):
            say(f"{one.started.contestant.name}: run {turn} of {repeats}")
            figures = one.saturated(window)
            if turn:
                into.append(figures)
    return runs


def middle(runs: Sequence[Figures]) -> Figures:
    """Each figure's median."""
    return Figures(
        **{
            field.name: median(getattr(run, field.name) for run in runs)
            for field in fields(Figures)
        }
    )


def middle_latency(runs: Sequence[Latency]) -> Latency:
    """The same."""
    return Latency(
        **{
            field.name: median(getattr(run, field.name) for run in runs)
            for field in fields(Latency)
        }
    )
