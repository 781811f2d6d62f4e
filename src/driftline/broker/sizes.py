"""About how many bytes does something take, in memory and in the journal?

Limits are kept by it, so it is quick rather than exact: texts by their letters, and so much for
whatever else there is to a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from driftline.model.event import Event
from driftline.model.value import Value

THING_BYTES = 200
"""Of an event, or of what is told of it, without what is in it."""
_VALUE_BYTES = 50


def size_of_values(values: Mapping[str, Value | None]) -> int:
    """Of values with their names."""
    return sum(
        _VALUE_BYTES + len(name) + (len(one) if isinstance(one, str | bytes) else 0)
        for name, one in values.items()
    )


def size_of_events(events: Iterable[Event]) -> int:
    """Of events with what they have of their own."""
    return sum(
        THING_BYTES + size_of_values(one.attributes) + len(one.id or "") + len(one.source or "")
        for one in events
    )
