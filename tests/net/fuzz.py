"""Does a running broker survive a million frames from somebody who means it harm?

Connections of a client and of a neighbouring broker begin properly and go on with frames that are
right, nearly right, or nothing at all. Most are such that a broker refuses them and listens on: so
there are hundreds of frames to a connection, and the last ends it. Every connection is watched:
what was sent before a ping was read when the pong comes.

    python -m tests.net.fuzz --frames 1000000 --seed 7
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import struct
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from driftline.errors import DriftlineError
from driftline.model.event import Event
from driftline.sim import overlay
from driftline.sim.scenario import Plan, Scenario
from driftline.wire import asking, framing, stream
from driftline.wire.compact import write_record
from driftline.wire.forms import NO_FORM, Form, form_of
from driftline.wire.framing import Frame, FrameKind, encode_frame
from driftline.wire.publishing import apart_head, batch
from driftline.wire.stream import Kind, frame
from driftline.wire.values import BOOLEAN, BYTES, FLOAT, INTEGER, STRING, TIME
from tests.net.processes import BrokerProcess, Brokers

NEIGHBOUR = "fuzz"
"""The broker that the link of the fuzzer pretends to be."""
LIMITS = {"durable": 20, "subscriptions": 300, "advertisements": 50, "queue_bytes": 1 << 20}
_EACH = 150
"""Frames that a connection has before those that end it."""
_PATIENCE = 60.0

_msgpack = msgspec.msgpack
_ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 1e308, float("nan"), -0.0,
    float("inf"), "", "x", "\x00", "q" * 300, b"", b"\xff\xfe", [], {}, ["@", 0], ["@", 2**62],
    ["@", "x"], [[]], {"x": 1}, {"": None}, "SELECT", "🙂", "a#b", "$t",
)  # fmt: skip


@dataclass(slots=True)
class Fuzzed:
    """What was sent, and what came of it."""

    frames: int = 0
    connections: int = 0
    replies: int = 0
    closed: int = 0
    seconds: float = 0.0
    rss_before: int = 0
    rss_after: int = 0
    counted: dict[str, int] = field(default_factory=dict)


PAYLOADS = (FrameKind.CONTROL, FrameKind.EVENTS, FrameKind.BUNDLE)


def link_payloads(seeds: range) -> list[tuple[FrameKind, bytes]]:
    """What brokers say to one another in simulated runs."""
    found: dict[tuple[FrameKind, bytes], None] = {}

    def note(self: overlay.Overlay, sender: str, effect: Any) -> None:
        for one in framing.Decoder().feed(effect.data):
            if one.kind in PAYLOADS:
                found[one.kind, one.payload] = None
        arrive(self, sender, effect)

    arrive = overlay.Overlay._arrive
    with patch.object(overlay.Overlay, "_arrive", note):
        for seed in seeds:
            plan = Plan("acyclic", seed, steps=30, brokers=4, faults="none", tables=True)
            Scenario(plan).run()
            # Events together: only where nobody asks for more than kernels can do.
            plain = Scenario(replace(plan, matcher="index", advertised=False, tables=False))
            plain.run()
    assert {kind for kind, _ in found} == set(PAYLOADS)
    return [*found]


class Client:
    """Frames of a client, right and wrong."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._requests = 0
        self._shapes = [self._record(with_form) for with_form in (True, True, False)]

    def _record(self, with_form: bool) -> tuple[Form, bytes]:
        event = Event("q", {"x": 4, "y": 1.5, "s": "text"}, id="7", source="here")
        form = form_of(event)
        return form, write_record(event, 0 if with_form else NO_FORM, form)

    def hello(self) -> bytes:
        name = f"fuzz{self._draw.randrange(8)}"
        said = asking.Hello(name, "", self._draw.randrange(1 << 50))
        form = frame(Kind.FORM, asking.encode_form(0, self._shapes[0][0]))
        return frame(Kind.HELLO, asking.encode(said)) + form

    def one(self) -> bytes:
        """A frame that is refused or not, and goes on either way, mostly."""
        draw = self._draw
        chance = draw.random()
        if chance < 0.5:
            return self._request()
        if chance < 0.8:
            return self._events()
        if chance < 0.9:
            number = 0 if draw.random() < 0.01 else draw.randrange(1, 4)
            return frame(Kind.FORM, asking.encode_form(number, self._form()))
        return frame(draw.choice((Kind.PING, Kind.PONG)), draw.randbytes(draw.randrange(40)))

    def last(self) -> bytes:
        """Bytes after which there is nothing more to say."""
        draw = self._draw
        good = self._request() if draw.random() < 0.5 else self._events()
        chance = draw.random()
        if chance < 0.3:
            return flipped(good, draw)
        if chance < 0.5:
            return good[: draw.randrange(len(good))]
        if chance < 0.6:
            size = draw.choice((1 << 23, (1 << 23) - 8, 1 << 31, 0xFFFFFFFF))
            return struct.pack("<BBBBI", stream.MAGIC, 1, draw.randrange(15), 0, size)
        if chance < 0.7:
            return frame(draw.choice([*Kind]), draw.randbytes(draw.randrange(200)))
        if chance < 0.8:
            raw = bytearray(self._shapes[0][1])
            raw[draw.randrange(8)] = draw.randrange(256)
            kind = draw.choice((Kind.EVENTS, Kind.ONCE))
            return frame(kind, batch(1, 1, 1, bytes(raw)))
        if chance < 0.9:
            deep = b"\x91" * draw.choice((10, 1000, 100_000)) + b"\xc0"
            return frame(Kind.REQUEST, deep)
        return draw.randbytes(draw.randrange(1, 4000))

    def _form(self) -> Form:
        draw = self._draw
        if draw.random() < 0.7:
            return self._shapes[0][0]
        odd = ("id", "type", "") if draw.random() < 0.01 else ()
        names = draw.sample(("x", "y", "s", "z", *odd), draw.randrange(5))
        return Form(
            draw.choice("qtu"),
            tuple((n, draw.choice((INTEGER, FLOAT, BOOLEAN, TIME, STRING, BYTES))) for n in names),
        )

    def _events(self) -> bytes:
        draw = self._draw
        record = draw.choice(self._shapes)[1]
        count = draw.randrange(4)
        many = b"".join(
            flipped(record, draw, 8) if draw.random() < 0.002 else record for _ in range(count)
        )
        if draw.random() < 0.005:
            count = draw.choice((0, 1, 2, 0xFFFFFFFF))
        number = draw.choice((0, 0, draw.randrange(1 << 40), (1 << 64) - 1))
        kind = draw.choice((Kind.EVENTS, Kind.EVENTS, Kind.ONCE))
        whole = batch(draw.choice((0, self._number())), count, number, many)
        if kind is Kind.ONCE and draw.random() < 0.3:
            name = draw.choice(("s", "x", "none", "\0"))
            return frame(Kind.APART, apart_head(name), whole)
        return frame(kind, whole)

    def _number(self) -> int:
        self._requests += 1
        return self._requests

    def _request(self) -> bytes:
        draw = self._draw
        said = self._asked()
        payload = asking.encode(said)
        chance = draw.random()
        if chance < 0.35:
            whole = _msgpack.decode(payload)
            # The number stays one, or the whole frame is none.
            at = draw.randrange(2, len(whole)) if len(whole) > 2 else 1
            fits = [one for one in _ODD if type(one) is type(whole[at])]
            if type(whole[at]) is int and draw.random() < 0.98:
                # Within what a number may be: else there is no next frame.
                fits = [0, 1, 7, 1 << 29, 1 << 30]
            elif isinstance(whole[at], dict):
                fits = [{"low": draw.choice(_ODD)}, {draw.choice(("low", "", "overflow")): 1}]
            whole[at] = draw.choice(fits or [whole[at]])
            payload = _msgpack.encode(whole)
        elif chance < 0.352:
            payload = flipped(payload, draw)
        return frame(Kind.REQUEST, payload)

    def _asked(self) -> Any:
        draw, number = self._draw, self._number()
        handle = draw.randrange(6)
        params = {"low": draw.choice((1, 2.5, "x", None)), "y": draw.randrange(3)}
        text = draw.choice(_TEXTS)
        made: tuple[Callable[[], Any], ...] = (
            lambda: asking.Subscribe(number, handle, text, params, draw.choice((0, 1000))),
            lambda: asking.Subscribe(
                number, handle, text, params, 0, draw.random() < 0.5, False,
                draw.choice(("", "d1", "d2")), draw.choice((0, 1 << 62)), draw.choice(_POLICIES),
                draw.choice((0, 0, 3, 1 << 30, 1 << 40)) if draw.random() < 0.1 else 0,
            ),
            lambda: asking.Set(number, handle, params, 0, draw.random() < 0.3),
            lambda: asking.Restate(number, handle, text, params, 0),
            lambda: asking.Cancel(number, handle),
            lambda: asking.Cancel(number, handle),
            lambda: asking.Detach(number, handle),
            lambda: asking.Told(number, handle, draw.choice((0, 1, 1 << 62))),
            lambda: asking.Advertise(number, f"a{draw.randrange(4)}", text, draw.random() < 0.5),
            lambda: asking.Unadvertise(number, f"a{draw.randrange(4)}"),
            lambda: asking.Interested(number, text, 0),
            lambda: asking.Declare(number, draw.choice("tu"), draw.choice("kj")),
            lambda: asking.Delete(number, draw.choice("tuq"), draw.choice(_ODD)),
            lambda: asking.Observe(number, draw.choice("vw"), draw.choice(_ODD)),
            lambda: asking.Confirm(number, draw.choice((0, 1000))),
            lambda: asking.Explain(number, handle, self._shapes[2][1]),
            lambda: asking.Explain(number, handle, flipped(self._shapes[2][1], draw)),
            lambda: asking.Status(number, draw.random() < 0.5),
            lambda: asking.Peer(number, "nobody", "", draw.choice(("", "odd"))),
        )  # fmt: skip
        return draw.choice(made)()


