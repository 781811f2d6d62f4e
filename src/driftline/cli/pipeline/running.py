"""`driftline pipeline run`: once or on and on, under bars that say how far it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress as Bars
from rich.progress import TaskID

from driftline.cli.check import JsonFlag
from driftline.cli.output import print_json, print_table, progress, read_values, stderr
from driftline.cli.pipeline.chosen import HERE, ConfigArgument, chosen
from driftline.errors import FileRefused, InvalidValue, PipelineFailed
from driftline.recorded.config import PipelineConfig
from driftline.recorded.quick import quick_pipeline

if TYPE_CHECKING:
    from driftline.spark.running import Progress

CoresOption = Annotated[str, typer.Option(help="Cores to use, * for all.")]
MasterOption = Annotated[
    str | None, typer.Option(help="A cluster instead: spark://host:7077, yarn, …")
]


def run(
    config: ConfigArgument = HERE,
    once: Annotated[
        bool,
        typer.Option("--once/--continuous", help="Take all there is and end, or go on to Ctrl-C."),
    ] = True,
    cores: CoresOption = "2",
    master: MasterOption = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Answer Prometheus at /metrics, on loopback."),
    ] = None,
    subscriptions: Annotated[
        Path | None, typer.Option(help="Without CONFIG: a file of subscriptions …")
    ] = None,
    events: Annotated[Path | None, typer.Option(help="… a directory of events …")] = None,
    out: Annotated[Path | None, typer.Option(help="… and a directory for what was told.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="With these: what is done. [default: OUT/checkpoint]")
    ] = None,
    default_type: Annotated[str | None, typer.Option(help="Type of events that have none.")] = None,
    events_per_batch: Annotated[int | None, typer.Option(min=1, help="Smaller batches.")] = None,
    env: Annotated[str | None, typer.Option(help="Environment, as JSON.")] = None,
    json: JsonFlag = False,
) -> None:
    """Take all events and changes that are not done yet; run it again and it goes on.

    Each batch is written once, whatever fails: files count when a manifest names them.

    driftline pipeline run mine
    driftline pipeline run --subscriptions s.jsonl --events events --out out
    """
    quick = (subscriptions, events, out)
    rest = (checkpoint, default_type, events_per_batch, env)
    if subscriptions is not None and events is not None and out is not None:
        if config != HERE:
            raise typer.BadParameter("a CONFIG says what these options say: give one or the other")
        pipeline = quick_pipeline(
            subscriptions,
            events,
            out,
            checkpoint=checkpoint,
            default_type=default_type,
            events_per_batch=events_per_batch,
            env=read_values(env, "--env"),
        )
    elif any(one is not None for one in (*quick, *rest)):
        raise typer.BadParameter("without CONFIG, give --subscriptions, --events and --out")
    else:
        pipeline = chosen(config)
    # What can be refused at once is refused before Spark takes its ten seconds to start.
    is_files = pipeline.events.format is None and pipeline.events.broker is None
    if is_files and not Path(pipeline.events.path).exists():
        raise FileRefused(pipeline.events.path, None, "no such file or directory")
    address = None if metrics is None else _address(metrics)
    done = run_on_spark(pipeline, cores=cores, master=master, once=once, metrics=address)
    print_progress(done, pipeline, json)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise InvalidValue("--metrics", "a port, or HOST:PORT", repr(text))
    return host, int(port)


def run_on_spark(
    config: PipelineConfig,
    *,
    cores: str = "2",
    master: str | None = None,
    once: bool = True,
    records: bool = True,
    metrics: tuple[str, int] | None = None,
) -> Progress:
    """Start Spark and run a pipeline, with a bar for each query; `records` as in `Run`."""
    # Imported when needed: Spark takes a second to load, and other commands do without it.
    try:
        from driftline.spark.metrics import served
        from driftline.spark.running import Run
        from driftline.spark.session import LOOPBACK, local_session, session_at
    except ModuleNotFoundError as error:
        raise PipelineFailed("starting Spark", f"{error}: pip install 'driftline[spark]'") from None

    name = "driftline pipeline"
    with progress() as bars:
        task = bars.add_task("starting Spark", total=None)
        spark = session_at(name, master) if master else local_session(name, cores)
        bars.update(task, visible=False)
        heard: list[Callable[[Progress], None]] = [_Mover(bars)]
        run = Run(spark, config, lambda now: [tell(now) for tell in heard], records)
        try:
            with ExitStack() as stack:
                if metrics is not None:
                    host, port = metrics[0] or LOOPBACK, metrics[1]
                    told = stack.enter_context(served(spark, port, host))
                    heard.append(told.tell)
                    stderr.print(f"Metrics: http://{host}:{told.port}/metrics")
                return run.once() if once else run.forever()
        finally:
            bars.update(task, description="stopping Spark", visible=True)
            spark.stop()


class _Mover:
    """Moves a bar for each query."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, now: Progress) -> None:
        for name, one in now.queries.items():
            said = f"{name}: {one.rows_per_s:,.0f} rows/s, {one.notifications:,} notifications, "
            said += f"{now.recorded - one.done:,} behind"
            if one.state_rows:
                said += f", state of {one.state_rows:,} rows, {one.state_bytes / 1e6:,.1f} MB"
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(said)
            self._bars.update(
                self._tasks[name], total=now.recorded, completed=one.done, description=said
            )


def print_progress(done: Progress, config: PipelineConfig, json: bool) -> None:
    """What a run did."""
    if json:
        print_json(progress_data(done, config))
        return
    print_table("Pipeline", ("what", "count"), progress_rows(done))
    print_table(
        "Queries",
        ("query", "rows", "rows/s", "batches", "notifications", "behind", "state"),
        [
            (
                name,
                f"{one.rows:,}",
                f"{one.rows_per_s:,.0f}",
                f"{one.batches:,}",
                f"{one.notifications:,}",
                f"{done.recorded - one.done:,}",
                f"{one.state_rows:,} rows, {one.state_bytes:,} bytes" if one.state_rows else "",
            )
            for name, one in done.queries.items()
        ],
    )
    stderr.print(f"Tables are in {config.out.path}: matched, told, refused.")


def progress_data(done: Progress, config: PipelineConfig) -> dict[str, object]:
    """The same as JSON."""
    sums = {"batches": done.batches, "notifications": done.notifications, "lag": done.lag}
    return {**asdict(done), **sums, "out": config.out.path}


def progress_rows(done: Progress) -> list[tuple[str, str]]:
    """The sums as rows of a table."""
    return [
        ("recorded", f"{done.recorded:,}"),
        ("events with a match", f"{done.matched:,}"),
        ("told by what has memory", f"{done.told:,}"),
        ("notifications", f"{done.notifications:,}"),
        ("refused", f"{done.refused:,}"),
        ("batches", f"{done.batches:,}"),
        ("seconds", f"{done.seconds:.1f}"),
    ]
