"""What has been granted to whom?

A *grant* says who may do what, on which types, with which attributes. Whatever no grant gives is
denied. Several grants of one party add up; none takes anything away from another.

    >>> traders = Grant(
    ...     who=frozenset({"alice"}),
    ...     may=frozenset({Operation.SUBSCRIBE}),
    ...     on=("quote", "news.*"),
    ...     attributes=Names.of(["symbol", "price"]),
    ... )
    >>> grants = Grants([traders])
    >>> names = grants.names("alice", Operation.SUBSCRIBE, "quote")
    >>> "price" in names, "volume" in names
    (True, False)
    >>> grants.names("alice", Operation.PUBLISH, "quote") is None
    True
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from driftline.errors import InvalidValue
from driftline.model.value import show

EVERYTHING = "*"
"""In a list: every type, every attribute, or everybody who has proven who they are."""
_REMEMBERED, _REMEMBERED_LETTERS = 10_000, 200
"""So many answers are remembered, about types of so many letters at most."""


class Operation(enum.StrEnum):
    """What can be granted."""

    PUBLISH = "publish"
    """Events of a type, with attributes."""
    SUBSCRIBE = "subscribe"
    """To be told of events of a type from now on; with attributes: to name them, and see them."""
    VIEW = "view"
    """To be told what is kept of a type: aggregates, DISTINCT, joins, live rows, moved, crossed."""
    SET = "set"
    """To move the parameters of a subscription, or to restate it."""
    ADVERTISE = "advertise"
    """To say what one will publish, and to be told whether anybody wants it."""
    DECLARE = "declare"
    """To declare a table."""
    DELETE = "delete"
    """To remove rows of a table."""
    READ = "read"
    """To use a variable of the environment in a text."""
    OBSERVE = "observe"
    """To say what a variable of the environment is worth."""
    HANDLE = "handle"
    """To be told through a handler: on the addresses of webhooks and of mail."""
    HOLD = "hold"
    """To lose nothing (`overflow` is `block`), and let all who publish wait meanwhile."""
    OPERATE = "operate"
    """To see how the broker does, and to change its links."""


WITH_ATTRIBUTES = frozenset(
    {
        Operation.PUBLISH,
        Operation.SUBSCRIBE,
        Operation.VIEW,
        Operation.SET,
        Operation.ADVERTISE,
    }
)
"""Of these a grant must say which attributes."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names of attributes: these, or all but these."""

    everything: bool
    listed: frozenset[str]

    @classmethod
    def of(cls, names: Collection[str], but: Collection[str] = ()) -> Names:
        """These names, among which `*` is all; but not those."""
        if EVERYTHING in names:
            return cls(True, frozenset(but))
        return cls(False, frozenset(names) - frozenset(but))

    def __contains__(self, name: object) -> bool:
        return (name in self.listed) is not self.everything

    def __or__(self, other: object) -> Names:
        """What is in one of the two."""
        if not isinstance(other, Names):
            return NotImplemented
        if self.everything and other.everything:
            return Names(True, self.listed & other.listed)
        if self.everything:
            return Names(True, self.listed - other.listed)
        if other.everything:
            return Names(True, other.listed - self.listed)
        return Names(False, self.listed | other.listed)

    @property
    def is_all(self) -> bool:
        """Is there none that is not in it?"""
        return self.everything and not self.listed


NO_NAMES = Names(False, frozenset())
ALL_NAMES = Names(True, frozenset())


@dataclass(frozen=True, slots=True)
class Grant:
    """Who may do what, on which types (or variables), with which attributes.

    A type that ends with `*` stands for all that begin so.
    """

    who: frozenset[str]
    may: frozenset[Operation]
    on: tuple[str, ...] = ()
    attributes: Names = NO_NAMES

    def concerns(self, type: str | None) -> bool:
        """Is it about this type, None: about all there may ever be?"""
        if type is None:
            return EVERYTHING in self.on
        return any(_fits(one, type) for one in self.on)


def _fits(pattern: str, type: str) -> bool:
    if pattern.endswith(EVERYTHING):
        return type.startswith(pattern[:-1])
    return type == pattern


