"""`driftline match`: which subscriptions of a file does each event of another satisfy?"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from driftline.bulk import match_events
from driftline.cli.check import JsonFlag
from driftline.cli.output import print_json, print_table, progress, read_values, stderr
from driftline.errors import FileRefused
from driftline.files import MatchWriter, count_events, match_row, read_events, read_subscriptions
from driftline.matching.choice import make_matcher
from driftline.matching.lazy import Lazy


class Matchers(StrEnum):
    """The matchers by name; see `matching.choice`."""

    AUTO = "auto"
    INDEX = "index"
    POSET = "poset"
    SCAN = "scan"


def match(
    subscriptions: Annotated[Path, typer.Option(help="JSON lines or Parquet: id, text, params.")],
    events: Annotated[Path, typer.Option(help="CloudEvents JSON lines, or Parquet columns.")],
    out: Annotated[Path, typer.Option(help="Where to write: .jsonl or .parquet.")],
    by: Annotated[Matchers, typer.Option("--matcher", help="How to find them.")] = Matchers.AUTO,
    env: Annotated[str | None, typer.Option(help="Environment, as JSON.")] = None,
    default_type: Annotated[str | None, typer.Option(help="Type of events that have none.")] = None,
    json: JsonFlag = False,
) -> None:
    """Match events with subscriptions, file to file.

    One row per event that matched: its place in the file (from 1), its id and source, and the ids
    of the subscriptions. A row that is no event is written with its problem; the run goes on.
    """
    environment = read_values(env, "--env")
    if out.exists() and any(
        given.exists() and out.samefile(given) for given in (subscriptions, events)
    ):
        raise FileRefused(str(out), None, "wanted another file than those that are read")
    matcher = Lazy(make_matcher(by.value))
    for record in read_subscriptions(subscriptions):
        matcher.add(record.id, record.standing)
    total = count_events(events)
    matched = told = refused = seen = 0
    with MatchWriter(out) as writer, progress() as bars:
        task = bars.add_task("matching", total=total)
        for batch in read_events(events, default_type):
            rows = []
            ids_of = match_events(matcher, [event for _, event in batch], environment).ids
            for (number, event), found in zip(batch, ids_of.to_pylist(), strict=True):
                ids = found or []
                refused += isinstance(event, str)
                matched += bool(ids)
                told += len(ids)
                if ids or isinstance(event, str):
                    rows.append(match_row(number, event, ids))
            writer.write(rows)
            seen += len(batch)
            bars.update(task, completed=seen)
    facts = {
        "subscriptions": len(matcher),
        "events": seen,
        "matched": matched,
        "notifications": told,
        "refused": refused,
    }
    if json:
        print_json({**facts, "out": str(out)})
    else:
        print_table("Match", ("what", "count"), [(name, f"{n:,}") for name, n in facts.items()])
    if refused:
        stderr.print(f"warning: {refused} rows are no events; see `problem` in {out}")
