"""Which are the nearest that cover this one, and which the nearest that it covers?

What is said (a filter, an advertisement) is partially ordered by covering and kept with its
immediate relations only: the *successors* are the nearest that cover it, the *predecessors* the
nearest it covers, and the *roots* are covered by none [SIENA §5.2.1].

`covers` may wrongly say no. Then an edge is missing and something stands higher than it need be;
nothing ever stands below what does not cover it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any, Generic, Self, TypeAlias, TypeVar, cast

_NEIGHBOURS = ("successors", "predecessors")
_Slots: TypeAlias = tuple[None, dict[str, Any]]


class Node(ABC):
    """What is said, whose it is and how often, and its neighbours (dictionaries, to keep order)."""

    __slots__ = ("id", "owners", "predecessors", "said", "successors")

    def __init__(self, id: str, said: Any) -> None:
        self.id = id
        self.said = said
        self.owners: dict[str, int] = {}
        self.successors: dict[Self, None] = {}
        self.predecessors: dict[Self, None] = {}

    def __getstate__(self) -> object:
        # Without its neighbours, which its order knows: from one to the next a pickler would go
        # down as deep as there are nodes.
        _, held = cast(_Slots, object.__getstate__(self))
        return None, {name: one for name, one in held.items() if name not in _NEIGHBOURS}

    @abstractmethod
    def covers(self, other: Self) -> bool:
        """Is all that the other says sure to be said by this one?"""


N = TypeVar("N", bound=Node)


class Order(ABC, Generic[N]):
    """What is said and how it covers one another. A change costs what covers it and is covered."""

    __slots__ = ("_node_of", "_nodes", "_numbers", "roots")

    def __init__(self) -> None:
        self.roots: dict[N, None] = {}
        self._nodes: dict[str, N] = {}
        self._node_of: dict[Any, N] = {}
        self._numbers = count()

    def __getstate__(self) -> object:
        return object.__getstate__(self), [
            (node, [*node.successors], [*node.predecessors]) for node in self
        ]

    def __setstate__(self, state: tuple[_Slots, list[tuple[N, list[N], list[N]]]]) -> None:
        (_, held), neighbours = state
        for name, one in held.items():
            setattr(self, name, one)
        for node, above, below in neighbours:
            node.successors, node.predecessors = dict.fromkeys(above), dict.fromkeys(below)

    @abstractmethod
    def _make(self, id: str, said: Any) -> N | None:
        """A node of its own for what is said; None if nothing can be meant by it."""

    @abstractmethod
    def _candidates(self, new: N, *, around: bool) -> dict[N, None]:
        """All that cover the new one, or all that it covers; perhaps others too."""

    def node(self, said: Any) -> N | None:
        """The node of what is said or says the same; None if nothing can be meant by it."""
        node = self._node_of.get(said)
        if node is not None:
            return node
        new = self._make(str(next(self._numbers)), said)
        return None if new is None else self._insert(new)

    def by_id(self, id: str) -> N:
        """The node that goes by this id."""
        return self._nodes[id]

    def remove(self, node: N) -> None:
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

    def __iter__(self) -> Iterator[N]:
        return iter(self._nodes.values())

    def _insert(self, new: N) -> N:
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

    def _nearest_above(self, new: N) -> dict[N, None]:
        """The filters that cover the new one, and cover no other that does.

        What covers a filter that covers the new one covers the new one too. So if A are all that
        cover it, everything on a way up from one of A to another is of A; and one of A is nearest
        if and only if it is no immediate successor of one of A.
        """
        left = self._candidates(new, around=True)
        wider: set[N] = set().union(*(node.successors for node in left))
        ready = [node for node in left if node not in wider]
        return _confirmed(ready, left, lambda node: node.covers(new), upwards=True)

    def _nearest_below(self, new: N) -> dict[N, None]:
        """The filters that the new one covers, and that no other such filter covers.

        In the same way: everything on a way up between two that it covers is such, and one of them
        is nearest if and only if none of its immediate successors is one of them.
        """
        left = self._candidates(new, around=False)
        ready = [node for node in left if node.successors.keys().isdisjoint(left.keys())]
        return _confirmed(ready, left, new.covers, upwards=False)

    def _keep(self, node: N) -> None:
        self._nodes[node.id] = self._node_of[node.said] = node

    def _forget(self, node: N) -> None:
        del self._nodes[node.id], self._node_of[node.said]

    def _check(self) -> None:
        assert set(self.roots) == {node for node in self if not node.successors}
        assert {*self} == {*self._node_of.values()}
        for node in self:
            assert self._node_of[node.said] is self._nodes[node.id] is node
            assert all(node in above.predecessors for above in node.successors)
            assert all(node in below.successors for below in node.predecessors)
            self._check_below(node)

    def _check_below(self, node: N) -> None:
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
    ready: list[N], left: dict[N, None], covers: Callable[[N], bool], *, upwards: bool
) -> dict[N, None]:
    """The nearest of the candidates, given those that are if every candidate is what it seems.

    One that proves to be none leaves its place to the candidates behind it. Those that stand behind
    a true one are never looked at.
    """
    found: dict[N, None] = {}
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


def _join(above: N, below: N) -> None:
    above.predecessors[below] = None
    below.successors[above] = None


def _part(above: N, below: N) -> None:
    above.predecessors.pop(below, None)
    below.successors.pop(above, None)


def _reachable(start: Iterable[N]) -> Iterator[N]:
    queue = list(start)
    seen = set(queue)
    for node in queue:
        yield node
        for below in node.predecessors:
            if below not in seen:
                seen.add(below)
                queue.append(below)
