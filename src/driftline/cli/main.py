"""The entry point: which commands are there, and with which code does a failure end?"""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from driftline import __version__
from driftline.cli import (
    bench,
    bridge,
    check,
    config,
    demo,
    durable,
    durables,
    explain,
    letters,
    match,
    overlay,
    pipeline,
    publish,
    secure,
    serve,
    simulate,
    subscribe,
    top,
)
from driftline.cli.output import plain, stderr
from driftline.errors import (
    BrokerFailed,
    CannotListen,
    DriftlineError,
    JournalInUse,
    JournalUnavailable,
    LanguageError,
    NotAllowed,
    NotAuthenticated,
    NotEffective,
    NotSupported,
    PipelineFailed,
    Unreachable,
)

app = typer.Typer(
    help="Publish/subscribe for interests that move.\n\n"
    "Say precisely what you want to be told, in SQL, and try it on your data.",
    epilog="Exit codes: 0 it ran, 1 it failed while running, 2 wrong command line, 3 a text was "
    "refused, 4 data was refused, 5 a broker did not answer, 6 it is not allowed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("serve")(serve.serve)
app.command("pub")(publish.publish)
app.command("sub")(subscribe.subscribe)
app.command("set")(durable.set_)
for one in (letters.dead, letters.redeliver, letters.discard, letters.secret):
    durables.app.command()(one)
app.add_typer(durables.app, name="durable")
app.command("top")(top.top)
app.add_typer(overlay.app, name="overlay")
app.add_typer(config.app, name="config")
app.add_typer(secure.app, name="secure")
app.command("bridge")(bridge.bridge)
app.command("check")(check.check)
app.command("explain")(explain.explain)
app.command("match")(match.match)
app.add_typer(pipeline.app, name="pipeline")
app.command("demo")(demo.demo)
app.command("bench")(bench.bench)
app.command("simulate")(simulate.simulate)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Publish/subscribe for interests that move."""


def exit_code(error: DriftlineError) -> int:
    """1 it failed while running, 3 a text was refused, 4 data was refused, 5 nobody answered, 6 it
    is not allowed.
    """
    failed = BrokerFailed | CannotListen | JournalInUse | JournalUnavailable | PipelineFailed
    if isinstance(error, failed):
        return 1
    if isinstance(error, NotEffective | Unreachable):
        return 5
    if isinstance(error, NotAllowed | NotAuthenticated):
        return 6
    return 3 if isinstance(error, LanguageError | NotSupported) else 4


def main() -> None:
    """Run the command line; a Driftline error becomes one line and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character gets it escaped.
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except DriftlineError as error:
        stderr.print(plain(f"driftline: {error}", "red"))
        sys.exit(exit_code(error))
    except OSError as error:
        stderr.print(plain(f"driftline: {error}", "red"))
        sys.exit(1)
