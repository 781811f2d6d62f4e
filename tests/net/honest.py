"""How is somebody served who means no harm, while others do? A process of its own, which measures.

    python -m tests.net.honest '{"address": "driftline://…", "seconds": 5}'

Publishes an event a hundred times a second, and is told of it: how long does that take?
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from typing import Any

import driftline as dl


async def measure(said: dict[str, Any]) -> dict[str, float]:
    """Milliseconds from publishing to being told: half of them, all but one in a hundred, most."""
    authority = said.get("authority")
    tls = ssl.create_default_context(cafile=authority) if authority else None
    took: list[float] = []
    async with (
        dl.connect(said["address"], token=said.get("token", ""), tls=tls) as c,
        c.subscribe("SELECT * FROM honest WHERE n >= 0") as s,
    ):
        print("ready", flush=True)
        end = time.monotonic() + said["seconds"]
        n = 0
        while time.monotonic() < end:
            began = time.perf_counter()
            await c.publish(dl.Event("honest", {"n": n}))
            while (told := await s.next(30)).values.get("n") != n:
                assert told.kind != "gap", "something was lost"
            took.append(1000 * (time.perf_counter() - began))
            n += 1
            await asyncio.sleep(0.01)
    took.sort()
    return {
        "count": len(took),
        "p50": took[len(took) // 2],
        "p99": took[len(took) * 99 // 100],
        "most": took[-1],
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(json.loads(sys.argv[1])))), flush=True)
