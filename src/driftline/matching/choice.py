"""Which matcher, for how many filters?

    auto    a scan while there are few, an index from then on; the default
    index   compiled, for any number: `match` and `change` hardly depend on how many there are
    poset   walks the covering relation: for few events and much overlap, and for what it knows of
            covering (`roots`)
    scan    tries every filter: the reference

All give the same answers.
"""

from __future__ import annotations

from driftline.errors import InvalidValue
from driftline.matching.columns import Columns
from driftline.matching.matcher import NO_BOUNDS, Bounds, Filters, Matcher, Matches
from driftline.matching.scan import Scan
from driftline.model.event import Event
from driftline.model.value import show

MATCHERS = ("auto", "index", "poset", "scan")

# A scan of so many takes a tenth of a millisecond. To load compiled code takes most of a second,
# and to compile it, once on each machine, much longer: a program with a handful of subscriptions
# should not wait for that.
FEW = 32


def make_matcher(wanted: str | Matcher) -> Matcher:
    """A new matcher by its name; one that was made elsewhere is taken as it is."""
    if not isinstance(wanted, str):
        if isinstance(wanted, type) or not hasattr(wanted, "match_batch"):
            raise InvalidValue("matcher", f"{', '.join(MATCHERS)} or a Matcher", show(wanted))
        return wanted
    if wanted == "auto":
        return Auto()
    if wanted == "index":
        return _index()
    if wanted == "poset":
        from driftline.matching.poset import Poset

        return Poset()
    if wanted == "scan":
        return Scan()
    raise InvalidValue("matcher", ", ".join(MATCHERS), show(wanted))


def _index() -> Matcher:
    # Imported when one is wanted: it brings compiled code with it.
    from driftline.matching.index import Index

    return Index()


class Auto:
    """A scan that becomes an index when there is more than a few to look at.

    It never goes back: once the index is loaded it is at no disadvantage, and a number of filters
    that swings about the limit would have all of them moved each time.
    """

    __slots__ = ("_matcher",)

    def __init__(self) -> None:
        self._matcher: Matcher = Scan()

    def add(self, id: str, filters: Filters, bounds: Bounds = NO_BOUNDS) -> None:
        """Take in what goes by this id, replacing what did; it becomes the last added."""
        self._matcher.add(id, filters, bounds)
        if isinstance(self._matcher, Scan) and len(self._matcher) > FEW:
            index = _index()
            for held in self._matcher.items():
                index.add(*held)
            self._matcher = index

    def discard(self, id: str) -> None:
        """Forget an id; nothing happens if it is not there."""
        self._matcher.discard(id)

    def change(self, id: str, bounds: Bounds) -> None:
        """Move the bounds of what is there; its place in the order stays."""
        self._matcher.change(id, bounds)

    def match(self, event: Event) -> list[str]:
        """The ids that the event satisfies, in the order they were added."""
        return self._matcher.match(event)

    def match_batch(self, columns: Columns) -> Matches:
        """For each event of the batch the ids that it satisfies."""
        return self._matcher.match_batch(columns)

    def __len__(self) -> int:
        return len(self._matcher)

    def __contains__(self, id: object) -> bool:
        return id in self._matcher

    def _check(self) -> None:
        self._matcher._check()
        assert not isinstance(self._matcher, Scan) or len(self._matcher) <= FEW
