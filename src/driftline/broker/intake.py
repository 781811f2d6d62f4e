"""How do many events go through a broker in one piece?

They come as records in a buffer. Kernels read them, find whom each concerns, and write the notices
that parties are told by, and neighbours are sent, without making objects of any of it. What kernels
cannot do is done event by event, in its place, by the definition: events of a table, or of a type
that a pattern, a view, a mesh or something that evolves asks for; records that name no form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftline.broker.counted import Counted
from driftline.broker.effects import DeliverMany, Run
from driftline.broker.formed import ASK, HARD, Forms, Plan, readable
from driftline.broker.kept import Kept
from driftline.broker.slots import NOBODY, Slots
from driftline.broker.weight import JUDGED
from driftline.kernels import intake
from driftline.kernels.bundles import latest
from driftline.matching.index import Index
from driftline.model.event import Event
from driftline.wire.compact import read_record
from driftline.wire.forms import NO_FORM, Form
from driftline.wire.stream import NOTICES_WORD

_EVENTS_MOST = 4096
_EVENTS_FIRST = 64
_PAIRS_AIM = 1 << 20
"""So many deliveries are written at once, or nearly: it bounds what a burst to everybody takes."""
_HARD_WEIGHT = 100
"""What an event weighs that is not for kernels."""
_NOBODY = np.zeros(0, np.int32)
_OUT_FIRST = 1 << 20
_OUT_MOST = 1 << 26


class Hard(NamedTuple):
    """A record that is none for kernels: where it lies."""

    start: int
    end: int


class Told(NamedTuple):
    """What many events come to: how many there were, when the newest was generated, whom to tell at
    once, and what to keep.
    """

    events: int
    latest: int
    now: DeliverMany | None
    kept: list[tuple[str, Kept]]


class Further(NamedTuple):
    """What goes further to a link: notices for nobody in particular, how many, and their forms."""

    link: str
    notices: memoryview
    events: int
    forms: list[tuple[int, Form]]


class Lot(NamedTuple):
    """When events entered, and their numbers: now, and new ones, unless they came by a link."""

    now: int
    entered: NDArray[np.int64] | None = None
    numbers: NDArray[np.int64] | None = None


class _Side:
    """An index that events are matched against, whose its filters are, and room to work in."""

    __slots__ = ("found", "index", "keys", "offsets", "plan", "slots")

    def __init__(self, index: Index, slots: Slots) -> None:
        self.index = index
        self.slots = slots
        self.plan: Plan | None = None
        self.found = np.zeros(0, np.int32)
        self.offsets = np.zeros(_EVENTS_MOST + 1, np.int64)
        self.keys = np.zeros((8, _EVENTS_MOST), np.int64)

    def follow(self, forms: int) -> None:
        """Read so many forms as its filters want them by now."""
        axes = self.index.axes
        if self.plan is None or self.plan.version != axes.version:
            self.plan = Plan(axes)
        else:
            self.plan.forget()
        self.plan.room(forms)

    def read(self, number: int, form: Form, span: tuple[int, int] | None) -> None:
        """Let kernels read a form, whose type lies there; None: it is not for them."""
        plan = self.plan
        assert plan is not None
        if span is None:
            plan.form_at[number] = HARD
            return
        plan.read(number, form, span)
        if len(plan.defaults) > len(self.keys):
            self.keys = np.zeros((2 * len(plan.defaults), _EVENTS_MOST), np.int64)


class Intake:
    """The records of one broker on their way to kernels; room to work in is kept.

    They are matched with what parties here want, and with what links do.
    """

    def __init__(
        self,
        parties: tuple[Index, Slots],
        links: tuple[Index, Slots],
        forms: Forms,
        counted: Counted,
    ) -> None:
        self._parties = _Side(*parties)
        self._links = _Side(*links)
        self._forms = forms
        self._counted = counted
        self._version: object = None
        self._state = np.zeros(3, np.int64)
        self._starts = np.zeros(_EVENTS_MOST, np.int64)
        self._ends = np.zeros(_EVENTS_MOST, np.int64)
        self._used = np.zeros(_EVENTS_MOST, np.int64)
        self._entered = np.zeros(_EVENTS_MOST, np.int64)
        self._numbers = np.zeros(_EVENTS_MOST, np.int64)
        self._own = np.zeros(_EVENTS_MOST, np.int64)
        self._count = np.arange(_EVENTS_MOST)
        self._pairs = np.zeros(1 << 16, np.int64)
        self._runs = np.zeros((1024, intake.RUN_WORDS), np.int64)
        self._raw = np.zeros(1 << 18, np.uint8)
        self._types = 0
        """So many bytes of the types of forms lie at its beginning."""
        self._plainly: Callable[[str], bool] = bool
        self._readable = False
        self._out = np.zeros(_OUT_FIRST, np.uint8)
        self._most = _EVENTS_FIRST

    def plan(self, version: object, plainly: Callable[[str], bool]) -> None:
        """Be ready for the filters there are now; `version` says whether these are others.

        Which types are for kernels is asked when an event of a form comes that was not asked about.
        """
        sides = (self._parties, self._links)
        now = (*(side.index.axes.version for side in sides), len(self._forms), version)
        if now != self._version:
            self._plainly = plainly
            self._readable = all(readable(side.index.axes) for side in sides)
            for side in sides:
                side.follow(len(self._forms))
            self._version = now

    def _look(self, number: int) -> bool:
        """Find out how kernels read a form, if that is not known; is it news, and do they?"""
        plan = self._parties.plan
        assert plan is not None
        if plan.form_at[number] != ASK:
            return False
        form = self._forms.known[number]
        start, size = self._forms.span(form.type)
        is_easy = self._readable and start + size <= self._types and self._plainly(form.type)
        for side in (self._parties, self._links):
            side.read(number, form, (start, size) if is_easy else None)
        return is_easy

    def take(
        self,
        records: bytes | memoryview,
        forms: NDArray[np.int64],
        lot: Lot,
        reserve: Callable[[int], int],
        sender: str | None = None,
    ) -> Iterator[Told | Further | list[Hard]]:
        """What records come to, piece by piece; the sender is a link, to which none of it goes.

        Kept notices get numbers from `reserve`. Whoever is asked to take hard ones may change what
        is asked for, and so the plan; the next piece is taken by what holds then.
        """
        at, end = self._load(records)
        begun, done = at, 0
        while at < end:
            count, why = self._find(at, end, forms)
            at = int(self._state[0])
            if count:
                self._stamp(lot, done, count, reserve(count))
                intake.tally(self._used, count, self._counted.room(self._forms.known))
                yield from self._tell(count)
                if len(self._links.found):
                    yield from self._send(count, sender)
                done += count
            if why == intake.HARD:
                number = self._number(at, end, forms)
                if number >= 0 and self._look(number):
                    continue
                some = self._hard_ones(at, end, forms)
                at = some[-1].end
                done += len(some)
                yield [Hard(one.start - begun, one.end - begun) for one in some]

    def light(self, records: bytes | memoryview, forms: NDArray[np.int64], most: int) -> int:
        """How many of these records, from the first on, weigh no more than so much, all together?

        At least one. What they weigh is what must be judged because kernels cannot tell.
        """
        at, end = self._load(records)
        done, step = 0, _EVENTS_FIRST
        while at < end:
            self._search(self._parties, at, end, step, forms)
            at, why, count = map(int, self._state)
            if count:
                weights = self._weights(count)
                fit = int(np.searchsorted(weights, most, "right"))
                done += fit
                if fit < count:
                    break
                most -= int(weights[-1])
                step = min(_EVENTS_MOST, 4 * step)
            if why == intake.HARD:
                number = self._number(at, end, forms)
                if number >= 0 and self._look(number):
                    continue
                some = self._hard_ones(at, end, forms)[: max(0, most // _HARD_WEIGHT)]
                if not some:
                    break
                at = some[-1].end
                done += len(some)
                most -= _HARD_WEIGHT * len(some)
        return max(1, done)

    def _weights(self, count: int) -> NDArray[np.int64]:
        """What the events that were just matched weigh, up to each."""
        found = self._parties.found
        is_judged = found < 0
        each = JUDGED + self._parties.slots.weight_of[np.where(is_judged, ~found, 0)]
        upto = np.concatenate([[0], np.cumsum(np.where(is_judged, each, 0))])
        weights: NDArray[np.int64] = upto[self._parties.offsets[1 : count + 1]]
        return weights

    def _stamp(self, lot: Lot, first: int, count: int, base: int) -> None:
        """Note when so many events entered, and what their numbers are here and on links."""
        np.add(self._count[:count], base, out=self._own[:count])
        if lot.entered is None or lot.numbers is None:
            self._entered[:count] = lot.now
            self._numbers[:count] = self._own[:count]
        else:
            self._entered[:count] = lot.entered[first : first + count]
            self._numbers[:count] = lot.numbers[first : first + count]

    def _hard_ones(self, at: int, end: int, forms: NDArray[np.int64]) -> list[Hard]:
        """The record that lies here, which is hard, and those behind it whose forms say so."""
        assert self._parties.plan is not None
        raw, form_at = self._raw.data, self._parties.plan.form_at
        found: list[Hard] = []
        while not found or (at + intake.HEAD <= end and len(found) < _EVENTS_MOST):
            number = self._number(at, end, forms)
            if found and number >= 0 and form_at[number] != HARD:
                break
            size = int.from_bytes(raw[at : min(at + 4, end)], "little")
            # One that is no record is the last: whoever reads it refuses it.
            stop = at + size if intake.HEAD <= size <= end - at else end
            found.append(Hard(at, stop))
            at = stop
        return found

    def _number(self, at: int, end: int, forms: NDArray[np.int64]) -> int:
        """The number of the form that the record here names; -1: none that all know."""
        raw = self._raw.data
        local = raw[at + 4] | raw[at + 5] << 8 if at + intake.HEAD <= end else NO_FORM
        return int(forms[local]) if local < len(forms) else -1

    def _load(self, records: bytes | memoryview) -> tuple[int, int]:
        """Put records where kernels read them, behind the types of events; from where to where."""
        types = self._forms.types
        start, size = len(types), len(records)
        if start + size > len(self._raw):
            self._raw = np.zeros(2 * (start + size), np.uint8)
            self._types = 0
        raw = self._raw.data
        if self._types < start:
            raw[:start] = types
            self._types = start
        raw[start : start + size] = records
        return start, start + size

    def _find(self, at: int, end: int, forms: NDArray[np.int64]) -> tuple[int, int]:
        """Read records from here on, and find whom they concern: how many, and why not more."""
        state = self._state
        self._match(self._parties, at, end, self._most, forms)
        count, why = int(state[2]), int(state[1])
        if not count:
            return count, why
        found = len(self._parties.found)
        self._links.found = _NOBODY
        if len(self._links.index):
            stopped = int(state[0])
            self._match(self._links, at, stopped, count, forms)
            assert (state[0], state[2]) == (stopped, count)
            found += len(self._links.found)
        self._most = max(1, min(_EVENTS_MOST, 4 * self._most, _PAIRS_AIM // (found // count + 1)))
        return count, why

    def _match(self, side: _Side, at: int, end: int, most: int, forms: NDArray[np.int64]) -> None:
        if self._search(side, at, end, most, forms):
            upto = int(self._state[2]) + 1
            offsets, side.found = side.index.verified(self._event, side.offsets[:upto], side.found)
            side.offsets[:upto] = offsets

    def _search(self, side: _Side, at: int, end: int, most: int, forms: NDArray[np.int64]) -> int:
        """Match records by kernels; how many matches of these are not sure."""
        plan, index = side.plan, side.index
        assert plan is not None
        side.found, unsure = intake.find(
            index.words,
            plan.columns,
            plan.present,
            index.stamps,
            index.ticks(most),
            side.offsets,
            self._raw,
            at,
            end,
            most,
            forms,
            plan.form_at,
            plan.words,
            plan.defaults,
            side.keys,
            self._starts,
            self._ends,
            self._used,
            self._state,
        )
        return int(unsure)

    def _event(self, at: int) -> Event:
        """An event that was read."""
        raw = bytearray(self._raw[self._starts[at] : self._ends[at]].tobytes())
        number = int(self._used[at])
        raw[4:6] = number.to_bytes(2, "little")
        return read_record(raw, self._forms.known)

    # What was found

    def _tell(self, count: int) -> Iterator[Told]:
        """What a piece comes to for parties."""
        newest = int(latest(self._raw, self._starts, self._entered, count))
        for events, runs in self._written(self._parties, count, self._own, NOBODY, marked=True):
            yield self._told(runs, events, newest)

    def _send(self, count: int, sender: str | None) -> Iterator[Further]:
        """What of a piece goes further to which links."""
        names = self._links.slots.names
        slot = None if sender is None else self._links.slots.get(sender)
        but = NOBODY if slot is None else slot
        used = np.unique(self._used[:count]).tolist()
        for _, runs in self._written(self._links, count, self._numbers, but, marked=False):
            raw = memoryview(self._out[: runs[-1][intake.RUN_TO] if runs else 0].tobytes())
            for slot, start, end, low, high, notices in runs:
                forms = [(one, self._forms.known[one]) for one in used if low <= one <= high]
                yield Further(names[slot], raw[start:end], notices, forms)

    def _written(
        self, side: _Side, count: int, numbers: NDArray[np.int64], but: int, *, marked: bool
    ) -> Iterator[tuple[int, list[list[int]]]]:
        """The runs of notices that a piece comes to; in halves where there is not room for all."""
        waiting = [(0, count)]
        while waiting:
            first, last = waiting.pop()
            runs = self._address(side, first, last, numbers, but, marked)
            if runs >= 0:
                yield last - first, self._runs[:runs].tolist()
            elif last - first > 1:
                half = (first + last) // 2
                waiting += [(half, last), (first, half)]
            else:
                self._make_room(side, first)
                waiting.append((first, last))
        if len(self._out) > _OUT_MOST:
            self._out = np.zeros(_OUT_FIRST, np.uint8)

    def _address(
        self,
        side: _Side,
        first: int,
        last: int,
        numbers: NDArray[np.int64],
        but: int,
        marked: bool,
    ) -> int:
        slots = side.slots
        return intake.address(
            side.offsets,
            side.found,
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
            self._entered,
            numbers,
            but,
            marked,
            slots.heads,
            slots.counts,
            self._pairs,
            self._runs,
            NOTICES_WORD,
            self._out,
        )

    def _make_room(self, side: _Side, event: int) -> None:
        """For what a single event comes to."""
        many = int(side.offsets[event + 1] - side.offsets[event])
        size = int(self._ends[event] - self._starts[event]) + intake.NOTICE_MOST + 8
        slots = len(side.slots.names)
        if many > len(self._pairs):
            self._pairs = np.zeros(2 * many, np.int64)
        if min(many, slots) > len(self._runs):
            self._runs = np.zeros((2 * slots, intake.RUN_WORDS), np.int64)
        needed = many * (size + intake.FRAME_HEAD)
        if needed > len(self._out):
            self._out = np.zeros(needed, np.uint8)

    def _told(self, rows: list[list[int]], events: int, newest: int) -> Told:
        slots = self._parties.slots
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
        return Told(events, newest, DeliverMany(raw, tuple(now)) if now else None, kept)

    def hard(
        self,
        records: bytes | memoryview,
        one: Hard,
        forms: NDArray[np.int64],
        own: Mapping[int, Form] = MappingProxyType({}),
    ) -> Event:
        """The event of a hard record; `FrameRefused` if it is none."""
        return self.read(memoryview(records)[one.start : one.end], forms, own)

    def read(self, record: memoryview, forms: NDArray[np.int64], own: Mapping[int, Form]) -> Event:
        """The event of any record; `FrameRefused` if it is none."""
        raw = bytearray(record)
        known: dict[int, Form] = {}
        if len(raw) >= 6:
            local = int.from_bytes(raw[4:6], "little")
            number = int(forms[local]) if local < len(forms) else -1
            if number >= 0:
                known[local] = self._forms.known[number]
            elif local in own:
                known[local] = own[local]
        return read_record(raw, known)
