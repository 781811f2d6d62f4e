"""How does a buffer of records become keys, and what was found become notices?

Records are events as clients publish them (`driftline.wire.compact`), notices what clients are told
(`driftline.wire.notices`): the same bytes with a few words put in, grouped by *slot*, which is
whoever is told. Both are read and written here as they lie, without making objects.

A form is known to kernels as a run of words: how many fields it has, the keys of its type, and for
each field its kind and the rows of keys that it goes to (-1: none).
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.jit import allocating, copy_bytes, inlined, jit
from driftline.kernels.keys import number_key, text_hash, text_key
from driftline.kernels.match import match_many
from driftline.kernels.types import Bytes, Numbers, Words

# The words of a form.
FORM_FIELDS = 0
FORM_TYPE_TEXT = 1  # a key and its row; then the hash, then the span of the type
FORM_TYPE_HASH = 3
FORM_TYPE_SPAN = 5
FORM_HEAD = 7
FIELD_KIND = 0
FIELD_ROW = 1  # of a number, a time or a boolean
FIELD_TEXT = 2
FIELD_HASH = 3
FIELD_SPAN = 4
FIELD_PRESENCE = 5
FIELD_WORDS = 6

# Kinds of values, as on the wire.
INTEGER, FLOAT, BOOLEAN, TIME, STRING, RAW = 1, 2, 3, 4, 16, 17
FIXED_MAX = 15
EARLIEST = -62_135_596_800_000_000
LATEST = 253_402_300_799_999_999

# A record's head and flags.
HEAD = 8
HAS_TIME, HAS_ID, HAS_SOURCE, HAS_TRACE = 1, 2, 4, 8
NUMBERED = 32
_EASY = HAS_TIME | HAS_ID | HAS_SOURCE | HAS_TRACE

# A trace: 55 bytes, and behind a blank more of them.
PARENT, STATE_MOST = 55, 512
BLANK, DASH = 32, 45

LONGEST = 1 << 20
"""A longer record is none for kernels: what it is put into for others has to fit a frame, too."""

# Why reading stopped.
AT_END, FULL, HARD = 0, 1, 2
"""HARD: the next record is one that kernels do not read, or no record at all."""

# A run of notices: whose, where in the buffer, the least and the greatest form, how many.
RUN_SLOT, RUN_FROM, RUN_TO, RUN_LOW, RUN_HIGH, RUN_NOTICES = range(6)
RUN_WORDS = 6
FRAME_HEAD = 8
MARKS_FEW = 254
NOTICE_MOST = HEAD + 4 + 8 + 8
"""What is put into a notice at most, besides eight bytes for each subscription."""


@inlined
def u16(raw: Bytes, at: int) -> int:
    return np.int64(raw[at]) | (np.int64(raw[at + 1]) << 8)


@inlined
def u32(raw: Bytes, at: int) -> int:
    return u16(raw, at) | (u16(raw, at + 2) << 16)


@inlined
def i64(raw: Bytes, at: int) -> int:
    return u32(raw, at) | (u32(raw, at + 4) << 32)


@inlined
def put32(raw: Bytes, at: int, value: int) -> None:
    for byte in range(4):
        raw[at + byte] = np.uint8((value >> (8 * byte)) & 255)


@inlined
def put64(raw: Bytes, at: int, value: int) -> None:
    for byte in range(8):
        raw[at + byte] = np.uint8((value >> (8 * byte)) & 255)


@jit
def is_utf8(raw: Bytes, at: int, end: int) -> bool:
    """Are these bytes a text? No surrogates, nothing written longer than it need be."""
    while at < end:
        lead = np.int64(raw[at])
        at += 1
        if lead < 0x80:
            continue
        if lead < 0xC2 or lead > 0xF4:
            return False
        more = 1 if lead < 0xE0 else (2 if lead < 0xF0 else 3)
        if at + more > end:
            return False
        second = np.int64(raw[at])
        low, high = 0x80, 0xBF
        if lead == 0xE0:
            low = 0xA0
        elif lead == 0xED:
            high = 0x9F
        elif lead == 0xF0:
            low = 0x90
        elif lead == 0xF4:
            high = 0x8F
        if second < low or second > high:
            return False
        for following in range(1, more):
            if (raw[at + following] & 0xC0) != 0x80:
                return False
        at += more
    return True


@jit
def is_trace(raw: Bytes, at: int, size: int) -> bool:
    """Is it a trace context, as `driftline.model.trace` has it?"""
    if size != PARENT and (size < PARENT + 2 or size > PARENT + 1 + STATE_MOST):
        return False
    trace = parent = 0
    for place in range(PARENT):
        byte = np.int64(raw[at + place])
        if place == 2 or place == 35 or place == 52:
            if byte != DASH:
                return False
        elif not (ord("0") <= byte <= ord("9") or ord("a") <= byte <= ord("f")):
            return False
        elif 2 < place < 35:
            trace |= byte - ord("0")
        elif 35 < place < 52:
            parent |= byte - ord("0")
    if trace == 0 or parent == 0 or (raw[at] == ord("f") and raw[at + 1] == ord("f")):
        return False
    for place in range(PARENT, size):
        byte = np.int64(raw[at + place])
        if byte < BLANK or byte > 126:
            return False
    return size == PARENT or (raw[at + PARENT] == BLANK and raw[at + PARENT + 1] != BLANK)


@jit
def _values_at(raw: Bytes, at: int, end: int, flags: int) -> int:
    """Where the values of a record begin, behind its envelope; -1 if that is not sound."""
    if flags & HAS_TIME:
        if at + 8 > end:
            return -1
        time = i64(raw, at)
        if time < EARLIEST or time > LATEST:
            return -1
        at += 8
    for flag in (HAS_ID, HAS_SOURCE, HAS_TRACE):
        if flags & flag:
            if at + 2 > end:
                return -1
            size = u16(raw, at)
            at += 2
            if size == 0 or at + size > end:
                return -1
            # A trace that is none is left out, by whoever reads it event by event.
            if flag == HAS_TRACE:
                if not is_trace(raw, at, size):
                    return -1
            elif not is_utf8(raw, at, at + size):
                return -1
            at += size
    return at


@inlined
def _set(keys: Words, row: int, event: int, key: int) -> None:
    if row >= 0:
        keys[row, event] = key


@jit
def _read_values(
    raw: Bytes, at: int, end: int, words: Words, form: int, keys: Words, event: int
) -> int:
    """Write the keys of one record's values; where they end, -1 if they are not sound."""
    _set(keys, words[form + FORM_TYPE_TEXT + 1], event, words[form + FORM_TYPE_TEXT])
    _set(keys, words[form + FORM_TYPE_HASH + 1], event, words[form + FORM_TYPE_HASH])
    _set(keys, words[form + FORM_TYPE_SPAN + 1], event, words[form + FORM_TYPE_SPAN])
    field = form + FORM_HEAD
    for _ in range(words[form + FORM_FIELDS]):
        kind = words[field + FIELD_KIND]
        if kind <= FIXED_MAX:
            if at + 8 > end:
                return -1
            word = i64(raw, at)
            at += 8
            if kind == FLOAT:
                _set(keys, words[field + FIELD_ROW], event, number_key(word))
            elif kind == INTEGER:
                row = words[field + FIELD_ROW]
                if row >= 0:
                    keys[row, event] = number_key(np.float64(word).view(np.int64))
            else:
                if kind == BOOLEAN and (word < 0 or word > 1):
                    return -1
                if kind == TIME and (word < EARLIEST or word > LATEST):
                    return -1
                _set(keys, words[field + FIELD_ROW], event, word)
        else:
            if at + 4 > end:
                return -1
            size = u32(raw, at)
            at += 4
            if at + size > end:
                return -1
            if kind == STRING and not is_utf8(raw, at, at + size):
                return -1
            if words[field + FIELD_TEXT] >= 0:
                keys[words[field + FIELD_TEXT], event] = text_key(raw, at, size)
            if words[field + FIELD_HASH] >= 0:
                keys[words[field + FIELD_HASH], event] = text_hash(raw, at, size)
            _set(keys, words[field + FIELD_SPAN], event, (at << 32) | size)
            at += size
        _set(keys, words[field + FIELD_PRESENCE], event, 1)
        field += FIELD_WORDS
    return at


