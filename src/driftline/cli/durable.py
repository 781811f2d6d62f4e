"""`driftline set`, and `driftline explain` at a broker: durable subscriptions by their names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
from driftline.cli.output import print_facts, print_json
from driftline.errors import InvalidValue
from driftline.language.cloudevents import value_to
from driftline.model.event import Event
from driftline.model.explanation import Explanation
from driftline.model.value import show


def set_(
    words: Annotated[
        list[str], typer.Argument(metavar="[ADDRESS] DURABLE", help="The subscription's name.")
    ],
    param: ParamOption = None,
    authority: AuthorityOption = None,
    within: WithinOption = 10.0,
    json: JsonFlag = False,
) -> None:
    """Move the parameters of a durable subscription, all at once.

    driftline set cheap -p limit=9

    It stays attached where it is, and whoever is told of it goes on being told. Done when it is in
    effect everywhere; brokers that did not answer in time are named, and it ends with 5: there it
    takes effect when they are reached.
    """
    address, rest = addressed(words)
    if len(rest) != 1:
        raise typer.BadParameter("give the name of one durable subscription")
    params = named_values(param, "-p")
    if not params:
        raise InvalidValue("-p", "all parameters, as NAME=VALUE", "none")

    async def moving() -> tuple[str, int]:
        async with connecting(address, authority, within) as client:
            return client.broker, await client.set(rest[0], params, within=within)

    done = run_loop(moving)
    if done is None:
        raise typer.Exit(1)
    broker, epoch = done
    if json:
        said = {name: value_to(value) for name, value in params.items()}
        print_json({"broker": broker, "durable": rest[0], "epoch": epoch, "params": said})
        return
    moved = ", ".join(f":{name} is {show(value)}" for name, value in params.items())
    print_facts({"durable": rest[0], "parameters": moved, "epoch": epoch, "broker": broker})


def explain_at(
    address: str, durable: str, event: Event, authority: Path | None, within: float
) -> Explanation:
    """Ask a broker why an event does or does not match a durable subscription."""

    async def asking() -> Explanation:
        async with connecting(address, authority, within) as client:
            return await client.explain(durable, event)

    found = run_loop(asking)
    if found is None:
        raise typer.Exit(1)
    return found
