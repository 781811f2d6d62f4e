"""`driftline sub`: subscribe, and print what is told, one line each."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import msgspec
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
from driftline.cli.output import escaped, plain, stderr, stdout
from driftline.language.notified import notification_to
from driftline.model.notification import Notification, NotificationKind
from driftline.model.trace import PARENT_CHARS
from driftline.model.value import Value, show

if TYPE_CHECKING:
    from driftline.client.subscription import Subscription


def subscribe(
    words: Annotated[
        list[str], typer.Argument(metavar="[ADDRESS] TEXT", help="The subscription, in SQL.")
    ],
    param: ParamOption = None,
    rows: Annotated[
        bool, typer.Option("--rows", help="Over a table: the live set of rows that match.")
    ] = False,
    durable: Annotated[
        str, typer.Option(metavar="NAME", help="Go on by this name while nobody is connected.")
    ] = "",
    count: Annotated[
        int | None, typer.Option(min=1, help="End after so many lines; gaps do not count.")
    ] = None,
    for_: Annotated[
        float | None, typer.Option("--for", min=0.0, metavar="SECONDS", help="End after so long.")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="When you are too slow: overflow=drop_oldest|conflate|block, limit=1000, "
            "key=firm, min_interval=0.5, max_interval=60.",
        ),
    ] = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="End the durable subscription for good afterwards.")
    ] = False,
    authority: AuthorityOption = None,
    within: WithinOption = 10.0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines instead.")] = False,
) -> None:
    """Print what a subscription is told, one line each, until Ctrl-C.

    driftline sub "SELECT * FROM quote WHERE price < :limit" -p limit=10

    driftline sub "SELECT * FROM quote" --durable audit --count 100 --json

    What may have been missed is told as a gap. What a durable subscription has printed is not told
    again. With --count and --for it ends with 1 if fewer came in time.
    """
    address, rest = addressed(words)
    if len(rest) != 1:
        raise typer.BadParameter("give one TEXT, in quotes")
    if forget and not durable:
        raise typer.BadParameter("--forget is for a subscription that is --durable")
    params = named_values(param, "-p")
    options = named_values(policy, "--policy")
    lines = _Lines(json, count, for_)

    async def telling() -> None:
        async with connecting(address, authority, within) as client:
            subscription = client.subscribe(
                rest[0], params, rows=rows, durable=durable, policy=options, within=within
            )
            async with subscription as s:
                went_on = ", which goes on" if s.resumed else ""
                said = f"subscribed at {client.broker}{went_on}; Ctrl-C ends"
                stderr.print(plain(said, "dim"))
                if s.suspended:
                    why = "it is suspended: nothing is told until it is resumed, all is kept"
                    stderr.print(plain(why, "yellow"))
                printing = asyncio.ensure_future(lines.print_all(s))
                # So that what was printed is acknowledged before it ends.
                for one in (signal.SIGINT, signal.SIGTERM):
                    asyncio.get_running_loop().add_signal_handler(one, printing.cancel)
                with suppress(asyncio.CancelledError):
                    await printing
                if forget:
                    await s.cancel()

    run_loop(telling)
    if count is not None and for_ is not None and lines.printed < count:
        stderr.print(f"{lines.printed} of {count} came in {for_:g} s", style="yellow")
        raise typer.Exit(1)


class _Lines:
    """Prints what is told until so many lines were, or so much time has passed."""

    def __init__(self, json: bool, count: int | None, seconds: float | None) -> None:
        self._json = json
        self._count = count
        self._end = None if seconds is None else time.monotonic() + seconds
        self.printed = 0

    async def print_all(self, s: Subscription) -> None:
        while self._count is None or self.printed < self._count:
            left = None if self._end is None else max(0.0, self._end - time.monotonic())
            try:
                told = await s.next(left)
            except TimeoutError:
                return
            _print(told, self._json)
            self.printed += told.kind is not NotificationKind.GAP


def _print(told: Notification, json: bool) -> None:
    is_gap = told.kind is NotificationKind.GAP
    if not json and is_gap and stdout.is_terminal:
        stdout.print(plain(_line(told), "yellow"))
        return
    text = msgspec.json.encode(notification_to(told)).decode() if json else escaped(_line(told))
    sys.stdout.write(text + "\n")
    # Somebody may be reading along.
    sys.stdout.flush()


def _line(told: Notification) -> str:
    """What was told, on one line."""
    if told.kind is NotificationKind.GAP:
        lost = f"{told.lost} were not told" if told.lost else "something may not have been told"
        return f"gap       {lost}"
    words = [f"{told.kind:<9}"]
    if told.key is not None:
        words.append(f"[{_key(told.key)}]")
    elif told.event is not None:
        words.append(told.event.type)
    words += [f"{name}={show(value)}" for name, value in told.values.items()]
    if told.old is not None:
        was = " ".join(f"{name}={show(value)}" for name, value in told.old.items())
        words.append(f"(was {was})")
    for one in told.events:
        words.append(f"<- {one.type} {_values(one.attributes)}")
    if told.epoch:
        words.append(f"  epoch {told.epoch}")
    if told.trace:
        words.append(f"  trace {told.trace[:PARENT_CHARS]}")
    if told.repeated:
        words.append("again")
    return " ".join(words)


def _values(values: object) -> str:
    assert hasattr(values, "items")
    return " ".join(f"{name}={show(value)}" for name, value in values.items())


def _key(key: Value | tuple[Value, ...]) -> str:
    return ", ".join(map(show, key)) if isinstance(key, tuple) else show(key)
