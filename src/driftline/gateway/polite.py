"""How does HTTP leave the interpreter to the broker, when that has much to do?

Two threads share it, and neither knows that the other is in a hurry. While the broker has so much
to do that its clients wait for their turns, HTTP rests after each turn of its own loop for three
times as long as that has worked: so the broker has three quarters of the time for itself alone.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driftline.net.turns import Turns

_REST = 3.0
_LITTLE, _REST_MOST = 0.0002, 0.05


class PoliteLoop(asyncio.SelectorEventLoop):
    """A loop that rests while others have much to do."""

    turns: Turns | None = None
    """Those of the broker."""

    def _run_once(self) -> None:
        began = time.thread_time()
        super()._run_once()  # type: ignore[misc]
        turns = self.turns
        if turns is not None and turns.is_pressed:
            worked = time.thread_time() - began
            if worked > _LITTLE:
                time.sleep(min(_REST * worked, _REST_MOST))
