"""`driftline config`: what is a broker's configuration, and does it hold?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from driftline.cli.check import JsonFlag
from driftline.cli.output import plain, print_json, print_table, stderr
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

app = typer.Typer(
    help="The configuration of a broker: a file, then the environment, then the command line.\n\n"
    "driftline config check london.toml",
    no_args_is_help=True,
)
FileArgument = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="A TOML file; none: the environment alone.")
]


@app.command()
def check(
    file: FileArgument = None,
    name: NameOption = None,
    listen: ListenOption = None,
    journal: JournalOption = None,
    access: AccessOption = None,
    http: HttpOption = None,
    health: HealthOption = None,
    peer: PeerOption = None,
    log_level: LevelOption = None,
    log_format: FormatOption = None,
    json: JsonFlag = False,
) -> None:
    """Read FILE and all that it names (certificates, keys, lists of access) as a broker would.

    driftline config check london.toml

    The options are those of `driftline serve`, and count as they do there. Exit codes: 0 a broker
    could begin with it, and be believed; 4 not, and why: a certificate that has expired, a key that
    is another's, a list that cannot be read. What is allowed and perhaps not meant is said on
    standard error: a certificate that others may not believe.
    """
    from driftline.net import configured

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
    config, _ = configured.read(file, given)
    configured.check(config)
    found = configured.doubts(config, os.environ)
    if json:
        print_json({"name": config.name, "closed": config.is_closed, "doubts": found})
        return
    for one in found:
        stderr.print(plain(f"doubt: {one}", "yellow"))
    who = "those who prove who they are" if config.is_closed else "everybody who reaches it"
    typer.echo(f"{config.name} can begin, and is for {who}")


@app.command()
def show(
    file: FileArgument = None,
    name: NameOption = None,
    listen: ListenOption = None,
    journal: JournalOption = None,
    access: AccessOption = None,
    http: HttpOption = None,
    health: HealthOption = None,
    peer: PeerOption = None,
    log_level: LevelOption = None,
    log_format: FormatOption = None,
    json: JsonFlag = False,
) -> None:
    """Show every setting as it counts, and where it comes from. Secrets are not among them.

    driftline config show london.toml --listen 127.0.0.1:7401

    The options are those of `driftline serve`, and count as they do there.
    """
    from driftline.net import configured

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
    settings = [*configured.settings_of(*configured.read(file, given))]
    if json:
        print_json([one._asdict() for one in settings])
        return
    rows = [(one.name, "" if one.value is None else one.value, one.origin) for one in settings]
    print_table("Configuration", ("setting", "value", "from"), rows)
