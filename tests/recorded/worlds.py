"""A pipeline in a directory: what arrives, what must be told of it, and what was refused."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from driftline.model.event import Event
from driftline.recorded.config import (
    ChangesConfig,
    EventsConfig,
    OrderConfig,
    OutConfig,
    PipelineConfig,
    RunConfig,
    TableConfig,
)
from driftline.recorded.recorder import Recorder
from driftline.recorded.replay import Answer, answers, answers_in, replayed
from driftline.workload.files import table_of

QUOTES = {"quote": TableConfig("symbol", spread=True), "trade": TableConfig("number")}
SYMBOLS = ("ACME", "IBM", "SAP", "TSLA")

FILTER = "SELECT * FROM quote WHERE price > :p"
MOVED = "SELECT price FROM quote WHERE moved(price, by => :r)"
LOWEST = "SELECT MIN(price) FROM trade WHERE size > :s"
PATTERN = "SELECT * FROM quote WHERE price > 100 THEN SELECT * FROM trade WHERE size > 5 WITHIN 60"

EVERYTHING: tuple[dict[str, Any], ...] = (
    {"id": "filter", "text": FILTER, "params": {"p": 100}},
    {"id": "moved", "text": MOVED, "params": {"r": 3}},
    {"id": "lowest", "text": LOWEST, "params": {"s": 2}},
    {"id": "pattern", "text": PATTERN},
)
"""One of each kind: a plain filter, a follower, a view and a pattern."""


class World:
    """Where one pipeline reads and writes; files arrive whole, and in the order they are made."""

    def __init__(self, root: Path, order: OrderConfig | None = None, **run: Any) -> None:
        self.root = root
        self.config = PipelineConfig(
            EventsConfig(str(root / "events")),
            OutConfig(str(root / "out")),
            ChangesConfig(str(root / "changes")),
            QUOTES,
            order or OrderConfig(),
            RunConfig(checkpoint=str(root / "checkpoint"), **run),
        )
        self._arrived = 0
        for name in ("events", "changes"):
            (root / name).mkdir(parents=True, exist_ok=True)

    @property
    def out(self) -> str:
        return self.config.out.path

    def events(self, *events: Event) -> Path:
        """A file of events arrives."""
        sink = pa.BufferOutputStream()
        pq.write_table(table_of(events), sink)
        return self.arrive("events", ".parquet", bytes(sink.getvalue()))

    def quotes(self, first: int, last: int) -> Path:
        """Events of both tables arrive, made from their numbers."""
        return self.events(*(made_event(number) for number in range(first, last)))

    def changes(self, *changes: dict[str, Any]) -> Path:
        """A file of changes arrives."""
        lines = b"".join(msgspec.json.encode(one) + b"\n" for one in changes)
        return self.arrive("changes", ".jsonl", lines)

    def arrive(self, folder: str, suffix: str, content: bytes) -> Path:
        """A file arrives, whatever it holds."""
        self._arrived += 1
        file = self.root / folder / f"{self._arrived:04}{suffix}"
        hidden = file.with_name(f".{file.name}")
        hidden.write_bytes(content)
        # Dates in the order of arrival, however coarse the clock of the file system is.
        os.utime(hidden, (1_000_000_000 + self._arrived,) * 2)
        hidden.replace(file)
        return file

    def record(self) -> int:
        """Record what has come, as a run does in the beginning: how many rows that is."""
        recorder = Recorder(self.config)
        try:
            return recorder.look(1_700_000_000_000_000)
        finally:
            recorder.close()

    def wanted(self) -> Counter[Answer]:
        """What one engine tells."""
        return answers(replayed(self.config))

    def told(self) -> Counter[Answer]:
        """What was told, as a reader without Spark sees it."""
        return answers_in(self.table(name) for name in ("matched", "told"))

    def refused(self) -> list[tuple[int, str]]:
        """The number and the problem of what was refused."""
        rows = self.table("refused").to_pylist()
        return sorted((row["seq"], row["problem"]) for row in rows)

    def table(self, name: str) -> pa.Table:
        """The rows of a table that count."""
        from driftline.spark.manifest import committed_files

        tables = [pq.read_table(file) for file in committed_files(self.out, name)]
        nothing = pa.schema([("seq", pa.int64()), ("subscriptions", pa.list_(pa.string()))])
        return pa.concat_tables(tables) if tables else nothing.empty_table()


def made_event(number: int) -> Event:
    """The how manyth event of a world: prices rise, fall and repeat; every third is a trade."""
    seconds = 1_700_000_000 + number
    price = 95 + (number * 7) % 13
    if number % 3:
        attributes = {"symbol": SYMBOLS[number % 4], "price": price, "n": number}
        return Event("quote", attributes, id=f"e{number}", time=seconds * 1_000_000)
    attributes = {"number": number % 6, "price": price, "size": number % 7, "n": number}
    return Event("trade", attributes, id=f"e{number}", time=seconds * 1_000_000)
