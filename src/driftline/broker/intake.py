"""How do many events go through a broker in one piece?

They come as records in a buffer. Kernels read them, find whom each concerns, and write the notices
that parties are told by, without making objects of any of it. What kernels cannot do is done event
by event, in its place, by the definition: events of a table, or of a type that a pattern, a view, a
neighbour or something that evolves asks for; records that name no form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftline.broker.effects import DeliverMany, Run
from driftline.broker.formed import Forms, Plan
from driftline.broker.kept import Kept
from driftline.broker.slots import Slots
from driftline.kernels import intake
from driftline.matching.index import Index
from driftline.model.event import Event
from driftline.wire.compact import read_record
from driftline.wire.forms import NO_FORM, Form
from driftline.wire.stream import NOTICES_WORD

_EVENTS_MOST = 4096
_EVENTS_FIRST = 64
_PAIRS_AIM = 1 << 20
"""So many deliveries are written at once, or nearly: it bounds what a burst to everybody takes."""
_OUT_FIRST = 1 << 20
_OUT_MOST = 1 << 26


class Hard(NamedTuple):
    """A record that is none for kernels: where it lies."""

    start: int
    end: int


class Told(NamedTuple):
    """What many events come to: how many there were, whom to tell at once, and what to keep."""

    events: int
    now: DeliverMany | None
    kept: list[tuple[str, Kept]]


class Intake:
    """The records of one broker on their way to kernels; room to work in is kept."""

    def __init__(self, index: Index, slots: Slots, forms: Forms) -> None:
        self._index = index
        self._slots = slots
        self._forms = forms
        self._plan: Plan | None = None
        self._version: object = None
        self._state = np.zeros(3, np.int64)
        self._offsets = np.zeros(_EVENTS_MOST + 1, np.int64)
        self._starts = np.zeros(_EVENTS_MOST, np.int64)
        self._ends = np.zeros(_EVENTS_MOST, np.int64)
        self._used = np.zeros(_EVENTS_MOST, np.int64)
        self._keys = np.zeros((8, _EVENTS_MOST), np.int64)
        self._pairs = np.zeros(1 << 16, np.int64)
        self._runs = np.zeros((1024, intake.RUN_WORDS), np.int64)
        self._raw = np.zeros(1 << 18, np.uint8)
        self._out = np.zeros(_OUT_FIRST, np.uint8)
        self._most = _EVENTS_FIRST

    def plan(self, version: object, plainly: Callable[[str], bool]) -> None:
        """Be ready for the filters there are now; `version` says whether these are others."""
        axes = self._index.axes
        now = (axes.version, len(self._forms), version)
        if self._plan is None or now != self._version:
            self._plan = self._forms.plan(axes, plainly)
            self._version = now
            rows = len(self._plan.defaults)
            if rows > len(self._keys):
                self._keys = np.zeros((2 * rows, _EVENTS_MOST), np.int64)

    def take(
        self,
        records: bytes | memoryview,
        forms: NDArray[np.int64],
        now: int,
        reserve: Callable[[int], int],
    ) -> Iterator[Told | list[Hard]]:
        """What records come to, piece by piece. Kept notices get numbers from `reserve`.

        Whoever is asked to take hard ones may change what is asked for, and so the plan; the next
        piece is taken by what holds then.
        """
        assert self._plan is not None
        at, end = self._load(records)
        begun = at
        while at < end:
            found, count, why = self._find(at, end, forms)
            at = int(self._state[0])
            if count:
                base = reserve(count) if self._slots.keeps else 0
                yield from self._tell(found, count, now, base)
            if why == intake.HARD:
                some = self._hard_ones(at, end, forms)
                at = some[-1].end
                yield [Hard(one.start - begun, one.end - begun) for one in some]

    def _hard_ones(self, at: int, end: int, forms: NDArray[np.int64]) -> list[Hard]:
        """The record that lies here, which is hard, and those behind it whose forms say so."""
        assert self._plan is not None
        raw, form_at = self._raw.data, self._plan.form_at
        found: list[Hard] = []
        while not found or (at + intake.HEAD <= end and len(found) < _EVENTS_MOST):
            local = raw[at + 4] | raw[at + 5] << 8 if at + intake.HEAD <= end else NO_FORM
            number = int(forms[local]) if local < len(forms) else -1
            if found and number >= 0 and form_at[number] >= 0:
                break
            size = int.from_bytes(raw[at : min(at + 4, end)], "little")
            # One that is no record is the last: whoever reads it refuses it.
            stop = at + size if intake.HEAD <= size <= end - at else end
            found.append(Hard(at, stop))
            at = stop
        return found

    def _load(self, records: bytes | memoryview) -> tuple[int, int]:
        """Put records where kernels read them, behind the types of events; from where to where."""
        assert self._plan is not None
        types = self._plan.types
        start, size = len(types), len(records)
        if start + size > len(self._raw):
            self._raw = np.zeros(2 * (start + size), np.uint8)
        raw = self._raw.data
        raw[:start] = types
        raw[start : start + size] = records
        return start, start + size

    def _find(
        self, at: int, end: int, forms: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], int, int]:
        plan = self._plan
        assert plan is not None
        index, state = self._index, self._state
        found, unsure = intake.find(
            index.words,
            plan.columns,
            plan.present,
            index.stamps,
            index.ticks(self._most),
            self._offsets,
            self._raw,
            at,
            end,
            self._most,
            forms,
            plan.form_at,
            plan.words,
            plan.defaults,
            self._keys,
            self._starts,
            self._ends,
            self._used,
            state,
        )
        count = int(state[2])
        if unsure:
            offsets, found = index.verified(self._event, self._offsets[: count + 1], found)
            self._offsets[: count + 1] = offsets
        if count:
            each = len(found) // count + 1
            self._most = max(1, min(_EVENTS_MOST, 4 * self._most, _PAIRS_AIM // each))
        return found, count, int(state[1])

    def _event(self, at: int) -> Event:
        """An event that was read."""
        raw = bytearray(self._raw[self._starts[at] : self._ends[at]].tobytes())
        number = int(self._used[at])
        raw[4:6] = number.to_bytes(2, "little")
        return read_record(raw, self._forms.known).event

    def _tell(self, found: NDArray[np.int32], count: int, now: int, base: int) -> Iterator[Told]:
        """What a piece comes to; in halves where there is not room for all of it."""
        waiting = [(0, count)]
        while waiting:
            first, last = waiting.pop()
            runs = self._address(found, first, last, now, base)
            if runs >= 0:
                yield self._told(runs, last - first)
            elif last - first > 1:
                half = (first + last) // 2
                waiting += [(half, last), (first, half)]
            else:
                self._make_room(found, first)
                waiting.append((first, last))

    def _address(self, found: NDArray[np.int32], first: int, last: int, now: int, base: int) -> int:
        slots = self._slots
        return intake.address(
            self._offsets,
            found,
            first,
            last,
            slots.slot_of,
            slots.mark_of,
            slots.matched,
            slots.kept,
            self._raw,
            self._starts,
            self._ends,
            self._used,
            now,
            base,
            slots.heads,
            slots.counts,
            self._pairs,
            self._runs,
            NOTICES_WORD,
            self._out,
        )

    def _make_room(self, found: NDArray[np.int32], event: int) -> None:
        """For what a single event comes to."""
        many = int(self._offsets[event + 1] - self._offsets[event])
        size = int(self._ends[event] - self._starts[event]) + intake.NOTICE_MOST + 8
        slots = len(self._slots.names)
        if many > len(self._pairs):
            self._pairs = np.zeros(2 * many, np.int64)
        if min(many, slots) > len(self._runs):
            self._runs = np.zeros((2 * slots, intake.RUN_WORDS), np.int64)
        needed = many * (size + intake.FRAME_HEAD)
        if needed > len(self._out):
            self._out = np.zeros(needed, np.uint8)

    def _told(self, runs: int, events: int) -> Told:
        slots = self._slots
        rows = self._runs[:runs].tolist()
        size = rows[-1][intake.RUN_TO] if rows else 0
        raw = self._out[:size].tobytes()
        now: list[Run] = []
        kept: list[tuple[str, Kept]] = []
        names, is_kept = slots.names, slots.kept
        for slot, start, end, low, high, notices in rows:
            if is_kept[slot]:
                kept.append((names[slot], Kept.of_run(raw[start:end], notices, low, high)))
            else:
                now.append(Run(names[slot], start, end, low, high, notices))
        if len(self._out) > _OUT_MOST:
            self._out = np.zeros(_OUT_FIRST, np.uint8)
        return Told(events, DeliverMany(raw, tuple(now)) if now else None, kept)

    def hard(
        self,
        records: bytes | memoryview,
        one: Hard,
        forms: NDArray[np.int64],
        own: Mapping[int, Form] = MappingProxyType({}),
    ) -> tuple[Event, str]:
        """The event of a hard record, and its trace; `FrameRefused` if it is none."""
        raw = bytearray(memoryview(records)[one.start : one.end])
        known: dict[int, Form] = {}
        if len(raw) >= 6:
            local = int.from_bytes(raw[4:6], "little")
            number = int(forms[local]) if local < len(forms) else -1
            if number >= 0:
                known[local] = self._forms.known[number]
            elif local in own:
                known[local] = own[local]
        return read_record(raw, known)
