"""How does a filter enter, leave, and move?

Where an entry stands in its cluster:

- a small cluster (16 entries) is a list per axis;
- what compares two attributes with one value is a point, and goes to the field of its axes;
- an equality or a narrow interval goes to the grid of its axis, and the rest of the filter is
  verified on what is found there;
- wide intervals and half-lines go to the tiles of their family.

What stood in the list of a cluster that has grown, or in a family of old rulers, is moved on two at
a time as other changes come: no change ever waits for a rebuild.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.arena import allocate, release
from driftline.kernels.clusters import cluster_for, drop_cluster
from driftline.kernels.entries import (
    entry,
    free_entry,
    new_entry,
    next_of,
    number_in,
    program_in,
    ref_to,
)
from driftline.kernels.fields import enter_field, leave_field, parts_in, sides_of
from driftline.kernels.grid import level_of, listed, move_interval, put_interval, take_interval
from driftline.kernels.jit import jit
from driftline.kernels.layout import (
    A_PARTS,
    A_RULER,
    ALWAYS,
    BY_HASH,
    BY_TEXT,
    C_AXIS,
    C_COUNT,
    C_GUARD,
    C_KEY,
    C_TYPE_KEY,
    C_TYPED,
    CARE,
    CELLS,
    CHECK,
    E_AT,
    E_HOME,
    E_OWNER,
    E_PROGRAM,
    E_SEQUENCE,
    F_BORN,
    F_CLUSTER,
    F_COUNT,
    F_DIMS,
    F_MEMBERS,
    F_OLD,
    F_WHOLE,
    FIELD_CLUSTER,
    IS_CHUNK,
    IS_FIELD,
    K_CLUSTER,
    K_KIND,
    LETTER_PARTS,
    LIST,
    MEMBERS,
    NO_ENTRY,
    ONE_CELL,
    P_PARTS,
    PART_WORDS,
    R_SAMPLED,
    SEQUENCE,
    SMALL_CLUSTER,
    SPARE_PER_ENTRY,
    SPARE_SHARE,
    SPARE_WORDS,
    TAG,
    TAIL,
    TYPE_HASH,
    TYPE_TEXT,
    UNTYPED,
    WITHIN,
)
from driftline.kernels.programs import (
    NEVER,
    access_part,
    axis_at,
    decode,
    finish,
    flags_of,
    text_of,
    type_part,
    write_part,
)
from driftline.kernels.rulers import cell_of, forget_axis, note
from driftline.kernels.tiles import (
    append,
    bear,
    belongs,
    dims_of,
    family_for,
    is_stale,
    last_of,
    leave_empty,
    set_bits,
    widen,
    withdraw,
)
from driftline.kernels.types import Bytes, Numbers, Words

# Cells of the grid at higher levels are too wide to tell intervals apart: keys of numbers are
# roughly logarithmic, and an interval around zero has nearly all of them.
_GRID_LEVEL_MAX = 56
_DRAINED = 2
_SAMPLED_WELL = 256
_NARROW = 1  # cells


@jit
def has_room(m: Words, entries: int) -> bool:
    """Is there room for a change of so many entries?"""
    tail = m[TAIL]
    return len(m) - tail >= SPARE_WORDS + SPARE_PER_ENTRY * entries + (tail >> SPARE_SHARE)


@jit
def add_many(
    m: Words, letters: Words, per: int, texts: Bytes, scratch: Words, numbers: Numbers, done: int
) -> int:
    """Add subscriptions of `per` letters each, from `done` on; how many are done by now.

    Fewer than there are means that the memory must grow first.
    """
    while done < len(numbers) and has_room(m, per):
        owner = new_entry(m)
        m[entry(m, owner) + E_SEQUENCE] = m[SEQUENCE]
        m[SEQUENCE] += 1
        _put_in(m, letters, per * done, per, texts, scratch, owner)
        numbers[done] = owner
        done += 1
    return done


@jit
def discard_many(m: Words, numbers: Numbers, done: int) -> int:
    """Forget subscriptions, from `done` on; how many are done by now."""
    while done < len(numbers) and has_room(m, entries_of(m, np.int64(numbers[done]))):
        number = np.int64(numbers[done])
        while number != NO_ENTRY:
            following = next_of(m, number)
            _take_out(m, number)
            free_entry(m, number)
            number = following
        done += 1
    return done


@jit
def change_many(
    m: Words, letters: Words, per: int, texts: Bytes, scratch: Words, numbers: Numbers, done: int
) -> int:
    """Let subscriptions say something else; as `add_many`, but their numbers are there."""
    while done < len(numbers):
        owner = np.int64(numbers[done])
        if not has_room(m, per + entries_of(m, owner)):
            break
        if (
            per > 1
            or next_of(m, owner) != NO_ENTRY
            or not _rewrite(m, letters[done], texts, scratch, owner)
        ):
            number = next_of(m, owner)
            while number != NO_ENTRY:
                following = next_of(m, number)
                _take_out(m, number)
                free_entry(m, number)
                number = following
            _take_out(m, owner)
            m[entry(m, owner) + E_OWNER] = (NO_ENTRY << 32) | owner
            _put_in(m, letters, per * done, per, texts, scratch, owner)
        done += 1
    return done


@jit
def entries_of(m: Words, owner: int) -> int:
    """How many entries a subscription has."""
    count = 1
    number = next_of(m, owner)
    while number != NO_ENTRY:
        count += 1
        number = next_of(m, number)
    return count


@jit
def _put_in(
    m: Words, letters: Words, row: int, per: int, texts: Bytes, scratch: Words, owner: int
) -> None:
    """Give a subscription its entries, one per letter."""
    number = owner
    for at in range(per):
        if at > 0:
            new = new_entry(m)
            m[entry(m, number) + E_OWNER] = (new << 32) | owner
            number = new
            m[entry(m, number) + E_OWNER] = (NO_ENTRY << 32) | owner
        _enter(m, letters[row + at], texts, scratch, number)


@jit
def _enter(m: Words, letter: Words, texts: Bytes, scratch: Words, number: int) -> None:
    """Write the program of an entry and let it stand where it belongs."""
    ranges, checks = decode(m, letter, texts, scratch)
    if ranges == NEVER:
        return
    keyed, typed = access_part(m, scratch, ranges), type_part(scratch, ranges)
    cluster, program = _compile(m, letter, texts, scratch, ranges, checks, keyed, typed)
    e = entry(m, number)
    m[e + E_PROGRAM] = _kept(m, scratch, program)
    m[cluster + C_COUNT] += 1
    _count_axes(m, m[e + E_PROGRAM], 1)
    _note_bounds(m, m[e + E_PROGRAM])
    if m[cluster + C_COUNT] <= SMALL_CLUSTER:
        _list(m, number, cluster)
        return
    _settle(m, number, cluster)
    for _ in range(_DRAINED):
        waiting = listed(m, cluster)
        if waiting >= 0:
            take_interval(m, waiting)
            _settle(m, waiting, cluster)


@jit
def _compile(
    m: Words,
    letter: Words,
    texts: Bytes,
    scratch: Words,
    ranges: int,
    checks: int,
    keyed: int,
    typed: int,
) -> tuple[int, int]:
    """The cluster of a decoded letter, and where in scratch its program is."""
    n = letter[LETTER_PARTS]
    type_text = text_of(m, scratch, n, checks, typed)
    key_text = text_of(m, scratch, n, checks, keyed)
    # The guard first: texts that the cluster compares once for all its entries.
    guard = 2 * PART_WORDS * n
    guarded = int(type_text >= 0) + int(key_text >= 0)
    end = P_PARTS + PART_WORDS * guarded
    part = 0
    for check in (type_text, key_text):
        if check >= 0:
            end = write_part(texts, scratch, PART_WORDS * (n + check), guard, part, end)
            part += 1
    finish(scratch, guard, part, end, 0)
    naming, type_key, axis, key = UNTYPED, 0, -1, 0
    if typed >= 0:
        naming = BY_TEXT if (scratch[PART_WORDS * typed] >> 8) == TYPE_TEXT else BY_HASH
        type_key = scratch[PART_WORDS * typed + 1]
    if keyed >= 0:
        axis, key = scratch[PART_WORDS * keyed] >> 8, scratch[PART_WORDS * keyed + 1]
    cluster = cluster_for(m, naming, type_key, axis, key, scratch, guard if guarded else -1)
    # Then the program: the rest.
    program = guard + end
    parts = ranges + checks - int(typed >= 0) - int(keyed >= 0) - guarded
    end = P_PARTS + PART_WORDS * parts
    part = 0
    for at in range(ranges):
        if at != typed and at != keyed:
            end = write_part(texts, scratch, PART_WORDS * at, program, part, end)
            part += 1
    for check in range(checks):
        if check != type_text and check != key_text:
            end = write_part(texts, scratch, PART_WORDS * (n + check), program, part, end)
            part += 1
    finish(scratch, program, part, end, flags_of(letter))
    return cluster, program


@jit
def _kept(m: Words, scratch: Words, program: int) -> int:
    """The program in the index's own memory; 0 for one that says nothing."""
    if (scratch[program] & 0xFFFFFFFF) == 0:
        return 0
    words = scratch[program] >> 32
    address = allocate(m, words)
    for word in range(words):
        m[address + word] = scratch[program + word]
    return address


