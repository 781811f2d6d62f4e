"""Is everything in the memory of an index where it should be?

Walks all records and asserts what the kernels rely on: each entry stands where its record says and
is found by exactly the keys its program allows, counts are right, and every word is either in use
once or free. Slow; for tests.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator

from driftline.kernels import layout as at
from driftline.kernels.arena import class_of, size_of
from driftline.kernels.clusters import cluster_hash
from driftline.kernels.entries import number_in, program_in
from driftline.kernels.types import Words


class _Walk:
    """One walk: the words as plain integers, and the words accounted for so far."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.m: list[int] = words[: int(words[at.TAIL])].tolist()
        self.used = at.HEADER_WORDS
        self.taken: set[int] = set()
        # How many families use each ruler.
        self.ruled: dict[int, int] = {}

    def block(self, address: int, words: int) -> int:
        """Account for a block, which must be there once."""
        assert at.HEADER_WORDS <= address < len(self.m)
        assert address not in self.taken, "a block that is used twice"
        self.taken.add(address)
        self.used += int(size_of(class_of(words)))
        return address

    def entry(self, number: int) -> int:
        m = self.m
        page = m[m[at.DIRECTORY] + (number >> at.PAGE_BITS)]
        return page + (number & (at.PAGE - 1)) * at.ENTRY_WORDS

    def parts(self, program: int) -> list[tuple[int, int, int, int]]:
        """The operation, axis and operands of each part."""
        m = self.m
        first = program + at.P_PARTS
        count = m[program] & 0xFFFF if program else 0
        return [
            (m[place] & 255, m[place] >> 8, m[place + 1], m[place + 2])
            for place in range(first, first + at.PART_WORDS * count, at.PART_WORDS)
        ]


def check(words: Words) -> None:
    """Assert the invariants of an index's memory."""
    walk = _Walk(words)
    clusters, families = _records(walk)
    numbers = _entries(walk)
    standing: set[int] = set()
    for cluster in clusters:
        standing |= _cluster(walk, cluster, families)
    homeless = {number for number in numbers if walk.m[walk.entry(number) + at.E_HOME] == 0}
    assert standing.isdisjoint(homeless)
    assert standing | homeless == numbers, "an entry that stands nowhere"
    _axes(walk, clusters, numbers)
    _free(walk)
    assert walk.used + walk.m[at.FREED] == len(walk.m), "words were lost"


def _records(walk: _Walk) -> tuple[list[int], dict[int, list[int]]]:
    """The clusters, and the current families of each, from the table."""
    m = walk.m
    clusters: list[int] = []
    families: dict[int, list[int]] = {}
    fields: set[int] = set()
    for shard in range(at.SHARDS_AT, at.SHARDS_AT + 2 * at.SHARDS, 2):
        cap, count = m[shard + 1] >> 32, m[shard + 1] & 0xFFFFFFFF
        if not cap:
            assert m[shard] == 0
            continue
        table = walk.block(m[shard], 2 * cap)
        slots = [table + 2 * place for place in range(cap) if m[table + 2 * place + 1]]
        assert len(slots) == count <= cap
        for slot in slots:
            h, record = m[slot], m[slot + 1]
            assert (h & (at.SHARDS - 1)) == (shard - at.SHARDS_AT) >> 1
            for place in range((h >> 10) & (cap - 1), ((slot - table) >> 1) + cap):
                if table + 2 * (place % cap) == slot:
                    break
                assert m[table + 2 * (place % cap) + 1], "a record that no probe reaches"
            if m[record + at.TAG] == at.IS_CLUSTER:
                clusters.append(record)
                keys = [m[record + field] for field in _KEYS]
                assert h == m[record + at.C_HASH] == int(cluster_hash(*keys))
            elif m[record + at.TAG] == at.IS_FIELD:
                assert h == m[record + at.FIELD_HASH]
                fields.add(record)
            else:
                assert m[record + at.TAG] == at.IS_FAMILY
                assert h == m[record + at.F_HASH]
                assert m[record + at.F_NEWER] == 0
                families.setdefault(m[record + at.F_CLUSTER], []).append(record)
    assert len(clusters) == m[at.CLUSTERS]
    assert set(families) <= set(clusters)
    assert len(fields) == m[at.FIELDS]
    assert fields == {field for cluster in clusters for field in _fields(m, cluster)}
    return clusters, families


