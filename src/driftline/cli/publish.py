"""`driftline pub`: publish one event from words, or many from a file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress

from driftline.cli.broker import AuthorityOption, WithinOption, addressed, connecting, named_values
from driftline.cli.broker import run as run_loop
from driftline.cli.check import JsonFlag
from driftline.cli.output import plain, print_facts, print_json, progress, stderr
from driftline.errors import FileRefused, JournalError, Unreachable
from driftline.files import BATCH, count_events, read_events
from driftline.language.columns import Problem, events_of_texts
from driftline.model.event import Event

if TYPE_CHECKING:
    from driftline.client.client import Client

Numbered = tuple[int, Event | Problem]
_SHOWN = 5
INTERRUPTED = 130
"""As of whatever a shell ends by Ctrl-C: it is not done."""
_PIECE = 1000


def publish(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ADDRESS] TYPE NAME=VALUE…", help="An event; values as in JSON."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Publish these: .jsonl, .parquet, or - for JSON lines.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="At most so many events a second.")
    ] = None,
    default_type: Annotated[str | None, typer.Option(help="Type of events that have none.")] = None,
    id: Annotated[str | None, typer.Option(help="The event's id.")] = None,
    source: Annotated[str | None, typer.Option(help="The event's source.")] = None,
    trace: Annotated[
        str | None, typer.Option(metavar="TRACEPARENT", help="The trace that it belongs to (W3C).")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Pass over what came so before, by source and id.")
    ] = False,
    authority: AuthorityOption = None,
    within: WithinOption = 10.0,
    json: JsonFlag = False,
) -> None:
    """Publish, and say so when the broker has acknowledged it.

    driftline pub quote firm=IBM price=9.5

    driftline pub london.example.org:7400 --file events.jsonl --rate 1000

    A value is typed as in JSON: 9.5, true, "7", {"@time": "2026-01-31T09:30:00Z"}; other words are
    texts, NaN too. Lines that are no events, or that the broker refuses, are passed over, counted,
    and the first of them named; it ends with 4 when all is done.
    Ctrl-C ends it with 130, and it says how many were published.
    """
    address, rest = addressed(words or [])
    if (file is None) != bool(rest):
        raise typer.BadParameter("give a TYPE and values, or --file, not both")
    batches: Iterator[list[Numbered]]
    if file is None:
        values = named_values(rest[1:], "attribute")
        event = Event(rest[0], values, id=id, source=source, trace=trace)
        batches, total = iter([[(1, event)]]), 1
    elif str(file) == "-":
        batches, total = _standard_input(default_type), None
    else:
        batches, total = read_events(file, default_type), count_events(file)
    work = _Work(batches, rate, once=once, alone=file is None)

    async def publishing() -> bool:
        async with connecting(address, authority, within) as client:
            with progress() as bars:
                await work.do(client, bars, total)
        return True

    begun = time.monotonic()
    is_whole = run_loop(publishing)
    seconds = round(time.monotonic() - begun, 3)
    facts = {
        "broker": work.broker,
        "published": work.published,
        "refused": work.refused,
        "seconds": seconds,
    }
    (print_json if json else print_facts)(facts)
    if not is_whole:
        said = f"ended by Ctrl-C; {work.published:,} were published"
        more = f", and of the next {work.going:,} some may be" if work.going else ""
        stderr.print(plain(said + more, "yellow"))
        raise typer.Exit(INTERRUPTED)
    if work.refused:
        raise FileRefused(str(file), work.first, f"{work.refused} lines were not published")


class _Work:
    """Events on their way out, and what became of them."""

    def __init__(
        self, batches: Iterator[list[Numbered]], rate: float | None, *, once: bool, alone: bool
    ) -> None:
        self._batches = batches
        self._rate = rate
        self._once = once
        self._alone = alone
        self.broker = ""
        self.published = 0
        self.refused = 0
        self.going = 0
        """How many are on their way."""
        self.first: int | None = None

    async def do(self, client: Client, bars: Progress, total: int | None) -> None:
        self.broker = client.broker
        task = bars.add_task("publishing", total=total)
        # Pieces of a twentieth of a second: a rate is kept, and a bar moves.
        piece = _PIECE if self._rate is None else max(1, min(_PIECE, int(self._rate / 20)))
        begun = time.monotonic()
        for batch in self._batches:
            events = [one for one in map(self._event, batch) if one is not None]
            for at in range(0, len(events), piece):
                some = events[at : at + piece]
                self.going = len(some)
                await self._publish(client, some)
                self.going = 0
                bars.update(task, completed=self.published + self.refused)
                if self._rate is not None:
                    due = begun + self.published / self._rate
                    await asyncio.sleep(max(0.0, due - time.monotonic()))

    def _event(self, one: Numbered) -> tuple[int, Event] | None:
        number, event = one
        if isinstance(event, Event):
            return number, event
        self._refuse(number, event)
        return None

    async def _publish(self, client: Client, some: list[tuple[int, Event]]) -> None:
        found = await client.publish_each([event for _, event in some], once=self._once)
        for (number, _), problem in zip(some, found, strict=True):
            if problem is None:
                self.published += 1
            elif self._alone or client.is_over or isinstance(problem, Unreachable | JournalError):
                # One alone is refused with its own code; of what is no refusal nobody knows what
                # has become of it.
                raise problem
            else:
                self._refuse(number, problem)

    def _refuse(self, number: int, why: object) -> None:
        self.first = self.first or number
        self.refused += 1
        if self.refused <= _SHOWN:
            stderr.print(plain(f"warning: line {number}: {why}", "yellow"))


def _standard_input(default_type: str | None) -> Iterator[list[Numbered]]:
    lines = ((n, one) for n, one in enumerate(typer.get_binary_stream("stdin"), 1) if one.strip())
    # One at a time where somebody types, so that each is published when it was entered.
    some = 1 if typer.get_text_stream("stdin").isatty() else BATCH
    while batch := list(islice(lines, some)):
        numbers, texts = zip(*batch, strict=True)
        yield list(zip(numbers, events_of_texts(texts, default_type), strict=True))
