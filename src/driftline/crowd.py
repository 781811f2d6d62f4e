"""What does somebody hold who follows a value for a great many at once, each with its own radius?

    >>> import driftline as dl
    >>> engine = dl.Engine(clock=dl.ManualClock())
    >>> engine.table("stock", key="symbol")
    >>> wanted = "SELECT price FROM stock WHERE symbol = 'IBM' AND moved(price, by => :r)"
    >>> crowd = engine.crowd(wanted, {"r": [1.0, 2.0, 5.0]})
    >>> engine.publish_many("stock", {"symbol": ["IBM"] * 3, "price": [100.0, 102.5, 98.0]})
    7
    >>> for told in crowd.pending():
    ...     print(told.kind, told.values, sorted(told.members.tolist()))
    snapshot {'price': 100.0} [0, 1, 2]
    change {'price': 102.5} [0, 1]
    change {'price': 98.0} [0, 1]

One text stands for all members, who go by numbers from 0, and each is told what a subscription of
its own would be told. What is told to many at once is one `Told`, with an array of their numbers.
The members are known where the table is, like other followers: a value becomes boxes of addresses,
and whose address is in one is found by an index (`driftline.stateful.value_based`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftline.crowd_told import Members, Told, ToldMany
from driftline.errors import InvalidValue, ParameterError, SubscriptionEnded
from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.view import View
from driftline.stateful.entering import Places, Rows
from driftline.stateful.value_based.address import BOX, EVERYBODY, GONE, MOVED, Box
from driftline.stateful.value_based.addressed import Addressed
from driftline.stateful.value_based.boxes import Boxes
from driftline.stateful.value_based.crowd import LATE, CrowdGroup
from driftline.stateful.value_based.rule import Floats
from driftline.stateful.value_based.structure import Ids, admit_ids

_Put: TypeAlias = Callable[[NotificationKind, Members], None]

TOGETHER = 4096
"""So many events are told together at first: whoever is told of them is in one array."""
TOLD_TOGETHER = 1 << 20
"""Then as many as tell about so many members: arrays are no longer for more events."""


class Keeper(Protocol):
    """What a crowd asks of its engine."""

    @property
    def _env(self) -> Mapping[str, Value]: ...

    def _now(self) -> int: ...

    def _disperse(self, crowd: Crowd) -> None: ...


class Crowd:
    """A great many followers of one row: read what they were told, let them come, move and go."""

    def __init__(
        self, keeper: Keeper, id: str, parameter: str, standing: Standing, group: CrowdGroup
    ) -> None:
        assert isinstance(standing.statement, View)
        self.id = id
        self.parameter = parameter
        self.active = True
        self._keeper = keeper
        self._standing = standing
        self._condition = standing.statement.condition()
        self._group = group
        self._found = Addressed(MOVED + standing.statement.source)
        self._free: list[int] = []
        self._count = 0
        # Those who have never been told anything.
        self._fresh = np.zeros(0, np.bool_)
        self._pending: list[Told | ToldMany] = []

    @property
    def item(self) -> Value:
        """What the row is known by that it follows."""
        return self._group.pin

    @property
    def statement(self) -> Subscription | View:
        """What was asked for."""
        assert isinstance(self._standing.statement, View)
        return self._standing.statement.asked()

    def __len__(self) -> int:
        return len(self._group.members)

    def pending(self) -> list[Told]:
        """All that was told since the last call, oldest first; the list is then empty."""
        found: list[Told] = []
        for one in self.pending_columns():
            if isinstance(one, Told):
                found.append(one)
                continue
            for event, members in one.each():
                values = self._select(event, one.env)
                found.append(Told(one.kind, values, members, _time(event), event))
        return found

    def pending_columns(self) -> list[Told | ToldMany]:
        """The same; but what events of one `publish_many` told is in columns, by kind."""
        told, self._pending = self._pending, []
        return told

    # Members

    def add(self, /, **radii: object) -> Ids:
        """Let members come, one for each radius: their numbers. They are told the row at once."""
        now = self._now()
        admitted = self._admit(radii)
        numbers = self._numbers(len(admitted))
        told = self._group.join(numbers, admitted)
        self._fresh[numbers] = True
        self._readdress(numbers)
        for row, some in told:
            self._fresh[some] = False
            members = some.astype(np.int32)
            self._put(NotificationKind.SNAPSHOT, members, row, now, self._group.row)
        return numbers

    def _numbers(self, count: int) -> Ids:
        """Numbers for new members: those that have become free first."""
        again = self._free[-count:] if count else []
        del self._free[len(self._free) - len(again) :]
        fresh = count - len(again)
        numbers = np.array([*again, *range(self._count, self._count + fresh)], np.int64)
        self._count += fresh
        self._fresh = np.concatenate((self._fresh, np.zeros(fresh, np.bool_)))
        return numbers

    def remove(self, numbers: object) -> None:
        """Let members go; their numbers are given to others."""
        self._now()
        gone = self._held(numbers)
        self._group.members.delete(gone)
        self._found.take_out(gone)
        self._free += gone.tolist()

    def set(self, numbers: object, /, **radii: object) -> int:
        """Give members other radii: how many are told of the row at once, being overdue by it."""
        now = self._now()
        held, admitted = self._held(numbers), self._admit(radii)
        if len(admitted) != len(held):
            wanted = f"one for each of {len(held)} members"
            raise InvalidValue(self.parameter, wanted, str(len(admitted)))
        row, told = self._group.change(held, admitted)
        self._readdress(held)
        if len(told):
            assert row is not None
            self._put(NotificationKind.CHANGE, told.astype(np.int32), row, now, None)
        return len(told)

    def _held(self, numbers: object) -> Ids:
        """The numbers of members, each once."""
        given: NDArray[Any] = np.asarray(numbers)
        held = admit_ids(given if len(given.shape) != 1 or len(given) else given.astype(np.int64))
        there = self._group.members.has(held)
        if not there.all():
            raise InvalidValue("numbers", "those of members", str(held[~there][0]))
        return held

    def _admit(self, radii: dict[str, object]) -> Floats:
        """The radii that are given by the parameter's name."""
        extra = tuple(sorted(radii.keys() - {self.parameter}))
        missing = () if self.parameter in radii else (self.parameter,)
        if extra or missing:
            raise ParameterError(missing, extra, ())
        given: NDArray[Any] = np.asarray(radii[self.parameter])
        return self._group.admit_radii(given, self.parameter)

    def _now(self) -> int:
        if not self.active:
            raise SubscriptionEnded(self.id)
        return self._keeper._now()

    def cancel(self) -> None:
        """End it. What is pending can still be read; cancelling twice does nothing."""
        if self.active:
            self.active = False
            self._keeper._disperse(self)

    def _readdress(self, numbers: Ids) -> None:
        """These, and all whose labels were shifted, are found where they are now."""
        some = np.union1d(numbers, self._group.members.take_shifted())
        self._found.put(some, *self._group.members.address(some))

    # What is told

    def hear(self, messages: Sequence[Event], cause: Event | None, now: int) -> int:
        """What is said of one change of the row: how many are told."""
        if not messages:
            return 0
        if GONE in messages[0].attributes:
            return self._gone(now)
        boxes = [Box(*(one.attributes[name] for name in BOX)) for one in messages]  # type: ignore[arg-type]
        assert cause is not None
        return self._moved(boxes, partial(self._put, row=cause, time=_time(cause), event=cause))

    def _moved(self, boxes: list[Box], put: _Put) -> int:
        moved = [box for box in boxes if box != LATE]
        told = self._found.find(Boxes.of_each(moved, [0] * len(moved))).members
        put(NotificationKind.CHANGE, told)
        return len(told) + (self._late(put) if len(moved) < len(boxes) else 0)

    def _late(self, put: _Put) -> int:
        """Those who waited are told of a row, whatever its value, and have a place now."""
        late = self._found.find(Boxes.of_each([LATE], [0])).members
        fresh = self._fresh[late]
        self._fresh[late] = False
        self._readdress(late.astype(np.int64))
        put(NotificationKind.SNAPSHOT, late[fresh])
        put(NotificationKind.ENTER, late[~fresh])
        return len(late)

    def _gone(self, now: int) -> int:
        gone = self._found.find(Boxes.of_each([EVERYBODY], [0])).members
        self._put(NotificationKind.LEAVE, gone, None, now, None)
        self._readdress(gone.astype(np.int64))
        return len(gone)

    def _put(
        self,
        kind: NotificationKind,
        members: Members,
        row: Event | None,
        time: int,
        event: Event | None,
    ) -> None:
        if len(members):
            values = {} if row is None else self._select(row, self._keeper._env)
            self._pending.append(Told(kind, values, members, time, event))

    # Batches

    def take_many(self, rows: Rows, places: Places) -> int:
        """Rows of its item, one after the other: how many are told."""
        values, places = self._group.counting(rows, places)
        if not len(places):
            return 0
        last = rows.take(places[-1:])[0]
        begun = int(self._group.members.value is None or self._group.members.waiting > 0)
        told = self._begin(rows, places[:begun], values) if begun else 0
        told += self._tell(rows, places[begun:], values[begun:])
        self._group.note(last)
        return told

    def _begin(self, rows: Rows, place: Places, values: Floats) -> int:
        """The first of some rows, while there is one who waits for it."""
        (row,) = rows.take(place)
        boxes = self._group.take(self._group.pin, float(values[0]), row)
        return self._moved(boxes, partial(self._put_first, rows, place))

    def _put_first(
        self, rows: Rows, place: Places, kind: NotificationKind, members: Members
    ) -> None:
        self._put_many(kind, rows, place, np.array([0, len(members)]), members)

    def _tell(self, rows: Rows, places: Places, values: Floats) -> int:
        """Rows that count, when nobody waits: how many are told."""
        told = start = 0
        together = TOGETHER
        while start < len(places):
            end = start + together
            told += self._tell_some(rows, places[start:end], values[start:end])
            together = max(1, min(TOLD_TOGETHER, TOLD_TOGETHER * end // max(told, 1)))
            start = end
        return told

    def _tell_some(self, rows: Rows, places: Places, values: Floats) -> int:
        boxes = self._group.take_many(values)
        found = self._found.find(boxes)
        first = np.searchsorted(boxes.of, np.arange(len(places) + 1))
        self._put_many(NotificationKind.CHANGE, rows, places, found.offsets[first], found.members)
        return len(found.members)

    def _put_many(
        self,
        kind: NotificationKind,
        rows: Rows,
        places: Places,
        offsets: NDArray[np.int64],
        members: Members,
    ) -> None:
        if len(members):
            some = np.diff(offsets) > 0
            ends = np.concatenate((offsets[:1], offsets[1:][some]))
            env = dict(self._keeper._env)
            self._pending.append(ToldMany(kind, places[some], ends, members, rows, env))

    def _select(self, row: Event, env: Mapping[str, Value]) -> dict[str, Value | None]:
        return self._condition.select(self._standing.scope(row, env))

    def __iter__(self) -> Iterator[int]:
        """The numbers of its members, in order."""
        there = self._group.members.has(np.arange(self._count))
        return iter(np.flatnonzero(there).tolist())

    def __repr__(self) -> str:
        state = "" if self.active else ", cancelled"
        return f"<Crowd {self.id} of {len(self)}: {self.statement}{state}>"

    def _check(self) -> None:
        self._group._check()
        numbers = np.array([*self], np.int64)
        assert len(numbers) == len(self) == self._count - len(self._free)
        assert not {*numbers.tolist()} & {*self._free}
        self._found._check(numbers, *self._group.members.address(numbers))


def _time(row: Event) -> int:
    assert row.stamp is not None
    return row.stamp