@jit
def read_records(
    raw: Bytes,
    at: int,
    end: int,
    most: int,
    numbers: Words,
    form_at: Words,
    words: Words,
    defaults: Words,
    keys: Words,
    starts: Words,
    ends: Words,
    forms: Words,
    state: Words,
) -> int:
    """Read up to `most` records that lie from `at` on; how many were read.

    `numbers` are the forms of the connection, by the numbers it gave them; `form_at` says where a
    form lies in `words`, -1 if it is none for kernels. `state` gets where reading stopped, and why.
    """
    count = 0
    state[1] = AT_END
    rows = len(defaults)
    while at < end:
        if count == most:
            state[1] = FULL
            break
        state[1] = HARD
        if at + HEAD > end:
            break
        length = u32(raw, at)
        number = u16(raw, at + 4)
        flags = np.int64(raw[at + 6])
        stop = at + length
        if length < HEAD or length > LONGEST or stop > end or number >= len(numbers):
            break
        if (flags & ~_EASY) != 0 or raw[at + 7] != 0 or numbers[number] < 0:
            break
        form = form_at[numbers[number]]
        if form < 0:
            break
        values = _values_at(raw, at + HEAD, stop, flags)
        if values < 0:
            break
        for row in range(rows):
            keys[row, count] = defaults[row]
        if _read_values(raw, values, stop, words, form, keys, count) != stop:
            break
        starts[count], ends[count], forms[count] = at, stop, numbers[number]
        count += 1
        at = stop
        state[1] = AT_END
    state[0] = at
    return count


