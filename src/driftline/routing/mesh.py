"""How do the members of a mesh find one another, and who of them wants what? [SIENA §4.3]

Links are redundant here, so there are many ways between two members and no one tree. Each member
tells all others which links it has (link states, flooded, the highest version counts), and what it
wants and offers for everyone behind it (its *home*, flooded alike). From the links each member
computes the same shortest-path tree towards every other: an event is meant for the homes that want
it, and goes to each along that home's tree, in one copy as far as the ways are the same.

We differ: the paper leaves the algorithm for this topology to another work and speaks of spanning
trees with the subscriber as their root and a time-to-live. Its equation 1 prunes what another
member's filter covers; where trees differ that can cut a member off, so here a member prunes only
what it wants itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from driftline.model.advertisement import Advertisement
from driftline.model.filter import Filter
from driftline.model.message import Home, Neighbours
from driftline.moving.parametric.updates import updated


class Mesh:
    """What one member knows of the others."""

    __slots__ = (
        "_homes",
        "_links",
        "_me",
        "_offers",
        "_states",
        "_towards",
        "_versions",
        "_within",
    )

    def __init__(self, me: str) -> None:
        self._me = me
        self._links: dict[str, None] = {}
        self._states: dict[str, Neighbours] = {}
        self._versions: dict[str, int] = {}
        self._homes: dict[str, dict[str, Filter]] = {}
        self._offers: dict[str, dict[str, Advertisement]] = {}
        self._towards: dict[str, dict[str, str]] = {}
        self._within: set[str] | None = None

    # Links

    def links(self) -> list[str]:
        """The members that this one has a link to."""
        return list(self._links)

    def links_of(self, member: str) -> tuple[str, ...]:
        """The links that a member has said it has."""
        known = self._states.get(member)
        return () if known is None else known.links

    def link(self, member: str, version: int, *, up: bool) -> Neighbours:
        """A link of our own came or went; what all must be told of it."""
        if up:
            self._links[member] = None
        else:
            self._links.pop(member, None)
        state = Neighbours(self._me, version, tuple(self._links))
        self.hear_links(state)
        return state

    def hear_links(self, state: Neighbours) -> bool:
        """Somebody's links; was that news, to be passed on?"""
        known = self._states.get(state.origin)
        if known is not None and known.version >= state.version:
            return False
        self._states[state.origin] = state
        self._towards.clear()
        self._within = None
        return True

    def reaches(self, home: str) -> bool:
        """Is there a way to a member? As `next_hop`, and one search tells it of all members."""
        if self._within is None:
            self._within = {self._me, *self._tree(self._me)}
        return home in self._within and home != self._me

    def next_hop(self, home: str) -> str | None:
        """The link on the way to a member; None if there is no way."""
        if home not in self._towards:
            self._towards[home] = self._tree(home)
        return self._towards[home].get(self._me)

    def _tree(self, root: str) -> dict[str, str]:
        """For every member that can reach the root, its next hop: the same, whoever computes it."""
        towards: dict[str, str] = {}
        queue = deque([root])
        seen = {root}
        while queue:
            near = queue.popleft()
            for far in sorted(self._both_ways(near)):
                if far not in seen:
                    seen.add(far)
                    towards[far] = near
                    queue.append(far)
        return towards

    def _both_ways(self, member: str) -> Iterable[str]:
        """The links of a member that the other end has too."""
        state = self._states.get(member)
        for other in () if state is None else state.links:
            back = self._states.get(other)
            if back is not None and member in back.links:
                yield other

    # Homes

    def hear_home(self, said: Home) -> bool:
        """What a member wants has changed; was that news, to be applied and passed on?"""
        version = self._versions.get(said.origin, 0)
        # A change from an earlier version says all that has changed since, also what we know.
        if not said.base <= version < said.version:
            return False
        self._versions[said.origin] = said.version
        home = self._homes.setdefault(said.origin, {})
        offers = self._offers.setdefault(said.origin, {})
        if said.base == 0:
            home.clear()
            offers.clear()
        for key in said.removed:
            home.pop(key, None)
        for key in said.withdrawn:
            offers.pop(key, None)
        for key, moved in said.updates.items():
            after = updated(home[key], moved) if key in home else None
            if after is not None:
                home[key] = after
        home.update(said.added)
        offers.update(said.offered)
        return True

    def home(self, origin: str) -> Home:
        """All that a member wants and offers, as one message."""
        wants, offers = dict(self._homes[origin]), dict(self._offers[origin])
        return Home(origin, self._versions[origin], 0, wants, offered=offers)

    def restore(self, said: Neighbours | Home) -> None:
        """Know what was known before a crash, our own links too: they are still there.

        Only what we want ourselves is said anew, by keys of this life.
        """
        if isinstance(said, Neighbours):
            self.hear_links(said)
            if said.origin == self._me:
                self._links = dict.fromkeys(said.links)
        elif said.origin != self._me:
            self.hear_home(said)

    def homes(self) -> list[str]:
        """The members that have said what they want."""
        return list(self._versions)

    def wants(self, home: str) -> Mapping[str, Filter]:
        """What a member wants, by its keys."""
        return self._homes.get(home, {})

    def offers(self, home: str) -> Mapping[str, Advertisement]:
        """What a member may send, by its keys."""
        return self._offers.get(home, {})

    def known(self) -> list[Neighbours | Home]:
        """All that this member knows, for one that just came."""
        return [*self._states.values(), *map(self.home, self._versions)]

    def _check(self) -> None:
        assert self._homes.keys() == self._offers.keys() == self._versions.keys()
        if self._me in self._states:
            assert set(self._states[self._me].links) == set(self._links)
        for home in self._states:
            hop = self.next_hop(home)
            assert hop is None or hop in self._links
            assert (hop is not None) == self.reaches(home)
