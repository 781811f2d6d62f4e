"""`driftline top`: brokers as live tables: what they do a second, links, who is slow, your own."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from driftline.cli.broker import AuthorityOption, default_address
from driftline.cli.broker import run as run_loop
from driftline.cli.check import JsonFlag
from driftline.cli.output import plain, print_json, stdout
from driftline.client.proof import authority_context, token
from driftline.errors import Unreachable

if TYPE_CHECKING:
    from driftline.client.client import Client

_SLOWEST = 5
_SUBSCRIPTIONS = 15
_TEXT = 72
_FOLDED = 10
"""So wide a text is at least, if it is folded."""
_RATE = len("9.9 MB")
_EDGES = 2


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
    """Show what brokers do: events and bytes a second, links, slow consumers, your subscriptions.

    driftline top driftline://127.0.0.1:7400 driftline://127.0.0.1:7401

    driftline top overlay.toml --once --json

    Without --once it goes on until Ctrl-C, with --json as one object a line. With --once it ends
    with 5 if a broker does not answer. Who may not operate a broker sees their own subscriptions.
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
    token()  # What cannot be read at all is said at once.

    def open(address: str) -> Client:
        to = BrokerAddress.of(address)
        return Client(to, token=token, tls=context if to.tls else None, within=2.0)

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
    """Everything as tables; one that would be empty is left out."""
    up = [one for one in seen["brokers"] if one["up"]]
    silent = [
        plain(f"{one['address']} does not answer: {one['problem']}", "red")
        for one in seen["brokers"]
        if not one["up"]
    ]
    operated = [one for one in up if one["operated"]]
    tables = [
        _brokers(operated),
        _links(operated),
        _slow(seen["slow"][:_SLOWEST]),
        _subscriptions(seen["subscriptions"][:_SUBSCRIPTIONS]),
    ]
    shown: list[_Table | Text] = [table for table in tables if table]
    more = len(seen["subscriptions"]) - _SUBSCRIPTIONS
    if more > 0:
        shown.append(Text(f"and {more} more of yours", "dim"))
    hidden = [one["broker"] for one in up if not one["operated"]]
    if hidden:
        said = f"you may not operate {', '.join(hidden)}: only what is your own is shown"
        silent.append(plain(said, "yellow"))
    return Group(*shown, *silent)


