"""`driftline check`: what does a text mean?"""

from __future__ import annotations

from typing import Annotated

import typer

from driftline.cli.output import plain, print_facts, print_json, stderr
from driftline.language.advertising import advertisement
from driftline.language.review import review
from driftline.language.sql import parse
from driftline.model.subscription import Subscription
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
        stderr.print(plain(f"warning: {warning}", "yellow"))
