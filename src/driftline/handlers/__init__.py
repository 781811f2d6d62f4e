"""TOLD ELSEWHERE: durable subscriptions whose handler is a webhook or a mailbox [SIENA §3].

    Handlers ──for each──▶ Delivering ──attached as its owner──▶ Incoming   what it is told
     (a door)                  ├──▶ Webhooks   signed, one by one
                               ├──▶ Mail       gathered when there is much
                               └──▶ Patience   when to try again, when it is a dead letter

Reading order: outgoing, signing, outcome, patience, sending, webhooks, mail, coming, delivering,
handlers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driftline.net.config import Config
    from driftline.net.inside import Door


def doors_of(config: Config) -> list[Door]:
    """The doors that a configuration asks for; raises what is wrong with it."""
    if config.webhooks is None and config.email is None:
        return []
    from driftline.handlers.handlers import Handlers

    return [Handlers(config)]
