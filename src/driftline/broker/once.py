"""Was this event published here before, by whoever publishes it once?

What is published *once* is known by its source and its id: when the same comes again it is passed
over, whoever of its identity says so, on whatever connection, in whatever life of the broker. What
is remembered is journalled in the same `Store` as what the event came to, so that there is never
the one without the other.

An identity that passes on what others have named, as a bridge does, says by which attribute they
are told apart: then the same source and id are the same event only if that is the same, too.

It is remembered for each identity by itself: nobody can let another's event be passed over by
publishing its name first, nor let what others have published be forgotten by publishing much. At
least the last `limit` events of an identity are remembered. Nothing is remembered of those who do
not ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from driftline.broker.effects import Key
from driftline.broker.identity import identity_of
from driftline.errors import DriftlineError, InvalidValue
from driftline.model.recent import Recent, mark_of
from driftline.wire.compact import Bytes, read_name, split_records


class Fresh(NamedTuple):
    """Of a batch of records those that did not come before, as records; where each stood in the
    batch, and its mark. Those without a name are problems. `came` is how many there were. `twice`
    are those whose name another of the batch has, which is before them: both their places.
    """

    records: bytes
    places: list[int]
    marks: list[bytes]
    problems: list[tuple[int, DriftlineError]]
    came: int
    twice: list[tuple[int, int]]


class Once:
    """What was published once, by identity. `put` journals."""

    __slots__ = ("_limit", "_of", "_put")

    def __init__(self, put: Callable[[Key, object], None], limit: int) -> None:
        self._put = put
        self._limit = limit
        self._of: dict[str, Recent] = {}

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept."""
        pages: dict[str, dict[int, bytes]] = {}
        for key, value in stored.items():
            if key[0] == "once":
                assert isinstance(value, bytes)
                pages.setdefault(key[1], {})[int(key[2])] = value
        self._of = {identity: Recent(self._limit, known) for identity, known in pages.items()}

    def knows(self, party: str, mark: bytes) -> bool:
        """Did it come before?"""
        known = self._of.get(identity_of(party))
        return known is not None and mark in known

    def fresh(
        self, party: str, records: Bytes, apart: Callable[[memoryview], str] | None = None
    ) -> Fresh:
        """Which records did not come before; `FrameRefused` if they are none.

        `apart` says what tells those of the same source and id apart; `InvalidValue` if nothing
        does.
        """
        known = self._of.get(identity_of(party), ())
        found = Fresh(b"", [], [], [], 0, [])
        taken: list[memoryview] = []
        new: dict[bytes, int] = {}
        at = 0
        for record in split_records(records):
            source, id = read_name(record)
            if source is None or id is None:
                found.problems.append((at, no_name(source, id)))
            else:
                try:
                    mark = mark_of(source, id, None if apart is None else apart(record))
                except InvalidValue as problem:
                    found.problems.append((at, problem.with_traceback(None)))
                    at += 1
                    continue
                if mark in new:
                    found.twice.append((at, new[mark]))
                elif mark not in known:
                    new[mark] = at
                    taken.append(record)
                    found.places.append(at)
                    found.marks.append(mark)
            at += 1
        return found._replace(records=b"".join(taken), came=at)

    def note(self, party: str, marks: Iterable[bytes]) -> None:
        """These have been published now."""
        identity = identity_of(party)
        if identity not in self._of:
            self._of[identity] = Recent(self._limit)
        for page, content in self._of[identity].add(marks).items():
            self._put(("once", identity, str(page)), content)

    def _check(self) -> None:
        for known in self._of.values():
            known._check()


def no_name(source: str | None, id: str | None) -> InvalidValue:
    """Why an event cannot be published once."""
    missing = " and ".join(name for name, one in (("source", source), ("id", id)) if one is None)
    return InvalidValue("event", "a source and an id, to be published once", f"no {missing}")
