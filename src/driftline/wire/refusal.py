"""How is a refusal worded, so that it helps whatever came?

What came is anything at all: it is named by its kind and shown only where it is short.
"""

from __future__ import annotations

from driftline.errors import FrameRefused, InvalidValue
from driftline.model.value import show
from driftline.wire.limits import NAME_BYTES_MAX

_FACT_MAX = 240


def refused(where: str, wanted: str, came: str) -> FrameRefused:
    """The refusal, with each of its facts cut to a sensible length."""
    return FrameRefused(_cut(where), _cut(wanted), _cut(came))


def described(item: object) -> str:
    """What came in a MessagePack message, for a person to read.

    >>> described(7), described([1, [2]]), described({1: 2})
    ('7', 'an array of 2', 'a map of 1')
    """
    if isinstance(item, list | tuple):
        return f"an array of {len(item)}"
    if isinstance(item, dict):
        return f"a map of {len(item)}"
    if item is None:
        return "nil"
    if isinstance(item, str | bytes):
        return show(item[:80])
    return show(item) if isinstance(item, int | float) else f"a {type(item).__name__}"


def utf8(text: str, where: str, bytes_max: int = NAME_BYTES_MAX) -> bytes:
    """The bytes of a text that is to be written, unless there are too many."""
    if not isinstance(text, str):
        raise InvalidValue(where, "a text", described(text))
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise InvalidValue(where, "well-formed Unicode", "a lone surrogate") from None
    if len(encoded) > bytes_max:
        raise InvalidValue(where, f"at most {bytes_max} bytes", f"{len(encoded)}")
    return encoded


def _cut(text: str) -> str:
    return text if len(text) <= _FACT_MAX else text[: _FACT_MAX - 3] + "..."