class Grants:
    """All that is granted."""

    def __init__(self, grants: Iterable[Grant], unproven: str = "anyone") -> None:
        self._grants = tuple(grants)
        self._unproven = unproven
        self._known: dict[tuple[str, Operation, str | None], Names | None] = {}

    def names(self, who: str, operation: Operation, type: str | None) -> Names | None:
        """The attributes with which somebody may do it on a type (None: any); None: not at all."""
        if type is not None and len(type) > _REMEMBERED_LETTERS:
            return self._found(who, operation, type)
        key = who, operation, type
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = self._found(who, operation, type)
        return self._known[key]

    def _found(self, who: str, operation: Operation, type: str | None) -> Names | None:
        found: Names | None = None
        for grant in self._grants:
            if operation in grant.may and self._is_for(grant, who) and grant.concerns(type):
                found = grant.attributes if found is None else found | grant.attributes
        return found

    def _is_for(self, grant: Grant, who: str) -> bool:
        return who in grant.who or (EVERYTHING in grant.who and who != self._unproven)

    def may(self, who: str, operation: Operation) -> bool:
        """May somebody do something that is about no type?"""
        return any(operation in one.may and self._is_for(one, who) for one in self._grants)

    def mentions(self, who: str) -> bool:
        """Is anything granted to somebody by name?"""
        return any(who in one.who for one in self._grants)


# From a file


def grants_of(said: Mapping[str, Any]) -> Grants:
    """The grants of tables `[groups]` and `[[grants]]`; `InvalidValue` for anything else."""
    if unknown := said.keys() - {"groups", "grants"}:
        raise InvalidValue("access", "only groups and grants", ", ".join(sorted(unknown)))
    groups = said.get("groups", {})
    if not isinstance(groups, Mapping):
        raise InvalidValue("groups", "a table of lists of names", show(groups))
    members = {str(name): _texts(some, f"groups.{name}") for name, some in groups.items()}
    grants = said.get("grants", [])
    if not isinstance(grants, list):
        raise InvalidValue("grants", "tables [[grants]]", show(grants))
    return Grants(_grant(one, f"grants[{at}]", members) for at, one in enumerate(grants))


_FIELDS = ("who", "groups", "may", "on", "attributes", "except")


def _grant(said: object, where: str, members: Mapping[str, list[str]]) -> Grant:
    if not isinstance(said, Mapping):
        raise InvalidValue(where, "a table", show(said))
    if unknown := said.keys() - set(_FIELDS):
        raise InvalidValue(where, f"only {', '.join(_FIELDS)}", ", ".join(sorted(unknown)))
    lists = {name: _texts(said[name], f"{where}.{name}") for name in _FIELDS if name in said}
    who = set(lists.get("who", ()))
    for group in lists.get("groups", ()):
        if group not in members:
            raise InvalidValue(f"{where}.groups", f"one of {', '.join(members) or 'none'}", group)
        who.update(members[group])
    if not who:
        raise InvalidValue(where, "who it is for: who, groups, or both", "nobody")
    may = frozenset(_operation(one, f"{where}.may") for one in lists.get("may", ()))
    if not may:
        raise InvalidValue(f"{where}.may", f"some of {', '.join(Operation)}", "none")
    on = tuple(lists.get("on", ()))
    if not on and may != {Operation.OPERATE}:
        raise InvalidValue(f"{where}.on", 'types, such as ["quote"], or ["*"]', "none")
    if may & WITH_ATTRIBUTES and "attributes" not in lists:
        wanted = 'attributes, such as ["symbol", "price"], or ["*"]'
        raise InvalidValue(f"{where}.attributes", wanted, "none")
    if "except" in lists and EVERYTHING not in lists.get("attributes", ()):
        raise InvalidValue(f"{where}.except", 'it only with attributes = ["*"]', "it without")
    attributes = Names.of(lists.get("attributes", ()), lists.get("except", ()))
    return Grant(frozenset(who), may, on, attributes)


def _operation(said: str, where: str) -> Operation:
    if said not in tuple(Operation):
        raise InvalidValue(where, f"some of {', '.join(Operation)}", show(said))
    return Operation(said)


def _texts(said: object, where: str) -> list[str]:
    if not isinstance(said, list) or not all(isinstance(one, str) and one for one in said):
        raise InvalidValue(where, "a list of texts", show(said))
    return said
