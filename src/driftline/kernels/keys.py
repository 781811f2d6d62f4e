"""How does a value become a 64-bit key whose order is the value's order?

- **Number**: the bits of the float, turned so that they sort; −0.0 is 0.0; NaN is missing. A larger
  integer than 2^53 is rounded first. Rounding keeps order, so comparing with a bound below 2^53,
  which is exact, gives the right answer; what is compared with larger bounds is verified again.
- **Text**: the first seven bytes, then the length up to 8. So texts of up to seven bytes have keys
  of their own, in the order of texts, and a prefix of up to seven bytes is an interval of keys.
- **Hash**: of a longer text, for equality; behind an equal hash the texts are compared.
- **Span**: where the text lies among the bytes of the batch: start << 32 | length.
- **Plain**: microseconds of a time, 0 or 1 for a boolean, 1 for "it is there".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftline.kernels.jit import inlined, jit
from driftline.kernels.layout import HIGHEST, MISSING, NUMBER, TEXT
from driftline.kernels.types import Bytes, Words

TEXT_EXACT = 7
_INFINITE = 0x7FF0000000000000
_LOW_34 = (1 << 34) - 1
_LOW_37 = (1 << 37) - 1
_LOW_33 = (1 << 33) - 1
_FACTOR_1 = -4658895280553007687
_FACTOR_2 = -7723592293110705685


@inlined
def mix(word: int) -> int:
    """Scatter the bits of a word (the finaliser of SplitMix64)."""
    x = np.int64(word)
    x = (x ^ ((x >> 30) & _LOW_34)) * _FACTOR_1
    x = (x ^ ((x >> 27) & _LOW_37)) * _FACTOR_2
    return x ^ ((x >> 31) & _LOW_33)


@inlined
def number_key(bits: int) -> int:
    """The key of a float, given its bits."""
    if (bits & HIGHEST) > _INFINITE:
        return MISSING
    if bits >= 0:
        return bits
    if bits == MISSING:  # the bits of -0.0
        return 0
    return bits ^ HIGHEST


@inlined
def text_key(texts: Bytes, start: int, length: int) -> int:
    """The key of a text."""
    key = 0
    for at in range(7):
        key <<= 8
        if at < length:
            key |= np.int64(texts[start + at])
    return (key << 4) | min(length, 8)


@jit
def prefix_keys(texts: Bytes, start: int, length: int) -> tuple[int, int]:
    """The lowest and the highest key of a text that begins so; by its first seven bytes."""
    used = min(length, 7)
    low = 0
    for at in range(used):
        low = (low << 8) | np.int64(texts[start + at])
    rest = 8 * (7 - used)
    high = (low << rest) | ((np.int64(1) << rest) - 1)
    return ((low << rest) << 4) | used, (high << 4) | 8


@jit
def text_hash(texts: Bytes, start: int, length: int) -> int:
    """A hash of a text. Equal texts have equal ones; the rest is verified."""
    h = np.int64(length)
    at = 0
    while at < length:
        word = np.int64(0)
        for _ in range(8):
            word <<= 8
            if at < length:
                word |= np.int64(texts[start + at])
            at += 1
        h = mix(h ^ word)
    return 0 if h == MISSING else h


@jit
def same_bytes(a: Bytes, at_a: int, b: Bytes, at_b: int, length: int) -> bool:
    """Are these the same bytes?"""
    for at in range(length):
        if a[at_a + at] != b[at_b + at]:
            return False
    return True


@jit
def number_keys(bits: Words, valid: NDArray[np.bool_], keys: Words) -> None:
    """The keys of a column of floats; where `valid` is empty all are."""
    for at in range(len(keys)):
        keys[at] = number_key(bits[at])
    _unset(valid, keys)


@jit
def plain_keys(values: Words, valid: NDArray[np.bool_], keys: Words) -> None:
    """The keys of a column of times or booleans."""
    for at in range(len(keys)):
        keys[at] = values[at]
    _unset(valid, keys)


@jit
def text_keys(
    texts: Bytes, starts: Words, lengths: Words, valid: NDArray[np.bool_], keys: Words
) -> None:
    """The keys of a column of texts."""
    for at in range(len(keys)):
        keys[at] = text_key(texts, starts[at], lengths[at])
    _unset(valid, keys)


@jit
def hash_keys(
    texts: Bytes, starts: Words, lengths: Words, valid: NDArray[np.bool_], keys: Words
) -> None:
    """The hashes of a column of texts."""
    for at in range(len(keys)):
        keys[at] = text_hash(texts, starts[at], lengths[at])
    _unset(valid, keys)


@jit
def _unset(valid: NDArray[np.bool_], keys: Words) -> None:
    for at in range(len(valid)):
        if not valid[at]:
            keys[at] = MISSING


def member_keys(values: Sequence[Any], kind: int) -> Words:
    """The keys of some values of one kind, in order, each once. Not a kernel: lists are short."""
    if kind == NUMBER:
        bits = np.array(values, np.float64).view(np.int64)
        keys = np.array([number_key(np.int64(one)) for one in bits], np.int64)
    elif kind == TEXT:
        raws = [np.frombuffer(raw or b"\0", np.uint8) for raw in values]
        keys = np.array(
            [text_key(raw, 0, len(one)) for raw, one in zip(raws, values, strict=True)], np.int64
        )
    else:
        keys = np.array(values, np.int64)
    return np.unique(keys)
