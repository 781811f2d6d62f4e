"""`driftline demo`: the whole journey once, on real prices."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import pyarrow.parquet as pq
import typer

from driftline.cli.check import JsonFlag
from driftline.cli.output import print_json, print_table, stderr
from driftline.cli.pipeline import run_with_bar, summary_rows
from driftline.errors import FileRefused
from driftline.workload.files import write_events, write_records
from driftline.workload.prices import quotes
from driftline.workload.subscriptions import subscriptions

_MARK = ".driftline-demo"
_SHOWN = 5


def demo(
    out: Annotated[Path, typer.Option(help="Where to put everything; made anew.")] = Path(
        "out/demo"
    ),
    count: Annotated[int, typer.Option(min=1, help="How many subscriptions.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the subscriptions.")] = 1,
    json: JsonFlag = False,
) -> None:
    """Replay real daily prices to ten thousand subscriptions through the Spark pipeline."""
    _clear(out)
    stderr.print("Reading twelve thousand daily prices of five stocks …", markup=False)
    events = quotes()
    records = subscriptions(events, count, seed)
    write_events(events, str(out / "events"), files=8)
    write_records(records, str(out / "subscriptions.jsonl"))
    stderr.print(f"Matching {len(events):,} events with {count:,} subscriptions …", markup=False)
    matches = out / "matches"
    summary = run_with_bar(
        records, out / "events", matches, out / "checkpoint", max_files_per_trigger=2
    )
    busiest = _busiest(matches)
    if json:
        told = [{"id": id, "times": times} for id, times in busiest]
        print_json({**asdict(summary), "subscriptions": count, "most_told": told, "out": str(out)})
        return
    texts = {record.id: str(record.standing.statement) for record in records}
    print_table("What happened", ("what", "count"), summary_rows(summary))
    print_table(
        "Told most often",
        ("subscription", "times", "text"),
        [(id, times, texts[id]) for id, times in busiest],
    )
    stderr.print("\nWhere to look next:", markup=False)
    for place, what in (
        (f"{matches}/data", "one Parquet row per event, with the ids it was told to"),
        (f"{out}/subscriptions.jsonl", "what was asked for"),
        ("docs/reference/language.md", "the language; examples/ has the engine in a few lines"),
        (f"{_command()} check TEXT", "what a subscription means, and what it depends on"),
    ):
        stderr.print(f"  {place:<32} {what}", markup=False)


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


def _busiest(matches: Path) -> list[tuple[str, int]]:
    from driftline.spark.manifest import committed_files

    told: Counter[str] = Counter()
    for file in committed_files(str(matches)):
        for ids in pq.read_table(file, columns=["subscriptions"]).column(0).to_pylist():
            told.update(ids)
    return sorted(told.items(), key=lambda pair: (-pair[1], pair[0]))[:_SHOWN]