_TEXTS = (
    "SELECT * FROM q WHERE x > :low AND y = :y",
    "SELECT * FROM q WHERE x > 3",
    "SELECT x FROM q WHERE s LIKE 't%'",
    "SELECT * FROM q WHERE x = :low THEN SELECT * FROM q WHERE x = :y",
    "SELECT * FROM q WHERE x > :low * env('v') - 0.001 * elapsed()",
    "SELECT MIN(y) FROM t WHERE x >= :low",
    "SELECT k, y FROM t WHERE x >= :low",
    "SELECT k, y FROM t WHERE moved(y, by => :low)",
    "SELECT t.k, u.w FROM t JOIN u ON t.z = u.z",
    "SELECT * FROM q WHERE ((((x > 1",
    "DROP TABLE q",
    "",
)
_POLICIES: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"overflow": "conflate", "key": "x"},
    {"limit": 2},
    {"min_interval": 0.001},
    {"max_interval": 0.01},
    {"overflow": "odd"},
    {"limit": -1},
)


class Link:
    """Frames of a neighbour, right and wrong. It learns the session's numbers from what comes."""

    def __init__(self, draw: random.Random, payloads: list[tuple[FrameKind, bytes]]) -> None:
        self._draw = draw
        self._payloads = payloads
        self._mine = time.time_ns()
        self._theirs = 0
        self._sequence = 0
        self._decoder = framing.Decoder()
        self._greeted = False

    def hello(self) -> bytes:
        self._mine += 1
        said = asking.Link(NEIGHBOUR, "peer", 1, False, False)
        first = encode_frame(Frame(FrameKind.HELLO, b"", self._mine, 0))
        return frame(Kind.LINK, asking.encode(said)) + first

    def hear(self, data: bytes) -> None:
        """What the broker says: its number is in every frame."""
        if not self._greeted:
            _, size = stream.head_of(data, 0, 1 << 23)
            data = data[stream.HEAD_BYTES + size :]
            self._greeted = True
        for one in self._decoder.feed(data):
            self._theirs = max(self._theirs, one.sender)

    def one(self) -> bytes:
        draw = self._draw
        kind, payload = draw.choice(self._payloads)
        chance = draw.random()
        if chance < 0.4:
            payload = flipped(payload, draw)
        elif chance < 0.45:
            payload = draw.randbytes(draw.randrange(60))
        elif chance < 0.5:
            kind = draw.choice([*FrameKind])
        if chance > 0.97:
            # Out of its place, or of another session: it is passed over.
            numbers = (draw.randrange(1 << 40), draw.choice((0, self._mine, 1 << 63)))
            return encode_frame(Frame(kind, payload, min(numbers), numbers[1], 1 << 40, 1 << 62))
        if kind in PAYLOADS:
            self._sequence += 1
        sent = Frame(kind, payload, self._mine, self._theirs, self._sequence, draw.randrange(9))
        whole = encode_frame(sent)
        if chance < 0.02:
            self._sequence -= kind in PAYLOADS
            raw = bytearray(whole)
            raw[-1] ^= 1 << draw.randrange(8)
            return bytes(raw)
        return whole

    def last(self) -> bytes:
        draw = self._draw
        good = self.one()
        if draw.random() < 0.4:
            return flipped(good, draw, 8)
        if draw.random() < 0.5:
            return good[: draw.randrange(len(good))]
        return struct.pack("<BBBBI", framing.MAGIC, 1, 1, 0, draw.choice((1 << 23, 0xFFFFFFFF)))


