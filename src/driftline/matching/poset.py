"""The filters poset: what does not satisfy a filter satisfies nothing that the filter covers.

Filters are partially ordered by covering and kept with their immediate relations only: the
*successors* of a filter are the nearest that cover it, its *predecessors* the nearest it covers,
and the *roots* are covered by none [SIENA §5.2.1]. An event is matched breadth first from the roots
and goes on only below the filters it satisfies [SIENA §5.2.2]. That pays where subscriptions
overlap much; where they do not, everything is a root and this is a scan.

`filter_covers` may wrongly say no. Then an edge is missing and a filter stands higher than it need
be, which costs a look; it never hides a filter below one that does not cover it.

    >>> from driftline.language.sql import parse
    >>> from driftline.model.event import Event
    >>> poset = Poset()
    >>> for id, text in (("any", "x > 0"), ("high", "x > 100"), ("other", "y = 1")):
    ...     poset.add(id, Standing.of(parse(f"SELECT * WHERE {text}")))
    >>> [str(one) for one in poset.roots()]
    ['x > 0', 'y = 1']
    >>> poset.match(Event("e", {"x": 50}), {})
    ['any']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from driftline.model.covering import filter_covers
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.variables import Variables, variables_of


class _Node:
    """One filter, whose it is, and its immediate neighbours (dictionaries, to keep their order)."""

    __slots__ = ("filter", "owners", "predecessors", "private", "successors")

    def __init__(self, one: Filter, private: bool) -> None:
        self.filter = one
        # What depends on a subscriber's own variables is that subscription's alone.
        self.private = private
        self.owners: dict[str, None] = {}
        self.successors: dict[_Node, None] = {}
        self.predecessors: dict[_Node, None] = {}

    def covers(self, other: _Node) -> bool:
        """Is everything that satisfies the other sure to satisfy this one?"""
        return filter_covers(self.filter, other.filter)


class Poset:
    """A matcher that walks the covering relation. `add` costs a walk, `match` what it satisfies."""

    __slots__ = ("_nodes", "_order", "_roots", "_standing")

    def __init__(self) -> None:
        self._standing: dict[str, tuple[int, Standing]] = {}
        self._nodes: dict[str, list[_Node]] = {}
        self._roots: dict[_Node, None] = {}
        self._order = count()

    def add(self, id: str, standing: Standing) -> None:
        """Take in a subscription, replacing one of the same id."""
        assert isinstance(standing.statement, Subscription)
        self.discard(id)
        self._standing[id] = (next(self._order), standing)
        nodes = self._nodes[id] = []
        for one in standing.statement.filters(standing.params):
            node = self._insert(one)
            node.owners[id] = None
            nodes.append(node)

    def discard(self, id: str) -> None:
        """Forget a subscription; nothing happens if there is none of that id."""
        if self._standing.pop(id, None) is None:
            return
        for node in self._nodes.pop(id):
            node.owners.pop(id, None)
            if not node.owners:
                self._remove(node)

    def match(self, event: Event, env: Mapping[str, Value]) -> list[str]:
        """The ids of all that the event satisfies, in the order they were added."""
        hits: dict[str, int] = {}
        queue = list(self._roots)
        seen = set(queue)
        for node in queue:  # which grows while it is walked: breadth first
            # Any owner will do: they differ only in what the filter does not depend on.
            standing = self._standing[next(iter(node.owners))][1]
            if not node.filter.matches(standing.scope(event, env)):
                continue
            hits.update((id, self._standing[id][0]) for id in node.owners)
            for below in node.predecessors:
                if below not in seen:
                    seen.add(below)
                    queue.append(below)
        return sorted(hits, key=hits.__getitem__)

    def roots(self) -> list[Filter]:
        """The filters that no other covers: all that a server would tell its neighbours."""
        return [node.filter for node in self._roots]

    def __len__(self) -> int:
        return len(self._standing)

    def _insert(self, one: Filter) -> _Node:
        new = _Node(one, _variables(one).private)
        successors = self._nearest_above(new)
        if not new.private:
            for node in successors:
                if not node.private and new.covers(node):
                    return node  # They say the same.
        predecessors = self._nearest_below(new, successors)
        for above in successors:
            for below in predecessors:
                _part(above, below)  # No longer immediate: the new filter stands between.
            _join(above, new)
        for below in predecessors:
            _join(new, below)
            self._roots.pop(below, None)
        if not successors:
            self._roots[new] = None
        return new

    def _nearest_above(self, new: _Node) -> list[_Node]:
        """The filters that cover the new one and of which no predecessor does."""
        nearest = []
        queue = [root for root in self._roots if root.covers(new)]
        seen = set(queue)
        for node in queue:
            covering = [below for below in node.predecessors if below.covers(new)]
            if not covering:
                nearest.append(node)
            for below in covering:
                if below not in seen:
                    seen.add(below)
                    queue.append(below)
        return nearest

    def _nearest_below(self, new: _Node, successors: Iterable[_Node]) -> list[_Node]:
        """The filters the new one covers and that no other such filter covers."""
        # What it covers, its successors cover too, and so it is below them all; without any,
        # it may be anywhere.
        start = [below for above in successors for below in above.predecessors]
        queue = list(dict.fromkeys(start)) if start or successors else list(self._roots)
        seen = set(queue)
        found: dict[_Node, None] = {}
        for node in queue:
            if new.covers(node):
                found[node] = None
                continue
            for below in node.predecessors:
                if below not in seen:
                    seen.add(below)
                    queue.append(below)
        return [node for node in found if not any(_is_below(node, top) for top in found)]

    def _remove(self, node: _Node) -> None:
        self._roots.pop(node, None)
        above, below = list(node.successors), list(node.predecessors)
        for one in above:
            _part(one, node)
        for one in below:
            _part(node, one)
            for wider in above:
                if not _is_below(one, wider):
                    _join(wider, one)
            if not one.successors:
                self._roots[one] = None

    def _check(self) -> None:
        nodes = {node for owned in self._nodes.values() for node in owned}
        assert set(self._roots) == {node for node in nodes if not node.successors}
        for id, owned in self._nodes.items():
            assert all(id in node.owners for node in owned)
        for node in nodes:
            assert node.owners, "a filter that nobody asked for was kept"
            assert not node.private or len(node.owners) == 1
            for below in node.predecessors:
                assert node in below.successors
                assert below in nodes
                assert node.covers(below), "an edge that would hide a filter"
                others = [other for other in node.predecessors if other is not below]
                assert not any(_is_below(below, other) for other in others), "not immediate"
        assert nodes == set(_reachable(self._roots)), "a filter that no walk finds"


def _variables(one: Filter) -> Variables:
    found = Variables()
    for constraint in one.constraints:
        found |= constraint.variables()
    for condition in one.conditions:
        found |= variables_of(condition)
    return found


def _join(above: _Node, below: _Node) -> None:
    above.predecessors[below] = None
    below.successors[above] = None


def _part(above: _Node, below: _Node) -> None:
    above.predecessors.pop(below, None)
    below.successors.pop(above, None)


def _is_below(node: _Node, top: _Node) -> bool:
    """Is there a way down from the one to the other?"""
    return node is not top and node in _reachable([top])


def _reachable(start: Iterable[_Node]) -> Iterator[_Node]:
    queue = list(start)
    seen = set(queue)
    for node in queue:
        yield node
        for below in node.predecessors:
            if below not in seen:
                seen.add(below)
                queue.append(below)
