"""Do frames come out of a stream as they went in, however it is cut, and does nothing else?"""

from __future__ import annotations

import pickle
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import FrameRefused, InvalidValue
from driftline.wire.framing import (
    OVERHEAD,
    PAYLOAD_BYTES_MAX,
    Decoder,
    Frame,
    FrameKind,
    encode_frame,
)
from driftline.wire.limits import FRAME_BYTES_MAX

U64 = st.integers(0, 2**64 - 1)
FRAMES = st.builds(
    Frame,
    st.sampled_from(FrameKind),
    st.binary(max_size=40),
    U64,
    U64,
    U64,
    U64,
    st.integers(0, 255),
)

GOLDEN = bytes.fromhex(
    "d1 01 02 80"  # magic, version, kind (events), flags
    "03000000"  # three bytes of payload
    "0100000000000000"  # sender
    "0002000000000000"  # receiver
    "0000030000000000"  # sequence
    "efcdab8967452301"  # acknowledged
    "616263"  # payload
    "34aa924c"  # CRC-32, 0x4c92aa34
)
GOLDEN_FRAME = Frame(FrameKind.EVENTS, b"abc", 1, 0x200, 0x30000, 0x0123456789ABCDEF, flags=0x80)

STREAM_FRAMES = [
    Frame(FrameKind.HELLO, sender=1),
    Frame(FrameKind.CONTROL, b"x" * 70, 1, 2, 1, 0),
    Frame(FrameKind.ACK, b"", 1, 2, 2, 2**64 - 1),
    Frame(FrameKind.EVENTS, b"\xd1\x01\x02\x00", 1, 2, 3, 9, 255),
]
STREAM = b"".join(map(encode_frame, STREAM_FRAMES))


def changed(frame: bytes, at: int, *new: int) -> bytes:
    """The frame with other bytes from here on, and a checksum that is right."""
    body = bytearray(frame[:-4])
    body[at : at + len(new)] = new
    return bytes(body) + zlib.crc32(body).to_bytes(4, "little")


def test_the_layout_is_the_one_written_by_hand() -> None:
    assert encode_frame(GOLDEN_FRAME) == GOLDEN
    assert Decoder().feed(GOLDEN) == [GOLDEN_FRAME]


@given(st.lists(FRAMES, max_size=5), st.randoms(use_true_random=False))
def test_frames_come_back_however_the_stream_is_cut(frames: list[Frame], draw) -> None:
    stream = b"".join(map(encode_frame, frames))
    decoder, found = Decoder(), []
    at = 0
    while at < len(stream):
        size = draw.choice((1, 3, 8, 40, 45, 100, 1000))
        found += decoder.feed(stream[at : at + size])
        at += size
    assert found == frames
    assert decoder.held == 0


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_a_stream_may_be_cut_anywhere(cut: int) -> None:
    decoder = Decoder()
    assert decoder.feed(STREAM[:cut]) + decoder.feed(STREAM[cut:]) == STREAM_FRAMES


def test_a_stream_may_come_byte_by_byte() -> None:
    decoder = Decoder()
    found = [frame for at in range(len(STREAM)) for frame in decoder.feed(STREAM[at : at + 1])]
    assert found == STREAM_FRAMES


@pytest.mark.parametrize("given_as", [bytes, bytearray, memoryview])
def test_any_buffer_will_do_and_is_not_kept(given_as) -> None:
    buffer = bytearray(STREAM)
    found = Decoder().feed(given_as(buffer))
    buffer[:] = bytes(len(buffer))
    assert found == STREAM_FRAMES
    assert all(type(frame.payload) is bytes for frame in found)


