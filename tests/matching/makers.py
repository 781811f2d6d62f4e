"""Every way to make a matcher that must answer as the others do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from driftline.matching.choice import Auto, make_matcher
from driftline.matching.matcher import Matcher
from driftline.matching.poset import Poset
from driftline.matching.scan import Scan


def make_index() -> Matcher:
    return make_matcher("index")


def make_indexed_poset() -> Matcher:
    """A poset that finds its places by an index from the first filter on."""
    return Poset(few=0)


MAKERS: dict[str, Callable[[], Matcher]] = {
    "scan": Scan,
    "poset": Poset,
    "indexed poset": make_indexed_poset,
    "auto": Auto,
    "index": make_index,
}

each_matcher = pytest.mark.parametrize("make", list(MAKERS.values()), ids=list(MAKERS))
