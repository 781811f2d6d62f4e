"""The filters poset: what does not satisfy a filter satisfies nothing that the filter covers.

An event is matched breadth first from the filters that no other covers, and goes on only below
those it satisfies [SIENA §5.2.2]. That pays where subscriptions overlap much; where they do not,
everything is a root and this is a scan. How the filters stand to one another is in `relations`.

    >>> from driftline.language.sql import parse
    >>> from driftline.model.event import Event
    >>> poset = Poset()
    >>> for id, text in (("any", "x > 0"), ("high", "x > 100"), ("other", "y = 1")):
    ...     poset.add(id, parse(f"SELECT * WHERE {text}").filters())
    >>> [str(one) for one in poset.roots()]
    ['x > 0', 'y = 1']
    >>> poset.match(Event("e", {"x": 50}))
    ['any']
"""

from __future__ import annotations

from itertools import count

from driftline.matching.bounds import admitted, alternatives, parameters_of
from driftline.matching.columns import Columns
from driftline.matching.matcher import NO_BOUNDS, Bounds, Filters, Matches
from driftline.matching.relations import FEW, FilterNode, Relations
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.scope import Scope


class _Held:
    """What goes by one id: its filters, and the nodes that say the same as they do now."""

    __slots__ = ("filters", "nodes", "order")

    def __init__(self, order: int, filters: tuple[Filter, ...]) -> None:
        self.order = order
        self.filters = filters
        self.nodes: dict[FilterNode, None] = {}


class Poset:
    """A matcher that walks the covering relation: `match` costs what the event satisfies.

    Parameters are bound when a filter comes in, so that filters are compared as they are now. Those
    that then say the same are one, shared by their owners. With up to `few` of them no index is
    made to find their places.
    """

    __slots__ = ("_held", "_order", "_relations")

    def __init__(self, few: int = FEW) -> None:
        self._held: dict[str, _Held] = {}
        self._relations = Relations(few)
        self._order = count()

    def add(self, id: str, filters: Filters, bounds: Bounds = NO_BOUNDS) -> None:
        """Take in what goes by this id, replacing what did; it becomes the last added."""
        given = alternatives(filters)
        checked = admitted(parameters_of(given), bounds)
        self.discard(id)
        self._held[id] = _Held(next(self._order), given)
        self._place(id, checked)

    def change(self, id: str, bounds: Bounds) -> None:
        """Move the bounds of what is there; its place in the order stays."""
        self._place(id, admitted(parameters_of(self._held[id].filters), bounds))

    def discard(self, id: str) -> None:
        """Forget an id; nothing happens if it is not there."""
        held = self._held.pop(id, None)
        if held is not None:
            for node in held.nodes:
                self._release(node, id)

    def match(self, event: Event) -> list[str]:
        """The ids that the event satisfies, in the order they were added."""
        hits: dict[str, int] = {}
        scope = Scope(event)
        queue = list(self._relations.roots)
        seen = set(queue)
        for node in queue:  # which grows while it is walked: breadth first
            if not node.said.matches(scope):
                continue
            hits.update((id, self._held[id].order) for id in node.owners)
            for below in node.predecessors:
                if below not in seen:
                    seen.add(below)
                    queue.append(below)
        return sorted(hits, key=hits.__getitem__)

    def match_batch(self, columns: Columns) -> Matches:
        """For each event of the batch the ids that it satisfies."""
        ids = (self.match(columns.event(at)) for at in range(len(columns)))
        return Matches.of(ids, list(self._held))

    def roots(self) -> list[Filter]:
        """The filters that no other covers: all that a server would tell its neighbours."""
        return [node.said for node in self._relations.roots]

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, id: object) -> bool:
        return id in self._held

    def _place(self, id: str, bounds: Bounds) -> None:
        held = self._held[id]
        before, held.nodes = held.nodes, {}
        for one in held.filters:
            node = self._relations.node(one.bound(bounds))
            if node is not None:
                node.owners[id] = 1
                held.nodes[node] = None
        for node in before:
            if node not in held.nodes:
                self._release(node, id)

    def _release(self, node: FilterNode, id: str) -> None:
        del node.owners[id]
        if not node.owners:
            self._relations.remove(node)

    def _check(self) -> None:
        self._relations._check()
        assert {*self._relations} == {node for one in self._held.values() for node in one.nodes}
        for node in self._relations:
            owners = {id for id, held in self._held.items() if node in held.nodes}
            assert node.owners.keys() == owners