@allocating
def find(
    m: Words,
    columns: Words,
    present: Words,
    stamps: Words,
    tick: int,
    offsets: Words,
    raw: Bytes,
    at: int,
    end: int,
    most: int,
    numbers: Words,
    form_at: Words,
    words: Words,
    defaults: Words,
    keys: Words,
    starts: Words,
    ends: Words,
    forms: Words,
    state: Words,
) -> tuple[Numbers, int]:
    """Read records, and match them: see `read_records` and `match_many`.

    `state` also gets how many were read.
    """
    count = read_records(
        raw, at, end, most, numbers, form_at, words, defaults, keys, starts, ends, forms, state
    )
    state[2] = count
    if count == 0:
        return np.empty(0, np.int32), 0
    return match_many(m, columns, keys, raw, present, stamps, tick, offsets[: count + 1])


@jit
def tally(forms: Words, count: int, by_form: Words) -> None:
    """Count events by their forms."""
    for event in range(count):
        by_form[forms[event]] += 1


@jit
def address(
    offsets: Words,
    found: Numbers,
    first: int,
    last: int,
    slot_of: Numbers,
    mark_of: Words,
    matched: Words,
    kept: Bytes,
    raw: Bytes,
    starts: Words,
    ends: Words,
    forms: Words,
    entered: Words,
    numbers: Words,
    but: int,
    marked: bool,
    heads: Words,
    counts: Words,
    pairs: Words,
    runs: Words,
    frame: int,
    out: Bytes,
) -> int:
    """Write the notices of events first .. last, slot by slot; how many runs.

    `counts` has a word per slot, all 0, and so it is left. `entered` and `numbers` are the events'.
    Notices for a slot that is `kept` have the number. Those for others stand behind the head of a
    frame, whose first four bytes are `frame`. One slot, `but`, is passed over. Unless `marked`
    nobody is named. -1 if `out` might not have room, or `runs` or `pairs` has not: nothing has been
    written then.
    """
    if offsets[last] - offsets[first] > len(pairs):
        return -1
    # How many for each slot, and how many bytes at most.
    touched = 0
    bound = 0
    for event in range(first, last):
        size = ends[event] - starts[event] + NOTICE_MOST + 8
        for at in range(offsets[event], offsets[event + 1]):
            slot = slot_of[found[at]]
            if slot == but:
                continue
            if counts[slot] == 0:
                if touched == len(runs):
                    for run in range(touched):
                        counts[runs[run, RUN_SLOT]] = 0
                    return -1
                runs[touched, RUN_SLOT] = slot
                touched += 1
                bound += FRAME_HEAD
            counts[slot] += 1
            bound += size
    if bound > len(out):
        for run in range(touched):
            counts[runs[run, RUN_SLOT]] = 0
        return -1
    total = 0
    for run in range(touched):
        slot = runs[run, RUN_SLOT]
        heads[slot] = total
        total += counts[slot]
    for event in range(first, last):
        for at in range(offsets[event], offsets[event + 1]):
            number = np.int64(found[at])
            slot = slot_of[number]
            if slot == but:
                continue
            matched[number] += 1
            pairs[heads[slot]] = (event << 32) | number
            heads[slot] += 1
    to = 0
    for run in range(touched):
        slot = runs[run, RUN_SLOT]
        upto = heads[slot]
        place = upto - counts[slot]
        counts[slot] = 0
        runs[run, RUN_FROM] = to
        runs[run, RUN_LOW], runs[run, RUN_HIGH], runs[run, RUN_NOTICES] = 1 << 32, -1, 0
        begun = to
        if not kept[slot]:
            to += FRAME_HEAD
        while place < upto:
            event = pairs[place] >> 32
            same = place + 1
            while same < upto and (pairs[same] >> 32) == event:
                same += 1
            to = _write_notice(
                event, pairs, place, same, mark_of, marked, kept[slot] != 0, raw, starts, ends,
                forms, entered, numbers, out, to
            )  # fmt: skip
            runs[run, RUN_LOW] = min(runs[run, RUN_LOW], forms[event])
            runs[run, RUN_HIGH] = max(runs[run, RUN_HIGH], forms[event])
            runs[run, RUN_NOTICES] += 1
            place = same
        if not kept[slot]:
            put32(out, begun, frame)
            put32(out, begun + 4, to - begun - FRAME_HEAD)
        runs[run, RUN_TO] = to
    return touched


