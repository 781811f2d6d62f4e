"""`driftline bench NAME`: run a benchmark and say which of its claims hold."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from driftline.bench import BENCHMARKS
from driftline.bench.report import Report
from driftline.cli.check import JsonFlag
from driftline.cli.output import print_json, print_table, stderr


def bench(
    name: Annotated[str | None, typer.Argument(help="Which one; without it, list them.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Every size, however long.")] = False,
    json: JsonFlag = False,
) -> None:
    """Run a benchmark: ours beside what one would use instead, with the claims we make."""
    if name is None:
        if json:
            print_json({"benchmarks": BENCHMARKS})
        else:
            print_table("Benchmarks", ("name", "question"), BENCHMARKS.items())
        return
    if name not in BENCHMARKS:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(BENCHMARKS)}")
    module = import_module(f"driftline.bench.{name.replace('-', '_')}")
    with stderr.status("starting") as status:
        report: Report = module.run(full, status.update)
    if json:
        print_json(report.as_data())
        return
    print_table(report.name, report.columns, report.rows)
    marks = {True: "holds", False: "does not hold", None: "not measured at this size"}
    print_table(
        "Claims",
        ("claim", "target", "measured", ""),
        (
            (
                claim.name,
                f"{claim.rule} {claim.target:g} {claim.unit}",
                "-" if claim.measured is None else f"{claim.measured:.4g}",
                marks[claim.holds],
            )
            for claim in report.claims
        ),
    )