class _Table:
    """A table whose first so many columns are texts; the others are numbers, on the right.

    On a narrow terminal texts are folded, and then columns to spare are left out, the first of them
    first: a heading or a number that is folded letter by letter can be read by nobody.
    """

    def __init__(
        self, title: str, columns: str, texts: int, spare: str = "", folded: int = _FOLDED
    ) -> None:
        self._title = title
        self._columns = columns.split(",")
        self._texts = texts
        self._folded = folded
        self._spare = spare.split(",") if spare else []
        self._rows: list[list[Text]] = []

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add_row(self, *cells: Text | str) -> None:
        self._rows.append([one if isinstance(one, Text) else Text(one) for one in cells])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        longest = [self._longest(at) for at in range(len(self._columns))]
        widths = [self._least(at, most) for at, most in enumerate(longest)]
        shown = [*range(len(self._columns))]
        spare = [self._columns.index(name) for name in self._spare]
        wide = options.max_width - _EDGES
        gap = 3 if sum(widths) + 3 * (len(widths) - 1) <= wide else 1
        while spare and sum(widths[at] + gap for at in shown) - gap > wide:
            shown.remove(spare.pop(0))
        # Whatever room is left is for texts, and the shortest need least of it.
        room = max(0, wide + gap - sum(widths[at] + gap for at in shown))
        texts = sorted((one for one in shown if one < self._texts), key=longest.__getitem__)
        for number, at in enumerate(texts):
            more = min(longest[at] - widths[at], room // (len(texts) - number))
            widths[at] += more
            room -= more
        table = Table(
            title=self._title,
            title_justify="left",
            title_style="bold",
            box=SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, gap // 2),
        )
        for at in shown:
            table.add_column(
                self._columns[at],
                justify="left" if at < self._texts else "right",
                overflow="fold",
                width=widths[at],
            )
        for row in self._rows:
            table.add_row(*(row[at] for at in shown))
        yield table

    def _longest(self, at: int) -> int:
        """What all of a column takes."""
        name = self._columns[at]
        # What comes and goes with each look would move all the others.
        least = _RATE if name.endswith("/s") else 0
        return max(least, len(name), *(row[at].cell_len for row in self._rows))

    def _least(self, at: int, longest: int) -> int:
        """What it takes at least: texts can be folded, numbers and headings not."""
        if at >= self._texts:
            return longest
        return max(len(self._columns[at]), min(longest, self._folded))


def _brokers(brokers: list[dict[str, Any]]) -> _Table:
    columns = "broker,links,journal,published/s,told/s,in/s,out/s,guests,subs,kept,CPU,MB"
    table = _Table("Brokers", columns, 3, "kept,guests,MB,subs,in/s,out/s,CPU")
    for one in brokers:
        down = sum(not link["up"] for link in one["links"])
        links = f"{len(one['links']) - down} of {len(one['links'])} up"
        waits = one["waiting_for_journal"]
        table.add_row(
            plain(one["broker"]),
            Text(links, "red" if down else ""),
            plain(one["trouble"], "red") if one["trouble"] else f"{waits:,} wait" if waits else "",
            _rate(one["published_per_second"]),
            _rate(one["told_per_second"]),
            _bytes(one["bytes_in_per_second"]),
            _bytes(one["bytes_out_per_second"]),
            f"{one['guests']:,}",
            f"{one['subscriptions']:,}",
            f"{one['kept']:,}",
            "" if one["cpu_share"] is None else f"{100 * one['cpu_share']:.0f} %",
            f"{one['memory_bytes_most'] / 1e6:,.0f}",
        )
    return table


def _links(brokers: list[dict[str, Any]]) -> _Table:
    table = _Table("Links", "broker,to,state,in/s,out/s,events wait,given up", 3, "in/s,out/s")
    for one in brokers:
        for link in one["links"]:
            state = "up" if link["up"] else f"down: {link['problem'] or 'nobody has come'}"
            table.add_row(
                plain(one["broker"]),
                plain(link["broker"]),
                plain(state, "" if link["up"] else "red"),
                _bytes(link["bytes_in_per_second"]),
                _bytes(link["bytes_out_per_second"]),
                f"{link['waiting']:,}",
                f"{link['given_up']:,}",
            )
    return table


def _slow(slow: list[dict[str, Any]]) -> _Table:
    table = _Table("Slowest consumers", "client,at,bytes wait", 2)
    for one in slow:
        table.add_row(plain(one["client"]), plain(one["broker"]), f"{one['waiting_bytes']:,}")
    return table


def _subscriptions(mine: list[dict[str, Any]]) -> _Table:
    columns = "subscription,bounds,at,evaluated,matched,suppressed,sent,waiting"
    spare = "evaluated,suppressed,at,matched"
    table = _Table("Your subscriptions", columns, 3, spare, folded=2 * _FOLDED)
    for one in mine:
        text = str(one["text"])
        named = f"{one['durable']}: " if one.get("durable") else ""
        epoch = f" (epoch {one['epoch']})" if one["epoch"] else ""
        bounds = ", ".join(f"{name}={value}" for name, value in one["params"].items())
        counts = (one[name] for name in columns.split(",")[3:])
        table.add_row(
            plain(f"{named}{text if len(text) <= _TEXT else text[: _TEXT - 1] + '…'}"),
            plain(f"{bounds}{epoch}"),
            plain(one["broker"]),
            *(f"{count:,}" for count in counts),
        )
    return table


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:,.0f}"


def _bytes(rate: float | None) -> str:
    """Bytes a second, as short as they can be read."""
    if rate is None:
        return ""
    for unit in ("B", "kB", "MB"):
        if rate < 1000:
            return f"{rate:,.0f} {unit}" if unit == "B" or rate >= 10 else f"{rate:.1f} {unit}"
        rate /= 1000
    return f"{rate:,.1f} GB"
