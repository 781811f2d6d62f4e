"""Events and subscriptions that these tests share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as hypothesis_seed
from hypothesis.strategies import SearchStrategy

from driftline.language.records import Record, record_from
from driftline.model.event import Event
from driftline.model.value import Value

T = TypeVar("T")


def drawn(strategy: SearchStrategy[T], count: int, seed: int) -> list[T]:
    """So many examples at once: a Spark job per example would take a second each."""
    found: list[T] = []

    @hypothesis_seed(seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: T) -> None:
        found.append(example)

    collect()
    return found


def records(*texts: str, **params: Value) -> list[Record]:
    """Subscriptions called s0, s1, … with the parameters that each wants."""
    rows = []
    for number, text in enumerate(texts):
        wanted = {name: value for name, value in params.items() if f":{name}" in text}
        rows.append(record_from({"text": text, "params": wanted}, f"s{number}"))
    return rows


def expected(
    events: Iterable[Event], subscriptions: Iterable[Record], env: dict[str, Value] | None = None
) -> list[list[str]]:
    """For each event the ids that the definition gives."""
    records = list(subscriptions)
    return [
        [record.id for record in records if record.standing.matches(event, env or {})]
        for event in events
    ]
