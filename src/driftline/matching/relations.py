"""Which filters are the nearest that cover this one, and which the nearest that it covers?

We differ: the paper finds the place of a new filter by walking down from the roots, which takes
longer the more of them there are. Here an index finds the filters that may cover the new one, and
those it may cover (see `nesting`), and of these the nearest are picked (see `order`).
"""

from __future__ import annotations

from driftline.matching.box import box_of
from driftline.matching.matcher import Matcher
from driftline.matching.nesting import Nesting
from driftline.matching.order import Node, Order
from driftline.model.covering import domains_of, filter_covers
from driftline.model.domain import Domain
from driftline.model.filter import Filter

# Up to so many filters each is compared with each: that is quick, and no index is loaded.
FEW = 128


class FilterNode(Node):
    """One filter and between which ends it lies."""

    __slots__ = ("asks", "box", "domains")

    said: Filter

    def __init__(self, id: str, said: Filter, domains: dict[str, Domain]) -> None:
        super().__init__(id, said)
        self.domains = domains
        self.box = box_of(said, domains)
        self.asks = self.box.asks  # Looked at for every candidate.

    def covers(self, other: FilterNode) -> bool:
        """Is everything that satisfies the other sure to satisfy this one?"""
        return filter_covers(self.said, other.said, other.domains)


class Relations(Order[FilterNode]):
    """Filters and how they cover one another; more than `few` of them are found by an index."""

    __slots__ = ("_few", "_nesting")

    def __init__(self, few: int = FEW) -> None:
        super().__init__()
        self._nesting: Nesting | None = None
        self._few = few

    def _make(self, id: str, said: Filter) -> FilterNode | None:
        domains = domains_of(said)
        if any(domain.empty for domain in domains.values()):
            return None
        return FilterNode(id, said, domains)

    def _candidates(self, new: FilterNode, *, around: bool) -> dict[FilterNode, None]:
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

    def _keep(self, node: FilterNode) -> None:
        super()._keep(node)
        if self._nesting is not None:
            self._nesting.add(node.id, node.box)
        elif len(self._nodes) > self._few:
            self._nesting = Nesting(_make_index)
            for one in self:
                self._nesting.add(one.id, one.box)

    def _forget(self, node: FilterNode) -> None:
        super()._forget(node)
        if self._nesting is not None:
            self._nesting.discard(node.id, node.box)

    def _check(self) -> None:
        super()._check()
        if self._nesting is not None:
            self._nesting._check()
            assert len(self._nesting) == len(self)


def _make_index() -> Matcher:
    # Loaded when there is much to compare: it brings compiled code with it.
    from driftline.matching.index import Index

    return Index()
