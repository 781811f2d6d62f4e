"""Which filters are the nearest that cover this one, and which the nearest that it covers?

We differ: the paper finds the place of a new filter by walking down from the roots, which takes
longer the more of them there are. Here the filters that may cover the new one, and those it may
cover, are looked up by their boxes (see `cells`, and `nesting` for what these do not know), and of
these the nearest are picked (see `order`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from driftline.matching.box import Box, box_of
from driftline.matching.cells import Cells
from driftline.matching.matcher import Matcher
from driftline.matching.nesting import Nesting
from driftline.matching.order import Node, Order
from driftline.model.covering import domains_of, filter_covers
from driftline.model.domain import Domain
from driftline.model.filter import Filter

# Up to so many filters each is compared with each: that is quick, and no index is loaded.
FEW = 128

# One filter is often asked for again: in another table, or when it comes and goes.
_REMEMBERED = 1 << 14


class FilterNode(Node):
    """One filter and between which ends it lies."""

    __slots__ = ("asks", "box", "domains")

    said: Filter

    def __init__(self, id: str, said: Filter, domains: Mapping[str, Domain], box: Box) -> None:
        super().__init__(id, said)
        self.domains = domains
        self.box = box
        self.asks = box.asks  # Looked at for every candidate.

    def covers(self, other: FilterNode) -> bool:
        """Is everything that satisfies the other sure to satisfy this one?"""
        return filter_covers(self.said, other.said, other.domains)


class Relations(Order[FilterNode]):
    """Filters and how they cover one another.

    Cells are asked first. Where they do not know, each of up to `few` filters is looked at, and of
    more an index is asked, which gets what has come since it was asked last.
    """

    __slots__ = ("_cells", "_few", "_nesting", "_unindexed")

    def __init__(self, few: int = FEW) -> None:
        super().__init__()
        self._cells: Cells[FilterNode] = Cells()
        self._nesting: Nesting | None = None
        self._unindexed: dict[FilterNode, None] = {}
        self._few = few

    def _make(self, id: str, said: Filter) -> FilterNode | None:
        place = place_of(said)
        return None if place is None else FilterNode(id, said, *place)

    def _candidates(self, new: FilterNode, *, around: bool) -> dict[FilterNode, None]:
        """All that cover the new one, or all that it covers; perhaps others too."""
        box = new.box
        nodes: Iterable[FilterNode] | None
        nodes = self._cells.around(box) if around else self._cells.inside(box)
        if nodes is None:
            if len(self) > self._few:
                return self._indexed(box, around=around)
            nodes = self
        if around:
            return {node: None for node in nodes if node.box.may_contain(box)}
        return {node: None for node in nodes if box.may_contain(node.box)}

    def _indexed(self, box: Box, *, around: bool) -> dict[FilterNode, None]:
        if self._nesting is None:
            self._nesting = Nesting(_make_index)
        for node in self._unindexed:
            self._nesting.add(node.id, node.box)
        self._unindexed.clear()
        ids = self._nesting.around(box) if around else self._nesting.inside(box)
        nodes = map(self._nodes.__getitem__, ids)
        # The ends have been compared.
        if around:
            return {node: None for node in nodes if node.asks <= box.asks}
        return {node: None for node in nodes if box.asks <= node.asks}

    def _keep(self, node: FilterNode) -> None:
        super()._keep(node)
        self._cells.add(node.box, node)
        self._unindexed[node] = None

    def _forget(self, node: FilterNode) -> None:
        super()._forget(node)
        self._cells.discard(node.box, node)
        if node in self._unindexed:
            del self._unindexed[node]
        elif self._nesting is not None:
            self._nesting.discard(node.id, node.box)

    def _check(self) -> None:
        super()._check()
        self._cells._check({node: node.box for node in self})
        if self._nesting is None:
            assert self._unindexed.keys() == set(self)
        else:
            self._nesting._check()
            assert len(self._nesting) + len(self._unindexed) == len(self)


def place_of(one: Filter) -> tuple[Mapping[str, Domain], Box] | None:
    """What each attribute can be under a filter, and its box; None if nothing satisfies it."""
    return _remembered_place_of(one) if one.small else _place_of(one)


def _place_of(one: Filter) -> tuple[Mapping[str, Domain], Box] | None:
    domains = domains_of(one)
    if any(domain.empty for domain in domains.values()):
        return None
    return domains, box_of(one, domains)


_remembered_place_of = lru_cache(maxsize=_REMEMBERED)(_place_of)


def _make_index() -> Matcher:
    # Loaded when there is much to compare: it brings compiled code with it.
    from driftline.matching.index import Index

    return Index()
