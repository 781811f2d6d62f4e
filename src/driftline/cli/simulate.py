"""`driftline simulate`: brokers, links and faults from a seed, with everything checked."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import click
import typer

from driftline.cli.check import JsonFlag
from driftline.cli.output import print_facts, print_json, progress, stderr
from driftline.sim.checkers import Violation
from driftline.sim.faults import NONE, RANDOM, faults_of
from driftline.sim.scenario import Plan, Scenario
from driftline.sim.soak import soak
from driftline.sim.topologies import TOPOLOGIES


def simulate(
    topology: Annotated[str, typer.Option(help=f"One of: {', '.join(TOPOLOGIES)}.")] = "acyclic",
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.")] = 0,
    steps: Annotated[int, typer.Option(min=1, help="How much happens.")] = 60,
    brokers: Annotated[int, typer.Option(min=2, help="At most so many at the beginning.")] = 8,
    matcher: Annotated[str, typer.Option(help="auto, index, poset or scan.")] = "auto",
    faults: Annotated[
        str,
        typer.Option(
            help="What goes wrong: random (from the seed), none, or a list such as "
            "loss=0.1,duplicates=0.05,corruption=0.01,reordering,slowest=400000,bandwidth=20000,"
            "crashes=0.01,lost=0.3,trouble=0.15."
        ),
    ] = RANDOM,
    no_faults: Annotated[
        bool, typer.Option("--no-faults", help="The same as --faults none.")
    ] = False,
    advertised: Annotated[
        bool | None,
        typer.Option(
            "--advertised/--subscribed",
            help="May only be published what was advertised? The seed decides if not said.",
        ),
    ] = None,
    tables: Annotated[
        bool | None,
        typer.Option(
            "--tables/--no-tables",
            help="Are there tables, and views that follow them? The seed decides if not said.",
        ),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Write one line per step here; - is standard output.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option("--soak", min=1, help="So many runs, over all topologies.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Run brokers on a simulated network with faults, and check everything that must hold."""
    if topology not in TOPOLOGIES:
        raise typer.BadParameter(f"{topology!r} is none of {', '.join(TOPOLOGIES)}")
    faults = NONE if no_faults else faults
    faults_of(faults)  # Or it is refused here.
    plan = Plan(topology, seed, steps, brokers, faults, matcher, advertised, tables)
    if runs is not None:
        _soak(plan, runs, json)
    else:
        _one(plan, trace, json)


def _one(plan: Plan, trace: Path | None, json: bool) -> None:
    violation = None
    with ExitStack() as stack:
        write = None
        if trace is not None:
            file = stack.enter_context(click.open_file(str(trace), "w"))

            def write(line: str) -> None:
                file.write(line + "\n")

        scenario = Scenario(plan, write)
        try:
            scenario.run()
        except Violation as found:
            violation = str(found)
    overlay = scenario.overlay
    facts = {
        "topology": plan.topology,
        "seed": plan.seed,
        "brokers": len(overlay.names()),
        "links": len(list(overlay.links())) // 2,
        "parties": len(overlay.parties),
        "seconds": overlay.now / 1_000_000,
        "frames": overlay.frames,
        "journals lost": overlay.lost_journals,
        "told": sum(len(party.told) for party in overlay.parties.values()),
        "relabelled": scenario.relabelled,
        "violation": violation,
    }
    if json:
        print_json(facts)
    else:
        print_facts(facts)
    if violation is not None:
        _replay(plan)
        raise typer.Exit(1)


def _soak(like: Plan, runs: int, json: bool) -> None:
    with progress() as bar:
        task = bar.add_task("simulating", total=runs)
        soaked = soak(runs, like, lambda: bar.advance(task))
    failed = [
        {"topology": plan.topology, "seed": plan.seed, "violation": violation}
        for plan, violation in soaked.failed
    ]
    facts = {
        "runs": soaked.runs,
        "violations": len(failed),
        "failed_seeds": failed,
        "frames": soaked.frames,
        "told": soaked.told,
        "relabelled": soaked.relabelled,
    }
    if json:
        print_json(facts)
    else:
        print_facts(facts)
    for plan, _ in soaked.failed:
        _replay(plan)
    if failed:
        raise typer.Exit(1)


def _replay(plan: Plan) -> None:
    """The command that runs it again, with every step told."""
    rest = f" --faults {plan.faults}"
    if plan.advertised is not None:
        rest += " --advertised" if plan.advertised else " --subscribed"
    if plan.tables is not None:
        rest += " --tables" if plan.tables else " --no-tables"
    stderr.print(
        f"replay: driftline simulate --topology '{plan.topology}' --seed {plan.seed} "
        f"--steps {plan.steps} --brokers {plan.brokers} --matcher {plan.matcher}{rest} --trace -",
    )
