"""`driftline top`: brokers as a live table: what they do a second, who is slow, which links."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from driftline.cli.broker import AuthorityOption, authority_context, default_address
from driftline.cli.broker import run as run_loop
from driftline.cli.check import JsonFlag
from driftline.cli.output import print_json, stdout
from driftline.errors import Unreachable

if TYPE_CHECKING:
    from driftline.client.client import Client

_SLOWEST = 5


def top(
    addresses: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ADDRESS…]", help="Brokers, or the file of an overlay that is up: all of its."
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look for one interval, and end.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
    authority: AuthorityOption = None,
    json: JsonFlag = False,
) -> None:
    """Show what brokers do: events a second, connections, links, slow consumers, journal, CPU.

    driftline top driftline://127.0.0.1:7400 driftline://127.0.0.1:7401

    driftline top overlay.toml --once --json

    Without --once it goes on until Ctrl-C, with --json as one object a line. With --once it ends
    with 5 if a broker does not answer.
    """
    where = [one for word in addresses or [default_address()] for one in _addresses(word)]
    seen = run_loop(lambda: _look(where, once, every, authority, json))
    if once and seen is not None:
        silent = [one for one in seen["brokers"] if not one["up"]]
        if silent:
            raise Unreachable(silent[0]["address"], silent[0]["problem"])


def _addresses(word: str) -> list[str]:
    if not word.endswith(".toml"):
        return [word]
    from driftline.net.overlay_state import read_state, state_folder

    state = read_state(state_folder(Path(word)))
    return [one["address"] for one in state["brokers"]]


async def _look(
    where: list[str], once: bool, every: float, authority: Path | None, json: bool
) -> dict[str, Any]:
    from driftline.client.address import BrokerAddress
    from driftline.client.client import Client
    from driftline.client.watching import Watched, look_at

    context = authority_context(authority)

    def open(address: str) -> Client:
        to = BrokerAddress.of(address)
        return Client(to, tls=context if to.tls else None, within=2.0)

    brokers = [Watched(address, open) for address in where]
    try:
        seen = await look_at(brokers)
        if once:
            await asyncio.sleep(every)
            seen = await look_at(brokers)
            if json:
                print_json(seen)
            else:
                stdout.print(_shown(seen))
            return seen
        if json:
            while True:
                await asyncio.sleep(every)
                sys.stdout.write(msgspec.json.encode(await look_at(brokers)).decode() + "\n")
                sys.stdout.flush()
        with Live(_shown(seen), console=stdout, auto_refresh=False) as live:
            while True:
                await asyncio.sleep(every)
                live.update(_shown(await look_at(brokers)), refresh=True)
    finally:
        for one in brokers:
            await one.close()


def _shown(seen: dict[str, Any]) -> Group:
    columns = "broker,published/s,told/s,guests,subs,links,journal,CPU,MB"
    table = Table(*columns.split(","), title="Brokers", title_justify="left", title_style="bold")
    silent = []
    for one in seen["brokers"]:
        if not one["up"]:
            silent.append(Text(f"{one['address']} does not answer: {one['problem']}", "red"))
            continue
        down = [_away(link) for link in one["links"] if not link["up"]]
        links = f"{len(one['links']) - len(down)} of {len(one['links'])} up"
        table.add_row(
            one["broker"],
            _rate(one["published_per_second"]),
            _rate(one["told_per_second"]),
            f"{one['guests']:,}",
            f"{one['subscriptions']:,}",
            f"{links}, not {', '.join(down)}" if down else links,
            one["trouble"] or f"{one['waiting_for_journal']:,} wait",
            "" if one["cpu_share"] is None else f"{100 * one['cpu_share']:.0f} %",
            f"{one['memory_bytes_most'] / 1e6:,.0f}",
        )
    if not seen["slow"]:
        return Group(table, *silent)
    slow = Table("slow consumer", "at", "bytes wait", title="Slowest", title_justify="left")
    for one in seen["slow"][:_SLOWEST]:
        slow.add_row(one["client"], one["broker"], f"{one['waiting_bytes']:,}")
    return Group(table, *silent, slow)


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:,.0f}"


def _away(link: dict[str, Any]) -> str:
    """A broker that cannot be reached, and what waits for it."""
    waiting = link.get("waiting", 0)
    return f"{link['broker']} ({waiting:,} events wait)" if waiting else str(link["broker"])
