"""`driftline explain`: why does an event match a subscription, or not; offline, or at a broker?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftline.cli.broker import AuthorityOption, WithinOption, addressed
from driftline.cli.check import JsonFlag
from driftline.cli.durable import explain_at
from driftline.cli.output import print_json, read_values, stdout
from driftline.errors import FileRefused, NotSupported
from driftline.language.cloudevents import value_to
from driftline.language.columns import events_of_texts
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.explanation import Explanation
from driftline.model.explanation import explain as explain_subscription
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription, check_elapsed


def explain(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT | [ADDRESS] DURABLE EVENT",
            help="A subscription in SQL; or the name of a durable one at a broker, and an event: "
            "JSON, or a file.",
        ),
    ],
    event: Annotated[
        Path | None,
        typer.Option(help="A file with one CloudEvents JSON object; - for standard input."),
    ] = None,
    params: Annotated[str | None, typer.Option(help="Parameters: '{\"limit\": 10}'.")] = None,
    env: Annotated[str | None, typer.Option(help="Environment, as JSON.")] = None,
    elapsed: Annotated[
        float | None,
        typer.Option(min=0, help="What elapsed() reads, in seconds. [default: as in match]"),
    ] = None,
    authority: AuthorityOption = None,
    within: WithinOption = 10.0,
    json: JsonFlag = False,
) -> None:
    """Say why an event does or does not match: each condition, and the values it saw.

    driftline explain "SELECT * FROM quote WHERE price < :p" --event e.json --params '{"p": 9}'

    driftline explain cheap '{"type": "quote", "price": 9.5}'

    The second form asks the broker that keeps the durable subscription `cheap`, as it stands now.
    """
    address, rest = addressed(words)
    if len(rest) == 2 and event is None:
        if any(one is not None for one in (params, env, elapsed)):
            raise typer.BadParameter("the broker knows the parameters, the environment and time")
        found = explain_at(address, rest[0], _read_event(rest[1]), authority, within)
    elif len(words) == 1 and event is not None:
        found = _explain_text(words[0], event, params, env, elapsed)
    else:
        raise typer.BadParameter("give a TEXT and --event FILE, or DURABLE and EVENT")
    if json:
        print_json({"matches": found.outcome is True, "explanation": explanation_data(found)})
        return
    verdict = "matches" if found.outcome is True else "does not match"
    stdout.print(f"The event {verdict}.")
    stdout.print(str(found))


def _explain_text(
    text: str, event: Path, params: str | None, env: str | None, elapsed: float | None
) -> Explanation:
    statement = parse(text)
    if not isinstance(statement, Subscription) or statement.change is not None:
        raise NotSupported(str(statement), "explain looks at one event, so it needs a plain filter")
    standing = Standing.of(statement, read_values(params, "--params"))
    # As `match` sees it, counting from 1970, unless told otherwise: unknown without a stamp.
    scope = standing.scope(_read_event(str(event)), read_values(env, "--env"))
    if elapsed is not None:
        scope.elapsed = check_elapsed(elapsed)
    return explain_subscription(statement, scope)


def _read_event(given: str) -> Event:
    """An event from JSON, from a file, or from standard input."""
    try:
        if given.lstrip().startswith("{"):
            where, data = "EVENT", given.encode(errors="surrogateescape")
        elif given == "-":
            where, data = given, typer.get_binary_stream("stdin").read()
        else:
            where, data = given, Path(given).read_bytes()
    except OSError as error:
        raise FileRefused(given, None, error.strerror or str(error)) from None
    (event,) = events_of_texts([data], None)
    if isinstance(event, str):
        raise FileRefused(where, None, event)
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
