"""`driftline check` and `driftline explain`: what does a text mean, and why (not) this event?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftline.cli.output import print_facts, print_json, read_values, stderr, stdout
from driftline.errors import FileRefused, NotSupported
from driftline.language.advertising import advertisement
from driftline.language.cloudevents import value_to
from driftline.language.columns import events_of_texts
from driftline.language.review import review
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.explanation import Explanation
from driftline.model.explanation import explain as explain_subscription
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription, check_elapsed
from driftline.model.view import View
from driftline.stateful.plan import plan_of

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


def _messages(text: str) -> str | None:
    """Of a view, the subscription to the messages that change it, with numbers as parameters.

    What moved or crossed is a view too, where events are rows of a table.
    """
    statement = parse(text)
    if isinstance(statement, Subscription) and statement.change is not None:
        statement = View.of_change(statement)
    if not isinstance(statement, View) or not statement.source:
        return None
    numbers = dict.fromkeys(statement.variables().parameters, 0)
    return str(plan_of(statement, numbers).interest)


def _remembers(text: str) -> str | None:
    """How many states `moved` or `crossed` has: what was last told, of what."""
    statement = parse(text)
    if not isinstance(statement, Subscription) or statement.change is None:
        return None
    if statement.source is None:
        return "what was last told"
    return f"what was last told, of each row if {statement.source} is a table"


def check(
    text: Annotated[str, typer.Argument(help="The subscription, in SQL.")],
    as_advertisement: Annotated[
        bool, typer.Option("--advertisement", help="Read it as an advertisement.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Parse a text; print its canonical form, what it depends on, and what looks like a mistake.

    driftline check "SELECT * FROM quote WHERE price < :limit AND elapsed() < 3600"
    """
    if as_advertisement:
        canonical = str(advertisement(text))
        if json:
            print_json({"canonical": canonical, "shape": "advertisement"})
        else:
            print_facts({"advertisement": canonical})
        return
    found = review(text)
    facts = {
        "canonical": found.canonical,
        "shape": found.shape,
        "sources": list(found.sources),
        "attributes": list(found.attributes),
        "parameters": found.parameters,
        "environment": sorted(found.variables.environment),
        "now": found.variables.now,
        "elapsed": found.variables.elapsed,
        "messages": _messages(text),
        "remembers": _remembers(text),
        "warnings": list(found.warnings),
    }
    if json:
        print_json(facts)
        return
    moves = {
        "its parameters": bool(found.parameters),
        "the environment": bool(found.variables.environment),
        "time": found.variables.now or found.variables.elapsed,
    }
    print_facts(
        {
            "canonical": found.canonical,
            "shape": found.shape,
            "from": ", ".join(found.sources) or "any event",
            "attributes": ", ".join(found.attributes),
            "parameters": ", ".join(f":{name} ({kind})" for name, kind in found.parameters.items()),
            "environment": ", ".join(sorted(found.variables.environment)),
            "moves with": ", ".join(name for name, does in moves.items() if does) or "nothing",
            "changed by": str(facts["messages"] or ""),
            "remembers": str(facts["remembers"] or ""),
        }
    )
    for warning in found.warnings:
        stderr.print(f"warning: {warning}", markup=False, style="yellow")


def explain(
    text: Annotated[str, typer.Argument(help="The subscription, in SQL.")],
    event: Annotated[
        Path, typer.Option(help="A file with one CloudEvents JSON object; - for standard input.")
    ],
    params: Annotated[str | None, typer.Option(help="Parameters: '{\"limit\": 10}'.")] = None,
    env: Annotated[str | None, typer.Option(help="Environment, as JSON.")] = None,
    elapsed: Annotated[
        float | None,
        typer.Option(min=0, help="What elapsed() reads, in seconds. [default: as in match]"),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Say why an event does or does not match: each condition, and the values it saw.

    driftline explain "SELECT * FROM quote WHERE price < :p" --event e.json --params '{"p": 9}'
    """
    statement = parse(text)
    if not isinstance(statement, Subscription) or statement.change is not None:
        raise NotSupported(str(statement), "explain looks at one event, so it needs a plain filter")
    standing = Standing.of(statement, read_values(params, "--params"))
    # As `match` sees it, counting from 1970, unless told otherwise: unknown without a stamp.
    scope = standing.scope(_read_event(event), read_values(env, "--env"))
    if elapsed is not None:
        scope.elapsed = check_elapsed(elapsed)
    found = explain_subscription(statement, scope)
    if json:
        print_json({"matches": found.outcome is True, "explanation": explanation_data(found)})
        return
    verdict = "matches" if found.outcome is True else "does not match"
    stdout.print(f"The event {verdict}.", markup=False)
    stdout.print(str(found), markup=False)


def _read_event(path: Path) -> Event:
    try:
        data = typer.get_binary_stream("stdin").read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise FileRefused(str(path), None, error.strerror or str(error)) from None
    (event,) = events_of_texts([data], None)
    if isinstance(event, str):
        raise FileRefused(str(path), None, event)
    return event


def explanation_data(found: Explanation) -> dict[str, object]:
    """An explanation as JSON."""
    return {
        "text": found.text,
        "outcome": {True: "true", False: "false", None: "unknown"}[found.outcome],
        "reason": found.reason,
        "seen": {name: value_to(value) for name, value in found.seen.items()},
        "decided": found.decided,
        "parts": [explanation_data(part) for part in found.parts],
    }
