"""What do brokers tell one another about ranges that drift?

The baseline comparison of [EVOLVE VI.B]: three markets of three edge brokers and a core, joined by
one in the centre. Investors at the edges want narrow ranges of prices that never rest. The same
motion is told in three ways:

- *evolving*: the rule by which a range moves, cancelled and told anew once a minute;
- *update*: the new bounds as another value of a variable, at each change;
- *again*: cancelled and told anew, at each change.

Counted are messages about interest that arrive at any broker, and the bytes of all frames. The
paper does not say how many subscriptions its rates of change are about; its figures (96.8 % less
than *again* at 30 changes a second, 92.9 % at 12) follow if there are about 54, six at each edge.

In the end some events are published, and who was told must be whom they concern.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from driftline.broker.links import Role
from driftline.broker.requests import Cancel, Publish, Subscribe
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.sim.overlay import Overlay
from driftline.sim.party import Party

SEED = 1
SECOND = 1_000_000
MARKETS, EDGES, WANTED = 3, 3, 6
SUBSCRIPTIONS = MARKETS * EDGES * WANTED
RATES = (12, 30)
STAY = 60
"""A subscription that evolves is replaced after so many seconds."""
SECONDS = 20
"""So long is measured; `full` takes a whole minute."""
HOW = ("evolving", "update", "again")

_WIDTH = 0.02
_DRIFT = (
    "SELECT * FROM quote WHERE symbol = :s AND price >= :low + :d * elapsed() "
    "AND price <= :high + :d * elapsed()"
)
_RANGE = "SELECT * FROM quote WHERE symbol = :s AND price >= :low AND price <= :high"


def measured(full: bool, say: Callable[[str], None]) -> dict[int, dict[str, float]]:
    """Messages and bytes of each way at each rate, and how many percent fewer they are."""
    found = {}
    for rate in RATES:
        one: dict[str, float] = {}
        for how in HOW:
            say(f"traffic, {rate} changes/s, {how}")
            market = _Market(how)
            market.go_on(rate, STAY if full else SECONDS)
            one[f"{how}_messages"], one[f"{how}_bytes"] = market.counted()
            market.check()
        for how in HOW[:2]:
            for unit in ("messages", "bytes"):
                less = 1 - one[f"{how}_{unit}"] / one[f"again_{unit}"]
                one[f"{how}_{unit}_less_percent"] = 100 * less
        found[rate] = one
    return found


def told(one: dict[str, float]) -> str:
    """The figures of one rate, in words."""
    counts = ", ".join(f"{how} {one[f'{how}_messages']:,}" for how in HOW)
    less = ", ".join(f"{how} {one[f'{how}_messages_less_percent']:.1f} %" for how in HOW[:2])
    return f"messages: {counts}; less: {less}"


class _Market:
    """The overlay, what is wanted in it, and a count of what was told."""

    def __init__(self, how: str) -> None:
        self._how = how
        self._draw = Random(SEED)
        self._messages = 0
        self._overlay = Overlay(SEED, trace=self._hear)
        self._parties: list[Party] = []
        self._wants: list[Standing] = []
        self._build()
        for at in range(SUBSCRIPTIONS):
            self._wants.append(Standing.of(self._statement(), self._values(at)))
            self._overlay.ask(self._party(at), Subscribe("", str(at), self._wants[at]))
        self._overlay.run()
        self._messages, self._bytes = 0, self._overlay.bytes

    def _hear(self, line: str) -> None:
        self._messages += " -> " in line and ": wants " in line

    def _build(self) -> None:
        self._overlay.broker("centre")
        for market in range(MARKETS):
            core = f"core{market}"
            self._overlay.broker(core)
            self._overlay.link(core, "centre", Role.PEER)
            for edge in range(EDGES):
                name = f"edge{market}{edge}"
                self._overlay.broker(name)
                self._overlay.link(name, core, Role.PEER)
                self._parties.append(self._overlay.party(f"investor{market}{edge}", name))
        self._overlay.run()

    def _statement(self) -> Subscription:
        statement = parse(_DRIFT if self._how == "evolving" else _RANGE)
        assert isinstance(statement, Subscription)
        return statement

    def _values(self, at: int) -> dict[str, object]:
        low = self._draw.uniform(10, 20)
        values: dict[str, object] = {"s": f"S{at:03}", "low": low, "high": low + _WIDTH}
        if self._how == "evolving":
            values["d"] = self._draw.uniform(-0.01, 0.01)
        return values

    def _party(self, at: int) -> Party:
        return self._parties[at % len(self._parties)]

    def go_on(self, rate: int, seconds: int) -> None:
        """Let ranges drift; what evolves is told of once in a while only."""
        if self._how == "evolving":
            changes = [at % SUBSCRIPTIONS for at in range(SUBSCRIPTIONS * seconds // STAY)]
        else:
            changes = [self._draw.randrange(SUBSCRIPTIONS) for _ in range(rate * seconds)]
        begin = self._overlay.now
        for number, at in enumerate(changes):
            self._overlay.run(begin + number * seconds * SECOND // len(changes))
            self._change(at)
        self._overlay.run()

    def _change(self, at: int) -> None:
        party, before = self._party(at), self._wants[at]
        if self._how == "update":
            self._wants[at] = before.moved_to(self._values(at))
        else:
            self._wants[at] = Standing.of(before.statement, self._values(at), self._overlay.now)
            self._overlay.ask(party, Cancel("", str(at)))
        self._overlay.ask(party, Subscribe("", str(at), self._wants[at]))

    def counted(self) -> tuple[int, int]:
        """The messages about interest, and the bytes of all frames."""
        return self._messages, self._overlay.bytes - self._bytes

    def check(self) -> None:
        """Assert that events come to those whom they concern: some miss their range by a little."""
        expected = set()
        for at, want in enumerate(self._wants):
            low, drift = want.params["low"], want.params.get("d", 0.0)
            assert isinstance(low, float)
            assert isinstance(drift, float)
            low += drift * (self._overlay.now - want.start_us) / SECOND
            price = low + _WIDTH * self._draw.choice((-0.5, 0.5, 1.5))
            event = Event("quote", {"symbol": f"S{at:03}", "price": price})
            self._overlay.ask(self._draw.choice(self._parties), Publish("", event))
            if want.matches(event.entering(self._overlay.now), {}):
                expected.add(str(at))
        self._overlay.run()
        told = {id for party in self._parties for one in party.told for id in one.subscriptions}
        assert told == expected, f"{self._how}: not those whom it concerns"
