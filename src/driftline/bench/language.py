"""How long do import, parse and one match take, and what does hostile text cost?

Beside ours: SQLite evaluating the same condition on the same row, which is what a Python program
has at hand for "does this row satisfy this SQL condition?". Answers are compared before timing.
"""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

from driftline.bench.report import Report, at_most, best_cpu_seconds
from driftline.errors import DriftlineError
from driftline.language.sql import parse
from driftline.matching.choice import make_matcher
from driftline.matching.lazy import Lazy
from driftline.model.event import Event
from driftline.model.standing import Standing

SEED = 7
_SYMBOLS = [f"S{at}" for at in range(50)]

HOSTILE = {
    "10,000 parentheses": "SELECT * WHERE " + "(" * 10_000 + "x" + ")" * 10_000,
    "10 MB": "SELECT * WHERE x = '" + "a" * 10_000_000 + "'",
    "10,000 NOTs": "SELECT * WHERE " + "NOT " * 10_000 + "x",
    "5,000 ANDs": "SELECT * WHERE " + " AND ".join(["x < 1"] * 5_000),
    "5,000 additions": "SELECT * WHERE " + " + ".join(["x"] * 5_000) + " < 1",
    "a table dropped": "DROP TABLE quote",
    "unknown function": "SELECT * WHERE sleep(10) = 1",
    "lone surrogate": "SELECT * WHERE x = '\ud800'",
    "a number too large": "SELECT * WHERE x < 1e999",
    "LIKE bomb": "SELECT * WHERE x LIKE '" + "%a" * 1_000 + "'",
}


def run(full: bool, say: Callable[[str], None]) -> Report:
    """Measure; `full` takes ten times the subscriptions."""
    say("import")
    import_s = _import_seconds()
    say("parse")
    texts = _texts(1_000)
    parse_us = best_cpu_seconds(lambda: [parse(text) for text in texts]) / len(texts) * 1e6
    say("hostile texts")
    hostile = {name: _hostile_seconds(text) for name, text in HOSTILE.items()}
    say("match")
    count = 10_000 if full else 1_000
    matching = _matching(count)
    figures: dict[str, object] = {
        "seed": SEED,
        "import_s": import_s,
        "parse_us": parse_us,
        "hostile_s": hostile,
        "matching": matching,
    }
    rows: list[tuple[object, ...]] = [
        ("import driftline", f"{import_s * 1000:.0f} ms"),
        ("parse one text", f"{parse_us:.0f} µs"),
        ("hostile text, the worst", f"{max(hostile.values()) * 1000:.0f} ms"),
        *((name.replace("_", " "), f"{value:,.1f}") for name, value in matching.items()),
    ]
    claims = [
        at_most("import_seconds", 0.3, import_s, "s"),
        at_most("hostile_seconds", 1.0, max(hostile.values()), "s"),
    ]
    return Report("language", figures, ("what", "measured"), rows, claims)


def _import_seconds() -> float:
    code = (
        "import time; start = time.perf_counter(); import driftline; "
        "print(time.perf_counter() - start)"
    )
    runs = [subprocess.check_output([sys.executable, "-c", code]) for _ in range(5)]
    return min(float(run) for run in runs)


def _hostile_seconds(text: str) -> float:
    def refused_or_read() -> None:
        with suppress(DriftlineError):
            parse(text)

    return best_cpu_seconds(refused_or_read, repeats=1)


def _texts(count: int) -> list[str]:
    draw = random.Random(SEED)
    return [
        f"SELECT * FROM quote WHERE symbol = '{draw.choice(_SYMBOLS)}' "
        f"AND price < {draw.randint(1, 100)} AND volume > {draw.randint(1, 1000)}"
        for _ in range(count)
    ]


def _matching(count: int) -> dict[str, float]:
    """Microseconds per event and events per second for `count` subscriptions."""
    draw = random.Random(SEED)
    standing = {str(at): Standing.of(parse(text)) for at, text in enumerate(_texts(count))}
    events = [
        Event(
            "quote",
            {
                "symbol": draw.choice(_SYMBOLS),
                "price": draw.randint(1, 100),
                "volume": draw.randint(1, 1000),
            },
        )
        for _ in range(50)
    ]
    scan, index = Lazy(make_matcher("scan")), Lazy(make_matcher("index"))
    for id, one in standing.items():
        scan.add(id, one)
        index.add(id, one)
    answers = [scan.match(event, {}) for event in events]
    assert answers == [index.match(event, {}) for event in events]
    peer = _Sqlite(standing)
    assert answers == [peer.match(event) for event in events]
    scan_s = best_cpu_seconds(lambda: [scan.match(event, {}) for event in events])
    index_s = best_cpu_seconds(lambda: [index.match(event, {}) for event in events])
    peer_s = best_cpu_seconds(lambda: [peer.match(event) for event in events])
    return {
        "subscriptions": count,
        "matches_per_event": sum(map(len, answers)) / len(events),
        "scan_events_per_s": len(events) / scan_s,
        "index_events_per_s": len(events) / index_s,
        "sqlite_events_per_s": len(events) / peer_s,
        "ratio_index_to_sqlite": peer_s / index_s,
    }


class _Sqlite:
    """One prepared condition per subscription, asked of each event in turn."""

    def __init__(self, standing: dict[str, Standing]) -> None:
        self._connection = sqlite3.connect(":memory:", cached_statements=len(standing) + 1)
        self._conditions = {
            id: f"SELECT {where} FROM (SELECT ? AS symbol, ? AS price, ? AS volume)"
            for id, one in standing.items()
            for where in [str(one.statement).partition(" WHERE ")[2]]
        }

    def match(self, event: Event) -> list[str]:
        row = (event.attributes["symbol"], event.attributes["price"], event.attributes["volume"])
        execute = self._connection.execute
        return [id for id, sql in self._conditions.items() if execute(sql, row).fetchone()[0] == 1]
