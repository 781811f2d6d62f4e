"""`driftline demo`: the whole journey once, on real prices."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import msgspec
import pyarrow as pa
import typer

from driftline.cli.check import JsonFlag
from driftline.cli.output import print_json, print_table, stderr
from driftline.cli.pipeline.running import progress_data, progress_rows, run_on_spark
from driftline.errors import FileRefused
from driftline.language.records import Record, record_to
from driftline.model.event import Event
from driftline.recorded.config import PipelineConfig, read_config
from driftline.spark.manifest import MATCHED, TOLD, committed_tables
from driftline.workload.files import write_events, write_lines
from driftline.workload.moves import moves, remembered
from driftline.workload.prices import quotes
from driftline.workload.subscriptions import subscriptions

_MARK = ".driftline-demo"
_SHOWN = 5

_FILES = 8
_MOVES = 100
"""Files of events, and so many limits that are moved between one and the next."""

_PIPELINE = """\
[events]
path = "events"

[changes]
path = "changes"

[out]
path = "told"

[tables.quote]
key = "symbol"

[run]
events_per_batch = 30_000
"""


def demo(
    out: Annotated[Path, typer.Option(help="Where to put everything; made anew.")] = Path(
        "out/demo"
    ),
    count: Annotated[int, typer.Option(min=1, help="How many subscriptions.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the subscriptions.")] = 1,
    json: JsonFlag = False,
) -> None:
    """Take real daily prices through the Spark pipeline to ten thousand subscriptions."""
    _clear(out)
    stderr.print("Reading twelve thousand daily prices of five stocks …")
    events = quotes()
    texts = _write(out, events, subscriptions(events, count, seed), seed)
    config = read_config(out / "pipeline.toml")
    stderr.print(
        f"Taking {len(events):,} events for {len(texts):,} subscriptions, of which "
        f"{(_FILES - 1) * _MOVES:,} times one moves meanwhile …",
    )
    done = run_on_spark(config)
    busiest = _busiest(config)
    if json:
        told = [{"id": id, "times": times} for id, times in busiest]
        print_json(
            {
                **progress_data(done, config),
                "subscriptions": len(texts),
                "most_told": told,
                "examples": _examples(config),
                "out": str(out),
            }
        )
        return
    print_table("What happened", ("what", "count"), progress_rows(done))
    print_table(
        "Told most often",
        ("subscription", "times", "text"),
        [(id, times, texts[id]) for id, times in busiest],
    )
    print_table(
        "Some of what was told",
        ("number", "kind", "subscription", "values"),
        [(one["seq"], one["kind"], one["id"], one["values"]) for one in _examples(config)],
    )
    _print_places(out)


def _write(out: Path, events: list[Event], records: list[Record], seed: int) -> dict[str, str]:
    """Files of events and of changes by turns; the texts of all subscriptions."""
    (out / "pipeline.toml").write_text(_PIPELINE)
    rows = [*map(record_to, records), *remembered(max(4, len(records) // 200), seed)]
    files = [out / "changes" / "subscriptions.jsonl"]
    write_lines(rows, str(files[0]))
    for number, file in enumerate(write_events(events, str(out / "events"), _FILES)):
        if number:
            past = events[: len(events) * number // _FILES]
            files.append(out / "changes" / f"moves-{number}.jsonl")
            write_lines(moves(records, past, _MOVES, seed + number), str(files[-1]))
        files.append(Path(file))
    # They count in the order of their dates.
    newest = os.stat(files[-1]).st_mtime_ns
    for age, path in enumerate(reversed(files)):
        os.utime(path, ns=(newest - age * 1_000_000, newest - age * 1_000_000))
    return {str(row["id"]): str(row["text"]) for row in rows}


def _print_places(out: Path) -> None:
    command = _command()
    stderr.print("\nWhere to look next:")
    for place, what in (
        (f"{out}/pipeline.toml", "what was run; events/ and changes/ are beside it"),
        (f"{out}/told/matched", "one Parquet row per event, with the ids it was told to"),
        (f"{out}/told/told", "what views and followers were told"),
        (f"{command} pipeline explain {out}", "where everything is, and why"),
        (f"{command} pipeline replay {out} --check", "the same again in one engine, compared"),
        (f"{command} pipeline init DIR", "a pipeline of your own to begin with"),
        ("docs/reference/language.md", "the language; examples/ has the engine in a few lines"),
    ):
        stderr.print(f"  {place:<44} {what}")


def _command() -> str:
    """How this command was called, so that what we suggest can be typed as it stands."""
    called = Path(sys.argv[0]).absolute()
    return str(called.relative_to(Path.cwd())) if called.is_relative_to(Path.cwd()) else called.name


def _clear(out: Path) -> None:
    """Remove an earlier demonstration, and nothing that is not one."""
    if out.exists() and any(out.iterdir()):
        if not (out / _MARK).exists():
            raise FileRefused(str(out), None, "wanted an empty or new directory for --out")
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    (out / _MARK).touch()


def _busiest(config: PipelineConfig) -> list[tuple[str, int]]:
    told: Counter[str] = Counter()
    for name in (MATCHED, TOLD):
        for table in committed_tables(config.out.path, name):
            told.update(table["subscriptions"].combine_chunks().flatten().to_pylist())
    return sorted(told.items(), key=lambda pair: (-pair[1], pair[0]))[:_SHOWN]


def _examples(config: PipelineConfig) -> list[dict[str, object]]:
    """The last event that was matched, and the last things that each kind with memory was told."""
    found: dict[tuple[str, str], dict[str, object]] = {}
    for table in committed_tables(config.out.path, MATCHED):
        for row in table.slice(max(0, len(table) - 1)).to_pylist():
            values = {"symbol": row["symbol"], "price": row["price"]}
            _newer(found, "event", row, values)
    for table in committed_tables(config.out.path, TOLD):
        for row in table.to_pylist():
            _newer(found, row["kind"], row, msgspec.json.decode(row["values"]))
    return [found[key] for key in sorted(found)]


def _newer(
    found: dict[tuple[str, str], dict[str, object]],
    kind: str,
    row: dict[str, pa.Scalar],
    values: dict[str, object],
) -> None:
    id = str(row["subscriptions"][0])
    key = (kind, id.partition("-")[0] if "-" in id else "")
    if key not in found or int(row["seq"]) >= int(str(found[key]["seq"])):
        found[key] = {"seq": row["seq"], "kind": kind, "id": id, "values": values}
