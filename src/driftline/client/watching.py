"""How busy are brokers: what do they do a second, who is slow, which links are down?

A status counts from the beginning of a broker; two of them, and the time between, give rates. A
broker that cannot be reached is a line too, and is asked again the next time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from driftline.client.client import Client
from driftline.errors import DriftlineError

Open = Callable[[str], Client]
ANSWER = 5.0
"""A broker that has not answered within so many seconds is shown as one that does not."""


class Watched:
    """One broker that is looked at again and again."""

    def __init__(self, address: str, open: Open) -> None:
        self.address = address
        self._open = open
        self._client: Client | None = None
        self._before: tuple[float, dict[str, Any]] | None = None

    async def look(self) -> dict[str, Any]:
        """What it does now; rates are None the first time, and after it began anew."""
        try:
            if self._client is None:
                client = self._open(self.address)
                self._client = await asyncio.wait_for(client.open(), ANSWER)
            status = await asyncio.wait_for(self._client.status(), ANSWER)
        except (DriftlineError, TimeoutError) as problem:
            self._before = None
            await self.close()
            why = str(problem) or f"no answer within {ANSWER:g} s"
            return {"address": self.address, "up": False, "problem": why}
        now = time.monotonic()
        before, self._before = self._before, (now, status)
        return {"address": self.address, "up": True, **status, **_rates(before, now, status)}

    async def close(self) -> None:
        """Look no more."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _rates(
    before: tuple[float, dict[str, Any]] | None, now: float, status: dict[str, Any]
) -> dict[str, float | None]:
    names = {
        "published": "published_per_second",
        "told": "told_per_second",
        "cpu_seconds": "cpu_share",
    }
    if before is None or before[1]["incarnation"] != status["incarnation"]:
        return dict.fromkeys(names.values())
    seconds = max(1e-6, now - before[0])
    return {
        rate: round((status[name] - before[1][name]) / seconds, 3) for name, rate in names.items()
    }


async def look_at(brokers: Sequence[Watched]) -> dict[str, Any]:
    """All brokers at once, and those who are slow at any of them, the slowest first."""
    seen = await asyncio.gather(*(one.look() for one in brokers))
    slow = [{"broker": one["broker"], **each} for one in seen if one["up"] for each in one["slow"]]
    slow.sort(key=lambda one: one["waiting_bytes"], reverse=True)
    return {"brokers": list(seen), "slow": slow}
