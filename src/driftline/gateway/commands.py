"""What else can be asked over HTTP: tables, the environment, interest, and how the broker does?"""

from __future__ import annotations

from starlette.responses import Response

from driftline.errors import TableError
from driftline.gateway.asked import Asked, answer, done
from driftline.gateway.bodies import Advertising, Declared, Deleting, Observed, Wanted
from driftline.gateway.problems import Refused
from driftline.language.cloudevents import value_from
from driftline.model.table import TableDeclaration
from driftline.net.metrics import CONTENT_TYPE


async def declare(asked: Asked) -> Response:
    """Let events of a type be the rows of a table."""
    body = await asked.body(Declared)
    try:
        TableDeclaration.of(asked.name, body.key, body.ticks)
    except TableError as problem:
        # What is declared is no declaration: that of nobody else is in its way.
        raise Refused(422, str(problem), "table-error") from None
    await asked.client.declare(asked.name, body.key, body.ticks)
    return done()


async def delete(asked: Asked) -> Response:
    """Remove a row."""
    body = await asked.body(Deleting)
    await asked.client.delete(asked.name, value_from(body.key, "key"))
    return done()


async def observe(asked: Asked) -> Response:
    """Say what a variable of the environment is worth."""
    body = await asked.body(Observed)
    value = None if body.value is None else value_from(body.value, asked.name)
    await asked.client.observe(asked.name, value)
    return done()


async def interest(asked: Asked) -> Response:
    """Would anybody want what is advertised?"""
    body = await asked.body(Advertising)
    return answer(Wanted(await asked.client.interested(body.advertisement, body.within)))


async def metrics(asked: Asked) -> Response:
    """What Prometheus reads."""
    return Response(await asked.client.metrics(), media_type=CONTENT_TYPE)


async def status(asked: Asked) -> Response:
    """How the broker does."""
    return answer(await asked.client.status())
