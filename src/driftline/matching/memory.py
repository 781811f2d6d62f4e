"""Where does an index keep its words?

In anonymous memory of the operating system: pages are taken when first written, growing moves page
tables and not words where the system can (Linux), and what is cut off is given back. Or where
somebody else has put them: in a file mapped copy-on-write, which all processes of a machine share
as long as they only read, or in the buffers of a pickle.
"""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray

from driftline.kernels.layout import TAIL

_WORD = 8
# A ref has 32 bits for an address.
_MOST = 1 << 32


class Memory:
    """An array of 64-bit words that can grow and shrink; `words` is another array after that."""

    __slots__ = ("_map", "words")

    words: NDArray[np.int64]

    def __init__(self, words: int) -> None:
        self._map: mmap.mmap | None = _anonymous(words * _WORD)
        self.words = np.frombuffer(self._map, np.int64)

    @classmethod
    def of_words(cls, words: NDArray[np.int64]) -> Memory:
        """Words that lie somewhere else, and are changed there. To grow they move out of it."""
        memory = object.__new__(cls)
        memory._map, memory.words = None, words
        return memory

    def __reduce__(self) -> tuple[object, ...]:
        # Behind the tail there is nothing but room, which is made when it is needed.
        return Memory.of_words, (self.words[: int(self.words[TAIL])],)

    def resize(self, words: int) -> None:
        """Make it so many words, keeping what is there as far as it fits."""
        if words > _MOST:
            raise MemoryError(f"an index cannot grow beyond {_MOST * _WORD >> 30} GiB")
        if self._map is not None:
            # The map cannot move while an array looks at it.
            self.words = np.empty(0, np.int64)
            try:
                self._map.resize(words * _WORD)
                self.words = np.frombuffer(self._map, np.int64)
                return
            except (BufferError, OSError, SystemError, ValueError):
                # Somebody else looks at it too, or the system cannot.
                self.words = np.frombuffer(self._map, np.int64)
        held = self.words
        self._map = _anonymous(words * _WORD)
        self.words = np.frombuffer(self._map, np.int64)
        kept = min(len(held), words)
        self.words[:kept] = held[:kept]


def _anonymous(size: int) -> mmap.mmap:
    if not hasattr(mmap, "MAP_ANONYMOUS"):  # Windows
        return mmap.mmap(-1, size)
    # Private: a shared map would not grow.
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
