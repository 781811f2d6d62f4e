"""Which filters are the nearest that cover this one, and which the nearest that it covers?

Filters are partially ordered by covering and kept with their immediate relations only: the
*successors* of a filter are the nearest that cover it, its *predecessors* the nearest it covers,
and the *roots* are covered by none [SIENA §5.2.1].

We differ: the paper finds the place of a new filter by walking down from the roots, which takes
longer the more of them there are. Here an index finds the filters that may cover the new one, and
those it may cover (see `nesting`), and of these the nearest are picked.

`filter_covers` may wrongly say no. Then an edge is missing and a filter stands higher than it need
be; nothing ever stands below a filter that does not cover it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count

from driftline.matching.box import box_of
from driftline.matching.matcher import Matcher
from driftline.matching.nesting import Nesting
from driftline.model.covering import domains_of, filter_covers
from driftline.model.domain import Domain
from driftline.model.filter import Filter

# Up to so many filters each is compared with each: that is quick, and no index is loaded.
FEW = 128


class Node:
    """One filter, whose it is, and its immediate neighbours (dictionaries, to keep their order)."""

    __slots__ = ("asks", "box", "domains", "filter", "id", "owners", "predecessors", "successors")

    def __init__(self, id: str, one: Filter, domains: dict[str, Domain]) -> None:
        self.id = id
        self.filter = one
        self.domains = domains
        self.box = box_of(one, domains)
        self.asks = self.box.asks  # Looked at for every candidate.
        self.owners: dict[str, None] = {}
        self.successors: dict[Node, None] = {}
        self.predecessors: dict[Node, None] = {}

    def covers(self, other: Node) -> bool:
        """Is everything that satisfies the other sure to satisfy this one?"""
        return filter_covers(self.filter, other.filter, other.domains)


class Relations:
    """Filters and how they cover one another. A change costs what covers it and is covered."""

    __slots__ = ("_few", "_nesting", "_node_of", "_nodes", "_numbers", "roots")

    def __init__(self, few: int = FEW) -> None:
        self.roots: dict[Node, None] = {}
        self._nodes: dict[str, Node] = {}
        self._node_of: dict[Filter, Node] = {}
        self._nesting: Nesting | None = None
        self._numbers = count()
        self._few = few

    def node(self, one: Filter) -> Node | None:
        """The node of a filter or of one that says the same; None if nothing satisfies it."""
        node = self._node_of.get(one)
        if node is not None:
            return node
        domains = domains_of(one)
        if any(domain.empty for domain in domains.values()):
            return None
        return self._insert(Node(str(next(self._numbers)), one, domains))

    def by_id(self, id: str) -> Node:
        """The node that goes by this id."""
        return self._nodes[id]

    def remove(self, node: Node) -> None:
        """Take out a filter; what it covered moves up to what covered it."""
        self._forget(node)
        self.roots.pop(node, None)
        wider, narrower = list(node.successors), list(node.predecessors)
        for above in wider:
            _part(above, node)
        for below in narrower:
            _part(node, below)
            # There is another way up to what covers something that is next on that way.
            for above in wider:
                if not any(above is one or above.covers(one) for one in below.successors):
                    _join(above, below)
            if not below.successors:
                self.roots[below] = None

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def _insert(self, new: Node) -> Node:
        successors = self._nearest_above(new)
        for node in successors:
            if new.covers(node):
                return node  # They say the same.
        predecessors = self._nearest_below(new)
        for below in predecessors:
            for above in [node for node in below.successors if node in successors]:
                _part(above, below)  # No longer immediate: the new filter stands between.
            _join(new, below)
            self.roots.pop(below, None)
        for above in successors:
            _join(above, new)
        if not successors:
            self.roots[new] = None
        self._keep(new)
        return new

    def _nearest_above(self, new: Node) -> dict[Node, None]:
        """The filters that cover the new one, and cover no other that does.

        What covers a filter that covers the new one covers the new one too. So if A are all that
        cover it, everything on a way up from one of A to another is of A; and one of A is nearest
        if and only if it is no immediate successor of one of A.
        """
        left = self._candidates(new, around=True)
        wider: set[Node] = set().union(*(node.successors for node in left))
        ready = [node for node in left if node not in wider]
        return _confirmed(ready, left, lambda node: node.covers(new), upwards=True)

    def _nearest_below(self, new: Node) -> dict[Node, None]:
        """The filters that the new one covers, and that no other such filter covers.

        In the same way: everything on a way up between two that it covers is such, and one of them
        is nearest if and only if none of its immediate successors is one of them.
        """
        left = self._candidates(new, around=False)
        ready = [node for node in left if node.successors.keys().isdisjoint(left.keys())]
        return _confirmed(ready, left, new.covers, upwards=False)

    def _candidates(self, new: Node, *, around: bool) -> dict[Node, None]:
        """All that cover the new one, or all that it covers; perhaps others too."""
        box = new.box
        if self._nesting is None:
            if around:
                return {node: None for node in self if node.box.may_contain(box)}
            return {node: None for node in self if box.may_contain(node.box)}
        ids = self._nesting.around(box) if around else self._nesting.inside(box)
        nodes = map(self._nodes.__getitem__, ids)
        if around:
            return {node: None for node in nodes if node.asks <= box.asks}
        return {node: None for node in nodes if box.asks <= node.asks}

    def _keep(self, node: Node) -> None:
        self._nodes[node.id] = self._node_of[node.filter] = node
        if self._nesting is not None:
            self._nesting.add(node.id, node.box)
        elif len(self._nodes) > self._few:
            self._nesting = Nesting(_make_index)
            for one in self:
                self._nesting.add(one.id, one.box)

    def _forget(self, node: Node) -> None:
        del self._nodes[node.id], self._node_of[node.filter]
        if self._nesting is not None:
            self._nesting.discard(node.id, node.box)

    def _check(self) -> None:
        assert set(self.roots) == {node for node in self if not node.successors}
        assert {*self} == {*self._node_of.values()}
        for node in self:
            assert self._node_of[node.filter] is self._nodes[node.id] is node
            assert all(node in above.predecessors for above in node.successors)
            assert all(node in below.successors for below in node.predecessors)
            self._check_below(node)
        if self._nesting is not None:
            self._nesting._check()
            assert len(self._nesting) == len(self)

    def _check_below(self, node: Node) -> None:
        """Is all below it that it covers, by immediate steps only, and would it be found there?"""
        covered = {one for one in self if one is not node and node.covers(one)}
        covering = {one for one in self if one is not node and one.covers(node)}
        assert not covered & covering, "two filters that say the same"
        assert covered <= self._candidates(node, around=False).keys()
        assert covering <= self._candidates(node, around=True).keys()
        assert covered == set(_reachable(node.predecessors)), "a way down that should not be"
        for above in node.successors:
            others = [one for one in node.successors if one is not above]
            assert not any(above.covers(one) for one in others), "not immediate"


def _confirmed(
    ready: list[Node], left: dict[Node, None], covers: Callable[[Node], bool], *, upwards: bool
) -> dict[Node, None]:
    """The nearest of the candidates, given those that are if every candidate is what it seems.

    One that proves to be none leaves its place to the candidates behind it. Those that stand behind
    a true one are never looked at.
    """
    found: dict[Node, None] = {}
    for node in ready:  # which grows
        if covers(node):
            found[node] = None
            continue
        del left[node]
        for one in node.successors if upwards else node.predecessors:
            before = one.predecessors if upwards else one.successors
            if one in left and before.keys().isdisjoint(left.keys()):
                ready.append(one)
    return found


def _make_index() -> Matcher:
    # Loaded when there is much to compare: it brings compiled code with it.
    from driftline.matching.index import Index

    return Index()


def _join(above: Node, below: Node) -> None:
    above.predecessors[below] = None
    below.successors[above] = None


def _part(above: Node, below: Node) -> None:
    above.predecessors.pop(below, None)
    below.successors.pop(above, None)


def _reachable(start: Iterable[Node]) -> Iterator[Node]:
    queue = list(start)
    seen = set(queue)
    for node in queue:
        yield node
        for below in node.predecessors:
            if below not in seen:
                seen.add(below)
                queue.append(below)
