"""`driftline bench NAME`: run a benchmark and say which of its claims hold."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

from driftline.bench import BENCHMARKS, SIZED
from driftline.bench.report import Report
from driftline.cli.check import JsonFlag
from driftline.cli.output import plain, print_json, print_table, stderr


def bench(
    name: Annotated[str | None, typer.Argument(help="Which one; without it, list them.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Every size, however long.")] = False,
    n: Annotated[str | None, typer.Option("--n", help="Sizes, such as 100000,1000000.")] = None,
    workload: Annotated[str | None, typer.Option("--workload", help="Such as W1,W2.")] = None,
    batch: Annotated[str | None, typer.Option("--batch", help="Events in a batch.")] = None,
    churn: Annotated[
        bool, typer.Option("--churn", help="Also add and discard, ten times.")
    ] = False,
    brokers: Annotated[str | None, typer.Option("--brokers", help="Of an overlay.")] = None,
    subscriptions: Annotated[
        str | None, typer.Option("--subscriptions", help="In an overlay, or views.")
    ] = None,
    events: Annotated[str | None, typer.Option("--events", help="Through an overlay.")] = None,
    topology: Annotated[
        str | None, typer.Option("--topology", help="acyclic, hierarchical or mesh.")
    ] = None,
    secure: Annotated[
        bool, typer.Option("--secure", help="A broker with TLS, tokens and lists of access.")
    ] = False,
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
    given = {
        "--n": n,
        "--workload": workload,
        "--batch": batch,
        "--churn": churn or None,
        "--brokers": brokers,
        "--subscriptions": subscriptions,
        "--events": events,
        "--topology": topology,
        "--secure": secure or None,
    }
    options = _sized(name, {option: text for option, text in given.items() if text is not None})
    module = import_module(f"driftline.bench.{name.replace('-', '_')}")
    with stderr.status("starting") as status:
        report: Report = module.run(full, lambda said: status.update(plain(said)), **options)
    if json:
        print_json(report.as_data())
        return
    print_table(report.name, report.columns, report.rows)
    for table in report.more:
        print_table(table.title, table.columns, table.rows)
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


# Beyond this the numbers of events and filters no longer fit the arrays that hold them.
_SIZE_MAX = 100_000_000


def _sized(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The options of a benchmark that has sizes, read; refused for one that has none."""
    if not given:
        return {}
    others = [option for option in given if option not in SIZED.get(name, ())]
    if others:
        raise typer.BadParameter(f"{', '.join(others)} cannot be chosen for {name!r}")
    if name == "broker":
        return {"secure": given["--secure"]}
    return {"overlay": _overlay, "views": _views, "matching": _matching}[name](given)


def _overlay(given: dict[str, Any]) -> dict[str, Any]:
    from driftline.bench.overlay import TOPOLOGIES

    options: dict[str, Any] = {
        option[2:]: _size(option, word) for option, word in given.items() if option != "--topology"
    }
    if "--topology" in given:
        options["topology"] = given["--topology"]
        if options["topology"] not in TOPOLOGIES:
            names = ", ".join(TOPOLOGIES)
            raise typer.BadParameter(f"--topology: {options['topology']!r} is none of {names}")
    return options


def _views(given: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if "--n" in given:
        options["tuples"] = _sizes(given["--n"])
    if "--subscriptions" in given:
        options["subscriptions"] = _size("--subscriptions", given["--subscriptions"])
    return options


def _matching(given: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {"churn": given.get("--churn", False)}
    if "--n" in given:
        options["sizes"] = _sizes(given["--n"])
    if "--batch" in given:
        options["batch"] = _size("--batch", given["--batch"])
    if "--workload" in given:
        options["workloads"] = _workloads(given["--workload"])
    return options


def _sizes(text: str) -> list[int]:
    return [_size("--n", word) for word in text.split(",")]


def _size(option: str, word: str) -> int:
    if word.strip().isdecimal() and 0 < int(word) <= _SIZE_MAX:
        return int(word)
    raise typer.BadParameter(f"{option}: {word!r} is no number from 1 to {_SIZE_MAX:,}")


def _workloads(text: str) -> list[str]:
    # Imported here, because it brings NumPy, which listing the benchmarks can do without.
    from driftline.workload.matching import WORKLOADS

    names = [word.strip().upper() for word in text.split(",")]
    for name in names:
        if name not in WORKLOADS:
            raise typer.BadParameter(f"--workload: {name!r} is none of {', '.join(WORKLOADS)}")
    return list(dict.fromkeys(names))
