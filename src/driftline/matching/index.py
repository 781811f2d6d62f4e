"""The compiled index: finds what an event satisfies without looking at the rest.

Filters are clustered by their type and one equality. In a cluster, narrow intervals are kept on a
grid, wide ones in bitmaps, and what compares two attributes with one value as points that an event
finds by a rectangle (see `driftline.kernels`). What kernels cannot decide (an integer bound beyond
2^53, a pattern with `_`, a condition over two attributes) they find too often rather than too
rarely, and the definition decides: the answers are those of `scan`.

    >>> from driftline.language.sql import parse
    >>> index = Index()
    >>> cheap = parse("SELECT * FROM quote WHERE price < :limit").filters()
    >>> index.add("cheap", cheap, {"limit": 10})
    >>> index.match(Event("quote", {"price": 9.5}))
    ['cheap']
    >>> index.change("cheap", {"limit": 9})
    >>> index.match(Event("quote", {"price": 9.5}))
    []
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from driftline.kernels import layout
from driftline.kernels.axes import begin
from driftline.kernels.changes import add_many, change_many, discard_many, has_room
from driftline.kernels.match import match_event, match_many
from driftline.kernels.types import Bytes, Words
from driftline.matching.axes import TYPE, Axes
from driftline.matching.bounds import admitted, alternatives, parameters_of
from driftline.matching.columns import Columns
from driftline.matching.encode import encode
from driftline.matching.letters import Letter, Writer
from driftline.matching.matcher import NO_BOUNDS, Bounds, Filters, Matches
from driftline.matching.memory import Memory
from driftline.matching.parts import Parts
from driftline.matching.templates import (
    Batch,
    Template,
    batch_of,
    check_lengths,
    is_constant,
    lifted_of,
    row_of,
    template_of,
)
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.scope import Scope
from driftline.model.value import microseconds_of

_FIRST_WORDS = 1 << 19
_FIRST_ENTRIES = 1024
_FIRST_PARTS = 16
_FIRST_TEXT = 4096
_TEMPLATES_MAX = 4096
_SLACK = 1024
"""Bytes of text that a template may add to its own."""


class Index:
    """A matcher that is fast and exact. Changes cost O(1), amortised and without rebuilding."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._ids: list[str] = []
        # By number, where it may be asked for again: what moves, and what kernels cannot decide.
        self._said: list[tuple[Filter, ...] | None] = []
        self._doubted: dict[int, Bounds] = {}
        self._axes = Axes()
        self._begin()

    def _begin(self) -> None:
        # Whoever has read the axes before must see that these are others.
        before, self._axes = self._axes, Axes()
        self._axes.version = before.version + 1
        self._templates: dict[int, Template] = {}
        self._memory = Memory(_FIRST_WORDS)
        begin(self._memory.words)
        self._tick = 1
        self._one = np.zeros(1, np.int32)
        self._number = self._one.data  # of which reading and writing costs least
        self._make_room(_FIRST_ENTRIES)
        self._make_letter(_FIRST_PARTS, _FIRST_TEXT)

    def _make_room(self, entries: int) -> None:
        """For what one event may find: kernels do not look how much there is."""
        self._stamps = np.zeros(entries, np.int64)
        self._refs = np.zeros(entries + 1, np.int32)
        self._out = np.zeros(entries + 1, np.int32)

    def _make_letter(self, parts: int, text: int) -> None:
        """For filters of so many parts and bytes, and for events with as many values."""
        words = layout.LETTER_HEAD + layout.LETTER_PART * parts
        self._row = np.zeros((1, words), np.int64)
        self._row_bytes = self._row.data.cast("B")
        self._letter = np.zeros(words, np.int64)
        self._words = self._letter.data
        self._floats = self._letter.view(np.float64).data
        self._keys = np.zeros((words, 1), np.int64)
        self._text = np.zeros(text, np.uint8)
        self._text_bytes = self._text.data
        self._event_text = np.zeros(text, np.uint8)
        self._event_bytes = self._event_text.data
        self._type: tuple[str | None, tuple[int, ...], int] = (None, (), 0)
        self._scratch = np.zeros(_scratch_words(words, text), np.int64)

    # Changes

    def add(self, id: str, filters: Filters, bounds: Bounds = NO_BOUNDS) -> None:
        """Take in what goes by this id, replacing what did; it becomes the last added."""
        said = alternatives(filters)
        rows, per, texts, doubted = self._post(said, bounds)
        before = self._numbers.get(id)
        if before is not None:
            self._drop(before)
        self._apply(add_many, rows, per, texts, self._one)
        self._numbers[id] = number = self._number[0]
        if number >= len(self._ids):
            self._extend()
        self._ids[number] = id
        if bounds or doubted is not None:
            self._said[number] = said
            if doubted is not None:
                self._doubted[number] = doubted

    def discard(self, id: str) -> None:
        """Forget an id; nothing happens if it is not there."""
        number = self._numbers.pop(id, None)
        if number is None:
            return
        self._drop(number)
        self._give_back()

    def _drop(self, number: int) -> None:
        self._number[0] = number
        while discard_many(self._memory.words, self._one, 0) == 0:
            self._grow()
        self._ids[number] = ""
        self._said[number] = None
        self._doubted.pop(number, None)

    def change(self, id: str, bounds: Bounds) -> None:
        """Move the bounds of what is there; its place in the order stays."""
        number = self._numbers[id]
        said = self._said[number]
        if said is None:
            return  # It has no parameters.
        rows, per, texts, doubted = self._post(said, bounds)
        self._number[0] = number
        self._apply(change_many, rows, per, texts, self._one)
        if doubted is not None:
            self._doubted[number] = doubted
        elif self._doubted:
            self._doubted.pop(number, None)

    # Many changes at once

    def add_batch(
        self, ids: Sequence[str], filters: Filters, bounds: Mapping[str, ArrayLike]
    ) -> None:
        """Add the same filters many times, with a column of values per parameter.

        As a loop over `add`, and much faster where all values are plain: numbers below 2^53,
        texts of up to seven bytes, times and booleans.
        """
        said = alternatives(filters)
        batch = self._batch(said, len(ids), bounds)
        if batch is None or len(set(ids)) < len(ids):
            for at, id in enumerate(ids):
                self.add(id, said, row_of(bounds, at))
            return
        if not self._numbers.keys().isdisjoint(ids):
            for id in ids:
                before = self._numbers.get(id)
                if before is not None:
                    self._drop(before)
        numbers = np.zeros(len(ids), np.int32)
        self._apply(add_many, batch.rows, batch.per, batch.texts, numbers)
        self._extend()
        self._numbers.update(zip(ids, numbers.tolist(), strict=True))
        first, last = int(numbers[0]), int(numbers[-1])
        if last - first == len(ids) - 1 and bool(np.all(np.diff(numbers) == 1)):
            self._ids[first : last + 1] = ids
            self._said[first : last + 1] = [said] * len(ids)
        else:  # Some were used before.
            for id, number in zip(ids, numbers.tolist(), strict=True):
                self._ids[number] = id
                self._said[number] = said

    def change_batch(self, ids: Sequence[str], bounds: Mapping[str, ArrayLike]) -> None:
        """Move the bounds of many, a column of values per parameter. As a loop over `change`."""
        numbers = list(map(self._numbers.__getitem__, ids))
        said = self._said[numbers[0]] if numbers else None
        batch = None
        if said is not None and len(set(map(id, map(self._said.__getitem__, numbers)))) == 1:
            batch = self._batch(said, len(ids), bounds)
        if batch is None:
            for at, one in enumerate(ids):
                self.change(one, row_of(bounds, at))
            return
        self._apply(change_many, batch.rows, batch.per, batch.texts, np.array(numbers, np.int32))
        if self._doubted:
            for number in numbers:
                self._doubted.pop(number, None)

    def discard_batch(self, ids: Sequence[str]) -> None:
        """Forget many. As a loop over `discard`."""
        popped = list(map(self._numbers.pop, ids, repeat(None)))
        found = [number for number in popped if number is not None]
        numbers = np.array(found, np.int32)
        done = discard_many(self._memory.words, numbers, 0)
        while done < len(numbers):
            self._grow()
            done = discard_many(self._memory.words, numbers, done)
        for number in found:
            self._ids[number] = ""
            self._said[number] = None
        if self._doubted:
            for number in found:
                self._doubted.pop(number, None)
        self._give_back()

    def _batch(
        self, said: tuple[Filter, ...], count: int, bounds: Mapping[str, ArrayLike]
    ) -> Batch | None:
        check_lengths(bounds, count)
        if not count or not bounds:
            return None
        self._post(said, row_of(bounds, 0))
        template = self._templates.get(id(said))
        return None if template is None else batch_of(template, count, bounds)

    def _post(
        self, said: tuple[Filter, ...], bounds: Bounds
    ) -> tuple[Words, int, Bytes, Bounds | None]:
        """Write filters as rows of words, where kernels find them; refuse bad bounds.

        How many rows there are, their texts, and the bounds if the definition must be asked later.
        """
        template = self._templates.get(id(said))
        if template is not None and len(template.letters) == 1 and template.put(bounds):
            return template.row, 1, template.texts, None
        lifted = lifted_of(said[0]) if len(said) == 1 and not bounds else None
        if lifted is not None:
            template = self._templates.get(id(lifted[0]))
            if template is not None and template.put(lifted[1]):
                return template.row, 1, template.texts, None
        while not has_room(self._memory.words, 0):
            self._grow()  # for new axes
        if self._axes.sweep(self._memory.words):
            self._templates.clear()  # They name axes that may be others now.
        values = NO_BOUNDS if is_constant(said) else admitted(parameters_of(said), bounds)
        if values and template is None:
            template = template_of(self._axes, self._memory.words, said, values)
            if template is not None:
                self._keep(template)
                if len(template.letters) == 1:
                    # Written with these very values.
                    self._fit(template.letters[0], len(template.texts))
                    return template.row, 1, template.texts, None
        if lifted is not None and template is None:
            # Written again below: the next one of this shape need not be.
            template = template_of(self._axes, self._memory.words, *lifted)
            if template is not None and len(template.letters) == 1:
                self._keep(template)
        writer = Writer(self._axes, self._memory.words, values)
        letters, text = writer.letters(said), writer.text
        size = len(text)
        self._fit(letters[0], size)
        self._text_bytes[:size] = text
        doubted = values if any(letter.doubt for letter in letters) else None
        if len(letters) > 1:
            return _rows(letters), len(letters), self._text, doubted
        letters[0].pack_into(self._row_bytes, False)
        return self._row, 1, self._text, doubted

    def _fit(self, letter: Letter, size: int) -> None:
        """Have room for a letter, and for text of this size."""
        parts = len(letter.parts)
        if size + _SLACK > len(self._text) or layout.LETTER_HEAD + parts > self._row.size:
            self._make_letter(self._row.size + parts, 2 * (len(self._text) + size))

    def _keep(self, template: Template) -> None:
        if len(self._templates) >= _TEMPLATES_MAX:
            self._templates.clear()
        # By identity: comparing filters would cost more than writing them.
        self._templates[id(template.said)] = template

    def _apply(
        self, kernel: Callable[..., int], rows: Any, per: int, texts: Any, numbers: Any
    ) -> None:
        """Let a kernel do all its changes, with more memory when it asks."""
        scratch = self._scratch
        if len(rows) > 1:
            scratch = np.zeros(_scratch_words(rows.shape[1], len(texts)), np.int64)
        done = kernel(self._memory.words, rows, per, texts, scratch, numbers, 0)
        while done != len(numbers):
            self._grow()
            done = kernel(self._memory.words, rows, per, texts, scratch, numbers, done)

    def _grow(self) -> None:
        held = len(self._memory.words)
        self._memory.resize(held + (held >> 1))

    def _extend(self) -> None:
        """Numbers were given for the first time: have a place for each."""
        top = int(self._memory.words[layout.TOP])
        missing = top - len(self._ids)
        self._ids += [""] * missing
        self._said += [None] * missing
        if top > len(self._stamps):
            self._make_room(2 * top)

    def _give_back(self) -> None:
        if not self._numbers and self._ids:
            # New ones: a dictionary that was emptied keeps its size.
            self._numbers = {}
            self._ids.clear()
            self._said.clear()
            self._begin()

    # Matches

    def match(self, event: Event) -> list[str]:
        """The ids that the event satisfies, in the order they were added."""
        while True:
            try:
                values = self._read(event)
                break
            except (IndexError, ValueError):
                # More values, or more text, than there was room for.
                self._make_letter(self._row.size, 2 * len(self._event_text))
        self._tick += 1
        found = match_event(
            self._memory.words,
            self._letter,
            values,
            self._axes.columns,
            self._keys,
            self._event_text,
            self._stamps,
            self._tick,
            self._refs,
            self._out,
        )
        numbers: list[int] = self._out[:found].tolist()
        if self._doubted:
            sure = [one if one >= 0 else ~one for one in numbers if self._is_sure(one, event)]
            return list(map(self._ids.__getitem__, sure))
        return list(map(self._ids.__getitem__, numbers))

    def _read(self, event: Event) -> int:
        """Write the values of an event that filters look at; on how many axes it has one.

        One loop without calls: this is most of what a single event costs.
        """
        axes = self._axes
        readers = axes.readers
        words, floats, texts = self._words, self._floats, self._event_bytes
        on = readers[TYPE].texts
        if event.type != self._type[0] or on is not self._type[1]:
            # The type comes first; while it stays the same it stays where it is.
            raw = event.type.encode()
            size = len(raw)
            texts[:size] = raw
            for number, axis in enumerate(on):
                words[2 * number : 2 * number + 2] = _pair(axis, size)
            self._type = (event.type, on, size)
        at, size = 2 * len(on), self._type[2]
        if readers[TYPE].presence >= 0:
            words[at + 1] = 1
            words[at] = readers[TYPE].presence
            at += 2
        given: Iterable[tuple[str, Any]] = event.attributes.items()
        if axes.envelope:
            given = [*given, *((name, event.envelope(name)) for name in axes.envelope)]
        for name, value in given:
            reader = readers.get(name)
            if reader is None or value is None:
                continue
            kind = type(value)
            if kind is float or kind is int:
                if reader.number >= 0:
                    floats[at + 1] = value
                    words[at] = reader.number
                    at += 2
            elif kind is str or kind is bytes:
                on = reader.texts if kind is str else reader.raws
                if on:
                    raw = value.encode() if kind is str else value
                    length = len(raw)
                    texts[size : size + length] = raw
                    for axis in on:
                        words[at + 1] = size << 32 | length
                        words[at] = axis
                        at += 2
                    size += length
            elif kind is bool:
                if reader.boolean >= 0:
                    words[at + 1] = value
                    words[at] = reader.boolean
                    at += 2
            elif reader.time >= 0:
                words[at + 1] = microseconds_of(value)
                words[at] = reader.time
                at += 2
            if reader.presence >= 0:
                words[at + 1] = 1
                words[at] = reader.presence
                at += 2
        return at >> 1

    def _is_sure(self, number: int, event: Event) -> bool:
        return number >= 0 or self._holds(~number, event)

    def _holds(self, number: int, event: Event) -> bool:
        """By the definition."""
        said = self._said[number]
        assert said is not None
        scope = Scope(event, self._doubted[number])
        return any(one.matches(scope) for one in said)

    def match_batch(self, columns: Columns) -> Matches:
        """For each event of the batch the ids that it satisfies, in no particular order."""
        batch = encode(columns, self._axes)
        offsets = np.zeros(len(columns) + 1, np.int64)
        numbers, unsure = match_many(
            self._memory.words,
            batch.columns,
            batch.keys,
            batch.texts,
            batch.present,
            self._stamps,
            self._tick + 1,
            offsets,
        )
        self._tick += len(columns) + 1
        if unsure:
            offsets, numbers = self.verified(columns.event, offsets, numbers)
        return Matches(offsets, numbers, self._ids)

    def verified(
        self,
        event_at: Callable[[int], Event],
        offsets: NDArray[np.int64],
        numbers: NDArray[np.int32],
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Let the definition decide where kernels could not."""
        kept = np.ones(len(numbers), np.bool_)
        (places,) = np.nonzero(numbers < 0)
        events = np.searchsorted(offsets, places, "right") - 1
        event, made = None, -1
        for place, at in zip(places.tolist(), events.tolist(), strict=True):
            if at != made:
                event, made = event_at(at), at
            assert event is not None
            numbers[place] = number = ~int(numbers[place])
            kept[place] = self._holds(number, event)
        before = np.concatenate([[0], np.cumsum(kept)])
        return before[offsets], numbers[kept]

    # For kernels that match as a part of what they do

    @property
    def axes(self) -> Axes:
        """Which attributes are looked at."""
        return self._axes

    @property
    def words(self) -> Words:
        """The memory of the index, until the next change."""
        return self._memory.words

    @property
    def stamps(self) -> Words:
        """By number, when it was last found: see `ticks`."""
        return self._stamps

    def ticks(self, events: int) -> int:
        """The first of so many ticks, one for each event that is about to be matched."""
        self._tick += events + 1
        return self._tick - events

    # The rest

    @property
    def nbytes(self) -> int:
        """How many bytes of memory the index has in use, without the ids."""
        return 8 * int(self._memory.words[layout.TAIL])

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, id: object) -> bool:
        return id in self._numbers

    def _check(self) -> None:
        from driftline.matching.check import check

        check(self._memory.words)

    @property
    def names(self) -> Sequence[str]:
        """The ids by number, as `Matches` has them; to be read before the next change."""
        return self._ids

    def number(self, id: str) -> int:
        """The number of what goes by this id; another one when it is added anew."""
        return self._numbers[id]

    def numbers_of(self, ids: Sequence[str]) -> NDArray[np.int32]:
        """The number of each id; -1 for one that is not there."""
        get = self._numbers.get
        return np.fromiter((get(id, -1) for id in ids), np.int32, len(ids))

    # Kept in a file (see `index_file`) or pickled: what is only room to work in is made anew.

    def __reduce__(self) -> tuple[object, ...]:
        parts = self._parts()
        return Index._of_parts, (replace(parts, ids=[*parts.ids], said=[*parts.said]),)

    _live: Sequence[int]  # the numbers in use, while there is no dictionary of them

    def _parts(self) -> Parts:
        numbers = list(self._numbers.values())
        return Parts(self._memory, self._axes, numbers, self._ids, self._said, self._doubted)

    @classmethod
    def _of_parts(cls, parts: Parts) -> Index:
        """An index that looks at its parts, and makes them its own at the first change."""
        index = cls()
        index._memory, index._axes = parts.memory, parts.axes
        index._live, index._doubted = parts.numbers, dict(parts.doubted)
        index._ids, index._said = parts.ids, parts.said  # type: ignore[assignment]
        del index._numbers
        if len(parts.ids) > len(index._stamps):
            index._make_room(len(parts.ids))
        return index

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """By id; looked for only where `_of_parts` left it out, by the first who changes."""
        self._ids, self._said = list(self._ids), list(self._said)
        return {self._ids[number]: number for number in self._live}


def _pair(axis: int, length: int) -> memoryview:
    """A text on an axis, as an event's letter says it, that begins the event's texts."""
    return np.array([axis, length], np.int64).data


def _scratch_words(row: int, text: int) -> int:
    """Enough to decode a letter of so many words, twice its program and its texts included."""
    return 8 * row + (text >> 2) + 64


def _rows(letters: Sequence[Letter]) -> NDArray[np.int64]:
    width = layout.LETTER_HEAD + max(len(letter.parts) for letter in letters)
    rows = np.zeros((len(letters), width), np.int64)
    for row, letter in zip(rows, letters, strict=True):
        letter.pack_into(row.data.cast("B"), True)
    return rows
