"""`driftline durable`: which durable subscriptions are there, and how are they told?"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from driftline.cli.broker import (
    AuthorityOption,
    ParamOption,
    WithinOption,
    addressed,
    connecting,
    named_values,
)
from driftline.cli.broker import run as run_loop
from driftline.cli.check import JsonFlag
from driftline.cli.output import print_facts, print_json, print_table
from driftline.language.cloudevents import value_to
from driftline.model.value import show

if TYPE_CHECKING:
    from driftline.client.client import Client
    from driftline.client.durables import Durable

T = TypeVar("T")

app = typer.Typer(
    help="Durable subscriptions by their names: they go on while nobody is connected.\n\n"
    "driftline durable redirect alerts https://hooks.example.org/alerts",
    no_args_is_help=True,
)
NameArgument = Annotated[
    list[str], typer.Argument(metavar="[ADDRESS] NAME", help="The subscription's name.")
]


def named(words: list[str], count: int, wanted: str) -> tuple[str, list[str]]:
    """The address, and as many words as there must be; -1: one or more."""
    address, rest = addressed(words)
    if len(rest) != count if count >= 0 else not rest:
        raise typer.BadParameter(f"give {wanted}")
    return address, rest


def at_broker(
    address: str,
    authority: Path | None,
    within: float,
    work: Callable[[Client], Awaitable[T]],
) -> T:
    """Do something at a broker."""

    async def working() -> list[T]:
        async with connecting(address, authority, within) as client:
            return [await work(client)]

    # In a list, because None is what is said when somebody pressed Ctrl-C.
    done = run_loop(working)
    if done is None:
        raise typer.Exit(1)
    return done[0]


@app.command("list")
def list_(
    words: Annotated[list[str] | None, typer.Argument(metavar="[ADDRESS]")] = None,
    authority: AuthorityOption = None,
    within: WithinOption = 10.0,
    json: JsonFlag = False,
) -> None:
    """List yours, with what waits for each and whether it can be told."""
    address, _ = named(words or [], 0, "nothing but an address")
    found = at_broker(address, authority, within, lambda client: client.durables.all())
    if json:
        print_json([_said(one) for one in found])
        return
    rows = [(one.name, one.kept, one.dead, _told(one), one.text) for one in found]
    print_table("Durable subscriptions", ("name", "kept", "dead", "told", "text"), rows)


@app.command("show")
def show_(
    words: NameArgument,
    authority: AuthorityOption = None,
    within: WithinOption = 10.0,
    json: JsonFlag = False,
) -> None:
    """Show one of yours."""
    address, (name,) = named(words, 1, "the name of one durable subscription")
    _print(at_broker(address, authority, within, lambda client: client.durables.get(name)), json)


@app.command()
def keep(
    words: Annotated[list[str], typer.Argument(metavar="[ADDRESS] NAME TEXT")],
    param: ParamOption = None,
    rows: Annotated[
        bool, typer.Option("--rows", help="Over a table: the live set of rows that match.")
    ] = False,
    authority: AuthorityOption = None,
    within: WithinOption = 10.0,
    json: JsonFlag = False,
) -> None:
    """Let there be one, told or not; one of this name is restated or moved.

    driftline durable keep alerts "SELECT * FROM quote WHERE price < :limit" -p limit=10
    """
    address, (name, text) = named(words, 2, "a NAME and a TEXT, in quotes")
    params = named_values(param, "-p")

    async def kept(client: Client) -> Durable:
        await client.durables.keep(name, text, params, rows=rows, within=within)
        return await client.durables.get(name)

    _print(at_broker(address, authority, within, kept), json)


@app.command()
def suspend(
    words: NameArgument,
    authority: AuthorityOption = None,
    within: WithinOption = 10.0,
    json: JsonFlag = False,
) -> None:
    """Tell nothing for now; all is kept."""
    _change(words, authority, within, json, lambda client, name: client.durables.suspend(name))


@app.command()
def resume(
    words: NameArgument,
    authority: AuthorityOption = None,
    within: WithinOption = 10.0,
    json: JsonFlag = False,
) -> None:
    """Tell what was kept, and go on."""
    _change(words, authority, within, json, lambda client, name: client.durables.resume(name))


@app.command()
def redirect(
    words: Annotated[list[str], typer.Argument(metavar="[ADDRESS] NAME [HANDLER]")],
    authority: AuthorityOption = None,
    within: WithinOption = 10.0,
    json: JsonFlag = False,
) -> None:
    """Tell it through HANDLER, https://host/path or mailto:me@example.org; without one, none.

    driftline durable redirect alerts https://hooks.example.org/alerts

    What was not had yet goes there too. Where a broker may send to is in its configuration, and who
    may be told there in its list of access.
    """
    address, rest = named(words, -1, "a NAME, and a HANDLER")
    if len(rest) > 2:
        raise typer.BadParameter("give a NAME, and one HANDLER")
    handler = rest[1] if len(rest) == 2 else ""

    async def change(client: Client, name: str) -> None:
        await client.durables.redirect(name, handler)

    _change([address, rest[0]], authority, within, json, change)


@app.command()
def drop(
    words: NameArgument,
    authority: AuthorityOption = None,
    within: WithinOption = 10.0,
    json: JsonFlag = False,
) -> None:
    """End one for good, with all that is kept for it."""
    address, (name,) = named(words, 1, "the name of one durable subscription")
    at_broker(address, authority, within, lambda client: client.durables.drop(name))
    if json:
        print_json({"name": name, "dropped": True})
    else:
        typer.echo(f"{name} is no more")


def _change(
    words: list[str],
    authority: Path | None,
    within: float,
    json: bool,
    change: Callable[[Client, str], Awaitable[None]],
) -> None:
    """Change one, and show what it is now."""
    address, (name,) = named(words, 1, "the name of one durable subscription")

    async def changed(client: Client) -> Durable:
        await change(client, name)
        return await client.durables.get(name)

    _print(at_broker(address, authority, within, changed), json)


def _said(one: Durable) -> dict[str, Any]:
    return {
        **one._asdict(),
        "params": {name: value_to(value) for name, value in one.params.items()},
        # A text: it is more than readers of JSON that know only floats can tell apart.
        "next": str(one.next) if one.next else None,
    }


def _told(one: Durable) -> str:
    if one.failing:
        return f"failing: {one.failing}"
    if one.suspended:
        return "suspended"
    if one.attached:
        return "to who is attached"
    return one.handler or "to nobody"


def _print(one: Durable, json: bool) -> None:
    if json:
        print_json(_said(one))
        return
    params = ", ".join(f":{name} is {show(value)}" for name, value in one.params.items())
    print_facts(
        {
            "durable": one.name,
            "text": one.text,
            "parameters": params,
            "epoch": one.epoch,
            "kept": one.kept or "nothing",
            "told": _told(one),
            "handler": one.handler,
            "attempts": one.attempts or None,
            "dead letters": one.dead or None,
            "forgotten": one.forgotten or None,
        }
    )
