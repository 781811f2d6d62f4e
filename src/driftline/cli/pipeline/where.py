"""`driftline pipeline explain`: where is everything, and why was somebody told, or not?"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer

from driftline.cli.check import JsonFlag
from driftline.cli.explain import explanation_data
from driftline.cli.output import print_facts, print_json, print_table, progress, stdout
from driftline.cli.pipeline.chosen import HERE, ConfigArgument, chosen
from driftline.errors import InvalidValue
from driftline.language.cloudevents import value_to
from driftline.language.columns import events_of_texts
from driftline.model.event import Event
from driftline.model.explanation import Explanation
from driftline.model.explanation import explain as explain_filter
from driftline.model.subscription import Subscription
from driftline.recorded.book import Book
from driftline.recorded.config import PipelineConfig
from driftline.recorded.inputs import entered
from driftline.recorded.plan import Located, Plan, Remembered, locate, plan_of
from driftline.recorded.recorder import read_book
from driftline.recorded.replay import States, replayed

_QUERIES = {
    "match": "plain filters, by the versions that hold at an event's number → matched, refused",
    "reformulate": "what needs memory, shard by shard → told, refused",
}


def explain(
    config: ConfigArgument = HERE,
    id: Annotated[
        str | None, typer.Argument(help="A subscription's id; alone, of a pipeline here.")
    ] = None,
    event: Annotated[
        str | None, typer.Option(help="An event as JSON: why would it (not) be told now?")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Say where tables and subscriptions are, what each query does, and what to set for more.

    With an ID: how that subscription stands, since when, and where it is. With an event: why it
    matches, or does not; for what has memory all that was recorded is taken again first.
    """
    if id is None and not config.exists():
        config, id = HERE, str(config)
    pipeline = chosen(config)
    book = read_book(pipeline)
    if id is None:
        if event is not None:
            raise typer.BadParameter("an event is explained to a subscription: give its ID")
        _print_plan(plan_of(pipeline, book), json)
        return
    located = locate(pipeline, book, id)
    why = None if event is None else _explained(pipeline, book, id, event)
    _print_located(located, why, json)


def _explained(pipeline: PipelineConfig, book: Book, id: str, text: str) -> Explanation:
    (event,) = events_of_texts([text.encode(errors="replace")], pipeline.events.default_type)
    if isinstance(event, str):
        raise InvalidValue("--event", "an event", event)
    event = entered(event, time.time_ns() // 1000)
    if id in book.filters:
        standing = book.filters[id]
        assert isinstance(standing.statement, Subscription)
        return explain_filter(standing.statement, standing.scope(event, book.env))
    return _remembering(pipeline, book, id, event)


def _remembering(pipeline: PipelineConfig, book: Book, id: str, event: Event) -> Explanation:
    states = States(pipeline)
    with progress() as bars:
        task = bars.add_task("taking what was recorded", total=book.end)
        for row in replayed(pipeline, states=states):
            bars.update(task, completed=row.seq)
    return states.remembering.explain(id, event)


def _print_plan(plan: Plan, json: bool) -> None:
    if json:
        print_json({**asdict(plan), "kinds": plan.kinds, "queries": _QUERIES})
        return
    print_table("Queries", ("query", "does"), _QUERIES.items())
    if plan.tables:
        print_table(
            "Tables",
            ("table", "key", "kept", "shards"),
            [(one.name, one.key, one.kept, _numbers(one.shards)) for one in plan.tables],
        )
    rows = [(one.kind, one.count, _numbers(one.shards), _few(one)) for one in plan.remembered]
    print_table(
        "Subscriptions",
        ("kind", "count", "remembered on shards", "such as"),
        [("filter", plan.filters, "none: it needs no memory", ""), *rows],
    )
    for advice in plan.advice:
        stdout.print(f"For more: {advice}")


def _numbers(shards: tuple[int, ...]) -> str:
    return "all" if len(shards) > 1 else ", ".join(map(str, shards))


def _few(one: Remembered) -> str:
    return ", ".join(one.ids) + (" …" if one.count > len(one.ids) else "")


def _print_located(located: Located, why: Explanation | None, json: bool) -> None:
    params = {name: value_to(value) for name, value in located.params.items()}
    if json:
        data = {**asdict(located), "params": params}
        if why is not None:
            data |= {"matches": why.outcome is True, "explanation": explanation_data(why)}
        print_json(data)
        return
    shown = "any event" if located.types is None else ", ".join(located.types)
    print_facts(
        {
            "id": located.id,
            "kind": located.kind,
            "text": located.text,
            "parameters": ", ".join(f":{name} is {value}" for name, value in params.items()),
            "epoch": str(located.epoch),
            "asked for": f"at number {located.asked}",
            "stands so": f"from number {located.since} on",
            "on shards": _numbers(located.shards) or "none",
            "is shown": (shown or "rows of its tables") if located.shards else "",
            "why there": located.why,
        }
    )
    if why is not None:
        stdout.print(f"\nThe event {'matches' if why.outcome is True else 'does not match'}.")
        stdout.print(str(why))
