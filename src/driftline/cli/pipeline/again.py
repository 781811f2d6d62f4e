"""`driftline pipeline replay`: what follows from what was recorded, taken from the beginning?"""

from __future__ import annotations

import os
import sys
from collections import deque
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from driftline.cli.check import JsonFlag
from driftline.cli.output import print_json, print_table, progress, stderr
from driftline.cli.pipeline.chosen import HERE, ConfigArgument, chosen
from driftline.cli.pipeline.running import (
    CoresOption,
    MasterOption,
    print_progress,
    run_on_spark,
)
from driftline.language.cloudevents import value_to
from driftline.model.value import time_of
from driftline.recorded.config import PipelineConfig
from driftline.recorded.recorder import copy_sequence, read_sequence
from driftline.recorded.replay import ANSWERED, Answer, replayed
from driftline.recorded.told import TOLD, Row
from driftline.spark.compare import Comparison, compare
from driftline.spark.manifest import committed
from driftline.spark.telling import pass_over

_SHOWN = 20


def replay(
    config: ConfigArgument = HERE,
    until: Annotated[
        int | None, typer.Option(min=0, help="Up to this number of the sequence.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with what the pipeline has written.")
    ] = False,
    into: Annotated[
        Path | None, typer.Option(help="Run it on Spark into a new directory, as CONFIG is now.")
    ] = None,
    cores: CoresOption = "2",
    master: MasterOption = None,
    json: JsonFlag = False,
) -> None:
    """Take the recorded sequence again, in one engine and without Spark; print what is told.

    With --json one object a line. --check prints nothing of it but the first differences from the
    tables, and exits with 1 if there are any. --into runs the pipeline itself again, for another
    number of shards, other tables or another order.
    """
    pipeline = chosen(config)
    if into is not None:
        if check or until is not None:
            raise typer.BadParameter("--into takes all again: without --check and --until")
        _run_into(pipeline, into, cores, master, json)
    elif check:
        _check(pipeline, until, json)
    elif json:
        for row in replayed(pipeline, until):
            sys.stdout.write(msgspec.json.encode(_row_data(row)).decode() + "\n")
    else:
        _print_last(pipeline, until)


def _row_data(row: Row) -> dict[str, object]:
    if row.told is None:
        return {"seq": row.seq, "nth": row.nth, "problem": row.problem}
    data = dict(zip(TOLD.names, row.cells(), strict=True))
    for name in ("values", "old", "key", "events"):
        if isinstance(data[name], str):
            data[name] = msgspec.json.decode(str(data[name]))
    data["time"] = value_to(time_of(row.told.time))
    return {name: value for name, value in data.items() if value is not None}


def _print_last(pipeline: PipelineConfig, until: int | None) -> None:
    last: deque[Row] = deque(maxlen=_SHOWN)
    count = 0
    end = _end(pipeline, until)
    with progress() as bars:
        task = bars.add_task("taking what was recorded", total=end)
        for row in replayed(pipeline, until):
            last.append(row)
            count += 1
            bars.update(task, completed=row.seq)
    print_table(
        f"The last {len(last)} of {count:,} rows, up to number {end:,}",
        ("number", "subscription", "kind", "told"),
        [_line(row) for row in last],
    )


def _line(row: Row) -> tuple[object, ...]:
    if row.told is None:
        return (row.seq, "", "refused", row.problem)
    return (row.seq, ", ".join(row.ids), row.told.kind, row.cells()[4])


def _end(pipeline: PipelineConfig, until: int | None) -> int:
    end = read_sequence(pipeline.checkpoint).end
    return end if until is None else min(end, until)


def _check(pipeline: PipelineConfig, until: int | None, json: bool) -> None:
    with progress() as bars:
        task = bars.add_task("comparing", total=_end(pipeline, until))
        found = compare(pipeline, until, lambda number: bars.update(task, completed=number))
    if json:
        print_json(
            {
                "same": found.is_same,
                "until": found.until,
                "recorded": found.recorded,
                "notifications": found.notifications,
                "missing": [_answer_data(one) for one in found.missing[:_SHOWN]],
                "unfounded": [_answer_data(one) for one in found.unfounded[:_SHOWN]],
            }
        )
    else:
        _print_comparison(found)
    if not found.is_same:
        raise typer.Exit(1)


def _print_comparison(found: Comparison) -> None:
    differences = [("not written", one) for one in found.missing[:_SHOWN]]
    differences += [("written, and should not", one) for one in found.unfounded[:_SHOWN]]
    if differences:
        rows = [(what, *one[:3], _values(one)) for what, one in differences]
        columns = ("difference", "number", "subscription", "kind", "values")
        print_table("The first differences", columns, rows)
    word = "The same" if found.is_same else "Not the same"
    stderr.print(
        f"{word}: {found.notifications:,} notifications up to number {found.until:,} of "
        f"{found.recorded:,}.",
    )


def _values(answer: Answer) -> object:
    return _answer_data(answer).get("values", "")


def _answer_data(answer: Answer) -> dict[str, object]:
    said = (msgspec.json.decode(one) if isinstance(one, bytes) else one for one in answer)
    return dict(zip(ANSWERED, said, strict=False))


def _run_into(
    pipeline: PipelineConfig, into: Path, cores: str, master: str | None, json: bool
) -> None:
    replace = msgspec.structs.replace
    there = replace(
        pipeline,
        # What was told before is in a database already, and at a broker.
        out=replace(pipeline.out, path=os.path.abspath(into), jdbc={}, broker=None),
        run=replace(pipeline.run, checkpoint=None),
    ).check()
    copy_sequence(pipeline.checkpoint, there.checkpoint)
    done = run_on_spark(there, cores=cores, master=master, records=False)
    if pipeline.out.broker is not None:
        pass_over(there, committed(there.out.path))
    print_progress(done, there, json)
