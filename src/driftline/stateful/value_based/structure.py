"""What can be asked of a structure, and what may be put into it?

A structure holds the subscriptions to one item under one rule, with the item's current value.
Subscriptions go by an id, which the caller gives: small integers, each used again when its
subscription is gone, for a structure may have a place for every id up to the largest.

The invariant is that nobody is overdue: of the current value each has been told, or it is not far
enough from what it was told last. So nobody's centre can be taken on trust: `insert` and `load`
refuse one that breaks it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.errors import InvalidValue
from driftline.model.subscription import Measure
from driftline.model.value import show
from driftline.stateful.value_based.rule import Floats, Rule, admit_number
from driftline.stateful.value_based.span import Address, Span

Ids = NDArray[np.int64]

ID_MAX = 2**31 - 1

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("radius", pa.float64(), nullable=False),
        pa.field("centre", pa.float64(), nullable=False),
        # Null where a structure has none: whoever loads the table gives them.
        pa.field("ring", pa.int64()),
        pa.field("label", pa.uint64()),
    ]
)
_VALUE, _MEASURE, _STRICT = b"driftline.value", b"driftline.measure", b"driftline.strict"


class Structure(Protocol):
    """Who is told of the values of one item."""

    @property
    def rule(self) -> Rule:
        """When one is told."""

    @property
    def value(self) -> float:
        """The current value."""

    def insert(
        self, id: int, radius: float, centre: float | None = None, *, shared: bool = False
    ) -> float:
        """Begin a subscription; what it has been told, its centre.

        Without a centre that is the current value; if shared, what somebody with this radius was
        last told, the nearest to the value and the lower of two, so that both are told the same
        from now on [VALUE §3]. InvalidValue if it may not be; nothing has changed then.
        """

    def delete(self, id: int) -> None:
        """End a subscription."""

    def change(self, id: int, radius: float) -> bool:
        """Give it another radius: is it told of the current value at once, being overdue by it?"""

    def event(self, value: float) -> list[Span]:
        """There is a new value: who is told, as spans of addresses, as few as there can be.

        All who are told have it as their centre now.
        """

    def tell(self, value: float) -> list[int]:
        """The same, as ids in any order."""

    def address(self, id: int) -> Address:
        """Where a subscription is found in spans."""

    def centre(self, id: int) -> float:
        """What a subscription was last told."""

    def dump(self) -> pa.Table:
        """All subscriptions by id, as `load` takes them."""

    @classmethod
    def load(cls, table: pa.Table) -> Self:
        """A structure with these subscriptions; InvalidValue if they could not have come to be."""

    def __len__(self) -> int: ...

    def __contains__(self, id: object) -> bool: ...

    def _check(self) -> None:
        """Assert the invariants."""


class Held(NamedTuple):
    """A subscription as it is dumped."""

    id: int
    radius: float
    centre: float
    ring: int | None = None
    label: int | None = None


def admit_id(id: object) -> int:
    """An integer that an array can have a place for."""
    if not isinstance(id, int | np.integer) or isinstance(id, bool) or not 0 <= id <= ID_MAX:
        raise InvalidValue("id", f"an integer from 0 to {ID_MAX}", show(id))
    return int(id)


def admit_ids(ids: object) -> Ids:
    """Many ids at once, each of which is there once."""
    given: NDArray[Any] = np.asarray(ids)
    if given.ndim != 1 or (len(given) and given.dtype.kind not in "iu"):
        raise InvalidValue("ids", "a column of integers", f"{given.dtype} {given.shape}")
    if len(given) and not 0 <= given.min() <= given.max() <= ID_MAX:
        raise InvalidValue("ids", f"integers from 0 to {ID_MAX}", f"{given.min()} to {given.max()}")
    if len(np.unique(given)) < len(given):
        raise InvalidValue("ids", "each id once", "one that is there twice")
    return np.ascontiguousarray(given, np.int64)


def admit_new(held: Container[int], id: object) -> int:
    """An id that is not there."""
    number = admit_id(id)
    if number in held:
        raise InvalidValue("id", "one that is not there", show(id))
    return number


def admit_held(held: Container[int], id: object) -> int:
    """An id that is there."""
    number = admit_id(id)
    if number not in held:
        raise InvalidValue("id", "one that is there", show(id))
    return number


def admit_centre(rule: Rule, value: float, radius: float, centre: object) -> float:
    """A centre of one who need not be told of the value."""
    number = rule.admit_value(centre, "centre")
    if rule.tells(number, radius, value):
        raise InvalidValue(
            "centre", f"one with radius {radius!r} around {value!r}", f"{show(centre)}, overdue"
        )
    return number


def nearest(centres: Iterable[float], value: float) -> float | None:
    """The centre that is nearest to a value, the lower of two; None if there is none.

    >>> nearest([90, 99, 101, 104], 100)
    99
    """
    found = list(centres)
    below = max((centre for centre in found if centre <= value), default=None)
    above = min((centre for centre in found if centre > value), default=None)
    if below is None or above is None:
        return above if below is None else below
    return below if value - below <= above - value else above


def write_table(rule: Rule, value: float, rows: Iterable[Held]) -> pa.Table:
    """Subscriptions as a table, by id."""
    flat = sorted(rows)
    columns = zip(*flat, strict=True) if flat else ([] for _ in SCHEMA.names)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)],
        SCHEMA.with_metadata(metadata_of(rule, value)),
    )


def metadata_of(rule: Rule, value: float) -> dict[bytes, bytes]:
    """The rule and the value, as they stand beside a table."""
    strict = b"1" if rule.strict else b"0"
    return {_VALUE: value.hex().encode(), _MEASURE: rule.measure.value.encode(), _STRICT: strict}


class Read(NamedTuple):
    """What a table has: columns, not in order; ring and label may be all null."""

    rule: Rule
    value: float
    ids: Ids
    radii: Floats
    centres: Floats
    rings: Ids | None
    labels: NDArray[np.uint64] | None

    def rows(self) -> list[Held]:
        """The same by rows."""
        columns = (self.ids, self.radii, self.centres)
        return [Held(*row) for row in zip(*(one.tolist() for one in columns), strict=True)]


def read_table(table: pa.Table) -> Read:
    """What a table has; InvalidValue if somebody in it would be overdue, or could not be."""
    rule, value = _read_metadata(table)
    try:
        table = table.select(SCHEMA.names).cast(SCHEMA).combine_chunks()
    except (KeyError, ValueError, pa.ArrowInvalid) as problem:
        raise InvalidValue("table", f"columns {SCHEMA.names}", str(problem)) from None
    if any(table.column(at).null_count for at in range(3)):
        raise InvalidValue("table", "an id, a radius and a centre in every row", "null")
    ids = admit_ids(table.column(0).to_numpy())
    radii = rule.admit_radii(table.column(1).to_numpy())
    centres = rule.admit_values(table.column(2).to_numpy(), "centres")
    overdue = rule.tells_many(centres, radii, value)
    if overdue.any():
        raise InvalidValue("table", "nobody overdue", f"id {ids[overdue][0]}")
    ring, label = table.column(3), table.column(4)
    if ring.null_count or label.null_count:
        return Read(rule, value, ids, radii, centres, None, None)
    return Read(rule, value, ids, radii, centres, ring.to_numpy(), label.to_numpy())


def _read_metadata(table: pa.Table) -> tuple[Rule, float]:
    found = table.schema.metadata or {}
    try:
        rule = Rule(Measure(found[_MEASURE].decode()), found[_STRICT] == b"1")
        value = float.fromhex(found[_VALUE].decode())
    except (KeyError, ValueError) as problem:
        raise InvalidValue("table", "metadata with value and rule", str(problem)) from None
    return rule, rule.admit_value(admit_number(value, "value"))
