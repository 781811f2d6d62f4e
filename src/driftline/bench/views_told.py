"""How many updates a second reach those whose view they change, through the ordinary matcher?

An update becomes messages, and each view is a filter over messages like any other [DBNET §2.4.1]:
nothing in the matcher knows of views. Updates come in batches: the structure makes the messages of
a batch, they go to the index as columns, and it says which subscriptions each of them concerns.

As many must be found as `views_count` counts, and for some messages the very same ones that a look
at all ranges finds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

import numpy as np

from driftline.bench.memory import CALL
from driftline.bench.views_count import Rectangles, look
from driftline.bench.views_update import batches_of, changed, table_of
from driftline.language.sql import parse
from driftline.matching.choice import make_matcher
from driftline.matching.columns import Columns
from driftline.matching.index import Index
from driftline.matching.matcher import Matches
from driftline.model.view import View
from driftline.stateful.range_min.blocks import Blocks, Messages
from driftline.stateful.range_min.subscription import ENDS, NEW_MIN, RangeView, range_view
from driftline.workload.stocks import SEED, Floats, Stocks

VIEW = "SELECT MIN(per) FROM stock WHERE risk BETWEEN :low AND :high"
BATCHES = 5
"""After a first one that is not measured."""
LOOKED_AT = 200
"""For so many messages of a batch all ranges are tried."""


@dataclass(frozen=True, slots=True)
class Measured:
    """CPU microseconds an update: to make its messages, and to find whom they concern."""

    tuples: int
    subscriptions: int
    updates: int
    add_us: float
    reformulate_us: float
    match_us: float
    messages_per_update: float
    told_per_update: float

    @property
    def us(self) -> float:
        """Both."""
        return self.reformulate_us + self.match_us

    @property
    def updates_per_s(self) -> float:
        """Of one core."""
        return 1e6 / self.us


class Told:
    """An index with a filter for each range, and what it finds."""

    def __init__(self, low: Floats, high: Floats) -> None:
        self.view = _taken_apart()
        self.matcher = make_matcher("index")
        self._low, self._high = low, high
        start = time.process_time()
        self._add()
        self.add_us = (time.process_time() - start) / len(low) * 1e6

    def _add(self) -> None:
        assert isinstance(self.matcher, Index)
        filters = self.view.interest.filters()
        for start in range(0, len(self._low), CALL):
            low, high = (one[start : start + CALL] for one in (self._low, self._high))
            ids = [str(number) for number in range(start, start + len(low))]
            self.matcher.add_batch(ids, filters, {"low": low, "high": high})

    def find(self, messages: Messages) -> Matches:
        """Whom the messages concern."""
        return self.matcher.match_batch(columns_of(self.view, messages))

    def check(self, messages: Messages, found: Matches, counts: np.ndarray) -> None:
        """Assert that they are those whose range says so."""
        assert np.array_equal(np.diff(found.offsets), counts), "not as many as there are"
        some = np.random.default_rng(SEED).integers(0, len(messages), LOOKED_AT)
        for at in some.tolist():
            told = sorted(int(id) for id in found.ids(at))
            expected = look(self._low, self._high, messages.rows[at]).tolist()
            assert told == expected, "not those whom it concerns"


def measured(drawn: Stocks, low: Floats, high: Floats) -> Measured:
    """All updates of these stocks, told to the subscriptions of these ranges."""
    told, counting = Told(low, high), Rectangles(low, high)
    blocks = Blocks.load(table_of(drawn))
    times: list[tuple[float, float]] = []
    messages_made = matches = 0
    for some in batches_of(drawn.updates):
        start = time.process_time()
        messages = changed(blocks, some)
        made = time.process_time()
        found = told.find(messages)
        done = time.process_time()
        told.check(messages, found, counting.of(messages.rows))
        times.append(((made - start) / len(some), (done - made) / len(some)))
        messages_made += len(messages)
        matches += len(found)
    reformulate_us, match_us = (median(one) * 1e6 for one in zip(*times[1:], strict=True))
    count = len(drawn.updates)
    return Measured(
        len(drawn.points),
        len(low),
        count,
        told.add_us,
        reformulate_us,
        match_us,
        messages_made / count,
        matches / count,
    )


def columns_of(view: RangeView, messages: Messages) -> Columns:
    """Messages as a batch of events; a minimum that became NULL is missing."""
    names = (NEW_MIN, *ENDS)
    rows = messages.rows.T
    least = np.ma.masked_equal(rows[0], np.inf)
    return Columns.of_arrays(view.shape.type, dict(zip(names, (least, *rows[1:]), strict=True)))


def _taken_apart() -> RangeView:
    view = parse(VIEW)
    assert isinstance(view, View)
    found = range_view(view, {"low": 0.0, "high": 1.0})
    assert found is not None
    return found
