"""Does the network follow a variable that moves: what is sent, brought in vain, late or lost?

A subscriber at broker a wants `price < :x`, a publisher at c sends quotes with prices near x, and b
lies between them. Links take 10 ms and nothing else takes any time: everything is counted in a
simulator, so that the same seed gives the same figures on every machine. x can be followed in
three ways:

- *update*: the subscription stays and its variable moves [PARAM §5].
- *resubscribe*: it is cancelled and made anew.
- *monitor*: an update too, but what moves often is told as a range [PARAM §6].

Of each event the checker knows when it entered and when it was told, of each change when it was
made and when a `Confirm` was answered. Between the last change that was confirmed when the event
entered and the moment it is told, any of the values may be the one it meets: told it must be if it
satisfies all of them, and it must not be if it satisfies none.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from driftline.broker.effects import SendBytes
from driftline.broker.links import Role
from driftline.broker.requests import Cancel, Confirm, Publish, Subscribe
from driftline.broker.settings import Settings
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.message import Interest
from driftline.model.standing import Standing
from driftline.model.value import Value
from driftline.moving.parametric.slots import opened
from driftline.sim.faults import MILLISECOND, SECOND, LinkFaults
from driftline.sim.overlay import Overlay
from driftline.wire.codec import decode_control
from driftline.wire.events import split
from driftline.wire.framing import Decoder, FrameKind

WAYS = ("update", "resubscribe", "monitor")
OFTEN = 10
"""From so many changes within a second on, a monitor tells a range."""

LINK_TIME = 10 * MILLISECOND
PATH_TIME = 2 * LINK_TIME
"""An event is told no later than this after it entered."""

EVENTS_PER_SECOND = 100
_CONFIRM_EVERY = SECOND // 4
# Where the variable turns round.
_LOWEST, _HIGHEST = 5.0, 95.0
_WANTED = "SELECT * FROM quote WHERE price < :x"


@dataclass(frozen=True, slots=True)
class Move:
    """The variable gets a value, at a time in microseconds; is that to be confirmed?"""

    at: int
    x: float
    confirmed: bool = True


@dataclass(frozen=True, slots=True)
class Quote:
    """An event is published."""

    at: int
    price: float


Trace: TypeAlias = list[Move | Quote]
"""In order of time. It begins with a move, and a second for it to take effect."""


def restless(seed: int, changes: int, share: float = 0.3) -> Trace:
    """A variable that moves fast in a share of the time, 250 times a second, and else 3 times.

    There are about as many events as changes, whatever the pace.
    """
    draw, x = Random(seed), 50.0
    trace: Trace = [Move(0, x)]
    now, until, fast, way = SECOND, 0, False, 1.0
    for _ in range(changes - 1):
        if now >= until:
            fast, way = draw.random() < share, draw.choice((-1.0, 1.0))
            until = now + 2 * SECOND
        if not _LOWEST < x < _HIGHEST:
            way = 1.0 if x <= _LOWEST else -1.0
        x += way * draw.uniform(0, 0.4) + draw.uniform(-0.2, 0.2)
        trace.append(Move(now, x))
        step = (5 if fast else 400) * MILLISECOND
        for _ in range(draw.choice((0, 1, 2))):
            trace.append(Quote(now, _near(x, draw)))
            now += step // 4
        now += step // 2
    return trace


def steady(seed: int, rate: int, seconds: int) -> Trace:
    """A variable that moves so many times a second, and events that come at random.

    A change is confirmed four times a second and not each time: a `Confirm` pushes ahead of it what
    waits to be joined on a link, so that with one behind each change nothing would ever be joined.
    """
    draw, x = Random(seed), 50.0
    trace: Trace = [Move(0, x)]
    quoted, confirmed = SECOND + draw.expovariate(EVENTS_PER_SECOND / SECOND), 0
    for step in range(rate * seconds):
        now = SECOND + step * SECOND // rate
        while quoted < now:
            trace.append(Quote(int(quoted), _near(x, draw)))
            quoted += draw.expovariate(EVENTS_PER_SECOND / SECOND)
        way = 1.0 if x <= _LOWEST else -1.0 if x >= _HIGHEST else draw.choice((-1.0, 1.0))
        x += way * draw.uniform(0, 1.0)
        due = now >= confirmed + _CONFIRM_EVERY
        confirmed = now if due else confirmed
        trace.append(Move(now, x, due))
    return trace


def _near(x: float, draw: Random) -> float:
    return round(draw.gauss(x, 8.0), 2)


class Study(Overlay):
    """Three brokers in a row, the subscriber and the publisher, and all that is counted."""

    def __init__(self, way: str, seed: int) -> None:
        super().__init__(seed, Settings(often=OFTEN if way == "monitor" else None))
        self.way = way
        self.moves: list[Move] = []
        self.quotes: list[Quote] = []
        self.arrived: list[int] = []
        """When the publisher's broker had heard of each change, or of a later one."""
        self.sent = 0
        """Messages of broker a about what it wants."""
        self.sent_bytes = 0
        self.brought = 0
        """Events that came to broker a, wanted or not."""
        self._number: dict[Value, int] = {}
        self._statement = parse(_WANTED)
        self.faults = LinkFaults(LINK_TIME, LINK_TIME)
        for name in "abc":
            self.broker(name)
        self.link("a", "b", Role.PEER)
        self.link("b", "c", Role.PEER)
        self.run()
        # What is said when a link begins is no matter of the study.
        self.sent = self.sent_bytes = 0
        self._subscriber = self.party("s", "a")
        self._publisher = self.party("p", "c")
        self._start = self.now

    def follow(self, trace: Trace) -> None:
        """Let all of it happen, until nothing is left."""
        for one in trace:
            self.run(self._start + one.at)
            if isinstance(one, Move):
                self._move(one)
            else:
                self._publish(one)
        self.run()
        slow = [n for n, at in self.told().items() if at > self._entered(n) + PATH_TIME]
        assert not slow, f"told later than {PATH_TIME} µs after they entered: {slow}"
        for name in self.names():
            self.station(name).broker._check()

    def _move(self, move: Move) -> None:
        number = len(self.moves)
        self.moves.append(move)
        self._number[move.x] = number
        if self.way == "resubscribe" and number:
            self.ask(self._subscriber, Cancel("cancel", "s"))
        standing = Standing.of(self._statement, {"x": move.x})
        self.ask(self._subscriber, Subscribe("move", "s", standing))
        if move.confirmed:
            self.ask(self._subscriber, Confirm(f"confirm {number}"))

    def _publish(self, quote: Quote) -> None:
        event = Event("quote", {"price": quote.price, "n": len(self.quotes)})
        self.quotes.append(quote)
        self.ask(self._publisher, Publish("publish", event))

    def _entered(self, number: int) -> int:
        return self._start + self.quotes[number].at

    def _arrive(self, sender: str, effect: SendBytes) -> None:
        for frame in Decoder().feed(effect.data):
            if frame.kind is FrameKind.EVENTS and sender == "b":
                self.brought += len(split(frame.payload))
            elif frame.kind is FrameKind.CONTROL:
                said = decode_control(frame.payload)
                if isinstance(said, Interest) and sender == "a":
                    self.sent += 1
                    self.sent_bytes += len(effect.data)
                elif isinstance(said, Interest) and effect.peer == "c":
                    self._heard(said)
        super()._arrive(sender, effect)

    def _heard(self, said: Interest) -> None:
        """The publisher's broker is told of the value of a change: it has that and all before."""
        values = [value for moved in said.updates.values() for value in moved.values()]
        values += [value for one in said.added.values() for value in opened(one)[1]]
        newest = max((self._number.get(value, -1) for value in values), default=-1)
        self.arrived += [self.now] * (newest + 1 - len(self.arrived))

    def told(self) -> dict[int, int]:
        """When each event was told, by its number."""
        numbers = (int(str(one.event.attributes["n"])) for one in self._subscriber.told)
        return dict(zip(numbers, self._subscriber.told_at, strict=True))

    def confirmed(self) -> dict[int, int]:
        """When each change was known to be in effect everywhere, by its number."""
        found = {}
        for name, at in self._subscriber.answered_at.items():
            what, _, number = name.partition(" ")
            if what == "confirm":
                assert not self._subscriber.answered[name].silent
                found[int(number)] = at
        return found

    def lost_and_wrong(self) -> tuple[list[int], list[int]]:
        """Which events should have been told and were not, and which were and should not."""
        lost, wrong, all_told = [], [], self.told()
        moved = [self._start + move.at for move in self.moves]
        # Changes are confirmed in the order they were made.
        known = list(self.confirmed().items())
        known_at = [at for _, at in known]
        assert known_at == sorted(known_at)
        for number, quote in enumerate(self.quotes):
            entered, told = self._entered(number), all_told.get(number)
            effective = bisect_right(known_at, entered)
            first = known[effective - 1][0] if effective else 0
            last = bisect_right(moved, entered + PATH_TIME if told is None else told)
            satisfies = [quote.price < move.x for move in self.moves[first:last]]
            if all(satisfies) and told is None:
                lost.append(number)
            if not any(satisfies) and told is not None:
                wrong.append(number)
        return lost, wrong

    def delays(self) -> list[int]:
        """How long each change took to reach the publisher's broker, itself or in a later one.

        What a monitor tells is no value of a change, so of that nothing can be said.
        """
        return [
            at - self._start - move.at for at, move in zip(self.arrived, self.moves, strict=True)
        ]

    def confirm_delays(self) -> list[int]:
        """How long each `Confirm` took to be answered."""
        return [at - self._start - self.moves[n].at for n, at in self.confirmed().items()]