def flipped(data: bytes, draw: random.Random, within: int = 1 << 30) -> bytes:
    """The same with a few bits changed."""
    raw = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 5)) if raw else 0):
        raw[draw.randrange(min(len(raw), within))] ^= 1 << draw.randrange(8)
    return bytes(raw)


class Fuzzer:
    """One that is connected again and again."""

    def __init__(self, port: int, seed: int, payloads: list[tuple[FrameKind, bytes]]) -> None:
        self._address = ("127.0.0.1", port)
        self._draw = random.Random(seed)
        self._payloads = payloads
        self.done = Fuzzed()

    def connection(self) -> None:
        """One connection, from greeting to end."""
        draw = self._draw
        self.done.connections += 1
        with socket.create_connection(self._address, timeout=_PATIENCE) as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if draw.random() < 0.05:
                # Not even a greeting.
                self._send(line, draw.randbytes(draw.randrange(1, 500)))
                self.done.frames += 1
            elif draw.random() < 0.7:
                self._client(line)
            else:
                self._link(line)
            if draw.random() < 0.3:
                # No goodbye, not even to TCP.
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _client(self, line: socket.socket) -> None:
        draw = self._draw
        client = Client(draw)
        line.sendall(client.hello())
        self.done.frames += 1
        for _ in range(draw.randrange(1, 6)):
            frames = [client.one() for _ in range(draw.randrange(1, _EACH // 3))]
            token = draw.randbytes(8)
            ping = frame(Kind.PING, token)
            # Of a connection that was closed nobody knows how many were read: none count.
            if not (self._send(line, b"".join(frames) + ping) and self._until(line, token)):
                break
            self.done.frames += len(frames) + 1
        else:
            self._send(line, client.last())
            self.done.frames += 1

    def _link(self, line: socket.socket) -> None:
        draw = self._draw
        link = Link(draw, self._payloads)
        line.sendall(link.hello())
        self.done.frames += 2
        while not link._theirs:
            data = self._read(line)
            if not data:
                return
            try:
                link.hear(data)
            except DriftlineError:
                return
        for _ in range(draw.randrange(1, 6)):
            frames = [link.one() for _ in range(draw.randrange(1, _EACH // 3))]
            if not self._send(line, b"".join(frames)):
                break
            self.done.frames += len(frames)
        else:
            self._send(line, link.last())
            self.done.frames += 1

    def _send(self, line: socket.socket, data: bytes) -> bool:
        """Send, and take what comes meanwhile; False: it is closed."""
        try:
            line.setblocking(False)
            view = memoryview(data)
            deadline = time.monotonic() + _PATIENCE
            while view:
                assert time.monotonic() < deadline, "the broker reads no more"
                try:
                    view = view[line.send(view) :]
                except BlockingIOError:
                    self._drain(line)
                    time.sleep(0.0005)
        except OSError:
            self.done.closed += 1
            return False
        finally:
            line.settimeout(_PATIENCE)
        return True

    def _drain(self, line: socket.socket) -> None:
        try:
            while line.recv(1 << 16):
                pass
        except BlockingIOError:
            pass

    def _read(self, line: socket.socket) -> bytes:
        try:
            return line.recv(1 << 18)
        except TimeoutError:
            raise AssertionError("the broker says nothing") from None
        except OSError:
            return b""

    def _until(self, line: socket.socket, token: bytes) -> bool:
        """Read until the pong with a token; False: it is closed."""
        wanted = frame(Kind.PONG, token)
        tail = b""
        while True:
            data = self._read(line)
            if not data:
                self.done.closed += 1
                return False
            self.done.replies += 1
            tail = (tail + data)[-(1 << 18) :]
            if wanted in tail:
                return True


def fuzz(
    broker: BrokerProcess, frames: int, seed: int, say: Callable[[str], None] = lambda line: None
) -> Fuzzed:
    """Send so many frames; raises if the broker does not bear it."""
    fuzzer = Fuzzer(broker.port, seed, link_payloads(range(seed % 1000, seed % 1000 + 4)))
    done, begun, said = fuzzer.done, time.monotonic(), 0.0
    while done.frames < frames:
        if done.frames >= frames // 10 and not done.rss_before:
            # What is made once has been made by now.
            done.rss_before = broker.ask("count")["rss"]
        try:
            fuzzer.connection()
        except (AssertionError, OSError):
            time.sleep(1)
            assert broker.is_up(), f"seed {seed}: it has ended\n{broker.errors[-4000:]}"
            raise
        if time.monotonic() - said > 5:
            said = time.monotonic()
            mib = broker.rss() >> 20
            say(f"{done.frames:,} frames, {done.connections:,} connections, {mib} MiB")
    done.seconds = time.monotonic() - begun
    assert broker.is_up(), f"seed {seed}: it has ended\n{broker.errors[-4000:]}"
    return done


def settled(broker: BrokerProcess, done: Fuzzed) -> None:
    """Wait until all connections have ended, and count what is left."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        counted = broker.ask("count")
        if not (counted["connections"] or counted["awaited"]):
            break
        time.sleep(0.1)
    done.counted = counted
    done.rss_after = counted["rss"]


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    given = parser.parse_args()
    print(f"seed {given.seed}: replay with --seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder, Brokers(Path(folder)) as brokers:
        broker = brokers.start("b0", awaited={NEIGHBOUR: "peer"}, limits=LIMITS)
        done = fuzz(broker, given.frames, given.seed, lambda line: print(line, flush=True))
        settled(broker, done)
        print(json.dumps(msgspec.to_builtins(done)))


if __name__ == "__main__":
    main()
