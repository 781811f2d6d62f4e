"""`driftline bridge`: run a bridge between a broker and MQTT until it is asked to end."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.check import JsonFlag
from driftline.cli.output import plain, print_facts, print_json, print_json_line, stderr
from driftline.cli.settings import LogFormat, LogLevel

if TYPE_CHECKING:
    from driftline.bridge.running import Bridge
    from driftline.bridge.watching import Facts

_COUNTS = ("held", "published", "refused", "told", "lost")


def bridge(
    file: Annotated[Path, typer.Argument(help="A TOML file: what comes, what goes, where.")],
    check: Annotated[
        bool, typer.Option("--check", help="Only read FILE, and say whether it holds.")
    ] = False,
    every: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0.1, help="Say so often what has passed."),
    ] = None,
    log_level: Annotated[
        LogLevel, typer.Option(case_sensitive=False, help="On standard error.")
    ] = LogLevel.INFO,
    log_format: Annotated[
        LogFormat, typer.Option(case_sensitive=False, help="Text, or a JSON object a line.")
    ] = LogFormat.TEXT,
    json: JsonFlag = False,
) -> None:
    """Publish what comes by topics of MQTT 5, and tell durable subscriptions by topics.

    driftline bridge house.toml

    SIGTERM or Ctrl-C ends it; what is on its way then comes again. While a broker is away it waits,
    and the log says so. --json prints an object a line, with a `status`: ready; waiting (for whom
    it `waits_for`) and passing, when that changes and as --every says; ended. Exit codes: 0 it was
    asked to end; 4 FILE was refused; 5 a broker does not answer at first; 6 it is not allowed.
    """
    from driftline.bridge.config import read_config
    from driftline.bridge.running import Bridge
    from driftline.net import logs

    config = read_config(file)
    if check:
        config.mqtt.password()
        if json:
            print_json({"in": len(config.come), "out": len(config.go)})
        else:
            typer.echo(f"{len(config.come)} in, {len(config.go)} out: it holds")
        return
    logs.begin(logs.Logs(log_format, log_level))

    def say(facts: Facts) -> None:
        if json:
            print_json_line(facts)
        elif facts["status"] == "ready":
            said = f"bridges {facts['broker']} and {facts['mqtt']}; Ctrl-C ends"
            stderr.print(plain(said, "dim"))
        elif every is not None:
            counts = ", ".join(f"{facts[name]} {name}" for name in _COUNTS)
            stderr.print(plain(f"{facts['status']}: {counts}", "dim"))

    async def run() -> Bridge:
        found = Bridge(config)
        for one in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(one, found.stop.set)
        await found.run(say, every)
        return found

    passed = asdict(asyncio.run(run()).passed)
    if json:
        print_json_line({"status": "ended", **passed})
    else:
        print_facts(passed)
