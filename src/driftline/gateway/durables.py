"""What can be done with durable subscriptions over HTTP?"""

from __future__ import annotations

from starlette.responses import Response

from driftline.gateway.asked import JSON, STRUCTURED, Asked, answer, done, said
from driftline.gateway.bodies import (
    Acknowledged,
    Kept,
    Listed,
    Moved,
    Parameters,
    Subscribing,
    described,
    explained,
    values_of,
)
from driftline.gateway.problems import Refused
from driftline.language.cloudevents import event_from
from driftline.model.value import show as quoted

EXPLAINED = (JSON, STRUCTURED)


async def every(asked: Asked) -> Response:
    """All of whoever asks."""
    return answer(Listed([described(one) for one in await asked.client.durables.all()]))


async def show(asked: Asked) -> Response:
    """One of them."""
    return answer(described(await asked.client.durables.get(asked.name)))


async def keep(asked: Asked) -> Response:
    """Let there be such a one."""
    body = await asked.body(Subscribing)
    text = str(await asked.statement(body))
    created = await asked.client.durables.keep(
        asked.name, text, body.values(), rows=body.rows, within=body.within
    )
    known = await asked.client.durables.get(asked.name)
    return answer(Kept(asked.name, created, known.epoch), 201 if created else 200)


async def drop(asked: Asked) -> Response:
    """End it, with all that is kept for it."""
    await asked.client.durables.drop(asked.name)
    return done()


async def move(asked: Asked) -> Response:
    """Set all of its parameters at once."""
    body = await asked.body(Parameters)
    epoch = await asked.client.set(asked.name, values_of(body.params), within=body.within)
    return answer(Moved(epoch))


async def acknowledge(asked: Asked) -> Response:
    """Everything up to a number was dealt with."""
    body = await asked.body(Acknowledged)
    if int(body.number) > 2**63 - 1:
        raise Refused(422, f"number: wanted at most {2**63 - 1}, came {body.number}")
    await asked.client.durables.had(asked.name, int(body.number))
    return done()


async def suspend(asked: Asked) -> Response:
    """Tell nothing for now; it is kept."""
    await asked.client.durables.suspend(asked.name)
    return done()


async def resume(asked: Asked) -> Response:
    """Tell what was kept, and go on."""
    await asked.client.durables.resume(asked.name)
    return done()


async def explain(asked: Asked) -> Response:
    """Why an event does or does not match."""
    if asked.media not in EXPLAINED:
        came = quoted(asked.media) if asked.media else "no content type"
        raise Refused(415, f"body: wanted {' or '.join(EXPLAINED)}, came {came}")
    event = event_from(said(await asked.raw()))
    return answer(explained(await asked.client.explain(asked.name, event)))
