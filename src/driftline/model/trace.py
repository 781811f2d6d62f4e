"""Which trace does an event belong to? W3C trace context, as one text of the envelope.

The text is a `traceparent` (55 characters), and behind a space the `tracestate`, if there is one.
It belongs to the envelope: no filter can read it, no list of access names it, and what is told of
an event carries it as it came. What it says is for those who look at traces; nothing here does.

Who says a trace by hand is refused one that is none (`admit_trace`). What comes from elsewhere is
left out instead (`trace_of`), as the specification wants it: an event is not lost for its trace.

    >>> parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    >>> trace_of(parent, "vendor=7")
    '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 vendor=7'
    >>> headers_of(trace_of(parent, "vendor=7"))["tracestate"]
    'vendor=7'
    >>> trace_of("00-nonsense") is None
    True
"""

from __future__ import annotations

import re

from driftline.errors import InvalidValue
from driftline.model.value import show

PARENT_CHARS = 55
STATE_CHARS_MAX = 512
TRACE_CHARS_MAX = PARENT_CHARS + 1 + STATE_CHARS_MAX

# Neither id is all zeros, and ff is no version. `kernels.intake.is_trace` says the same.
_TRACE = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
    rf"(?: [\x21-\x7e][\x20-\x7e]{{0,{STATE_CHARS_MAX - 1}}})?"
)
_WANTED = "a traceparent (00-32 digits-16 digits-01, of 0-9a-f), and behind a space a tracestate"


def is_trace(text: str) -> bool:
    """Is it a trace context as it is carried?"""
    return _TRACE.fullmatch(text) is not None


def admit_trace(said: object, where: str = "trace") -> str | None:
    """A trace that somebody says, None and the empty text: none; `InvalidValue` otherwise."""
    if said is None or said == "":
        return None
    if not isinstance(said, str) or not is_trace(said):
        raise InvalidValue(where, _WANTED, show(said))
    return said


def trace_of(parent: object, state: object = None) -> str | None:
    """The trace that two headers say; without a parent that is one, there is none.

    A state that is none is left out by itself.
    """
    if not isinstance(parent, str) or len(parent) != PARENT_CHARS or not is_trace(parent):
        return None
    if isinstance(state, str) and is_trace(whole := f"{parent} {state.strip()}"):
        return whole
    return parent


def headers_of(trace: str | None) -> dict[str, str]:
    """A trace as the headers, or extensions of a CloudEvent, that say it."""
    if not trace:
        return {}
    parent, _, state = trace.partition(" ")
    return {"traceparent": parent} | ({"tracestate": state} if state else {})