_KEYS = (at.C_TYPED, at.C_TYPE_KEY, at.C_AXIS, at.C_KEY)


def _entries(walk: _Walk) -> set[int]:
    """The numbers in use; checks the links between them."""
    m = walk.m
    walk.block(m[at.DIRECTORY], m[at.DIRECTORY_CAP])
    for page in range((m[at.TOP] + at.PAGE - 1) >> at.PAGE_BITS):
        walk.block(m[m[at.DIRECTORY] + page], at.PAGE * at.ENTRY_WORDS)
    free: set[int] = set()
    number = m[at.FREE_NUMBER]
    while number >= 0:
        assert number not in free
        free.add(number)
        assert m[walk.entry(number) + at.E_OWNER] == -1
        number = m[walk.entry(number) + at.E_SEQUENCE]
    numbers = set(range(m[at.TOP])) - free
    assert len(numbers) == m[at.ENTRIES]
    linked: set[int] = set()
    for number in numbers:
        e = walk.entry(number)
        owner, following = m[e + at.E_OWNER] & at.NO_ENTRY, m[e + at.E_OWNER] >> 32
        assert owner in numbers
        if following != at.NO_ENTRY:
            assert following in numbers
            assert following not in linked
            assert m[walk.entry(following) + at.E_OWNER] & at.NO_ENTRY == owner
            linked.add(following)
        program = m[e + at.E_PROGRAM]
        if program:
            walk.block(program, m[program] >> 32)
            assert m[e + at.E_HOME]
        is_alone = owner == number and following == at.NO_ENTRY
        flags = (m[program] >> 16) & 0xFFFF if program else 0
        assert not m[e + at.E_HOME] or bool(flags & at.MULTI) is not is_alone
    owners = {m[walk.entry(number) + at.E_OWNER] & at.NO_ENTRY for number in numbers}
    assert owners == numbers - linked
    return numbers


def _cluster(walk: _Walk, cluster: int, families: dict[int, list[int]]) -> set[int]:
    m = walk.m
    walk.block(cluster, at.CLUSTER_WORDS)
    if m[cluster + at.C_GUARD]:
        walk.block(m[cluster + at.C_GUARD], m[m[cluster + at.C_GUARD]] >> 32)
    standing: set[int] = set()
    if m[cluster + at.C_LAYERS_CAP]:
        walk.block(m[cluster + at.C_LAYERS], at.LAYER_WORDS * m[cluster + at.C_LAYERS_CAP])
    kinds = set()
    for place in range(m[cluster + at.C_LAYERS_N]):
        layer = m[cluster + at.C_LAYERS] + at.LAYER_WORDS * place
        kinds.add((m[layer + at.L_KIND], m[layer + at.L_BASE]))
        standing |= _layer(walk, cluster, layer)
    assert len(kinds) == m[cluster + at.C_LAYERS_N], "two layers of one kind"
    born: set[int] = set()
    waiting: set[int] = set()
    parts: dict[int, int] = {}
    for current in families.get(cluster, []):
        whole = m[current + at.F_WHOLE]
        parts[whole] = parts.get(whole, 0) + 1
        assert m[current + at.F_PATH] >> at.PART_BITS == (m[whole + at.F_PATH] if whole else 0)
        family, newer = current, 0
        while family:
            assert m[family + at.F_NEWER] == newer
            walk.block(family, at.FAMILY_WORDS)
            if m[family + at.F_BORN]:
                born.add(family)
                standing |= _family(walk, family)
            else:
                waiting |= _members(walk, family)
            family, newer = m[family + at.F_OLD], family
    for family in families.get(cluster, []):
        assert m[family + at.F_PARTS] == parts.get(family, 0)
    listed = _run(m, m[cluster + at.C_FAMILIES], m[cluster + at.C_FAMILIES_N])
    assert set(listed) == born
    if m[cluster + at.C_FAMILIES_CAP]:
        walk.block(m[cluster + at.C_FAMILIES], m[cluster + at.C_FAMILIES_CAP])
    assert waiting <= standing
    for field in _fields(m, cluster):
        standing |= _field(walk, cluster, field)
    assert len(standing) == m[cluster + at.C_COUNT] > 0
    return standing