@jit
def _count_axes(m: Words, program: int, by: int) -> None:
    if program != 0:
        for part in range(m[program] & 0xFFFF):
            axis = m[program + P_PARTS + PART_WORDS * part] >> 8
            m[axis_at(m, axis) + A_PARTS] += by


@jit
def _note_bounds(m: Words, program: int) -> None:
    # A point has no use for rulers.
    if program != 0 and sides_of(m, program) == 0:
        for dim in range(dims_of(m, program)):
            part = program + P_PARTS + PART_WORDS * dim
            if m[part + 1] < m[part + 2]:
                note(m, m[part] >> 8, m[part + 1], m[part + 2])


@jit
def _ref(m: Words, number: int, program: int, parts: int) -> int:
    """What to say of an entry where so many of its parts are already known to be true."""
    flags = 0
    if program == 0:
        return ref_to(number, program, flags)
    if (m[program] & 0xFFFF) > parts:
        flags |= CHECK
    if ((m[program] >> 16) & 0xFFFF) != 0:
        flags |= CARE
    return ref_to(number, program, flags)


@jit
def _list(m: Words, number: int, cluster: int) -> None:
    """Let an entry stand in a list of its cluster."""
    program = m[entry(m, number) + E_PROGRAM]
    if program == 0 or dims_of(m, program) == 0:
        put_interval(m, cluster, ALWAYS, ONE_CELL, 0, 0, _ref(m, number, program, 0))
        return
    part = program + P_PARTS + PART_WORDS * _best(m, program)
    ref = _ref(m, number, program, 1)
    put_interval(m, cluster, m[part] >> 8, LIST, m[part + 1], m[part + 2], ref)


