"""What must every way of running Driftline answer to one subscription and one event?

The files under `cases/` hold the answers, by topic, derived from the language's specification and
not from any implementation. A case is a JSON object:

    name     a sentence, unique in its file
    text     the subscription in SQL
    params   its parameters; `unbound: true` says that some are left out on purpose
    env      the environment variables
    start    microseconds from which `elapsed()` counts (0 if left out)
    event    a CloudEvents object; `entered` is the stamp it got where it entered the system
    expect   "true", "false" or "unknown"
    because  a part of the reason that must be given for unknown

An engine that knows one event at a time takes `cases()`; one that takes subscriptions and events in
bulk takes `runs()`, where all cases of a run share one environment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from driftline.language.cloudevents import event_from, value_from
from driftline.language.records import Record, record_from
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.value import Value, microseconds_of

HERE = Path(__file__).parent
EXPECTATIONS = ("true", "false", "unknown")
ENTERED = "2026-01-31T09:30:00Z"
"""When an event entered the system, where the case does not care."""

_KEYS = frozenset(
    {"name", "text", "params", "unbound", "env", "start", "event", "expect", "because"}
)


@dataclass(frozen=True, slots=True)
class Case:
    """One subscription, one event, and what is true of them."""

    id: str
    text: str
    params: Mapping[str, Value]
    unbound: bool
    env: Mapping[str, Value]
    start_us: int
    event: Event
    expect: str
    because: str | None

    @property
    def matches(self) -> bool:
        """Must the event be told? Only on true."""
        return self.expect == "true"

    @property
    def standing(self) -> Standing:
        """The subscription with its parameters, unchecked: an unbound one cannot be had else."""
        return Standing(parse(self.text), self.params, self.start_us)

    @property
    def record(self) -> Record:
        """The subscription as a file of subscriptions would give it, under the case's id."""
        row = {"id": self.id, "text": self.text, "start": self.start_us, "params": self.params}
        return record_from(row, self.id)


@dataclass(frozen=True, slots=True)
class Run:
    """Cases with one environment; the subscription of each is expected to match its own event."""

    env: Mapping[str, Value]
    cases: tuple[Case, ...]

    @property
    def records(self) -> list[Record]:
        """The subscription of each case, in order."""
        return [case.record for case in self.cases]

    @property
    def events(self) -> list[Event]:
        """The event of each case, in order."""
        return [case.event for case in self.cases]

    @property
    def expected(self) -> dict[str, bool]:
        """By case id: does its subscription match its event?"""
        return {case.id: case.matches for case in self.cases}


@cache
def cases() -> tuple[Case, ...]:
    """Every case of every topic."""
    return tuple(
        _case(path.stem, row)
        for path in sorted((HERE / "cases").glob("*.json"))
        for row in json.loads(path.read_text(encoding="utf-8"))
    )


def runs() -> list[Run]:
    """The cases whose subscription can be registered, grouped by environment."""
    groups: dict[str, list[Case]] = {}
    for case in cases():
        if not case.unbound:
            groups.setdefault(repr(sorted(case.env.items())), []).append(case)
    return [Run(group[0].env, tuple(group)) for group in groups.values()]


def texts(name: str) -> list[dict[str, str]]:
    """The rows of `accepted.json` or `refusals.json`."""
    rows: list[dict[str, str]] = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    return rows


def _case(topic: str, row: dict[str, Any]) -> Case:
    assert row.keys() <= _KEYS, f"{topic}: {sorted(row.keys() - _KEYS)} in {row['name']!r}"
    assert row["expect"] in EXPECTATIONS, f"{topic}: {row['expect']!r} in {row['name']!r}"
    envelope = dict(row["event"])
    entered = value_from({"@time": envelope.pop("entered", ENTERED)}, "entered")
    return Case(
        id=f"{topic}: {row['name']}",
        text=row["text"],
        params=_values(row.get("params", {})),
        unbound=row.get("unbound", False),
        env=_values(row.get("env", {})),
        start_us=row.get("start", 0),
        event=event_from(envelope).stamped(microseconds_of(entered)),  # type: ignore[arg-type]
        expect=row["expect"],
        because=row.get("because"),
    )


def _values(row: Mapping[str, object]) -> dict[str, Value]:
    return {name: value_from(value, name) for name, value in row.items()}
