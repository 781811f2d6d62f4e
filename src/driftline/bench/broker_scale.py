"""How many subscriptions can one broker have, and how soon is it back after a crash?

A million ordinary ones, on ten connections: how long they take, how much memory, and whether events
still find theirs. A hundred thousand durable ones: the broker is killed, and started again on its
journal; it counts until one of them is told of an event.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from driftline.bench.broker_contestant import Address
from driftline.bench.driftline_broker import Driftline
from driftline.model.event import Event
from driftline.wire import asking
from driftline.wire.compact import split_records, write_record
from driftline.wire.forms import form_of
from driftline.wire.publishing import batch
from driftline.wire.stream import Frames, Kind, frame

_TEXT = "SELECT * FROM quote WHERE symbol = :symbol AND price BETWEEN :low AND :high"
_SYMBOLS = 5_000
_PORTION = 500
_TIMEOUT_S = 600.0
_PAGE = os.sysconf("SC_PAGE_SIZE")

Say = Callable[[str], None]


class Line:
    """A connection that waits for what it asked."""

    def __init__(self, address: Address, name: str) -> None:
        self._socket = socket.create_connection(address, _TIMEOUT_S)
        self._frames = Frames()
        self._waiting: list[tuple[Kind, bytes]] = []
        self.left = 0
        """Notices that came and nobody has waited for."""
        self._send(frame(Kind.HELLO, asking.encode(asking.Hello(name))))
        self._next(Kind.HELLO)

    def _send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def _next(self, wanted: Kind) -> bytes:
        while True:
            for at, (kind, payload) in enumerate(self._waiting):
                if kind is wanted:
                    del self._waiting[at]
                    return payload
            came = self._socket.recv(1 << 18)
            if not came:
                raise ConnectionError("the broker closed the connection")
            self._waiting += self._frames.feed(came)

    def ask(self, requests: list[Any]) -> list[Any]:
        """Ask all of these, and wait for all the replies."""
        self._send(b"".join(frame(Kind.REQUEST, asking.encode(one)) for one in requests))
        values = []
        for _ in requests:
            reply = asking.decode_reply(self._next(Kind.REPLY))
            if reply.error:
                raise AssertionError(f"the broker says {reply.error}: {reply.facts}")
            values.append(reply.value)
        return values

    def publish(self, events: list[Event]) -> None:
        """Publish, and wait until it is acknowledged."""
        form = form_of(events[0])
        records = b"".join(write_record(one, 0, form) for one in events)
        said = frame(Kind.FORM, asking.encode_form(0, form))
        # At once: a second small write would wait until the first has arrived.
        self._send(said + frame(Kind.EVENTS, batch(1, len(events), 0, records)))
        reply = asking.decode_reply(self._next(Kind.REPLY))
        if reply.error or reply.value:
            raise AssertionError(f"the broker says {reply}")

    def notices(self, count: int) -> None:
        """Wait for so many of a subscription that is not durable."""
        while self.left < count:
            self.left += sum(1 for _ in split_records(self._next(Kind.NOTICES)))
        self.left -= count

    def told(self) -> bytes:
        """The next notices of a durable subscription."""
        return self._next(Kind.KEPT)

    def close(self) -> None:
        """End it."""
        self._socket.close()


@dataclass(frozen=True, slots=True)
class Million:
    """So many subscriptions on one broker."""

    subscriptions: int
    seconds: float
    cpu_s: float
    memory_mb: float
    event_us: float
    """What an event costs then, CPU of the broker."""


@dataclass(frozen=True, slots=True)
class Restored:
    """Durable subscriptions, after a crash."""

    subscriptions: int
    seconds: float
    """From the start of the process until one of them has been told of an event."""
    made_s: float
    """How long it took to subscribe."""


def _subscribes(count: int, durable: bool) -> Iterator[asking.Subscribe]:
    for number in range(count):
        low = (number * 7919) % 9_900 / 100
        params = {"symbol": f"S{number % _SYMBOLS:04}", "low": low, "high": low + 1.0}
        name = f"d{number}" if durable else ""
        yield asking.Subscribe(number + 1, number + 1, _TEXT, params, 0, durable=name)


def million(count: int, connections: int, say: Say) -> Million:
    """Subscribe so often, then publish."""
    broker = Driftline()
    address = broker.start()
    try:
        lines = [Line(address, f"c{number}") for number in range(connections)]
        each = count // connections
        before, began = broker.cpu_s(), time.perf_counter()
        for nth, line in enumerate(lines):
            say(f"{nth * each:,} of {count:,} subscriptions")
            _ask_all(line, _subscribes(each, durable=False))
        seconds, cpu = time.perf_counter() - began, broker.cpu_s() - before
        (status,) = lines[0].ask([asking.Status(1)])
        if status["subscriptions"] != each * connections:
            raise AssertionError(f"wanted {count} subscriptions, there are {status}")
        publisher = Line(address, "publisher")
        events = [Event("quote", {"symbol": "none", "price": 1.0, "n": n}) for n in range(20_000)]
        publisher.publish(events[:100])
        before = broker.cpu_s()
        publisher.publish(events)
        spent = broker.cpu_s() - before
        memory = _resident_mb(broker.pid)
        for line in (*lines, publisher):
            line.close()
        return Million(each * connections, seconds, cpu, memory, spent / len(events) * 1e6)
    finally:
        broker.stop()


def _ask_all(line: Line, requests: Iterator[asking.Subscribe]) -> None:
    some: list[Any] = []
    for one in requests:
        some.append(one)
        if len(some) == _PORTION:
            line.ask(some)
            some = []
    if some:
        line.ask(some)


def restored(count: int, say: Say) -> Restored:
    """Subscribe durably, kill the broker, and start it again."""
    broker = Driftline(durable=True)
    address = broker.start()
    try:
        line = Line(address, "subscriber")
        began = time.perf_counter()
        say(f"{count:,} durable subscriptions")
        _ask_all(line, _subscribes(count, durable=True))
        made = time.perf_counter() - began
        os.kill(broker.pid, signal.SIGKILL)
        line.close()
        say("killed, and started again")
        began = time.perf_counter()
        address = broker.start_again()
        line = Line(address, "subscriber")
        wanted = next(iter(_subscribes(1, durable=True)))
        (value,) = line.ask([wanted])
        if not value["resumed"]:
            raise AssertionError("a durable subscription is not there any more")
        symbol, low = wanted.params["symbol"], wanted.params["low"]
        line.publish([Event("quote", {"symbol": symbol, "price": low})])
        line.told()
        seconds = time.perf_counter() - began
        (status,) = line.ask([asking.Status(2)])
        if status["subscriptions"] != count:
            raise AssertionError(f"wanted {count} subscriptions, there are {status}")
        line.close()
        return Restored(count, seconds, made)
    finally:
        broker.stop()


def _resident_mb(pid: int) -> float:
    words = Path(f"/proc/{pid}/statm").read_text().split()
    return int(words[1]) * _PAGE / 1e6


def scale(count: int, say: Say) -> dict[str, Any]:
    """So many, and a tenth of them durable."""
    return {
        "million": asdict(million(count, 10, say)),
        "restore": asdict(restored(count // 10, say)),
    }