@jit
def _best(m: Words, program: int) -> int:
    """The interval that promises to be the most telling.

    Of several narrow ones the first: so the entries of a cluster come together on few axes.
    """
    best = 0
    best_width = 1000
    for dim in range(dims_of(m, program)):
        width = _width(m, program + P_PARTS + PART_WORDS * dim)
        if width < best_width and (width < 0 or best_width > _NARROW):
            best, best_width = dim, width
    return best


@jit
def _width(m: Words, part: int) -> int:
    """How many cells of its ruler an interval covers, roughly; -1 for an equality."""
    low, high = m[part + 1], m[part + 2]
    if low == high:
        return -1
    ruler = m[axis_at(m, m[part] >> 8) + A_RULER]
    if ruler == 0:
        return CELLS >> 1
    width = cell_of(m, ruler, high) - cell_of(m, ruler, low)
    # From few samples a cell may be wide, and what is in one cell not narrow.
    return width if m[ruler + R_SAMPLED] >= _SAMPLED_WELL else max(width, _NARROW + 1)


@jit
def _settle(m: Words, number: int, cluster: int) -> None:
    """Let an entry stand where it belongs in a cluster that is not small."""
    e = entry(m, number)
    program = m[e + E_PROGRAM]
    dims = 0 if program == 0 else dims_of(m, program)
    if dims == 0:
        _list(m, number, cluster)
        return
    sides = sides_of(m, program)
    if sides != 0:
        enter_field(m, cluster, sides, _ref(m, number, program, parts_in(sides)))
        return
    part = program + P_PARTS + PART_WORDS * _best(m, program)
    low, high = m[part + 1], m[part + 2]
    level = level_of(m[cluster + C_COUNT], low, high)
    width = _width(m, part)
    ref = _ref(m, number, program, 1)
    if level <= _GRID_LEVEL_MAX and (width <= _NARROW or dims == 1):
        put_interval(m, cluster, m[part] >> 8, level, low, high, ref)
        return
    family = family_for(m, cluster, program, dims)
    if m[family + F_BORN] == 0:
        count = m[family + F_COUNT]
        if count < MEMBERS:
            m[family + F_MEMBERS + count] = number
            m[family + F_COUNT] = count + 1
            put_interval(m, cluster, m[part] >> 8, level, low, high, ref)
            m[e + E_AT] |= family << 16
            return
        _gather(m, family)
    append(m, family, _ref(m, number, program, dims))
    old, whole = m[family + F_OLD], m[family + F_WHOLE]
    if old != 0:
        _drain(m, old)
    while whole != 0:
        following = m[whole + F_WHOLE]
        if m[whole + F_COUNT] > 0:
            _drain(m, whole)
        whole = following


