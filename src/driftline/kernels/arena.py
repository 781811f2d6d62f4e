"""How are records allocated in the memory of an index?

Blocks come in size classes; a free block keeps the address of the next one in its first word. There
is always room: the caller makes sure of `SPARE_WORDS` and a share of what is there beyond the tail
before each change, which is more than a change can take.
"""

from __future__ import annotations

from driftline.kernels.jit import bit_length, jit
from driftline.kernels.layout import FREE, FREED, TAIL
from driftline.kernels.types import Words

_LINEAR = 64  # up to here classes are multiples of 4 words; from here on there are 4 per doubling


@jit
def class_of(words: int) -> int:
    """The class of the smallest blocks that have so many words."""
    if words <= _LINEAR:
        return (words + 3) >> 2
    power = bit_length(words - 1) - 3  # sizes are 5, 6, 7 or 8 times two to this
    return 16 + ((power - 4) << 2) + ((words - 1) >> power) - 3


@jit
def size_of(number: int) -> int:
    """How many words the blocks of a class have."""
    if number <= 16:
        return number << 2
    power = 4 + ((number - 17) >> 2)
    return (5 + ((number - 17) & 3)) << power


@jit
def allocate(m: Words, words: int) -> int:
    """The address of a block of at least so many words, whatever they hold."""
    kind = class_of(words)
    address = m[FREE + kind]
    size = size_of(kind)
    if address != 0:
        m[FREE + kind] = m[address]
        m[FREED] -= size
        return address
    address = m[TAIL]
    m[TAIL] = address + size
    return address


@jit
def allocate_clear(m: Words, words: int) -> int:
    """A block of zeros."""
    address = allocate(m, words)
    m[address : address + words] = 0
    return address


@jit
def release(m: Words, address: int, words: int) -> None:
    """Give back a block that was allocated with so many words."""
    kind = class_of(words)
    m[address] = m[FREE + kind]
    m[FREE + kind] = address
    m[FREED] += size_of(kind)


@jit
def enlarge(m: Words, address: int, used: int, words: int, wanted: int) -> int:
    """Move a block to a larger (or smaller) one, with what is used of it."""
    if class_of(words) == class_of(wanted):
        return address
    moved = allocate(m, wanted)
    for at in range(used):
        m[moved + at] = m[address + at]
    release(m, address, words)
    return moved