def _layer(walk: _Walk, cluster: int, layer: int) -> set[int]:
    m = walk.m
    axis, level = m[layer + at.L_KIND] >> 8, m[layer + at.L_KIND] & 255
    table = m[layer + at.L_TABLE]
    heads = [(0, table)]
    if level < at.ONE_CELL:
        walk.block(table, at.TABLE_WORDS)
        base = m[layer + at.L_BASE]
        heads = [(base + place, m[table + place]) for place in range(at.TABLE_WORDS)]
        assert heads[0][1] == heads[-1][1] == 0
    else:
        assert m[layer + at.L_BASE] == 0
    standing: set[int] = set()
    for cell, head in heads:
        chunk = head
        while chunk:
            count, cap = m[chunk + at.K_COUNT], m[chunk + at.K_CAP]
            walk.block(chunk, at.CHUNK_HEAD + at.ITEM_WORDS * cap)
            assert m[chunk + at.TAG] == at.IS_CHUNK
            assert 0 < count <= cap <= at.CHUNK_MAX
            assert chunk == head or count == cap, "a hole in the middle of a chain"
            assert m[chunk + at.K_CLUSTER] == cluster
            assert m[chunk + at.K_KIND] == m[layer + at.L_KIND]
            assert m[chunk + at.K_CELL] == cell
            special = 0
            for place in range(count):
                item = chunk + at.CHUNK_HEAD + at.ITEM_WORDS * place
                low, high, ref = m[item : item + at.ITEM_WORDS]
                special += bool(ref & 3)
                e = walk.entry(number_in(ref))
                assert m[e + at.E_HOME] == chunk
                assert m[e + at.E_AT] & 0xFFFF == place
                assert m[layer + at.L_FROM] <= low <= high <= m[layer + at.L_TO]
                if level < at.ONE_CELL:
                    assert low >> level == cell
                    assert high - low < 1 << level
                program = m[e + at.E_PROGRAM]
                known = 0
                if axis != at.ALWAYS:
                    assert (at.RANGE, axis, low, high) in walk.parts(program)
                    known = 1
                _ref(walk, program, ref, known)
                standing.add(number_in(ref))
            assert special == m[chunk + at.K_SPECIAL]
            chunk = m[chunk + at.K_NEXT]
    assert len(standing) == m[layer + at.L_COUNT] > 0
    return standing


def _ref(walk: _Walk, program: int, ref: int, known: int) -> None:
    """A ref says where the program is, if there is more to verify, and if care is needed."""
    assert program_in(ref) == program
    assert bool(ref & at.CHECK) == (len(walk.parts(program)) > known)
    flags = (walk.m[program] >> 16) & 0xFFFF if program else 0
    assert bool(ref & at.CARE) == bool(flags)


def _members(walk: _Walk, family: int) -> set[int]:
    m = walk.m
    count = m[family + at.F_COUNT]
    assert 0 < count <= at.MEMBERS
    members = set(_run(m, family + at.F_MEMBERS, count))
    assert len(members) == count
    for number in members:
        assert m[walk.entry(number) + at.E_AT] >> 16 == family
    return members