@jit
def _drain(m: Words, family: int) -> None:
    """Let some entries of a family stand where they would come to stand today."""
    for _ in range(_DRAINED):
        if m[family + F_COUNT] > 0:
            ref = last_of(m, family)
            withdraw(m, number_in(ref))
            program = program_in(ref)
            append(m, family_for(m, m[family + F_CLUSTER], program, m[family + F_DIMS]), ref)
    leave_empty(m, family)


@jit
def _gather(m: Words, family: int) -> None:
    """Bear a family: its members leave their chunks and come together."""
    bear(m, family)
    m[family + F_COUNT] = 0
    for member in range(MEMBERS):
        number = m[family + F_MEMBERS + member]
        take_interval(m, number)
        program = m[entry(m, number) + E_PROGRAM]
        append(m, family, _ref(m, number, program, dims_of(m, program)))


@jit
def _take_out(m: Words, number: int) -> None:
    """Let an entry stand nowhere, without a program."""
    e = entry(m, number)
    home, program = m[e + E_HOME], m[e + E_PROGRAM]
    if home == 0:
        return
    if m[home + TAG] == IS_CHUNK:
        cluster = m[home + K_CLUSTER]
        family = m[e + E_AT] >> 16
        if family != 0:
            _leave(m, family, number)
        take_interval(m, number)
    elif m[home + TAG] == IS_FIELD:
        cluster = m[home + FIELD_CLUSTER]
        leave_field(m, number)
    else:
        cluster = m[home + F_CLUSTER]
        withdraw(m, number)
        leave_empty(m, home)
    m[e + E_HOME] = 0
    m[e + E_AT] = 0
    if program != 0:
        _count_axes(m, program, -1)
        for part in range(m[program] & 0xFFFF):
            axis = m[program + P_PARTS + PART_WORDS * part] >> 8
            if m[axis_at(m, axis) + A_PARTS] == 0:
                forget_axis(m, axis)
        release(m, program, m[program] >> 32)
        m[e + E_PROGRAM] = 0
    m[cluster + C_COUNT] -= 1
    if m[cluster + C_COUNT] == 0:
        drop_cluster(m, cluster)


@jit
def _leave(m: Words, family: int, number: int) -> None:
    """One member less of a family that is not born."""
    last = m[family + F_COUNT] - 1
    for member in range(last):
        if m[family + F_MEMBERS + member] == number:
            m[family + F_MEMBERS + member] = m[family + F_MEMBERS + last]
    m[family + F_COUNT] = last
    if last == 0:
        leave_empty(m, family)


