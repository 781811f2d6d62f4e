"""`driftline durable dead` and the like: what could not be handed over, and how is it signed?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from driftline.cli.broker import AuthorityOption, WithinOption
from driftline.cli.check import JsonFlag
from driftline.cli.durables import NameArgument, at_broker, named
from driftline.cli.output import escaped, print_json, print_table
from driftline.model.text import timestamp
from driftline.model.value import time_of

if TYPE_CHECKING:
    from driftline.client.client import Client
    from driftline.client.durables import DeadLetter

LettersArgument = Annotated[
    list[str],
    typer.Argument(metavar="[ADDRESS] NAME [ID…]", help="The name, and ids of dead letters."),
]
AllFlag = Annotated[bool, typer.Option("--all", help="All of them.")]


def dead(
    words: NameArgument,
    most: Annotated[int, typer.Option(min=1, help="At most so many.")] = 100,
    after: Annotated[str, typer.Option(metavar="ID", help="Those behind this one.")] = "",
    authority: AuthorityOption = None,
    within: WithinOption = 10.0,
    json: JsonFlag = False,
) -> None:
    """List its dead letters: what its handler has given up on, the oldest first."""
    address, (name,) = named(words, 1, "the name of one durable subscription")

    async def listed(client: Client) -> list[DeadLetter]:
        return await client.durables.dead(name, after=after, most=most)

    found = at_broker(address, authority, within, listed)
    if json:
        print_json([_letter(one) for one in found])
        return
    columns = ("id", "given up", "attempts", "why", "values")
    rows = [
        (
            f"{one.id}{' (again)' if one.again else ''}",
            timestamp(time_of(one.time)),
            one.attempts,
            one.why,
            _values(one),
        )
        for one in found
    ]
    print_table(f"Dead letters of {name}", columns, rows)


def redeliver(
    words: LettersArgument,
    every: AllFlag = False,
    authority: AuthorityOption = None,
    within: WithinOption = 10.0,
    json: JsonFlag = False,
) -> None:
    """Deliver dead letters again, through the handler that it has now.

    driftline durable redeliver alerts --all
    """
    count = _letters(words, every, authority, within, "redeliver")
    if json:
        print_json({"letters": count})
    else:
        typer.echo(f"{count} to be delivered again")


def discard(
    words: LettersArgument,
    every: AllFlag = False,
    authority: AuthorityOption = None,
    within: WithinOption = 10.0,
    json: JsonFlag = False,
) -> None:
    """Throw dead letters away."""
    count = _letters(words, every, authority, within, "discard")
    if json:
        print_json({"letters": count})
    else:
        typer.echo(f"{count} thrown away")


def secret(
    words: NameArgument,
    renew: Annotated[bool, typer.Option("--renew", help="Make another one.")] = False,
    authority: AuthorityOption = None,
    within: WithinOption = 10.0,
    json: JsonFlag = False,
) -> None:
    """Show what its webhooks are signed with: for who receives them, and nobody else.

    After --renew they are signed with the new one and the one before, until it is renewed again.
    """
    address, (name,) = named(words, 1, "the name of one durable subscription")

    async def asked(client: Client) -> str:
        return await client.durables.secret(name, renew=renew)

    found = at_broker(address, authority, within, asked)
    if json:
        print_json({"name": name, "secret": found})
    else:
        typer.echo(escaped(found))


def _letters(
    words: list[str], every: bool, authority: Path | None, within: float, verb: str
) -> int:
    address, rest = named(words, -1, "a NAME, and ids of dead letters or --all")
    name, *ids = rest
    if every is bool(ids):
        raise typer.BadParameter("give ids of dead letters, or --all")

    async def work(client: Client) -> int:
        doing = client.durables.redeliver if verb == "redeliver" else client.durables.discard
        return await doing(name, None if every else ids)

    return at_broker(address, authority, within, work)


def _letter(one: DeadLetter) -> dict[str, Any]:
    said = {**one._asdict(), "time": timestamp(time_of(one.time))}
    del said["data"]
    return {**said, "event": msgspec.json.decode(one.data) if one.data else None}


def _values(one: DeadLetter) -> str:
    event = _letter(one)["event"]
    return "" if event is None else msgspec.json.encode(event["data"]["values"]).decode()[:60]
