"""What do the members of a mesh want and offer, as far as they can be reached? [SIENA §4.3]

To a broker the mesh is one interface: it wants and offers what its members do for everyone behind
them, each under the member's name and key. A member that cannot be reached wants nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from driftline.broker.effects import Effect, Send
from driftline.broker.effects import Key as StoreKey
from driftline.model.advertisement import Advertisement
from driftline.model.filter import Filter
from driftline.model.message import Home, Neighbours
from driftline.moving.parametric.updates import Moved
from driftline.routing.mesh import Mesh

T = TypeVar("T")
Key: TypeAlias = tuple[str, str]
NOTHING: Mapping[str, Moved] = {}


class Homes:
    """The mesh around a broker. `want` and `offer` are told of each change, None: no longer."""

    __slots__ = (
        "_count",
        "_me",
        "_mesh",
        "_offer",
        "_offered",
        "_put",
        "_version",
        "_want",
        "_wanted",
    )

    def __init__(
        self,
        me: str,
        put: Callable[[StoreKey, object], None],
        count: Callable[[], int],
        want: Callable[[Key, Filter | None], None],
        offer: Callable[[Key, Advertisement | None], None],
    ) -> None:
        self._me = me
        self._mesh = Mesh(me)
        self._put = put
        self._count = count
        self._want = want
        self._offer = offer
        # Of the members that can be reached, what is known to want and offer.
        self._wanted: dict[str, dict[str, Filter]] = {}
        self._offered: dict[str, dict[str, Advertisement]] = {}
        self._version = 0

    def links(self) -> list[str]:
        """The members that this one has a link to."""
        return self._mesh.links()

    def link(self, member: str, *, up: bool) -> list[Effect]:
        """A link to a member came, the first time or again, or went."""
        state = self._mesh.link(member, self._count(), up=up)
        self._put(("mesh", "links", self._me), state)
        self.reach()
        said = self.flood(state, member)
        return [*said, *(Send(member, one) for one in self._mesh.known())] if up else said

    def hear(self, said: Neighbours | Home, sender: str) -> list[Effect] | None:
        """A member has said something; it is passed on, or None if it was no news."""
        if isinstance(said, Neighbours):
            if not self._mesh.hear_links(said):
                return None
            self._put(("mesh", "links", said.origin), said)
            self.reach()
        else:
            before = [] if said.base else self._journaled(said.origin)
            if not self._mesh.hear_home(said):
                return None
            for key in before:
                self._put(key, None)
            self._journal(said)
            self.reach(said)
        return self.flood(said, sender)

    def _journaled(self, home: str) -> list[StoreKey]:
        """The keys that what a member wants and offers is stored by."""
        wants, offers = self._mesh.wants(home), self._mesh.offers(home)
        return [
            *(("mesh", "want", home, key) for key in wants),
            *(("mesh", "offer", home, key) for key in offers),
        ]

    def _journal(self, said: Home) -> None:
        """Store what is different, by itself: homes may be large."""
        self._put(("mesh", "home", said.origin), said.version)
        for kind, removed, added in (
            ("want", said.removed, said.added),
            ("offer", said.withdrawn, said.offered),
        ):
            for key in removed:
                self._put(("mesh", kind, said.origin, key), None)
            for key, one in added.items():
                self._put(("mesh", kind, said.origin, key), one)
        wants = self._mesh.wants(said.origin)
        for key in said.updates:
            self._put(("mesh", "want", said.origin, key), wants.get(key))

    def flood(self, message: Neighbours | Home, sender: str) -> list[Effect]:
        """Tell all members but the sender."""
        return [Send(link, message) for link in self._mesh.links() if link != sender]

    def say(
        self,
        added: Mapping[str, Filter],
        removed: Sequence[str],
        offered: Mapping[str, Advertisement],
        withdrawn: Sequence[str],
        updates: Mapping[str, Moved] = NOTHING,
    ) -> list[Effect]:
        """Tell the mesh what is different for those behind us; the first time it is all."""
        version, base = self._count(), self._version
        said = Home(
            self._me,
            version,
            base,
            added,
            tuple(removed) if base else (),
            offered,
            tuple(withdrawn) if base else (),
            updates if base else {},
        )
        self._version = version
        self._mesh.hear_home(said)
        return self.flood(said, self._me)

    def known(self, home: str) -> tuple[Mapping[str, Filter], Mapping[str, Advertisement]]:
        """What a member is known to want and offer."""
        return self._mesh.wants(home), self._mesh.offers(home)

    def versions(self) -> dict[str, int]:
        """The versions of the homes of others that are known."""
        known = (one for one in self._mesh.known() if isinstance(one, Home))
        return {one.origin: one.version for one in known if one.origin != self._me}

    def states(self) -> list[Neighbours]:
        """The links that members are known to have."""
        known = (one for one in self._mesh.known() if isinstance(one, Neighbours))
        return sorted(known, key=lambda one: one.origin)

    def links_of(self, member: str) -> set[str]:
        """The links that a member is known to have."""
        return set(self._mesh.links_of(member))

    @property
    def said(self) -> bool:
        """Has the mesh been told what those behind us want, in this life?"""
        return self._version != 0

    def next_hop(self, home: str) -> str | None:
        """The link on the way to a member; None if there is no way."""
        return self._mesh.next_hop(home)

    def restore(self, stored: Mapping[StoreKey, object]) -> None:
        """Know what was known before a crash."""
        wants: dict[str, dict[str, Filter]] = {}
        offers: dict[str, dict[str, Advertisement]] = {}
        for key, value in stored.items():
            if key[:2] == ("mesh", "links"):
                assert isinstance(value, Neighbours)
                self._mesh.restore(value)
            elif key[:2] == ("mesh", "want"):
                assert isinstance(value, Filter)
                wants.setdefault(key[2], {})[key[3]] = value
            elif key[:2] == ("mesh", "offer"):
                assert isinstance(value, Advertisement)
                offers.setdefault(key[2], {})[key[3]] = value
        for key, value in stored.items():
            if key[:2] == ("mesh", "home"):
                assert isinstance(value, int)
                home = key[2]
                said = Home(home, value, 0, wants.get(home, {}), offered=offers.get(home, {}))
                self._mesh.restore(said)
        self.reach()

    def reach(self, said: Home | None = None) -> None:
        """Let those count, and only those, that can be reached now."""
        for home in self._mesh.homes() if said is None else [said.origin]:
            if home == self._me:
                continue
            there = self._mesh.reaches(home)
            wanted = self._mesh.wants(home) if there else {}
            offered = self._mesh.offers(home) if there else {}
            # A change says what is different; only after other news must all be compared.
            known = said is not None and said.base != 0 and home in self._wanted
            _compare(
                self._wanted.get(home, {}),
                wanted,
                [*said.removed, *said.added, *said.updates] if said is not None and known else None,
                partial(_under, self._want, home),
            )
            _compare(
                self._offered.get(home, {}),
                offered,
                [*said.withdrawn, *said.offered] if said is not None and known else None,
                partial(_under, self._offer, home),
            )
            if there:
                self._wanted[home], self._offered[home] = dict(wanted), dict(offered)
            else:
                self._wanted.pop(home, None)
                self._offered.pop(home, None)

    def _check(self) -> None:
        self._mesh._check()


def _under(tell: Callable[[Key, T | None], None], home: str, key: str, one: T | None) -> None:
    tell((home, key), one)


def _compare(
    before: Mapping[str, T],
    after: Mapping[str, T],
    changed: list[str] | None,
    tell: Callable[[str, T | None], None],
) -> None:
    """Tell what is different, in an order that is the same in every run."""
    for key in dict.fromkeys([*before, *after] if changed is None else changed):
        if before.get(key) != after.get(key):
            tell(key, after.get(key))
