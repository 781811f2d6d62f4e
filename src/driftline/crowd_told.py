"""What was told to members of a crowd: one thing at a time, or all that a batch of events told?

Of a batch it is columns, and each thing is made of them when somebody wants it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.value import Value
from driftline.stateful.entering import Places, Rows

Members = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """One thing told to many members of a crowd, whose numbers are in no particular order.

    `values` are the selected columns, empty when the row left; `event` is what caused it, if one
    did, or the row of a snapshot; `time` is when it was told, the stamp of what caused it.
    """

    kind: NotificationKind
    values: dict[str, Value | None]
    members: Members
    time: int
    event: Event | None = None

    def __repr__(self) -> str:
        return f"<Told {self.kind} {self.values} to {len(self.members)} members>"


@dataclass(frozen=True, slots=True, eq=False)
class ToldMany:
    """What events of one batch told to members of a crowd, in order: all of one kind.

    Thing i is told of the row at `places[i]` of what was given to `publish_many`, to the members
    from `offsets[i]` to `offsets[i + 1]`, of whom there is at least one.
    """

    kind: NotificationKind
    places: Places
    offsets: NDArray[np.int64]
    members: Members
    rows: Rows
    """The batch."""
    env: Mapping[str, Value]
    """The environment as it was."""

    def each(self) -> Iterator[tuple[Event, Members]]:
        """The events, and whom each was told to."""
        ends = self.offsets.tolist()
        for event, start, end in zip(self.rows.take(self.places), ends, ends[1:], strict=False):
            yield event, self.members[start:end]

    def __len__(self) -> int:
        return len(self.places)

    def __repr__(self) -> str:
        return f"<ToldMany {self.kind} of {len(self)} events to {len(self.members)} members>"