@jit
def _write_notice(
    event: int,
    pairs: Words,
    place: int,
    same: int,
    mark_of: Words,
    marked: bool,
    is_kept: bool,
    raw: Bytes,
    starts: Words,
    ends: Words,
    forms: Words,
    entered: Words,
    numbers: Words,
    out: Bytes,
    to: int,
) -> int:
    """One notice, for the pairs from `place` up to `same`; where it ends."""
    start, end = starts[event], ends[event]
    begun = to
    marks = same - place if marked else 0
    out[to + 4] = np.uint8(forms[event] & 255)
    out[to + 5] = np.uint8(forms[event] >> 8)
    flags = np.int64(raw[start + 6])
    out[to + 6] = np.uint8(flags | NUMBERED if is_kept else flags)
    to += HEAD
    if marks > MARKS_FEW:
        out[begun + 7] = np.uint8(MARKS_FEW + 1)
        put32(out, to, marks)
        to += 4
    else:
        out[begun + 7] = np.uint8(marks)
    for at in range(place, place + marks):
        put64(out, to, mark_of[pairs[at] & 0xFFFFFFFF])
        to += 8
    if is_kept:
        put64(out, to, numbers[event])
        to += 8
    put64(out, to, entered[event])
    to += 8
    size = end - start - HEAD
    copy_bytes(out, to, raw, start + HEAD, size)
    to += size
    put32(out, begun, to - begun)
    return to
