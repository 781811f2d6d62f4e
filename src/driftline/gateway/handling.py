"""How is a durable subscription told through a webhook or by mail, and what became of letters?"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from driftline.gateway.asked import Asked, answer, done
from driftline.gateway.bodies import (
    AfterLetter,
    Counted,
    Handler,
    Letter,
    Letters,
    Renewing,
    Secret,
    Which,
)
from driftline.gateway.problems import Refused
from driftline.model.text import timestamp
from driftline.model.value import time_of


async def redirect(asked: Asked) -> Response:
    """Tell it through this address from now on, what was not had too."""
    body = await asked.body(Handler)
    return await _redirected(asked, body.address)


async def withdraw(asked: Asked) -> Response:
    """Tell it through nothing any more; it is kept."""
    return await _redirected(asked, "")


async def _redirected(asked: Asked, address: str) -> Response:
    await asked.client.durables.redirect(asked.name, address)
    return done()


async def secret(asked: Asked) -> Response:
    """What its webhooks are signed with; on demand another from now on."""
    body = await asked.body(Renewing)
    return answer(Secret(await asked.client.durables.secret(asked.name, renew=body.renew)))


async def letters(asked: Asked) -> Response:
    """What its handler has given up on, the oldest first."""
    given = asked.query("after")
    try:
        after = msgspec.convert(given, AfterLetter).after
    except msgspec.ValidationError as problem:
        raise Refused(422, f"query: {problem}", "invalid-value") from None
    found = await asked.client.durables.dead(asked.name, after=after, most=100)
    return answer(
        Letters(
            [
                Letter(
                    one.id,
                    one.why,
                    one.attempts,
                    timestamp(time_of(one.time)),
                    _shown(one.data),
                    one.again,
                )
                for one in found
            ]
        )
    )


def _shown(data: bytes) -> Any:
    return msgspec.json.decode(data) if data else None


async def redeliver(asked: Asked) -> Response:
    """Deliver dead letters again: those of these ids, or all."""
    body = await asked.body(Which)
    return answer(Counted(await asked.client.durables.redeliver(asked.name, body.ids)))


async def discard(asked: Asked) -> Response:
    """Throw dead letters away: those of these ids, or all."""
    body = await asked.body(Which)
    return answer(Counted(await asked.client.durables.discard(asked.name, body.ids)))
