"""Whatever bytes come, do they give what could have been written, or a refusal that can be read?

Random bytes, and valid ones that were changed: by bits, by cutting, inserting and splicing, and
node by node. What is still accepted after that is used: written again, read again, and asked for
its text and its matches, since the change may have made something that only looks well.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import msgspec
import pytest

from driftline.errors import FrameRefused
from driftline.language.advertising import advertisement
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.message import (
    Answer,
    Ask,
    Control,
    Home,
    Interest,
    Neighbours,
    Offer,
    Parcel,
    Sequence,
)
from driftline.model.scope import Scope
from driftline.model.value import time_of
from driftline.wire import refusal
from driftline.wire.codec import decode_control, encode_control
from driftline.wire.events import decode_batch, encode_batch, join, split
from driftline.wire.framing import Decoder, Frame, FrameKind, encode_frame
from driftline.wire.records import encode_parcel, rerouted, route_of

TEXTS = (
    "SELECT * FROM quote WHERE firm = 'IBM' AND price BETWEEN 1 AND 2.5 AND volume IN (1, 2, :p)",
    "SELECT * WHERE s LIKE 'a%' AND t LIKE '%b%' AND NOT u LIKE '_c' AND v IS NULL AND w LIKE '%z'",
    "SELECT * WHERE x < y + 2 * :p - elapsed() AND (a = 1 OR b != TRUE AND NOT c > -d)",
    "SELECT * WHERE hour(now(), 'Europe/Berlin') >= env('h') AND coalesce(x, 'y', X'0F') = z",
    "SELECT * WHERE CASE x WHEN 1 THEN y ELSE 2 END = max(a, b, 3) AND CASE WHEN p THEN q END",
    "SELECT * WHERE at > TIMESTAMP '2026-01-31T09:30:00Z' AND (a + b) BETWEEN c AND d",
)
FILTERS = {
    f"{number}.{at}": one
    for number, text in enumerate(TEXTS)
    for at, one in enumerate(parse(text).filters())
}
OFFERS = {
    "k": advertisement("SELECT * FROM q WHERE x BETWEEN 1 AND 2 OR x = 'a' OR y LIKE 'b%'"),
    "j": advertisement("SELECT * WHERE z IS NOT NULL AND flag = TRUE"),
}
MESSAGES: tuple[Control, ...] = (
    Interest(FILTERS, ("gone", "é"), True),
    Interest(sequences={"s": Sequence((tuple(FILTERS.values()), (Filter("q"),)), -7)}),
    Interest(updates={"k": {0: 1, 7: "é", 2: time_of(5), 3: b"\x00"}}),
    Home("b1", 2**40, 7, dict(list(FILTERS.items())[:2]), ("k",), OFFERS, ("o",)),
    Offer(OFFERS),
    Neighbours("b1", 3, ("b2", "b3")),
    Ask("token"),
    Ask("token", 7, OFFERS["k"]),
    Answer("token", ("b2",)),
)
FULL = Event(
    "quote",
    {"s": "é" * 9, "i": -7, "f": 9.5, "b": True, "t": time_of(5), "raw": b"\x00\xff", "n": 2**62},
    time=-1,
    id="7",
    source="nyse",
    entered=1_767_225_600_000_000,
    trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
)
PARCELS = (
    Parcel("b1", 7, FULL, "alice", 3, ("b2", "b3"), {"e": 1, "v": "é", "w": 0.5}),
    Parcel("b1", 8, Event("q")),
    Parcel("", 2**64 - 1, Event("quote", {"x": 1.0, "y": ""}), homes=("",)),
)
PAYLOADS = {
    "control": [encode_control(message) for message in MESSAGES],
    "events": [encode_batch(PARCELS), *(encode_batch([parcel]) for parcel in PARCELS)],
}

SCOPE = Scope(FULL, {"p": 2}, {"h": 3}, elapsed=1.5)


def use_message(payload: bytes) -> None:
    message = decode_control(payload)
    assert decode_control(encode_control(message)) == message
    if isinstance(message, Interest | Home):
        for one in message.added.values():
            assert isinstance(str(one), str)
            assert isinstance(hash(one), int)
            assert one.matches(SCOPE) in (True, False)
    if isinstance(message, Offer):
        for other in message.added.values():
            assert isinstance(str(other), str)
            assert other.covers(FULL) in (True, False)


def use_batch(payload: bytes) -> None:
    records = split(payload)
    assert join(records) == payload
    for record in records:
        try:
            route = route_of(record)
        except FrameRefused:
            continue
        assert route_of(rerouted(record, 9, ("a", "b"))) == route._replace(hops=9, homes=("a", "b"))
    found = decode_batch(payload)
    # Written again the bytes are the same, so there is no second way to say it.
    assert encode_batch(found) == payload
    for parcel, record in zip(found, records, strict=True):
        assert encode_parcel(parcel) == record


USES: dict[str, Callable[[bytes], None]] = {"control": use_message, "events": use_batch}


def refused(use: Callable[[bytes], object], data: bytes) -> bool:
    """Was it refused, and in words that help?"""
    try:
        use(data)
    except FrameRefused as error:
        found = error
    else:
        return False
    assert 20 < len(str(found)) < 1000
    assert all((found.where, found.wanted, found.came))
    return True


def mutated(draw: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """The bytes, changed in one to three places."""
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 3))):
        at = draw.randrange(len(found) + 1)
        match draw.randrange(7):
            case 0 if found:
                found[at % len(found)] ^= 1 << draw.randrange(8)
            case 1 if found:
                found[at % len(found)] = draw.choice((0, 1, 0x7F, 0x80, 0x90, 0xC0, 0xC1, 0xFF))
            case 2:
                del found[at:]
            case 3:
                del found[at : at + draw.randrange(1, 9)]
            case 4:
                found[at:at] = draw.randbytes(draw.randrange(1, 9))
            case 5:
                other = draw.choice(others)
                found[at:] = other[draw.randrange(len(other)) :]
            case _:
                found[at:at] = found[at : at + draw.randrange(1, 40)]
    return bytes(found)


@pytest.mark.parametrize("kind", PAYLOADS)
def test_random_bytes_are_refused_in_words(kind: str, seed: int) -> None:
    draw = random.Random(seed)
    count = sum(
        refused(USES[kind], draw.randbytes(draw.choice((1, 8, 60, 300)))) for _ in range(4000)
    )
    assert count > 3900


@pytest.mark.parametrize("kind", PAYLOADS)
def test_changed_payloads_are_refused_or_mean_something(kind: str, seed: int) -> None:
    draw = random.Random(seed)
    payloads = PAYLOADS[kind]
    count = sum(
        refused(USES[kind], mutated(draw, draw.choice(payloads), payloads)) for _ in range(20_000)
    )
    assert 5000 < count < 20_000


@pytest.mark.parametrize("kind", PAYLOADS)
def test_payloads_cut_anywhere_are_refused(kind: str) -> None:
    for payload in PAYLOADS[kind]:
        assert all(refused(USES[kind], payload[:cut]) for cut in range(len(payload)))


def test_each_byte_changed_is_refused_or_means_something() -> None:
    for kind, payloads in PAYLOADS.items():
        for payload in payloads:
            for at in range(len(payload)):
                for byte in {0, payload[at] ^ 1, payload[at] ^ 0x80, 0xFF} - {payload[at]}:
                    refused(USES[kind], payload[:at] + bytes([byte]) + payload[at + 1 :])


def test_a_refusal_is_short_even_if_its_facts_are_not() -> None:
    facts = ("w" * 10_000, "x" * 10_000, "y" * 10_000)
    assert len(str(refusal.refused(*facts))) < 1000


# Changes that keep the MessagePack whole get further than those of bytes.

ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**63 - 1, 2**63, 2**64 - 1, 1.5, float("nan"), "", "x", "%", "\\", b"x"),
    *([], {}, [[]], ["a"], ["a", "x"], [":", "p"], ["@", 5], ["@", "x"], ["@", 2**62], ["now"]),
    *(["and", True, True], ["not", 1], ["call", "abs", 1], ["null", ["a", "x"]], ["in", 1, 2]),
    *(["x", "=", 1], ["x", "IN"], ["x", "prefix", "a%"], [None, [], []], {"x": [1]}),
    *("IN", "=", "prefix", "IS NULL", "and", "or", "like", "between", "case", "switch", "call"),
    msgspec.msgpack.Ext(7, b"x"),
)


def nodes(tree: Any) -> list[tuple[list[Any], int]]:
    """Every place in nested arrays."""
    found, stack = [], [tree]
    while stack:
        array = stack.pop()
        for at, item in enumerate(array):
            found.append((array, at))
            if isinstance(item, list):
                stack.append(item)
    return found


def rearranged(draw: random.Random, payload: bytes) -> bytes:
    tree = msgspec.msgpack.decode(payload)
    for _ in range(draw.choice((1, 1, 2, 4))):
        array, at = draw.choice(nodes(tree))
        match draw.randrange(4):
            case 0:
                array[at] = deepcopy(draw.choice(ODD))
            case 1:
                array.insert(at, deepcopy(draw.choice(ODD)))
            case 2 if len(array) > 1:
                del array[at]
            case _:
                other, there = draw.choice(nodes(tree))
                array[at] = deepcopy(other[there])
    return msgspec.msgpack.encode(tree)


def test_rearranged_messages_are_refused_or_mean_something(seed: int) -> None:
    draw = random.Random(seed)
    payloads = PAYLOADS["control"]
    # Mostly those with filters in them.
    chosen = [*payloads[:3], *payloads]
    count = sum(refused(use_message, rearranged(draw, draw.choice(chosen))) for _ in range(12_000))
    assert 5000 < count < 12_000


# Frames

STREAM = [
    encode_frame(Frame(kind, payload, 1, 2, number, number))
    for number, (kind, payload) in enumerate(
        [(FrameKind.HELLO, b"")]
        + [(FrameKind.CONTROL, payload) for payload in PAYLOADS["control"]]
        + [(FrameKind.EVENTS, payload) for payload in PAYLOADS["events"]]
    )
]


def test_changed_streams_are_refused_or_end_early(seed: int) -> None:
    draw = random.Random(seed)
    whole = b"".join(STREAM)
    frames = Decoder().feed(whole)
    counts = [0, 0]
    for _ in range(3000):
        changed = mutated(draw, whole, STREAM)
        decoder = Decoder(limit=10_000)
        found: list[Frame] = []

        def read(data: bytes, decoder: Decoder = decoder, found: list[Frame] = found) -> None:
            at = 0
            while at < len(data):
                size = draw.choice((1, 50, 700, 5000))
                found += decoder.feed(data[at : at + size])
                assert decoder.held < 10_000
                at += size

        counts[refused(read, changed)] += 1
        # No frame is told that was not sent; a splice may repeat whole ones or leave them out.
        assert all(frame in frames for frame in found)
    assert min(counts) > 100


def test_random_bytes_are_no_frames(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(3000):
        data = draw.choice((b"", b"\xd1", b"\xd1\x01", b"\xd1\x01\x02\x00")) + draw.randbytes(100)
        decoder = Decoder(limit=1000)
        if not refused(decoder.feed, data):
            assert decoder.held == len(data)


def test_a_changed_frame_with_a_right_checksum_is_refused_or_read(seed: int) -> None:
    """As if a broken peer had written it: what comes is up to what the payload is read as."""
    draw = random.Random(seed)
    for _ in range(3000):
        body = mutated(draw, draw.choice(STREAM)[:-4], STREAM)
        data = body + zlib.crc32(body).to_bytes(4, "little")
        decoder = Decoder(limit=10_000)

        def read(data: bytes, decoder: Decoder = decoder) -> None:
            for frame in decoder.feed(data):
                if frame.kind is FrameKind.CONTROL:
                    use_message(frame.payload)
                elif frame.kind is FrameKind.EVENTS:
                    use_batch(frame.payload)

        refused(read, data)
