"""Variables that move too often: what is said of them, and is anything lost? [PARAM §4.3, §6]"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from driftline import Event, parse
from driftline.broker.edge import Edge
from driftline.broker.links import Role
from driftline.broker.requests import Confirm, Publish, Subscribe
from driftline.broker.settings import Settings
from driftline.model.message import Interest
from driftline.model.standing import Standing
from driftline.moving.parametric.monitor import Monitor
from driftline.sim.faults import MILLISECOND, SECOND, LinkFaults
from driftline.sim.overlay import Overlay
from driftline.wire.codec import decode_control
from driftline.wire.framing import Decoder, FrameKind


@pytest.mark.parametrize("seed", range(60))
def test_a_range_has_the_value_and_is_no_range_while_it_is_calm(seed: int) -> None:
    draw = random.Random(seed)
    often = draw.randrange(2, 9)
    watch = Monitor(SECOND, often)
    now, value, recent, told, last = 0, 0.0, [], 0, None
    for _ in range(300):
        now += draw.choice((0, 10, 50, 50, 200, 2000)) * MILLISECOND
        calm = watch.calm(now)
        assert calm in (None, (value, value))
        value += draw.choice((-3, -1, 0.5, 1, 1, 2))
        low, high = watch.moved(value, now)
        assert low <= value <= high
        recent = [one for one in (*recent, now) if one > now - SECOND]
        if len(recent) < often:
            assert low == high
        told += (low, high) != last
        last = low, high
    assert watch.calm(now + SECOND) in (None, (value, value))
    assert watch.calm(now + SECOND) is None
    assert told < 300


def test_going_up_and_down_is_told_as_a_whole() -> None:
    watch = Monitor(SECOND, 6)
    for at, value in enumerate((1, 5, 2, 6, 1, 5)):
        told = watch.moved(value, at * 10 * MILLISECOND)
    assert told == (1, 6)
    assert watch.moved(3, 70 * MILLISECOND) == (1, 6)


def test_what_is_no_number_is_told_as_it_is() -> None:
    watch = Monitor(SECOND, 2)
    assert [watch.moved(text, 0) for text in "abc"] == [("a", "a"), ("b", "b"), ("c", "c")]
    assert watch.moved(True, 0) == (True, True)
    assert watch.moved(1, 0) == (1, 1)


@dataclass
class Study(Overlay):
    """A subscriber at a whose variable moves, a publisher at c behind b; links take 10 ms."""

    often: int | None
    seed: int
    text: str = "SELECT * FROM quote WHERE price < :x"
    updates: int = 0
    brought: int = 0
    moves: list[tuple[int, float]] = field(default_factory=list)
    events: list[tuple[int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        Overlay.__init__(self, self.seed, Settings(often=self.often))
        self.faults = LinkFaults(10 * MILLISECOND, 10 * MILLISECOND)
        for name in "abc":
            self.broker(name)
        self.link("a", "b", Role.PEER)
        self.link("b", "c", Role.PEER)
        self.run()
        self._draw_study = random.Random(self.seed)
        self.subscriber = self.party("s", "a")
        self.publisher = self.party("p", "c")

    def _arrive(self, sender, effect) -> None:
        for frame in Decoder().feed(effect.data):
            if frame.kind is FrameKind.CONTROL and sender == "a":
                self.updates += isinstance(decode_control(frame.payload), Interest)
            elif frame.kind is FrameKind.EVENTS and sender == "b":
                self.brought += 1
        super()._arrive(sender, effect)

    def go(self, changes: int, restless: float) -> None:
        """So many changes; in a share of the time they come fast."""
        draw, x = self._draw_study, 50.0
        fast, way, until = False, 1.0, 0
        self._move(x)
        self.run(self.now + SECOND)
        while len(self.moves) < changes:
            if self.now >= until:
                fast, way = draw.random() < restless, draw.choice((-1.0, 1.0))
                until = self.now + 2 * SECOND
            x = min(max(x + way * draw.uniform(0, 0.4) + draw.uniform(-0.2, 0.2), 5.0), 95.0)
            self._move(x)
            # About as many events as changes, whatever their pace.
            step = (5 if fast else 400) * MILLISECOND
            for _ in range(draw.choice((0, 1, 2))):
                price = round(draw.gauss(x, 8.0), 2)
                self.events.append((self.now, price))
                event = Event("quote", {"price": price, "n": len(self.events) - 1})
                self.ask(self.publisher, Publish("publish", event))
                self.run(self.now + step // 4)
            self.run(self.now + step // 2)
        self.run()

    def _move(self, x: float) -> None:
        self.moves.append((self.now, x))
        standing = Standing.of(parse(self.text), {"x": x})
        self.ask(self.subscriber, Subscribe("move", "s", standing))
        self.ask(self.subscriber, Confirm(f"confirm {len(self.moves) - 1}"))

    def told(self) -> set[int]:
        return {one.event.attributes["n"] for one in self.subscriber.told}


def lost_and_wrong(study: Study) -> tuple[list[int], list[int]]:
    """Events that match under every value between the last in effect and the delivery, untold;
    and events told that match under none."""
    told, lost, wrong = study.told(), [], []
    for number, (entered, price) in enumerate(study.events):
        # In effect everywhere after a link's time there and back, twice; delivered after two links.
        effective = [at for at, (moved, _) in enumerate(study.moves) if moved + 45_000 <= entered]
        first = effective[-1] if effective else 0
        values = [x for moved, x in study.moves[first:] if moved <= entered + 20_000]
        matching = [price < x for x in values]
        if all(matching) and number not in told:
            lost.append(number)
        if not any(matching) and number in told:
            wrong.append(number)
    return lost, wrong


@pytest.mark.parametrize("often", [None, 10])
@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_lost_and_nothing_told_that_never_held(often: int | None, seed: int) -> None:
    study = Study(often, seed)
    study.go(1000, restless=0.3)
    assert lost_and_wrong(study) == ([], [])
    assert len(study.told()) > 200
    for name in study.names():
        study.station(name).broker._check()


def test_the_checker_sees_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study(10, 0)
    take = Edge.take
    monkeypatch.setattr(
        Edge, "take", lambda self, event, *at: [] if event.time % 7 == 0 else take(self, event, *at)
    )
    study.go(200, restless=0.3)
    assert lost_and_wrong(study)[0]


def test_a_monitor_spares_messages_and_brings_little_more() -> None:
    """At 30 % of the changes fast: at most half the messages, at most 27 % more events brought."""
    exact, watched = (Study(often, 7) for often in (None, 10))
    for study in (exact, watched):
        study.go(1500, restless=0.3)
    assert exact.events == watched.events
    # What is brought early may be told where it was missed while an update was on its way.
    assert exact.told() <= watched.told()
    assert watched.updates <= exact.updates / 2
    assert watched.brought <= 1.27 * exact.brought
