"""In which order do the events of one item count, if not as they came?

Each has a position: its time, or an attribute in which its publisher counts. An item (a row of a
table by its key, else a type) goes forward: an event is held until one has come that is further by
the declared lateness, and then takes its place. One that comes when something behind its place has
counted already is late:

    refuse    it goes to the refused rows, and counts for nothing; so does a count that came before
    accept    it counts at once, as a correction of what was said: as the newest word on the item

An item waits for itself only, so what is told does not depend on how many items or shards there
are. Changes do not wait: they count when they come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import isfinite

from driftline.errors import DriftlineError, InvalidValue
from driftline.model.event import Event
from driftline.model.table import TableDeclaration
from driftline.model.value import Kind, comparable, kind_of, show
from driftline.recorded.config import RECORDED, TIME, OrderConfig


class Late(DriftlineError):
    """An event came when something behind its place had counted already."""


@dataclass(slots=True)
class _Item:
    """How far an item is: what came, what has counted, and what waits."""

    top: float
    done: float
    waiting: list[tuple[float, int, Event]] = field(default_factory=list)
    counts: set[float] = field(default_factory=set)
    """The positions that wait, where nobody may count the same twice."""


class Ordering:
    """The events of all items, each in its order."""

    def __init__(self, order: OrderConfig, tables: dict[str, TableDeclaration]) -> None:
        self._by = order.by
        self._lateness = order.lateness * (1e6 if order.by == TIME else 1.0)
        self._refuses = order.late == "refuse"
        self._tables = tables
        self._items: dict[object, _Item] = {}

    @property
    def is_recorded(self) -> bool:
        """Does everything count as it comes?"""
        return self._by == RECORDED

    def take(self, seq: int, event: Event) -> Iterator[tuple[int, Event]]:
        """What counts now that this has come, in order; Late, or InvalidValue, if it may not."""
        if self._by == RECORDED:
            yield seq, event
            return
        position = self._position(event)
        item = self._items.get(self._item(event))
        if item is None:
            item = self._items[self._item(event)] = _Item(position, float("-inf"))
        if self._refuses and self._is_repeated(position, item):
            raise Late(f"{self._by} {show(position)} has come before")
        if position < item.done or (position == item.done and self._by != TIME):
            if self._refuses:
                raise Late(f"{self._by} {show(position)} is behind {show(item.done)}")
            yield seq, event
            return
        item.top = max(item.top, position)
        item.counts.add(position)
        heappush(item.waiting, (position, seq, event))
        # A difference, which is exact where a count is too large for a float.
        while item.waiting and item.top - item.waiting[0][0] >= self._lateness:
            item.done, number, first = heappop(item.waiting)
            item.counts.discard(item.done)
            yield number, first

    def _is_repeated(self, position: float, item: _Item) -> bool:
        """Two things may happen at one time, but nobody counts the same twice."""
        return self._by != TIME and (position == item.done or position in item.counts)

    def _item(self, event: Event) -> object:
        table = self._tables.get(event.type)
        key = None if table is None else event.attributes.get(table.key)
        return event.type, None if key is None else comparable(key)

    def _position(self, event: Event) -> float:
        if self._by == TIME:
            assert event.time is not None  # Every event that has entered has one.
            return event.time
        value = event.attributes.get(self._by)
        if value is None or kind_of(value) is not Kind.NUMBER:
            raise InvalidValue(self._by, "a number to go by", show(value))
        assert isinstance(value, int | float)
        if not isfinite(value):
            raise InvalidValue(self._by, "a finite number to go by", show(value))
        return value

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return sum(len(item.waiting) for item in self._items.values())

    def _check(self) -> None:
        for item in self._items.values():
            assert all(item.top - at < self._lateness for at, _, _ in item.waiting)
            assert item.counts == {at for at, _, _ in item.waiting}
            assert item.done <= item.top
