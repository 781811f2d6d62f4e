"""Does everything pass, and if not, whom does a bridge wait for?

Looked at from time to time: connections are made again by themselves, and who only waits would say
nothing. It is logged and told when it changes, and as often as somebody wants to hear it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from driftline.net.logs import Log

log = Log("driftline.bridge")

LOOK_EVERY = 0.25
"""Seconds between two looks."""
SLOW = 5.0
"""Who has not answered for so many seconds is waited for, whether there is a connection or not."""

Facts = dict[str, Any]


@dataclass(slots=True)
class Passed:
    """What has passed the bridge."""

    published: int = 0
    """Messages that our broker has taken, or knew."""
    refused: int = 0
    """What can never pass: messages that are no events, or may not be published, and notifications
    that the MQTT broker will not take."""
    told: int = 0
    """Notifications that the MQTT broker has taken."""
    lost: int = 0
    """Messages of quality 0 for which there was no room."""


class Watched(Protocol):
    """A bridge, as it is looked at."""

    @property
    def passed(self) -> Passed:
        """What has passed."""

    @property
    def held(self) -> int:
        """So many messages have come that were not dealt with."""

    def waits_for(self, slow: float) -> list[str]:
        """Which brokers do not take anything now: `broker`, `mqtt`."""


async def watch(bridge: Watched, say: Callable[[Facts], None], every: float | None) -> None:
    """Say it when it changes, and every so many seconds."""
    loop = asyncio.get_running_loop()
    before: list[str] = []
    last = loop.time()
    while True:
        await asyncio.sleep(LOOK_EVERY if every is None else min(LOOK_EVERY, every))
        waits_for = bridge.waits_for(SLOW)
        if waits_for != before:
            said = log.warning if waits_for else log.info
            now = f"waits for {' and '.join(waits_for)}" if waits_for else "everything passes again"
            said(now, held=bridge.held)
        elif every is None or loop.time() - last < every:
            continue
        before, last = waits_for, loop.time()
        say(facts_of(bridge, waits_for))


def facts_of(bridge: Watched, waits_for: list[str]) -> Facts:
    """How it is, for programs."""
    return {
        "status": "waiting" if waits_for else "passing",
        "waits_for": waits_for,
        "held": bridge.held,
        **asdict(bridge.passed),
    }
