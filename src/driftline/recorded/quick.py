"""How does one file of subscriptions become a pipeline?

A pipeline wants changes in the order in which they came, in files that stay as they are. A file of
subscriptions is simply edited. So the output gets a directory of changes of its own: what the file
says at first, and each time that it is given again what has become different since.

    out/pipeline.toml           the pipeline, for `driftline pipeline status out` and the others
    out/changes/00000.jsonl     the environment, and all subscriptions
    out/changes/00001.jsonl     what was different the next time, if anything was
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from driftline.errors import DriftlineError, FileRefused, InvalidValue
from driftline.files import rows_of
from driftline.language.cloudevents import value_to
from driftline.model.value import Value, show
from driftline.recorded.book import Book
from driftline.recorded.changes import SUBSCRIBE, change_from
from driftline.recorded.config import (
    ChangesConfig,
    EventsConfig,
    OutConfig,
    PipelineConfig,
    RunConfig,
)
from driftline.recorded.sequence import replace_file

CONFIG = "pipeline.toml"

_Rows = dict[tuple[str, str], dict[str, object]]
"""What is asked for, by id, and the environment, by name."""


def quick_pipeline(
    subscriptions: Path,
    events: Path,
    out: Path,
    *,
    checkpoint: Path | None = None,
    default_type: str | None = None,
    events_per_batch: int | None = None,
    env: Mapping[str, Value] | None = None,
) -> PipelineConfig:
    """The pipeline that matches these events with these subscriptions, written to `out`.

    A subscription that cannot be honoured refuses its file, naming the line.
    """
    if not events.exists():
        raise FileRefused(str(events), None, "no such file or directory")
    here = Path(os.path.abspath(out))
    run = RunConfig(None if checkpoint is None else os.path.abspath(checkpoint))
    if events_per_batch is not None:
        run = msgspec.structs.replace(run, events_per_batch=events_per_batch)
    config = PipelineConfig(
        EventsConfig(os.path.abspath(events), default_type=default_type),
        OutConfig(str(here)),
        ChangesConfig(str(here / "changes")),
        run=run,
    ).check()
    wanted: _Rows = {
        ("env", name): {"op": "env", "name": name, "value": value_to(value)}
        for name, value in (env or {}).items()
    }
    wanted |= _subscriptions(subscriptions, config)
    replace_file(here / CONFIG, _toml(config).encode())
    _note(here / "changes", wanted)
    return config


def _subscriptions(path: Path, config: PipelineConfig) -> _Rows:
    found: _Rows = {}
    book = Book(config.places)
    for number, row in rows_of(path):
        try:
            if isinstance(row, DriftlineError):
                raise row
            change = change_from(row, f"line {number}")
            assert isinstance(row, dict)
            if row.get("op", SUBSCRIBE) != SUBSCRIBE:
                raise InvalidValue("op", "subscriptions only in this file", show(row["op"]))
            for _, problem in book.write(book.end, 0, [change]).refused:
                raise FileRefused(str(path), number, problem)
        except FileRefused:
            raise
        except DriftlineError as problem:
            raise FileRefused(str(path), number, str(problem)) from problem
        there = {name: value for name, value in row.items() if value is not None}
        named = {"id": f"line {number}", **there}
        # As it will be read again, to be compared with.
        found["id", str(named["id"])] = msgspec.json.decode(msgspec.json.encode(named))
    return found


def _note(folder: Path, wanted: _Rows) -> None:
    """Write down what is different from what was noted before."""
    files = sorted(folder.glob("[!.]*.jsonl"))
    rows = list(_differences(_noted(files), wanted))
    if rows or not files:
        lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        file = folder / f"{len(files):05}.jsonl"
        replace_file(file, lines)
        # It counts for all events that are not recorded yet, whatever their date.
        os.utime(file, (0, 0))


def _noted(files: list[Path]) -> _Rows:
    found: _Rows = {}
    for file in files:
        for _, row in rows_of(file):
            assert isinstance(row, dict)
            if row.get("op") == "cancel":
                del found["id", row["id"]]
            elif row.get("op") != "env":
                found["id", row["id"]] = row
            elif row["value"] is None:
                del found["env", row["name"]]
            else:
                found["env", row["name"]] = row
    return found


def _differences(noted: _Rows, wanted: _Rows) -> Iterator[dict[str, object]]:
    for (kind, name), row in noted.items():
        if kind == "env" and (kind, name) not in wanted:
            yield {"op": "env", "name": name, "value": None}
        elif kind == "id" and row != wanted.get((kind, name)):
            # One that asks for something else begins anew.
            yield {"op": "cancel", "id": name}
    for key, row in wanted.items():
        if row != noted.get(key):
            yield row


def _toml(config: PipelineConfig) -> str:
    """What is not left at its default. A JSON text is one in TOML, too."""
    lines = ["# Made anew by each `driftline pipeline run --subscriptions`."]
    for section in ("events", "changes", "out", "run"):
        lines += ["", f"[{section}]"]
        said = getattr(config, section)
        for field in msgspec.structs.fields(said):
            value = getattr(said, field.name)
            if value not in (None, {}) and value != field.default:
                lines.append(f"{field.name} = {msgspec.json.encode(value).decode()}")
    return "\n".join(lines) + "\n"
