"""What clients and brokers say to one another, apart from events."""

from __future__ import annotations

from datetime import UTC, datetime
from inspect import isclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftline.errors
from driftline.errors import DriftlineError, FrameRefused
from driftline.testing import strategies
from driftline.wire import asking
from driftline.wire.forms import Form
from driftline.wire.stream import HEAD_BYTES, Frames, Kind, frame

REQUESTS = [
    asking.Subscribe(1, 2, "SELECT * FROM q", {"a": 1, "b": "x"}, 5, durable="d", after=7),
    asking.Set(1, 2, {"a": None}),
    asking.Restate(1, 2, "SELECT * FROM q"),
    asking.Cancel(1, 2),
    asking.Detach(1, 2),
    asking.Told(1, 2, 3),
    asking.Advertise(1, "a", "SELECT * FROM q", True),
    asking.Unadvertise(1, "a"),
    asking.Interested(1, "SELECT * FROM q"),
    asking.Declare(1, "t", "id", {"price": "0.01"}),
    asking.Delete(1, "t", 3),
    asking.Observe(1, "v", 2.5),
    asking.Confirm(1),
    asking.Explain(1, 2, b"..."),
    asking.Status(1, True),
    asking.Peer(1, "b", "host:1", "peer"),
]


@pytest.mark.parametrize("asked", REQUESTS, ids=lambda one: type(one).__name__)
def test_a_request_comes_back(asked):
    assert asking.decode_request(asking.encode(asked)) == asked


def test_the_bytes_are_these():
    assert asking.encode(asking.Cancel(7, 2)) == b"\x93\xa6cancel\x07\x02"
    assert asking.encode(asking.Hello("me")) == b"\x95\xa5hello\xa2me\xa0\x00\x01"
    assert frame(Kind.PING, b"x").hex() == "d201080001000000" + "78"


@given(st.binary(max_size=60))
def test_any_other_bytes_are_refused(raw):
    decoders = (
        asking.decode_request,
        asking.decode_said,
        asking.decode_hello,
        asking.decode_welcome,
        asking.decode_link,
        asking.decode_reply,
        asking.decode_goodbye,
        asking.decode_form,
    )
    for decode in decoders:
        try:
            found = decode(raw)
        except FrameRefused:
            continue
        assert found is not None


@pytest.mark.parametrize(
    "raw",
    [
        msgspec.msgpack.encode(["cancel", 1]),
        msgspec.msgpack.encode(["cancel", 1, 2, 3]),
        msgspec.msgpack.encode(["cancel", -1, 2]),
        msgspec.msgpack.encode(["cancel", 1, 2**32]),
        msgspec.msgpack.encode(["set", 1, 2, {"x" * 70_000: 1}]),
        msgspec.msgpack.encode(["nothing", 1]),
        b"\x91" * 100_000,
    ],
)
def test_requests_that_are_none_are_refused(raw):
    with pytest.raises(FrameRefused):
        asking.decode_request(raw)


@given(strategies.values())
def test_values_come_back(value):
    packed = asking.pack(value)
    raw = msgspec.msgpack.encode(packed)
    found = asking.unpack(msgspec.msgpack.decode(raw), "value")
    assert found == value or (found != found and value != value)
    assert type(found) is type(value)


@pytest.mark.parametrize("bad", [[1, 2], {"a": 1}, ["@", "x"], ["@", 2**70], 2**70])
def test_what_is_no_value_is_refused(bad):
    with pytest.raises(FrameRefused):
        asking.unpack(bad, "value")


def test_times():
    time = datetime(2026, 11, 16, tzinfo=UTC)
    assert asking.unpack(asking.pack(time), "time") == time


def test_errors_come_back():
    samples = {
        "LanguageError": ("a", "b", 1, 2),
        "LimitExceeded": ("a", "b", 1, 2),
        "ParameterError": (("a",), (), ("c",)),
        "NotEffective": ("set", ("b", "c")),
        "LimitReached": ("subscriptions", 3),
        "FileRefused": ("path", None, "why"),
        "DriftlineError": ("why",),
    }
    for name, kind in vars(driftline.errors).items():
        if not isclass(kind) or not issubclass(kind, DriftlineError):
            continue
        for size in range(1, 5):
            try:
                error = kind(*samples.get(name, ("x",) * size))
                break
            except TypeError:
                continue
        reply = asking.decode_reply(asking.encode(asking.refusal(4, error)))
        found = asking.problem_of(reply.error, reply.facts)
        assert type(found) is kind
        assert str(found) == str(error)
    assert "Strange: 1" in str(asking.problem_of("Strange", [1]))


def test_forms_come_back():
    form = Form("t", (("a", 1), ("b", 16)))
    assert asking.decode_form(asking.encode_form(9, form)) == (9, form)


@given(st.lists(st.tuples(st.sampled_from(Kind), st.binary(max_size=40)), max_size=6), st.data())
def test_frames_come_out_of_a_stream_however_it_is_cut(frames, data):
    raw = b"".join(frame(kind, payload) for kind, payload in frames)
    reader, found = Frames(), []
    while raw:
        size = data.draw(st.integers(1, len(raw)))
        found += reader.feed(raw[:size])
        raw = raw[size:]
    assert found == frames
    assert reader.held == 0


@pytest.mark.parametrize(
    "head",
    ["d101080000000000", "d202080000000000", "d201630000000000", "d201080100000000"],
)
def test_other_streams_are_refused_at_their_head(head):
    with pytest.raises(FrameRefused):
        list(Frames().feed(bytes.fromhex(head)))


def test_a_frame_that_is_too_long_is_refused_before_it_comes():
    head = frame(Kind.PING, b"x" * 100)[:HEAD_BYTES]
    with pytest.raises(FrameRefused):
        list(Frames(limit=50).feed(head))
