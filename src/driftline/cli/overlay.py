"""`driftline overlay`: several brokers on this machine from one file: up, status, down."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from driftline.cli.check import JsonFlag
from driftline.cli.output import print_json, print_table, stderr
from driftline.errors import BrokerFailed, FileRefused, Unreachable
from driftline.net.another import command_of, environment

app = typer.Typer(
    help="Several brokers on this machine, joined as one file says.\n\n"
    "driftline overlay up examples/overlay.toml",
    no_args_is_help=True,
)
FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The overlay, in TOML.")]
StateOption = Annotated[
    Path | None,
    typer.Option(help="A folder for logs and state. [default: FILE with .run in place of .toml]"),
]
ENDING = 30.0


@app.command()
def up(
    file: FileArgument,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return when all is up, and let it go on.")
    ] = False,
    within: Annotated[
        float, typer.Option(min=1, help="Seconds until all must be ready. A first start compiles.")
    ] = 300.0,
    state: StateOption = None,
    json: JsonFlag = False,
) -> None:
    """Start all brokers of FILE, wait until all links are up, and look after them until Ctrl-C.

    driftline overlay up examples/overlay.toml

    One that dies is started again, later each time. Logs and the configuration of each broker are
    in the state folder. Exit codes: 0 it was ended; 1 a broker did not start; 4 the file was
    refused, or the overlay is up already; 5 not all was ready in time.
    """
    from driftline.net.overlay import read_plan
    from driftline.net.overlay_state import state_folder
    from driftline.net.supervising import Supervisor

    folder = state or state_folder(file)
    plan = read_plan(file)
    if detach:
        _detach(file, folder, within)
        status(file, folder, json)
        return

    def ready(found: dict[str, Any]) -> None:
        _print(found, json)
        sys.stdout.flush()
        _say("all is up; Ctrl-C ends it")

    command = command_of("driftline", "serve")
    asyncio.run(Supervisor(plan, folder, command, _say).run(ready, within))
    _say("all has ended")


@app.command("status")
def status(file: FileArgument, state: StateOption = None, json: JsonFlag = False) -> None:
    """Say which brokers and links of an overlay are up. Ends with 1 if some are not, or all.

    driftline overlay status examples/overlay.toml
    """
    from driftline.net.overlay import read_plan
    from driftline.net.overlay_state import read_state, state_folder

    try:
        found = read_state(state or state_folder(file))
    except FileRefused as problem:
        read_plan(file)  # What is no overlay cannot be started either, and is refused for that.
        if json:
            nothing: dict[str, object] = {"brokers": [], "links": []}
            print_json({"file": str(file), "process": None, "ready": False, **nothing})
        _say(f"{file}: {problem.problem}")
        raise typer.Exit(1) from None
    _print(found, json)
    if not all(one["up"] for one in (*found["brokers"], *found["links"])):
        raise typer.Exit(1)


@app.command()
def down(file: FileArgument, state: StateOption = None, json: JsonFlag = False) -> None:
    """End an overlay: every broker stores what it acknowledged, and says goodbye.

    driftline overlay down examples/overlay.toml
    """
    from driftline.net.overlay_state import is_up, read_state, state_folder

    folder = state or state_folder(file)
    found = read_state(folder)
    os.kill(found["process"], signal.SIGTERM)
    end = time.monotonic() + ENDING
    while is_up(folder):
        if time.monotonic() > end:
            raise Unreachable(str(file), f"process {found['process']} has not ended it")
        time.sleep(0.05)
    names = [one["name"] for one in found["brokers"]]
    if json:
        print_json({"ended": names})
    else:
        _say(f"{', '.join(names)} have ended")


def _detach(file: Path, folder: Path, within: float) -> None:
    """Start a supervisor that outlives us, and wait until it says that all is up."""
    from driftline.net.overlay_state import is_up, read_state

    if is_up(folder):
        raise FileRefused(str(folder), None, "the overlay is up already")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        log = open(folder / "overlay.log", "wb")  # noqa: SIM115  # It goes on with the process.
    except OSError as problem:
        raise FileRefused(str(folder), None, problem.strerror or str(problem)) from None
    command = command_of("driftline", "overlay", "up", str(file))
    command += ("--state", str(folder), "--within", str(within))
    with log:
        supervisor = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
            env=environment(),
        )
    _say(f"starting, log in {folder / 'overlay.log'}")
    while supervisor.poll() is None:
        try:
            if read_state(folder)["ready"]:
                return
        except FileRefused:
            pass  # Not yet.
        time.sleep(0.1)
    lines = (folder / "overlay.log").read_text(errors="replace").splitlines()
    raise BrokerFailed(str(file), lines[-1] if lines else "the supervisor ended")


def _say(text: str) -> None:
    stderr.print(text)


def _print(found: dict[str, Any], json: bool) -> None:
    if json:
        print_json(found)
        return
    joined: dict[str, list[str]] = {one["name"]: [] for one in found["brokers"]}
    for link in found["links"]:
        down = "" if link["up"] else " (down)"
        joined[link["from"]].append(f"{link['to']}{down}")
        joined[link["to"]].append(f"{link['from']}{down}")
    rows = [
        (
            one["name"],
            one["address"],
            one["process"] if one["up"] else "down",
            ", ".join(joined[one["name"]]),
            one["restarts"] or "",
        )
        for one in found["brokers"]
    ]
    print_table("Overlay", ("broker", "address", "process", "links", "restarts"), rows)