REFUSALS = {
    "magic": (changed(GOLDEN, 0, ord("G")), "a frame, which begins with 0xd1", "0x47"),
    "version": (changed(GOLDEN, 1, 7), "version 1", "version 7"),
    "kind 0": (changed(GOLDEN, 2, 0), "3 (hello), 4 (ack), 5 (bundle)", "kind 0"),
    "kind 6": (changed(GOLDEN, 2, 6), "1 (control), 2 (events), 3 (hello)", "kind 6"),
    "length": (changed(GOLDEN, 4, 0, 0, 0x80, 0), "at most 8388608 bytes", "one of 8388652"),
    "checksum": (GOLDEN[:-1] + b"\x00", "checksum", "0x"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_says_what_was_wanted_and_what_came(name: str) -> None:
    bad, wanted, came = REFUSALS[name]
    decoder = Decoder()
    decoder.feed(STREAM)
    with pytest.raises(FrameRefused) as refusal:
        decoder.feed(bad)
    assert refusal.value.where == f"frame at byte {len(STREAM)}"
    assert wanted in refusal.value.wanted
    assert came in refusal.value.came
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)


@pytest.mark.parametrize("name", REFUSALS)
def test_after_a_refusal_everything_is_refused_with_the_same_words(name: str) -> None:
    bad, _, _ = REFUSALS[name]
    decoder = Decoder()
    with pytest.raises(FrameRefused) as first:
        decoder.feed(STREAM + bad + STREAM)
    for data in (STREAM, b"", GOLDEN):
        with pytest.raises(FrameRefused) as again:
            decoder.feed(data)
        assert str(again.value) == str(first.value)


def test_nothing_is_held_after_a_refusal() -> None:
    bad, _, _ = REFUSALS["checksum"]
    decoder = Decoder()
    assert decoder.feed(bad[:-1]) == []
    assert decoder.held == len(bad) - 1
    with pytest.raises(FrameRefused):
        decoder.feed(bad[-1:])
    assert decoder.held == 0


@pytest.mark.parametrize("name", sorted({*REFUSALS} - {"checksum"}))
def test_the_first_eight_bytes_are_enough_to_refuse(name: str) -> None:
    bad, _, _ = REFUSALS[name]
    decoder = Decoder()
    assert decoder.feed(bad[:7]) == []
    with pytest.raises(FrameRefused):
        decoder.feed(bad[7:8])


def test_every_flipped_bit_is_noticed() -> None:
    for at in range(8 * len(GOLDEN)):
        bad = bytearray(GOLDEN)
        bad[at // 8] ^= 1 << at % 8
        decoder = Decoder(limit=1000)
        try:
            assert decoder.feed(bad) == [], f"bit {at}"
        except FrameRefused:
            continue
        # Only a frame that says it is longer waits for more, and more does not help it.
        assert 4 <= at // 8 < 8
        with pytest.raises(FrameRefused):
            decoder.feed(bytes(1000))


def test_the_limit_counts_the_whole_frame() -> None:
    limit = OVERHEAD + 10
    fits = Frame(FrameKind.EVENTS, bytes(10))
    assert Decoder(limit).feed(encode_frame(fits)) == [fits]
    with pytest.raises(FrameRefused, match=f"at most {limit} bytes, came one of {limit + 1}"):
        Decoder(limit).feed(encode_frame(Frame(FrameKind.EVENTS, bytes(11))))


def test_no_more_than_the_limit_is_held() -> None:
    limit = OVERHEAD + 100
    stream = encode_frame(Frame(FrameKind.EVENTS, bytes(100))) * 50
    for size in (1, 7, 143, 145, 1000, len(stream)):
        decoder = Decoder(limit)
        for at in range(0, len(stream), size):
            decoder.feed(stream[at : at + size])
            assert decoder.held < limit


def test_a_large_frame_may_come_in_small_pieces() -> None:
    frame = Frame(FrameKind.EVENTS, bytes(200_000))
    stream = encode_frame(frame)
    decoder = Decoder()
    found = [one for at in range(0, len(stream), 10) for one in decoder.feed(stream[at : at + 10])]
    assert found == [frame]


def test_the_largest_frame_there_may_be_passes() -> None:
    frame = Frame(FrameKind.EVENTS, bytes(PAYLOAD_BYTES_MAX))
    sent = encode_frame(frame)
    assert len(sent) == FRAME_BYTES_MAX
    assert Decoder().feed(sent) == [frame]


@pytest.mark.parametrize(
    "frame",
    [
        Frame(FrameKind.EVENTS, bytes(PAYLOAD_BYTES_MAX + 1)),
        Frame(FrameKind.EVENTS, sender=-1),
        Frame(FrameKind.EVENTS, sequence=2**64),
        Frame(FrameKind.EVENTS, flags=256),
        Frame(FrameKind.EVENTS, flags=-1),
    ],
    ids=["payload", "negative", "65 bits", "9 flags", "negative flags"],
)
def test_what_does_not_fit_is_not_written(frame: Frame) -> None:
    with pytest.raises(InvalidValue):
        encode_frame(frame)