def _family(walk: _Walk, family: int) -> set[int]:
    m = walk.m
    count, dims, bigs = (m[family + field] for field in (at.F_COUNT, at.F_DIMS, at.F_BIGS))
    assert count > 0 or m[family + at.F_OLD] or m[family + at.F_PARTS], (
        "an empty family that waits for nothing"
    )
    if m[family + at.F_TILES_CAP]:
        walk.block(m[family + at.F_TILES], m[family + at.F_TILES_CAP])
    sizes = [at.BIG] * bigs + [at.SMALL] * ((count - bigs * at.BIG + at.SMALL - 1) // at.SMALL)
    rulers = [m[family + at.F_RULERS + dim] for dim in range(dims)]
    for dim, ruler in enumerate(rulers):
        assert m[ruler + at.R_AXIS] == m[family + at.F_AXES + dim]
        assert m[m[at.RULERS] + m[ruler + at.R_NUMBER]] == ruler
        walk.ruled[ruler] = walk.ruled.get(ruler, 0) + 1
    standing: set[int] = set()
    place = 0
    for number, size in enumerate(sizes):
        tile = m[m[family + at.F_TILES] + number]
        rows = size * (1 + 2 * dims)
        walk.block(tile, rows + dims * at.CELLS * (size >> 6))
        wanted = [0] * (dims * at.CELLS * (size >> 6))
        for slot in range(min(size, count - place)):
            ref = m[tile + slot]
            e = walk.entry(number_in(ref))
            assert m[e + at.E_HOME] == family
            assert m[e + at.E_AT] == place
            parts = walk.parts(m[e + at.E_PROGRAM])
            _ref(walk, m[e + at.E_PROGRAM], ref, dims)
            for dim, ruler in enumerate(rulers):
                op, axis, low, high = parts[dim]
                assert (op, axis) == (at.RANGE, m[family + at.F_AXES + dim])
                assert m[tile + (1 + 2 * dim) * size + slot] == low
                assert m[tile + (2 + 2 * dim) * size + slot] == high
                assert m[family + at.F_FROM + dim] <= low
                assert high <= m[family + at.F_TO + dim]
                for cell in range(_cell(m, ruler, low), _cell(m, ruler, high) + 1):
                    wanted[(dim * at.CELLS + cell) * (size >> 6) + (slot >> 6)] |= 1 << (slot & 63)
            _path(walk, family, parts)
            standing.add(number_in(ref))
            place += 1
        held = [word & (2**64 - 1) for word in _run(m, tile + rows, len(wanted))]
        assert held == wanted, "bits that no entry asked for, or missing ones"
    assert len(standing) == count
    return standing


def _fields(m: list[int], cluster: int) -> list[int]:
    found: list[int] = []
    field, before = m[cluster + at.C_FIELDS], 0
    while field:
        assert m[field + at.FIELD_BEFORE] == before
        found.append(field)
        field, before = m[field + at.FIELD_NEXT], field
    return found


def _field(walk: _Walk, cluster: int, field: int) -> set[int]:
    m = walk.m
    walk.block(field, at.FIELD_WORDS)
    assert m[field + at.FIELD_CLUSTER] == cluster
    axes = _run(m, field + at.FIELD_AXES, 4)
    assert min(axes[:2]) >= 0, "a field without a pair"
    closed = [axis >= 0 and bool(axis & at.FIELD_CLOSED) for axis in axes]
    axes = [
        axis ^ at.FIELD_CLOSED if shut else axis for axis, shut in zip(axes, closed, strict=True)
    ]
    used = [axis for axis in axes if axis >= 0]
    assert len(set(used)) == len(used)
    standing: set[int] = set()
    for x, y, ref in points_in(m, field + at.FIELD_POINTS, walk.block):
        e = walk.entry(number_in(ref))
        assert m[e + at.E_HOME] == field
        parts = walk.parts(m[e + at.E_PROGRAM])
        _ref(walk, m[e + at.E_PROGRAM], ref, len(used))
        for side, (axis, key) in enumerate(zip(axes, (x, x, y, y), strict=True)):
            below = (at.LOWEST, key if closed[side] else key - 1)
            ends = (key, at.HIGHEST) if side % 2 else below
            assert axis < 0 or (at.RANGE, axis, *ends) in parts
        standing.add(number_in(ref))
    assert len(standing) == m[field + at.FIELD_POINTS + at.N_COUNT] > 0
    return standing


def points_in(
    m: list[int], points: int, block: Callable[[int, int], int]
) -> Iterator[tuple[int, int, int]]:
    """The points of a record as x, y and ref; checks the order in which they stand."""
    slabs, cap = m[points + at.N_SLABS], m[points + at.N_CAP]
    bounds = block(m[points + at.N_BOUNDS], 4 * cap)
    assert 0 < slabs <= cap
    rows = [_run(m, bounds + row * cap, slabs) for row in range(4)]
    assert rows[0][0] == at.MISSING
    ends = [*zip(*rows[:3], strict=True), (at.HIGHEST + 1,)]
    for place, slab in enumerate(rows[3]):
        words, count = m[slab + at.S_WORDS], m[slab + at.S_COUNT]
        start, room = m[slab + at.S_START], (words - at.SLAB_HEAD) // 3
        first = block(slab, words) + at.SLAB_HEAD + start
        assert at.SLAB_FIRST <= words <= at.SLAB_WORDS
        assert 0 <= start <= start + count <= room
        assert count > 0 or slabs == 1, "an empty slab"
        ys, xs, refs = (_run(m, first + row * room, count) for row in range(3))
        within = [(y, number_in(ref)) for y, ref in zip(ys, refs, strict=True)]
        assert within == sorted(within)
        assert m[slab + at.S_SPECIAL] == sum(bool(ref & 3) for ref in refs)
        for x, y, ref in zip(xs, ys, refs, strict=True):
            assert ends[place] <= (x, y, number_in(ref)) < ends[place + 1]
            yield x, y, ref


def _path(walk: _Walk, family: int, parts: list[tuple[int, int, int, int]]) -> None:
    """An entry stands in the part of each divided family above it that it belongs to."""
    m = walk.m
    path, whole = m[family + at.F_PATH], m[family + at.F_WHOLE]
    while whole:
        dim = m[whole + at.F_BY] - 1
        assert dim >= 0
        _, _, low, high = parts[dim]
        cell = _cell(m, m[whole + at.F_RULERS + dim], low if low > at.LOWEST else high)
        assert path & ((1 << at.PART_BITS) - 1) == (cell << at.PART_BITS) // at.CELLS
        path, whole = path >> at.PART_BITS, m[whole + at.F_WHOLE]
    assert path == 1


def _cell(m: list[int], ruler: int, key: int) -> int:
    return bisect_right(_run(m, ruler + at.R_MARKS, at.CELLS - 1), key)


def _run(m: list[int], start: int, count: int) -> list[int]:
    return m[start : start + count]


def _axes(walk: _Walk, clusters: list[int], numbers: set[int]) -> None:
    """How often each axis is used, and the rulers."""
    m = walk.m
    walk.block(m[at.AXES], m[at.AXES_CAP] * at.AXIS_WORDS)
    walk.block(m[at.RULERS], m[at.RULERS_CAP])
    parts = dict.fromkeys(range(m[at.AXES_CAP]), 0)
    keyed = {(axis, naming): 0 for axis in [-1, *parts] for naming in range(3)}
    for number in numbers:
        for _, axis, _, _ in walk.parts(m[walk.entry(number) + at.E_PROGRAM]):
            parts[axis] += 1
    for cluster in clusters:
        axis = m[cluster + at.C_AXIS]
        keyed[(axis, m[cluster + at.C_TYPED])] += 1
        if axis >= 0:
            parts[axis] += 1
    free = set()
    number = m[at.FREE_RULER]
    while number >= 0:
        free.add(number)
        number = m[m[at.RULERS] + number]
    for number in set(range(m[at.RULER_TOP])) - free:
        ruler = walk.block(m[m[at.RULERS] + number], at.RULER_WORDS)
        assert m[ruler + at.R_NUMBER] == number
        marks = _run(m, ruler + at.R_MARKS, at.CELLS - 1)
        assert marks == sorted(marks)
        current = m[m[at.AXES] + m[ruler + at.R_AXIS] * at.AXIS_WORDS + at.A_RULER] == ruler
        assert m[ruler + at.R_REFS] == walk.ruled.get(ruler, 0) + current > 0
    for axis, count in parts.items():
        record = m[at.AXES] + axis * at.AXIS_WORDS
        assert m[record + at.A_PARTS] == count
        for naming in range(3):
            assert m[record + at.A_CLUSTERS + naming] == keyed[(axis, naming)]
        if m[record + at.A_SAMPLE]:
            walk.block(m[record + at.A_SAMPLE], at.SAMPLE)
    assert [m[at.UNKEYED + naming] for naming in range(3)] == [keyed[(-1, n)] for n in range(3)]


def _free(walk: _Walk) -> None:
    """The free blocks are free, once each."""
    m = walk.m
    free = 0
    for number in range(at.CLASSES):
        address = m[at.FREE + number]
        while address:
            assert address not in walk.taken, "a free block that is in use"
            walk.taken.add(address)
            free += int(size_of(number))
            address = m[address]
    assert free == m[at.FREED]
