"""`driftline pipeline`: match a directory of events on Spark, once or as files arrive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress as Bars
from rich.progress import TaskID

from driftline.cli.check import JsonFlag
from driftline.cli.output import print_json, print_table, progress, read_values, stderr
from driftline.errors import FileRefused, PipelineFailed
from driftline.files import read_subscriptions
from driftline.language.records import Record

if TYPE_CHECKING:
    from driftline.spark.pipeline import Progress, Summary

app = typer.Typer(
    help="Match events in bulk on Spark: the engine's answers, at any size.", no_args_is_help=True
)


@app.callback()
def pipeline() -> None:
    """Match events in bulk on Spark: the engine's answers, at any size."""


@app.command("run")
def run(
    subscriptions: Annotated[Path, typer.Option(help="JSON lines or Parquet: id, text, params.")],
    events: Annotated[Path, typer.Option(help="Directory of Parquet or CloudEvents JSON lines.")],
    out: Annotated[Path, typer.Option(help="Directory for matches, rejected rows and manifests.")],
    checkpoint: Annotated[
        Path | None, typer.Option(help="Spark's memory of what is done. [default: OUT/checkpoint]")
    ] = None,
    continuous: Annotated[
        bool, typer.Option("--continuous", help="Go on as files arrive, until Ctrl-C.")
    ] = False,
    env: Annotated[str | None, typer.Option(help="Environment, as JSON.")] = None,
    default_type: Annotated[str | None, typer.Option(help="Type of events that have none.")] = None,
    files_per_batch: Annotated[int | None, typer.Option(min=1, help="Smaller batches.")] = None,
    cores: Annotated[str, typer.Option(help="Cores to use, * for all.")] = "2",
    json: JsonFlag = False,
) -> None:
    """Match all events not done yet; run it again and it goes on with the new ones.

    Each batch is written once, whatever fails: rows count when their batch's manifest is there.
    """
    environment = read_values(env, "--env")
    # What can be refused at once is refused before Spark takes its ten seconds to start.
    records = list(read_subscriptions(subscriptions))
    if not events.exists():
        raise FileRefused(str(events), None, "no such file or directory")
    summary = run_with_bar(
        records,
        events,
        out,
        checkpoint or out / "checkpoint",
        cores=cores,
        once=not continuous,
        env=environment,
        default_type=default_type,
        max_files_per_trigger=files_per_batch,
    )
    if json:
        print_json({**asdict(summary), "out": str(out)})
        return
    print_table("Pipeline", ("what", "count"), summary_rows(summary))
    stderr.print(f"Matches are in {out}/data, refused rows in {out}/rejected.", markup=False)


def run_with_bar(
    subscriptions: list[Record],
    events: Path,
    out: Path,
    checkpoint: Path,
    *,
    cores: str = "2",
    once: bool = True,
    env: Mapping[str, object] | None = None,
    default_type: str | None = None,
    max_files_per_trigger: int | None = None,
) -> Summary:
    """Start a local Spark and run the pipeline under a progress bar."""
    # Imported when needed: Spark takes a second to load, and other commands do without it.
    try:
        from driftline.spark.pipeline import run_match
        from driftline.spark.session import local_session
    except ModuleNotFoundError as error:
        raise PipelineFailed("starting Spark", f"{error}: pip install 'driftline[spark]'") from None

    with progress() as bars:
        task = bars.add_task("starting Spark", total=None)
        spark = local_session("driftline pipeline", cores)
        bars.update(task, description="matching")
        try:
            return run_match(
                spark,
                str(events),
                subscriptions,
                str(out),
                str(checkpoint),
                once=once,
                env=env,
                default_type=default_type,
                max_files_per_trigger=max_files_per_trigger,
                progress=_mover(bars, task),
            )
        finally:
            bars.update(task, description="stopping Spark")
            spark.stop()


def _mover(bars: Bars, task: TaskID) -> Callable[[Progress], None]:
    def move(now: Progress) -> None:
        told = f"matching: {now.notifications:,} notifications"
        bars.update(task, total=now.total, completed=now.events, description=told)

    return move


def summary_rows(summary: Summary) -> list[tuple[str, str]]:
    """The summary as rows of a table."""
    return [
        ("events", f"{summary.events:,}"),
        ("events with a match", f"{summary.matched:,}"),
        ("notifications", f"{summary.notifications:,}"),
        ("rows refused", f"{summary.rejected:,}"),
        ("batches", f"{summary.batches:,}"),
        ("seconds", f"{summary.seconds:.1f}"),
    ]
