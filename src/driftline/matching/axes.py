"""Which attributes does an index look at, and as what kinds of keys?

An axis is one attribute seen as one kind of key (see `driftline.kernels.keys`). It exists while
some filter names it. For each attribute a reader says which axes an event's value goes to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from driftline.kernels import layout
from driftline.kernels.axes import is_unused, set_axis
from driftline.kernels.types import Words
from driftline.model.event import ENVELOPE
from driftline.model.value import Kind

TYPE = "ce_type"

# Axes are looked through for unused ones when their number has doubled.
_SWEEP_FIRST = 64


@dataclass(slots=True)
class Reader:
    """Where the values of one attribute go, by kind; -1 and nothing where no filter asks."""

    number: int = -1
    time: int = -1
    boolean: int = -1
    presence: int = -1
    texts: tuple[int, ...] = ()
    raws: tuple[int, ...] = ()

    def axes(self, kind: Kind) -> tuple[int, ...]:
        """The axes that a value of this kind has a key on, apart from presence."""
        if kind is Kind.STRING:
            return self.texts
        if kind is Kind.BYTES:
            return self.raws
        axis = {Kind.NUMBER: self.number, Kind.TIME: self.time, Kind.BOOLEAN: self.boolean}[kind]
        return () if axis < 0 else (axis,)


@dataclass(slots=True)
class Axes:
    """All axes of an index. A name of an axis is (attribute, kind of value, kind of key)."""

    numbers: dict[tuple[str, Kind | None, int], int] = field(default_factory=dict)
    readers: dict[str, Reader] = field(default_factory=dict)
    names: dict[int, tuple[str, Kind | None, int]] = field(default_factory=dict)
    # For each axis the column that an event without a value has: 0, all zeros, or none.
    columns: Words = field(default_factory=lambda: np.full(64, -1, np.int64))
    # The names of the envelope, apart from the type, that filters look at.
    envelope: tuple[str, ...] = ()
    version: int = 0
    """Another one whenever an attribute is read otherwise."""
    _free: list[int] = field(default_factory=list)
    _top: int = 0
    _sweep_at: int = _SWEEP_FIRST

    def __post_init__(self) -> None:
        self._top = layout.TYPE_SPAN + 1
        self._name(layout.TYPE_TEXT, (TYPE, Kind.STRING, layout.TEXT))
        self.columns[layout.ALWAYS] = 0

    def of(self, m: Words, attribute: str, kind: Kind | None, key: int) -> int:
        """The axis of an attribute's values of one kind, by this kind of key; made if needed."""
        found = self.numbers.get((attribute, kind, key))
        if found is not None:
            return found
        if attribute == TYPE and kind is Kind.STRING:
            # Their numbers are known beforehand; they are read from the first long type on.
            self._name(layout.TYPE_HASH, (TYPE, Kind.STRING, layout.HASH))
            self._name(layout.TYPE_SPAN, (TYPE, Kind.STRING, layout.SPAN))
            return self.numbers[(attribute, kind, key)]
        span = 0
        if key == layout.HASH:
            span = self.of(m, attribute, kind, layout.SPAN)
        if self._free:
            axis = self._free.pop()
        else:
            axis, self._top = self._top, self._top + 1
        if axis >= len(self.columns):
            more = np.full(len(self.columns), -1, np.int64)
            self.columns = np.concatenate([self.columns, more])
        set_axis(m, axis, key, span)
        self._name(axis, (attribute, kind, key))
        self.columns[axis] = 0 if key == layout.PRESENCE else -1
        return axis

    def _name(self, axis: int, name: tuple[str, Kind | None, int]) -> None:
        self.numbers[name] = axis
        self.names[axis] = name
        self._read(name[0])

    def _read(self, attribute: str) -> None:
        """Make the attribute's reader anew."""
        self.version += 1
        get = self.numbers.get
        found = {
            kind: tuple(
                axis
                for key in (layout.TEXT, layout.HASH, layout.SPAN)
                if (axis := get((attribute, kind, key), -1)) >= 0
            )
            for kind in (Kind.STRING, Kind.BYTES)
        }
        reader = Reader(
            get((attribute, Kind.NUMBER, layout.NUMBER), -1),
            get((attribute, Kind.TIME, layout.PLAIN), -1),
            get((attribute, Kind.BOOLEAN, layout.PLAIN), -1),
            get((attribute, None, layout.PRESENCE), -1),
            found[Kind.STRING],
            found[Kind.BYTES],
        )
        if reader == Reader():
            self.readers.pop(attribute, None)
        else:
            self.readers[attribute] = reader
        self.envelope = tuple(name for name in ENVELOPE if name != TYPE and name in self.readers)

    def sweep(self, m: Words) -> bool:
        """Take back the axes that no filter names any more, if there are many by now; were there?

        Not while a letter is written: its axes are not named yet.
        """
        if len(self.numbers) < self._sweep_at:
            return False
        for axis, name in list(self.names.items()):
            # The texts behind hashes are named by clusters, whose guards are not counted.
            kept = name[2] == layout.SPAN and (name[0], name[1], layout.HASH) in self.numbers
            if axis > layout.TYPE_SPAN and not kept and is_unused(m, axis):
                del self.names[axis], self.numbers[name]
                self.columns[axis] = -1
                self._free.append(axis)
                self._read(name[0])
        self._sweep_at = max(_SWEEP_FIRST, 2 * len(self.numbers))
        return True

    def __iter__(self) -> Iterator[int]:
        return iter(self.names)

    def __len__(self) -> int:
        return self._top
