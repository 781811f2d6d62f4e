"""How are very many small batches of events in a buffer taken as one?"""

from __future__ import annotations

import numpy as np

from driftline.kernels import frames
from driftline.net.connection import READ_BYTES
from driftline.net.slices import Batch
from driftline.wire.stream import EVENTS_WORD


class Gathering:
    """Room to put batches together in; what is in it counts until the next."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._room = np.zeros(max(READ_BYTES, limit), np.uint8)
        self._found = np.zeros(3, np.int64)

    def gather(self, data: memoryview, at: int) -> tuple[Batch, int]:
        """The events of the frame that begins here, and of those behind it; and where these end.

        All that ask for no reply and are not counted. The first is such a one, and is whole.
        """
        raw = np.frombuffer(data, np.uint8)
        frames.gather(raw, at, EVENTS_WORD, self._limit, self._room, self._found)
        end, size, events = self._found.tolist()
        return Batch(0, events, 0, self._room.data[:size]), end
