"""`driftline serve`: run one broker until it is asked to end."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.check import JsonFlag
from driftline.cli.output import print_json_line
from driftline.cli.settings import (
    AccessOption,
    FormatOption,
    HealthOption,
    HttpOption,
    JournalOption,
    LevelOption,
    ListenOption,
    NameOption,
    PeerOption,
    given_of,
)
from driftline.errors import DriftlineError

if TYPE_CHECKING:
    from driftline.net.server import Server


def serve(
    config: Annotated[
        Path | None, typer.Option(help="A TOML file; the options here change what it says.")
    ] = None,
    name: NameOption = None,
    listen: ListenOption = None,
    journal: JournalOption = None,
    access: AccessOption = None,
    http: HttpOption = None,
    health: HealthOption = None,
    peer: PeerOption = None,
    log_level: LevelOption = None,
    log_format: FormatOption = None,
    with_parent: Annotated[
        bool, typer.Option("--with-parent", hidden=True, help="End when standard input ends.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Run one broker. It is ready when it says so; with --json, one object on standard output.

    driftline serve --name london --journal london.journal

    driftline serve --name paris --listen 127.0.0.1:7401 --peer london=127.0.0.1:7400

    SIGTERM or Ctrl-C ends it when everything is stored; a second one at once. SIGHUP lets it read
    certificates, keys of tokens and lists of access anew, all or nothing: everybody connects again.
    The other end of a link must name it too. Exit codes: 0 it was asked to end; 1 it was asked
    twice, the address or the journal is in use, or the journal broke; 4 the configuration or the
    journal was refused.
    """
    from driftline.cli.main import exit_code
    from driftline.gateway.doors import doors_of
    from driftline.net import logs
    from driftline.net.config import read_config
    from driftline.net.configured import check_journal
    from driftline.net.running import LOG, facts_of, run

    given = given_of(
        name=name,
        listen=listen,
        journal=journal,
        access=access,
        http=http,
        health=health,
        peer=peer,
        log_level=log_level,
        log_format=log_format,
    )
    settings = read_config(config, given)
    check_journal(settings)
    logs.begin(settings.logs)

    def ready(server: Server) -> None:
        facts = facts_of(server)
        # Of addresses on the web the log has no paths: they may be secrets.
        said = facts | {"health": facts["health"] and f"http://{server.health_address}"}
        server.log.info("ready", **{**said, logs.LINE: _line(said)})
        if json:
            print_json_line(facts)

    again = partial(read_config, config, given)
    doors = doors_of(settings)
    try:
        asyncio.run(run(settings, ready, doors=doors, again=again, with_parent=with_parent))
    except DriftlineError as problem:
        if settings.logs.format != "json":
            raise
        # Whoever reads the log as JSON is told why it ended, too.
        LOG.error("has failed", broker=settings.name, problem=problem)
        raise typer.Exit(exit_code(problem)) from None


def _line(facts: dict[str, Any]) -> str:
    """The one line that says that a broker is ready, and what it is."""
    peers = ", ".join(
        f"{one['broker']} ({one['role']}{'' if one['address'] else ', which dials'})"
        for one in facts["peers"]
    )
    health = f", health {facts['health']}" if facts["health"] else ""
    http = f", {facts['http']}" if "http" in facts else ""
    return (
        f"{facts['broker']} is ready at {facts['address']}{http}, journal {facts['journal']}"
        f"{health}, "
        f"peers {peers or 'none'}"
    )
