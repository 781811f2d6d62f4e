"""How busy are brokers: what do they do a second, who is slow, which links are down?

A status counts from the beginning of a broker; two of them, and the time between, give rates. A
broker that cannot be reached is a line too, and is asked again the next time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
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
        """What it does now; rates are None the first time, and after it began anew.

        Who may not operate it sees its own subscriptions, and nothing else.
        """
        try:
            if self._client is None:
                client = self._open(self.address)
                self._client = await asyncio.wait_for(client.open(), ANSWER)
            asked = self._client._status(True, others=True)
            status = await asyncio.wait_for(asked, ANSWER)
        except (DriftlineError, TimeoutError) as problem:
            self._before = None
            await self.close()
            why = str(problem) or f"no answer within {ANSWER:g} s"
            return {"address": self.address, "up": False, "problem": why}
        found = {"address": self.address, "up": True, "broker": self._client.broker, **status}
        if "incarnation" not in status:
            return {**found, "operated": False, "slow": [], "links": []}
        now = time.monotonic()
        before, self._before = self._before, (now, status)
        if before is not None and before[1]["incarnation"] != status["incarnation"]:
            before = None
        seconds = 1.0 if before is None else max(1e-6, now - before[0])
        earlier = None if before is None else before[1]
        links = {one["broker"]: one for one in earlier["links"]} if earlier else {}
        return {
            **found,
            "operated": True,
            **_rates(_OF_BROKER, earlier, status, seconds),
            "links": [
                {**one, **_rates(_OF_LINK, links.get(one["broker"]), one, seconds)}
                for one in status["links"]
            ],
        }

    async def close(self) -> None:
        """Look no more."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


_OF_BROKER = {
    "published": "published_per_second",
    "told": "told_per_second",
    "bytes_in": "bytes_in_per_second",
    "bytes_out": "bytes_out_per_second",
    "cpu_seconds": "cpu_share",
}
_OF_LINK = {"bytes_in": "bytes_in_per_second", "bytes_out": "bytes_out_per_second"}


def _rates(
    names: Mapping[str, str],
    before: Mapping[str, Any] | None,
    now: Mapping[str, Any],
    seconds: float,
) -> dict[str, float | None]:
    if before is None:
        return dict.fromkeys(names.values())
    return {rate: round((now[name] - before[name]) / seconds, 3) for name, rate in names.items()}


async def look_at(brokers: Sequence[Watched]) -> dict[str, Any]:
    """All brokers at once; those who are slow at any of them, the slowest first; what is one's own,
    what is told most first.
    """
    seen = await asyncio.gather(*(one.look() for one in brokers))
    mine = [
        {"broker": one["broker"], **each}
        for one in seen
        if one["up"]
        for each in one.pop("mine", ())
    ]
    mine.sort(key=lambda one: one["sent"], reverse=True)
    slow = [{"broker": one["broker"], **each} for one in seen if one["up"] for each in one["slow"]]
    slow.sort(key=lambda one: one["waiting_bytes"], reverse=True)
    return {"brokers": list(seen), "slow": slow, "subscriptions": mine}
