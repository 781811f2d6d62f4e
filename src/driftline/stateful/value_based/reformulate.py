"""What does a table's home say when values move? [VALUE §5]

It knows everybody who follows the table's values, and what each was last told, in structures that
say whom a value concerns in few ranges. A change of a row becomes a message for each of these, with
the row as it is now; so brokers on the way need no state of values, only filters.

    moved         GROUP, KEY, RADIUS_L, RADIUS_R, LO, HI, NEW, NEW_symbol, NEW_price, …
    who is late   the same, with a box in which there is no place
    row gone      GROUP, KEY, the box of everybody, GONE
    relabelled    GROUP, KEY, RADIUS_L = RADIUS_R, LO, HI, SHIFT, GENERATION

A relabelling concerns those whose labels become others, so it finds its way like what moved: each
broker shifts the filters that it has, then lets it go on. Where a row is gone all of its followers
begin anew, at place 0, which is a relabelling too.

Paper and message: its primary server is the structure of all radii, its secondary servers are the
rings, here in one place: a message for a radius told in part has the arc, one for radii told as a
whole has no more than their range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftline.matching.choice import make_matcher
from driftline.model.expression import TRUE, Attribute, Expression, Literal
from driftline.model.filter import filters_of
from driftline.model.predicate import Comparison, conjunction, conjuncts
from driftline.model.table import Table
from driftline.model.text import identifier
from driftline.model.value import Value, comparable
from driftline.model.view import View
from driftline.stateful.rows.change import Change, attributes_of
from driftline.stateful.value_based.address import (
    EVERYBODY,
    GENERATION,
    GONE,
    GROUP,
    KEY,
    LABEL_BITS,
    MOVED,
    SHIFT,
    Box,
    arcs_of,
)
from driftline.stateful.value_based.conditions import Move
from driftline.stateful.value_based.follower import Found
from driftline.stateful.value_based.group import Followers, Group, Item, Pairs, Rows, Singles
from driftline.stateful.value_based.items import MANY
from driftline.stateful.value_based.span import Shift
from driftline.stateful.value_based.states import attribute_of

if TYPE_CHECKING:
    from driftline.stateful.value_based.crowd import CrowdGroup

Said = dict[str, Value]


@dataclass(frozen=True, slots=True)
class _Member:
    """One follower: which group it is in, and where."""

    group: str
    number: int
    pin: Value | None
    move: Move


class MovedMessages:
    """The followers of one table's values.

    A `mark` makes groups others than those of an earlier life, of which brokers may still know.
    """

    def __init__(
        self, table: Table, mark: str, label_bits: int = LABEL_BITS, many: int = MANY
    ) -> None:
        self._table = table
        self._mark = mark
        self._label_bits = label_bits
        self._many = many
        self.type = MOVED + table.declaration.name
        self.tables = (table.declaration.name,)
        self._groups: dict[str, Group] = {}
        self._crowds: dict[str, CrowdGroup] = {}
        self._matcher = make_matcher("auto")
        self._members: dict[str, _Member] = {}
        # How often an item of a group was relabelled.
        self._generations: dict[tuple[str, Item], int] = {}
        self._unsaid: list[Said] = []

    # Followers.

    def join(self, who: str, view: View, move: Move, *, keeps: bool) -> tuple[Found, Rows]:
        """Somebody follows, or with other radii: where it is found, and the rows it may be told.

        With `keeps` what it was told counts, if it was known by this name.
        """
        pin, rest = pin_of(view.where, self._table.declaration.key)
        name = self._name(view, rest, move)
        known = self._members.get(who)
        if known is not None and keeps and (known.group, known.pin) == (name, pin):
            member = _Member(name, known.number, pin, move)
            rows = self._groups[name].change(known.number, move, pin)
        else:
            self.leave(who)
            group = self._groups.get(name) or self._begin(name, view, rest, move)
            member = _Member(name, group.number(), pin, move)
            rows = group.join(member.number, move, pin)
        self._members[who] = member
        self._relabelled(name)
        return self._found(member), rows

    def _name(self, view: View, rest: Expression, move: Move) -> str:
        parts = [identifier(attribute_of(view)), move.rule.measure.value]
        parts += ["strict"] * move.rule.strict + ["may"] * (move.may is not None)
        texts = sorted({str(part) for part in conjuncts(rest)} - {str(TRUE)})
        return f"{' '.join(parts)}: {' AND '.join(texts)} #{self._mark}"

    def _begin(self, name: str, view: View, rest: Expression, move: Move) -> Group:
        followers: Followers
        if move.may is None:
            followers = Singles(move.rule, self._label_bits, self._many)
        else:
            followers = Pairs(move.rule)
        group = Group(attribute_of(view), rest, move, followers, self._table)
        self._groups[name] = group
        self._matcher.add(name, filters_of(None, rest))
        return group

    def _found(self, member: _Member) -> Found:
        group, pin = self._groups[member.group], member.pin
        radius = member.move.radius if member.move.may is None else member.move.may
        if pin is None or group.is_late(member.number, pin):
            return Found(member.group, radius, pin)
        item = comparable(pin)
        radius, place = group.followers.point(item, member.number)
        return Found(
            member.group, radius, pin, place, self._generations.get((member.group, item), 0)
        )

    def leave(self, who: str) -> None:
        """Somebody follows no longer."""
        member = self._members.pop(who, None)
        if member is None:
            return
        group = self._groups[member.group]
        group.leave(member.number, member.pin)
        if not len(group):
            del self._groups[member.group]
            self._matcher.discard(member.group)

    # Crowds.

    def gather(self, who: str, view: View, move: Move) -> tuple[str, CrowdGroup]:
        """Begin a crowd, whose view pins an item: the name of its group, and its members."""
        pin, rest = pin_of(view.where, self._table.declaration.key)
        assert pin is not None
        name = f"{self._name(view, rest, move)} {who}"
        # Compiled code is loaded by those who need it.
        from driftline.stateful.value_based.crowd import CrowdGroup

        group = CrowdGroup(view, rest, pin, move, self._table, self._label_bits)
        self._crowds[name] = group
        self._matcher.add(name, filters_of(None, rest))
        return name, group

    def disperse(self, name: str) -> None:
        """A crowd is no more."""
        del self._crowds[name]
        self._matcher.discard(name)

    @property
    def only_crowds(self) -> bool:
        """Does nobody follow by itself?"""
        return not self._members

    # Messages.

    def take(self, change: Change) -> list[Said]:
        """See `Reformulator`."""
        (key,) = change.keys
        if change.new is None:
            said = [self._gone(name, key) for name, one in self._all() if one.end(key)]
        else:
            said = []
            row: Said | None = None
            for name in self._matcher.match(change.new):
                group = self._groups[name] if name in self._groups else self._crowds[name]
                value = group.number_of(change.new)
                if value is None:
                    continue
                boxes = group.take(key, value, change.new)
                if boxes and row is None:
                    row = attributes_of(Change(change.type, change.keys, None, change.new))
                said += (self._said(name, key, box, row or {}) for box in boxes)
                self._relabelled(name)
        return [*said, *self.take_unsaid()]

    def _all(self) -> Iterator[tuple[str, Group | CrowdGroup]]:
        yield from self._groups.items()
        yield from self._crowds.items()

    def take_unsaid(self) -> list[Said]:
        """What there is to say besides: labels that have become others."""
        said, self._unsaid = self._unsaid, []
        return said

    def _said(self, name: str, key: Value, box: Box, row: Mapping[str, Value]) -> Said:
        said: Said = {**row, GROUP: name, KEY: key, **box.said()}
        generation = self._generations.get((name, comparable(key)))
        if generation is not None:
            said[GENERATION] = generation
        return said

    def _gone(self, name: str, key: Value) -> Said:
        group = self._groups.get(name)
        if group is None:
            return {**self._said(name, key, EVERYBODY, {}), GONE: True}
        item = comparable(key)
        # Who follows every item has no place: nobody is to be relabelled, or known for ever.
        if isinstance(group.followers, Singles) and item in group.followers:
            self._next_generation(name, item)
        return {**self._said(name, key, group.followers.everybody, {}), GONE: True}

    def _relabelled(self, name: str) -> None:
        if name in self._crowds:
            return  # It takes what is shifted itself, where its members are found.
        for item, shift in self._groups[name].followers.take_shifts():
            self._unsaid += self._shifted(name, item, shift)

    def _shifted(self, name: str, item: Item, shift: Shift) -> list[Said]:
        key = self._groups[name].key_of(item)
        by = shift.by >> (64 - LABEL_BITS)
        ring = shift.ring << LABEL_BITS
        said = []
        for first, last in arcs_of(shift.first, shift.last, by):
            self._next_generation(name, item)
            box = Box(shift.radius, shift.radius, ring | first, ring | last)
            said.append({**self._said(name, key, box, {}), SHIFT: by})
        return said

    def _next_generation(self, name: str, item: Item) -> None:
        self._generations[name, item] = self._generations.get((name, item), 0) + 1

    # See `Reformulator`.

    def notice(self, flags: Mapping[str, frozenset[str]]) -> bool:
        """There are none: messages say whom they concern."""
        return False

    def flags(self) -> frozenset[str]:
        """There are none."""
        return frozenset()

    def retain(self, flags: set[str]) -> None:
        """There are none."""

    def __len__(self) -> int:
        return len(self._members)

    def _check(self) -> None:
        assert {member.group for member in self._members.values()} == set(self._groups)
        assert sum(map(len, self._groups.values())) == len(self._members)
        assert len(self._matcher) == len(self._groups) + len(self._crowds)
        for _, group in self._all():
            group._check()


def pin_of(where: Expression, key: str) -> tuple[Value | None, Expression]:
    """The item that a condition pins by its table's key, and the rest of it."""
    parts = conjuncts(where)
    for at, part in enumerate(parts):
        match part:
            case Comparison("=", Attribute(name), Literal(value)) if name == key:
                pass
            case Comparison("=", Literal(value), Attribute(name)) if name == key:
                pass
            case _:
                continue
        if value is not None:
            return value, conjunction(tuple(parts[:at] + parts[at + 1 :]))
    return None, where
