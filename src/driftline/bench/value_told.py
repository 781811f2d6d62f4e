"""How many events a second reach those who are told, through the engine, as arrays of numbers?

Any radii, a crowd of so many members (`Engine.crowd`), events in batches (`publish_many`): each is
admitted and put into its table, becomes boxes of addresses, and these go to the ordinary index. A
scan must tell the same members.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from driftline.bench.value_peers import scanned
from driftline.bench.value_workloads import ROUNDS, SEED, SETTLED, radii_of, walk
from driftline.clock import ManualClock
from driftline.crowd import Crowd
from driftline.engine import Engine
from driftline.stateful.value_based.rule import Floats

WANTED = "SELECT price FROM stock WHERE symbol = 'IBM' AND moved(price, by => :r)"
BATCH = 1_000
BATCHES = 10


@dataclass(frozen=True, slots=True)
class Told:
    """CPU time of one core, from `publish_many` to what `pending` gives."""

    members: int
    events: int
    us: float
    told_per_event: float
    add_us: float

    @property
    def events_per_s(self) -> float:
        """How many a second."""
        return 1e6 / self.us

    def as_data(self) -> dict[str, float]:
        """The figures as JSON."""
        return {name: getattr(self, name) for name in (*self.__slots__, "events_per_s")}


def measured(members: int, step: float) -> Told:
    """Members that came while the value moved are told of many values."""
    draw = np.random.default_rng(SEED)
    radii = radii_of("any", members, draw)
    values = walk(draw, step, ROUNDS + SETTLED + BATCHES * BATCH)
    engine = Engine(clock=ManualClock())
    engine.table("stock", key="symbol")
    crowd = engine.crowd(WANTED)
    add_s = 0.0
    for at, some in enumerate(np.array_split(radii, ROUNDS)):
        _publish(engine, values[at : at + 1])
        start = time.process_time()
        crowd.add(r=some)
        add_s += time.process_time() - start
    _publish(engine, values[ROUNDS : ROUNDS + SETTLED])
    centres = _centres(crowd, members)
    spent, told = 0.0, 0
    for some in np.array_split(values[ROUNDS + SETTLED :], BATCHES):
        columns = {"symbol": ["IBM"] * len(some), "price": some}
        start = time.process_time()
        told += engine.publish_many("stock", columns)
        pending = crowd.pending()
        spent += time.process_time() - start
        expected, _ = scanned(radii, centres, some)
        by_value = [one for one in zip(some.tolist(), expected, strict=True) if len(one[1])]
        assert len(by_value) == len(pending), "not of these values"
        for one, (value, ids) in zip(pending, by_value, strict=True):
            assert one.values == {"price": value}
            assert np.array_equal(np.sort(one.members), ids), "not whom the scan tells"
    events = BATCHES * BATCH
    return Told(members, events, spent / events * 1e6, told / events, add_s / members * 1e6)


def _publish(engine: Engine, values: Floats) -> None:
    engine.publish_many("stock", {"symbol": ["IBM"] * len(values), "price": values})


def _centres(crowd: Crowd, members: int) -> Floats:
    """What each member was told last."""
    centres = np.zeros(members)
    for one in crowd.pending():
        price = one.values["price"]
        assert isinstance(price, float)
        centres[one.members] = price
    return centres