@jit
def _rewrite(m: Words, letter: Words, texts: Bytes, scratch: Words, number: int) -> bool:
    """Change the bounds of an entry where it stands; False where it must be put in anew."""
    e = entry(m, number)
    home, program = m[e + E_HOME], m[e + E_PROGRAM]
    if home == 0 or program == 0 or ((m[program] >> 16) & 0xFFFF) != flags_of(letter):
        return False
    in_chunk = m[home + TAG] == IS_CHUNK
    # A field has its cluster where a family has it.
    cluster = m[home + K_CLUSTER] if in_chunk else m[home + F_CLUSTER]
    ranges, checks = decode(m, letter, texts, scratch)
    if ranges == NEVER or m[cluster + C_GUARD] != 0:
        return False
    # The same equality and type, the same axes in the same order, the same checks?
    part = program + P_PARTS
    end = part + PART_WORDS * (m[program] & 0xFFFF)
    found = 0
    for at in range(0, PART_WORDS * ranges, PART_WORDS):
        axis, low = scratch[at] >> 8, scratch[at + 1]
        if low == scratch[at + 2]:
            if axis == m[cluster + C_AXIS] and low == m[cluster + C_KEY]:
                found += 1
                continue
            if axis <= TYPE_HASH and low == m[cluster + C_TYPE_KEY]:
                found += 1
                continue
        if part == end or m[part] != scratch[at]:
            return False
        part += PART_WORDS
    wanted = int(m[cluster + C_AXIS] >= 0) + int(m[cluster + C_TYPED] != UNTYPED)
    if found != wanted or part + PART_WORDS * checks != end:
        return False
    for check in range(checks):
        at = PART_WORDS * (letter[LETTER_PARTS] + check)
        if m[part] != scratch[at] or (scratch[at] & 255) > WITHIN:
            return False
        part += PART_WORDS
    if in_chunk:
        if not _move_in_chunk(m, number, cluster, home, program, scratch, ranges):
            return False
        _copy_bounds(m, letter, cluster, program, scratch, ranges, checks)
    elif m[home + TAG] == IS_FIELD:
        leave_field(m, number)
        _copy_bounds(m, letter, cluster, program, scratch, ranges, checks)
        _settle(m, number, cluster)
    else:
        if is_stale(m, home):
            return False
        set_bits(m, home, m[e + E_AT], program, False)
        _copy_bounds(m, letter, cluster, program, scratch, ranges, checks)
        set_bits(m, home, m[e + E_AT], program, True)
        if belongs(m, home, program):
            widen(m, home, program)
        else:
            _move_to_part(m, number, home, program)
    _note_bounds(m, program)
    return True


@jit
def _move_to_part(m: Words, number: int, family: int, program: int) -> None:
    """Let an entry whose bounds have moved go to another part of a divided family."""
    dims = m[family + F_DIMS]
    withdraw(m, number)
    append(
        m,
        family_for(m, m[family + F_CLUSTER], program, dims),
        _ref(m, number, program, dims),
    )
    leave_empty(m, family)


@jit
def _move_in_chunk(
    m: Words, number: int, cluster: int, chunk: int, program: int, scratch: Words, ranges: int
) -> bool:
    axis = m[chunk + K_KIND] >> 8
    if axis == ALWAYS:
        return True
    for at in range(0, PART_WORDS * ranges, PART_WORDS):
        if (scratch[at] >> 8) == axis:
            return move_interval(m, number, cluster, scratch[at + 1], scratch[at + 2])
    return False


@jit
def _copy_bounds(
    m: Words, letter: Words, cluster: int, program: int, scratch: Words, ranges: int, checks: int
) -> None:
    part = program + P_PARTS
    for at in range(0, PART_WORDS * ranges, PART_WORDS):
        axis = scratch[at] >> 8
        if scratch[at + 1] == scratch[at + 2] and (
            axis == m[cluster + C_AXIS] or (axis <= TYPE_HASH and axis >= TYPE_TEXT)
        ):
            continue
        m[part + 1], m[part + 2] = scratch[at + 1], scratch[at + 2]
        part += PART_WORDS
    for check in range(checks):
        at = PART_WORDS * (letter[LETTER_PARTS] + check)
        m[part + 1], m[part + 2] = scratch[at + 1], scratch[at + 2]
        part += PART_WORDS
