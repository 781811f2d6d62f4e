"""What have our three structures in common? Their memory, and the calls of the kernels.

`EndPoints`, `Classes` and `Combined` are the same memory, used in part: see
`driftline.kernels.moved_layout`. Each call can do many things, so that what a call costs is paid
once: `tell_many`, `insert_many`, `delete_many`, `change_many`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.errors import InvalidValue
from driftline.kernels import moved_events as events
from driftline.kernels import moved_layout as at
from driftline.kernels.moved_changes import delete_many, insert_many, read_many
from driftline.kernels.moved_listing import list_ids
from driftline.kernels.moved_packing import count_entries, pack, unpack
from driftline.kernels.types import Words
from driftline.model.subscription import Measure
from driftline.stateful.value_based.audit import check_memory
from driftline.stateful.value_based.circle import Arranged, admit_label_bits, arranged
from driftline.stateful.value_based.reference import DEFAULT
from driftline.stateful.value_based.rule import Floats, Rule
from driftline.stateful.value_based.span import LABELS, Address, Shift, Span
from driftline.stateful.value_based.structure import (
    ID_MAX,
    SCHEMA,
    Ids,
    admit_centre,
    admit_held,
    admit_ids,
    admit_new,
    metadata_of,
    read_table,
)

_FIRST_IDS = 64
_FIRST_ROWS = 256
_SCATTERED = 4096
_STATE = ("rule", "label_bits", "_shifts", "_lists", "_m", "_ids_cap", "_in_order")
_MEASURES = {Measure.BY: at.BY, Measure.PERCENT: at.PERCENT, Measure.FACTOR: at.FACTOR}


@dataclass(frozen=True, slots=True)
class Told:
    """Who is told of many values: of value i the rows from ends[i] to ends[i + 1].

    See `driftline.kernels.moved_events` for what is in a row.
    """

    rows: NDArray[np.int64]
    ends: NDArray[np.int64]

    def of(self, value: int) -> list[Span]:
        """Who is told of one value."""
        rows = self.rows[self.ends[value] : self.ends[value + 1]]
        radii = rows.view(np.float64)
        return [_span(*pair) for pair in zip(rows.tolist(), radii.tolist(), strict=True)]

    def __len__(self) -> int:
        return len(self.rows)


def _span(row: list[int], radii: list[float]) -> Span:
    arc = None
    if row[events.SLOTS_TOLD] != at.NONE:
        arc = row[events.FIRST_LABEL] % LABELS, row[events.LAST_LABEL] % LABELS
    rings = row[events.FIRST_RING], row[events.LAST_RING]
    return Span(radii[events.LOW], radii[events.HIGH], *rings, arc)


@dataclass(frozen=True, slots=True)
class Listed:
    """The ids of those who are told of many values: of value i from ends[i] to ends[i + 1]."""

    ids: NDArray[np.int32]
    ends: NDArray[np.int64]

    def of(self, value: int) -> NDArray[np.int32]:
        """Who is told of one value."""
        return self.ids[self.ends[value] : self.ends[value + 1]]


class Packed:
    """See `Structure`."""

    _joins: ClassVar[bool]
    """May those with one radius and different centres share an entry?"""

    def __init__(self, value: float, rule: Rule = DEFAULT, label_bits: int = 64) -> None:
        self.rule = rule
        self.label_bits = admit_label_bits(label_bits)
        self._shifts: list[Shift] = []
        self._lists = False
        nothing = np.zeros(0, np.int64)
        none = Arranged(nothing, np.zeros(0), nothing, nothing, np.zeros(0))
        self._pack(none, rule.admit_value(value), _FIRST_IDS)
        self._make_scratch()

    def _make_scratch(self) -> None:
        self._rows = np.zeros((0, events.ROW), np.int64)
        self._make_rows(_FIRST_ROWS)
        self._ids = np.zeros(0, np.int32)
        # For a single event or change: made once, as that costs as much.
        self._one, self._probe, self._ends = np.zeros(1), np.zeros((1, 2)), np.zeros(2, np.int64)

    @property
    def value(self) -> float:
        """See `Structure`."""
        return float(self._f[at.VALUE])

    @property
    def ranked(self) -> bool:
        """Is there any ring with another number than 0?"""
        return bool(self._m[at.RANKED])

    # Events.

    def event(self, value: float) -> list[Span]:
        """See `Structure`; a microsecond or two, and a few for the call."""
        self._tell_one(value)
        return Told(self._rows, self._ends).of(0) if self._ends[1] else []

    def tell(self, value: float) -> list[int]:
        """See `Structure`; and about a nanosecond for each id."""
        self._lists = True
        self._tell_one(value)
        return self._list(self._rows, self._ends).ids.tolist() if self._ends[1] else []

    def tell_many(self, values: object) -> Told:
        """Many values, one after the other. InvalidValue if one may not be; nothing is told then.

        Rows say where those told are, for `ids_of` to find until somebody comes or goes.
        """
        admitted = self.rule.admit_values(values)
        ends = np.zeros(len(admitted) + 1, np.int64)
        self._tell(admitted, self._probes(admitted), ends)
        return Told(self._rows[: ends[-1]].copy(), ends)

    def ids_of(self, told: Told) -> Listed:
        """The ids of those who were told, if nobody has come, gone or changed since."""
        return self._list(told.rows, told.ends)

    def _tell_one(self, value: float) -> None:
        self._one[0] = value = self.rule.admit_value(value)
        strict = self.rule.strict
        self._probe[0, 0] = math.nextafter(value, -math.inf) if strict else value
        self._probe[0, 1] = math.nextafter(value, math.inf) if strict else value
        self._tell(self._one, self._probe, self._ends)

    def _probes(self, values: Floats) -> Floats:
        """What is compared with the ends above and below: for a strict rule the neighbours."""
        if self.rule.strict:
            return np.stack((np.nextafter(values, -math.inf), np.nextafter(values, math.inf)), 1)
        return np.stack((values, values), 1)

    def _tell(self, values: Floats, probes: Floats, ends: NDArray[np.int64]) -> None:
        """Call the kernel until all is told, giving it room where it asks for it."""
        start = 0
        while True:
            said = self._kernel()(
                self._m,
                self._f,
                self._n,
                values,
                probes,
                self._rows,
                self._row_radii,
                ends,
                start,
            )
            if said == events.DONE:
                return
            start = int(self._m[at.STOPPED])
            self._make_rows(2 * len(self._rows))

    def _make_rows(self, count: int) -> None:
        """Room for so many rows, with those that are there; a float and an integer view of it."""
        rows = np.zeros((count, events.ROW), np.int64)
        rows[: len(self._rows)] = self._rows
        self._rows, self._row_radii = rows, rows.view(np.float64)

    def _kernel(self) -> Callable[..., int]:
        return events.tell_many

    def _list(self, rows: NDArray[np.int64], row_ends: NDArray[np.int64]) -> Listed:
        self._lists = True
        ends = np.zeros(len(row_ends), np.int64)
        start = 0
        while True:
            said = list_ids(self._m, self._n, rows, row_ends, self._ids, ends, start)
            if said == events.DONE:
                return Listed(self._ids[: ends[-1]].copy(), ends)
            start = int(self._m[at.STOPPED])
            more = np.empty(max(len(self), 2 * len(self._ids)), np.int32)
            more[: ends[start]] = self._ids[: ends[start]]
            self._ids = more

    # Subscriptions.

    def insert(
        self, id: int, radius: float, centre: float | None = None, *, shared: bool = False
    ) -> float:
        """See `Structure`; O(log n)."""
        id, radius = admit_new(self, id), self.rule.admit_radius(radius)
        if centre is not None:
            centre = admit_centre(self.rule, self.value, radius, centre)
        centres = np.array([math.nan if centre is None else centre])
        self._insert(np.array([id]), np.array([radius]), centres, shared)
        return float(centres[0])

    def insert_many(
        self, ids: object, radii: object, centres: object = None, *, shared: bool = False
    ) -> Floats:
        """Begin many subscriptions; their centres. InvalidValue if one may not be: none is then."""
        new, wanted = admit_ids(ids), self.rule.admit_radii(radii)
        if len(wanted) != len(new):
            raise InvalidValue("radii", f"one for each of {len(new)} ids", str(len(wanted)))
        if self._homes(new).any():
            raise InvalidValue("ids", "none that is there", str(new[self._homes(new) != 0][0]))
        if centres is None:
            told = np.full(len(new), math.nan)
        else:
            told = self.rule.admit_values(centres, "centres")
            if len(told) != len(new) or self.rule.tells_many(told, wanted, self.value).any():
                raise InvalidValue("centres", "one for each id, nobody overdue", "others")
            # One who comes next to the last is put in place at once.
            order = np.lexsort((told, wanted))
            new, wanted, told = new[order], wanted[order], told[order]
        self._insert(new, wanted, told, shared)
        return told if centres is None else self.rule.admit_values(centres)

    def _insert(self, ids: Ids, radii: Floats, centres: Floats, shared: bool) -> None:
        """Call the kernel until all are there, giving it room where it asks for it."""
        if len(ids) and int(ids.max()) >= self._ids_cap:
            self._pack(self._unpack(), self.value, min(2 * int(ids.max()) + 1, ID_MAX + 1))
        start = 0
        while True:
            said = insert_many(self._m, self._f, self._n, ids, radii, centres, shared, start)
            if said == events.DONE:
                break
            start = int(self._m[at.STOPPED])
            if said == events.PACK:
                self._pack(self._unpack(), self.value, self._ids_cap)
            else:
                self._note_shift(ids[start - 1 : start])
        scattered = int(self._m[at.SLOTS_USED]) - self._in_order
        if self._lists and scattered > _SCATTERED + len(self) // 4:
            # Ids are listed, and a quarter of them lie apart from those they are told with.
            self._pack(self._unpack(), self.value, self._ids_cap)

    def delete(self, id: int) -> None:
        """See `Structure`; O(log n)."""
        delete_many(self._m, self._f, self._n, np.array([admit_held(self, id)]))

    def delete_many(self, ids: object) -> None:
        """End many subscriptions. InvalidValue if one is not there: none is ended then."""
        delete_many(self._m, self._f, self._n, self._held(ids))

    def change(self, id: int, radius: float) -> bool:
        """See `Structure`; O(log n)."""
        return bool(self.change_many([admit_held(self, id)], [radius])[0])

    def change_many(self, ids: object, radii: object) -> NDArray[np.bool_]:
        """Give many another radius: who is told of the value at once?

        Who has this radius already stays where it is.
        """
        held, wanted = self._held(ids), self.rule.admit_radii(radii)
        if len(wanted) != len(held):
            raise InvalidValue("radii", f"one for each of {len(held)} ids", str(len(wanted)))
        radii_now, centres, _, _ = self._read(held)
        told = self.rule.tells_many(centres, wanted, self.value)
        centres[told] = self.value
        other = wanted != radii_now
        delete_many(self._m, self._f, self._n, held[other])
        self._insert(held[other], wanted[other], centres[other], False)
        return told

    def address(self, id: int) -> Address:
        """See `Structure`; O(1)."""
        radii, _, rings, labels = self._read(np.array([admit_held(self, id)]))
        return Address(float(radii[0]), int(rings[0]), int(labels[0]) % LABELS)

    def addresses(self, ids: Ids) -> tuple[Ids, Ids]:
        """The rings and the labels of many, as 64 bits each."""
        _, _, rings, labels = self._read(ids)
        return rings, labels

    def centre(self, id: int) -> float:
        """See `Structure`; O(1)."""
        return float(self._read(np.array([admit_held(self, id)]))[1][0])

    def take_shifts(self) -> list[Shift]:
        """How labels have moved since this was asked last, in order.

        Nothing else changes an address but a change of radius. An address that is read has all
        shifts so far in it: who keeps addresses takes the shifts first.
        """
        shifts, self._shifts = self._shifts, []
        return shifts

    def _held(self, ids: object) -> Ids:
        held = admit_ids(ids)
        if not self._homes(held).all():
            raise InvalidValue("ids", "none that is not there", "another")
        return held

    def _homes(self, ids: Ids) -> NDArray[np.int32]:
        """Where ids are; 0 for those that are not there."""
        homes: NDArray[np.int32] = self._n[self._m[at.HOMES] + np.minimum(ids, self._ids_cap - 1)]
        return np.where(ids < self._ids_cap, homes, 0)

    def _read(self, ids: Ids) -> tuple[Floats, Floats, Ids, Ids]:
        """The radii, centres, rings and labels of ids."""
        radii, centres = np.zeros(len(ids)), np.zeros(len(ids))
        rings, labels = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
        read_many(self._m, self._f, self._n, ids, radii, centres, rings, labels)
        return radii, centres, rings, labels

    def _note_shift(self, id: Ids) -> None:
        """Remember which labels have moved in the ring of one who has just come."""
        radii, _, rings, _ = self._read(id)
        first, last, by = self._m[at.SHIFT_FIRST : at.SHIFT_BY + 1].tolist()
        self._m[at.SHIFT_BY] = 0
        shift = Shift(float(radii[0]), int(rings[0]), first % LABELS, last % LABELS, by)
        self._shifts.append(shift)

    # All of it.

    def dump(self) -> pa.Table:
        """See `Structure`."""
        all_ = self._unpack()
        order = np.argsort(all_.ids)
        columns = (all_.ids, all_.radii, all_.centres, all_.rings, all_.labels.view(np.uint64))
        return pa.table(
            [pa.array(column[order]) for column in columns],
            SCHEMA.with_metadata(metadata_of(self.rule, self.value)),
        )

    @classmethod
    def load(cls, table: pa.Table, label_bits: int = 64) -> Self:
        """See `Structure`."""
        read = read_table(table)
        made = cls(read.value, read.rule, label_bits)
        ids = max(_FIRST_IDS, int(read.ids.max(initial=0)) + 1)
        made._pack(arranged(read, cls._joins, label_bits), read.value, ids)
        return made

    @classmethod
    def of(cls, other: Packed) -> Self:
        """The same subscriptions at the same addresses, with the shifts that were not yet taken."""
        made = cls.load(other.dump(), other.label_bits)
        made._shifts = other._shifts
        return made

    @property
    def nbytes(self) -> int:
        """How many bytes it takes for its subscriptions, with the room that it has for more."""
        return self._m.nbytes

    def __len__(self) -> int:
        return int(self._m[at.COUNT])

    def __contains__(self, id: object) -> bool:
        if not isinstance(id, int) or not 0 <= id < self._ids_cap:
            return False
        return bool(self._n[self._m[at.HOMES] + id])

    def _unpack(self) -> Arranged:
        count = len(self)
        whole = [np.zeros(count, np.int64) for _ in range(3)]
        radii, centres = np.zeros(count), np.zeros(count)
        unpack(self._m, self._f, self._n, whole[0], radii, whole[1], whole[2], centres)
        return Arranged(whole[0], radii, whole[1], whole[2], centres)

    def _pack(self, all_: Arranged, value: float, ids_cap: int) -> None:
        """Take fresh memory and put these there."""
        found = np.zeros(3, np.int64)
        count_entries(all_.radii, all_.rings, all_.labels, found)
        entries, rings, members = found.tolist()
        self._hold(at.make_room(entries, rings, members, ids_cap), ids_cap)
        self._f[at.VALUE] = value
        self._m[at.MEASURE] = _MEASURES[self.rule.measure]
        self._m[at.JOINS] = self._joins and self.rule.circular
        self._m[at.UNIT_BITS] = 64 - self.label_bits
        columns = (all_.ids, all_.radii, all_.rings, all_.labels, all_.centres)
        pack(self._m, self._f, self._n, *columns, entries)
        self._in_order = int(self._m[at.SLOTS_USED])

    def _hold(self, m: Words, ids_cap: int) -> None:
        self._m, self._f, self._n = m, m.view(np.float64), m.view(np.int32)
        self._ids_cap = ids_cap

    def __getstate__(self) -> dict[str, object]:
        # One array: views of it would become arrays of their own.
        return {name: getattr(self, name) for name in _STATE}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._hold(self._m, self._ids_cap)
        self._make_scratch()

    def _check(self) -> None:
        check_memory(self._m, self._f, self._n, self.rule, self._ids_cap)
