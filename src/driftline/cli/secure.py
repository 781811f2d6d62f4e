"""`driftline secure`: an authority of one's own, for trying: certificates and tokens."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from driftline.cli.check import JsonFlag
from driftline.cli.output import print_json, stderr

app = typer.Typer(
    help="Certificates and tokens by an authority of your own, to try with or for a small place."
    "\n\ndriftline secure init keys && driftline secure broker keys london",
    no_args_is_help=True,
)
FolderArgument = Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the authority is.")]

RenewFlag = Annotated[
    bool, typer.Option("--renew", help="Sign anew for the key that there is, and the certificate.")
]


@app.command()
def init(folder: FolderArgument, json: JsonFlag = False) -> None:
    """Make an authority in FOLDER: ca.pem and tokens.pub are to be believed, the keys are secret.

    driftline secure init keys
    """
    from driftline.net.authority import create

    written = [str(one) for one in create(folder)]
    _say({"written": written}, json)


@app.command()
def broker(
    folder: FolderArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the broker is called.")],
    host: Annotated[
        list[str] | None,
        typer.Option(help="By which it is reached; once for each. [default: localhost, 127.0.0.1]"),
    ] = None,
    renew: RenewFlag = False,
    json: JsonFlag = False,
) -> None:
    """Sign a certificate for a broker: it shows who it is to clients, and to other brokers.

    driftline secure broker keys london --host london.example.org

    With --renew its key stays, and so do its hosts unless others are said; SIGHUP lets the broker
    read the new certificate.
    """
    from driftline.net.authority import renew_broker, sign_broker

    if renew:
        files = renew_broker(folder, name, host)
    else:
        files = sign_broker(folder, name, host or ["localhost", "127.0.0.1", "::1"])
    _say({"certificate": str(files[0]), "key": str(files[1])}, json)


@app.command()
def party(
    folder: FolderArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is.")],
    renew: RenewFlag = False,
    json: JsonFlag = False,
) -> None:
    """Sign a certificate for a party, which can show it instead of a token.

    driftline secure party keys alice
    """
    from driftline.net.authority import renew_party, sign_party

    files = (renew_party if renew else sign_party)(folder, name)
    _say({"certificate": str(files[0]), "key": str(files[1])}, json)


@app.command()
def token(
    folder: FolderArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is.")],
    hours: Annotated[float, typer.Option(help="So long it counts.")] = 8.0,
    audience: Annotated[str, typer.Option(help="Whom it is for.")] = "driftline",
    json: JsonFlag = False,
) -> None:
    """Print a token for a party, signed now.

    DRIFTLINE_TOKEN=$(driftline secure token keys alice) driftline sub "SELECT * FROM quote"
    """
    from driftline.net.authority import sign_token

    signed = sign_token(folder, name, time.time(), 3600 * hours, audience)
    if json:
        print_json({"token": signed, "party": name, "hours": hours})
    else:
        typer.echo(signed)


def _say(facts: dict[str, object], json: bool) -> None:
    if json:
        print_json(facts)
        return
    for what, files in facts.items():
        for one in files if isinstance(files, list) else [files]:
            stderr.print(f"{what}: {one}")
