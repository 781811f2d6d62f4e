"""Does every parcel come back as it was, and can its bytes be handled without reading it?"""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import FrameRefused, InvalidValue
from driftline.model.event import EARLIEST_US, LATEST_US, Event
from driftline.model.message import Parcel
from driftline.model.value import INTEGER_MAX, INTEGER_MIN, same
from driftline.wire.events import decode_batch, encode_batch, join, split
from driftline.wire.limits import ATTRIBUTES_MAX, HOPS_MAX, NAME_BYTES_MAX, RECORDS_MAX
from driftline.wire.records import (
    HEAD_BYTES,
    RECORD_BYTES_MAX,
    Route,
    decode_parcel,
    encode_parcel,
    rerouted,
    route_of,
)
from tests.wire.drawn import NAMES, TRACE, parcels

EDGES = {
    "zero": 0,
    "least integer": INTEGER_MIN,
    "greatest integer": INTEGER_MAX,
    "no float": 2**53 + 1,
    "float that is an integer": 1.0,
    "negative zero": -0.0,
    "smallest float": 5e-324,
    "largest float": 1.7976931348623157e308,
    "infinity": math.inf,
    "negative infinity": -math.inf,
    "NaN": math.nan,
    "true": True,
    "false": False,
    "year 1": datetime(1, 1, 1, tzinfo=UTC),
    "before 1970": datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    "1970": datetime(1970, 1, 1, tzinfo=UTC),
    "year 9999": datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    "empty string": "",
    "NUL": "\x00",
    "last code point": "\U0010ffff",
    "beside the surrogates": "\ud7ff\ue000",
    "long string": "é" * 100_000,
    "empty bytes": b"",
    "all bytes": bytes(range(256)),
}

# One batch of one parcel, byte by byte.
GOLDEN = bytes.fromhex(
    "01000000"  # one record
    "c5000000"  # 197 bytes of records
    "c5000000"  # 197 bytes of this record
    "0f"  # entered, time, id and source are there
    "03"  # hops
    "0600"  # attributes
    "0700000000000000"  # number
    "40420f0000000000"  # entered: 1 s after 1970
    "ffffffffffffffff"  # time: 1 µs before
    "0200 0100 0100 0100 0200 0700 3700 0c00"  # bytes of the sections
    "6231"  # origin b1
    "61"  # publisher a
    "71"  # type q
    "69"  # id i
    "c3a9"  # source é
    "0100 63  0200 6463"  # homes c and dc
    # the trace
    "30302d3061663736353139313663643433646438343438656232313163383033313963"
    "2d623761643662373136393230333333312d3031"
    "01 0100 76 f9ffffffffffffff"  # stamp v, integer -7
    "02 0100 66 0000000000002340"  # f, float 9.5
    "03 0100 6f 0100000000000000"  # o, true
    "04 0100 77 0200000000000000"  # w, 2 µs after 1970
    "10 0200 c3a9 02000000 4849"  # é, string HI
    "11 0100 62 01000000 ff"  # b, bytes
    "01 0100 6e 00000000000000 80"  # n, the least integer
)
GOLDEN_PARCEL = Parcel(
    "b1",
    7,
    Event(
        "q",
        {
            "f": 9.5,
            "o": True,
            "w": datetime(1970, 1, 1, 0, 0, 0, 2, tzinfo=UTC),
            "é": "HI",
            "b": b"\xff",
            "n": INTEGER_MIN,
        },
        entered=1_000_000,
        time=-1,
        id="i",
        source="é",
        trace=TRACE,
    ),
    "a",
    3,
    ("c", "dc"),
    {"v": -7},
)
RECORD = GOLDEN[8:]


def exactly(one: Parcel, other: Parcel) -> bool:
    """Is it the same parcel, with the same types, zeros, NaN and order of attributes?"""
    pairs = zip(one.stamps.items(), other.stamps.items(), strict=True)
    return (
        one.event == other.event
        and list(one.event.attributes) == list(other.event.attributes)
        and all(a == b and same(x, y) for (a, x), (b, y) in pairs)
        and one.origin == other.origin
        and one.number == other.number
        and one.publisher == other.publisher
        and one.hops == other.hops
        and one.homes == other.homes
    )


def put(record: bytes, at: int, form: str, *values: object) -> bytes:
    """The record with these numbers from here on."""
    changed = bytearray(record)
    struct.pack_into(form, changed, at, *values)
    return bytes(changed)


def test_the_layout_is_the_one_written_by_hand() -> None:
    assert encode_batch([GOLDEN_PARCEL]) == GOLDEN
    (found,) = decode_batch(GOLDEN)
    assert exactly(found, GOLDEN_PARCEL)


@given(st.lists(parcels(), max_size=4))
def test_parcels_come_back_exactly(sent: list[Parcel]) -> None:
    found = decode_batch(encode_batch(sent))
    assert len(found) == len(sent)
    assert all(map(exactly, found, sent))


@pytest.mark.parametrize("name", EDGES)
def test_an_edge_value_comes_back_exactly(name: str) -> None:
    sent = Parcel("a", 1, Event("e", {"x": EDGES[name]}), stamps={"x": 1})
    (found,) = decode_batch(encode_batch([sent]))
    assert same(found.event.attributes["x"], EDGES[name])
    if not isinstance(EDGES[name], str | bytes):
        stamped = Parcel("a", 1, Event("e"), stamps={"x": EDGES[name]})
        assert same(decode_batch(encode_batch([stamped]))[0].stamps["x"], EDGES[name])


@pytest.mark.parametrize("stamp", [EARLIEST_US, -1, 0, 1, LATEST_US, None])
def test_what_the_envelope_lacks_is_told_from_what_is_zero(stamp: int | None) -> None:
    for event in (Event("e", time=stamp), Event("e", entered=stamp)):
        (found,) = decode_batch(encode_batch([Parcel("a", 1, event)]))
        assert (found.event.time, found.event.entered) == (event.time, event.entered)


def test_an_empty_batch_is_a_batch() -> None:
    assert encode_batch([]) == bytes(8)
    assert decode_batch(bytes(8)) == []


# Records as they lie


@given(st.lists(parcels(), max_size=2), st.lists(parcels(), max_size=2))
def test_records_may_move_from_batch_to_batch(some: list[Parcel], others: list[Parcel]) -> None:
    records = split(encode_batch(some)) + split(encode_batch(others))
    assert [bytes(record) for record in records] == [*map(encode_parcel, some + others)]
    assert join(records) == encode_batch(some + others)
    assert all(map(exactly, decode_batch(join(reversed(records))), reversed(some + others)))


@given(parcels(), st.integers(0, HOPS_MAX), st.lists(NAMES, max_size=4).map(tuple))
def test_a_record_is_rerouted_as_if_written_anew(
    parcel: Parcel, hops: int, homes: tuple[str, ...]
) -> None:
    record = encode_parcel(parcel)
    assert route_of(record) == Route(parcel.origin, parcel.number, parcel.hops, parcel.homes)
    meant = Parcel(
        parcel.origin,
        parcel.number,
        parcel.event,
        parcel.publisher,
        hops,
        homes,
        parcel.stamps,
    )
    assert rerouted(record, hops, homes) == encode_parcel(meant)


def test_rerouting_does_not_look_at_the_event() -> None:
    """The sections after the homes may hold anything."""
    at = RECORD.index(b"-01\x01\x01\x00v")
    opaque = RECORD[:at] + b"\xff" * (len(RECORD) - at)
    moved = rerouted(opaque, 4, ("z",))
    assert route_of(moved) == Route("b1", 7, 4, ("z",))
    assert moved.endswith(opaque[at:])
    with pytest.raises(FrameRefused):
        decode_parcel(moved)


@given(st.lists(parcels(), min_size=1, max_size=3))
def test_a_reader_of_the_table_alone_finds_everything(sent: list[Parcel]) -> None:
    """A second reading, from the documented offsets, as a compiled one would go about it."""
    batch = encode_batch(sent)

    def number(at: int, size: int, signed: bool = False) -> int:
        return int.from_bytes(batch[at : at + size], "little", signed=signed)

    assert (number(0, 4), number(4, 4)) == (len(sent), len(batch) - 8)
    start = 8
    for parcel in sent:
        event = parcel.event
        assert number(start + 5, 1) == parcel.hops
        assert number(start + 8, 8) == parcel.number
        assert number(start + 16, 8, signed=True) == (event.entered or 0)
        assert number(start + 24, 8, signed=True) == (event.time or 0)
        sizes = [number(start + 32 + 2 * i, 2) for i in range(8)]
        kind_at = start + HEAD_BYTES + sizes[0] + sizes[1]
        assert batch[kind_at : kind_at + sizes[2]].decode() == event.type
        at = start + HEAD_BYTES + sum(sizes)
        names = []
        for _ in range(number(start + 6, 2)):
            kind, size = number(at, 1), number(at + 1, 2)
            names.append(batch[at + 3 : at + 3 + size].decode())
            at += 3 + size
            at += 8 if kind <= 15 else 4 + number(at, 4)
        assert names == list(event.attributes)
        start += number(start, 4)
        assert at == start
    assert start == len(batch)


# What is refused

BAD_BATCHES = {
    "nothing": (b"", "8 to"),
    "half a head": (GOLDEN[:7], "8 to"),
    "cut": (GOLDEN[:-1], "197 bytes of records"),
    "longer than it says": (GOLDEN + b"\x00", "197 bytes of records"),
    "fewer parcels than bytes": (put(GOLDEN, 0, "<I", 0), "nothing after 0 parcels"),
    "more parcels than bytes": (put(GOLDEN, 0, "<I", 2), "a record of 48 to 0 bytes"),
    "four billion parcels": (put(GOLDEN, 0, "<I", 2**32 - 1), f"at most {RECORDS_MAX} parcels"),
    "a record of nothing": (put(GOLDEN, 8, "<I", 0), "a record of 48 to 197"),
    "a record that is too short": (put(GOLDEN, 8, "<I", 47), "a record of 48 to 197"),
    "a record that is too long": (put(GOLDEN, 8, "<I", 198), "a record of 48 to 197"),
}


@pytest.mark.parametrize("name", BAD_BATCHES)
def test_a_bad_batch_is_refused(name: str) -> None:
    bad, wanted = BAD_BATCHES[name]
    for read in (split, decode_batch):
        with pytest.raises(FrameRefused, match=f"wanted {wanted}"):
            read(bad)


_AT_STAMP = RECORD.index(b"\x01\x01\x00v")
_AT_BOOLEAN = RECORD.index(b"\x03\x01\x00o")
_AT_TIME = RECORD.index(b"\x04\x01\x00w")
_AT_STRING = RECORD.index("\x10\x02\x00é".encode())
_AT_BYTES = RECORD.index(b"\x11\x01\x00b")
BARE = encode_parcel(Parcel("a", 1, Event("e")))

BAD_RECORDS = {
    "nothing": (b"", "a head of 48 bytes, came 0"),
    "half a head": (RECORD[:47], "a head of 48 bytes, came 47"),
    "another length": (put(RECORD, 0, "<I", 196), "196 bytes, as its head says, came 197"),
    "a fifth flag": (put(RECORD, 4, "<B", 31), "flags of 4 bits, came 0x1f"),
    "a stamp that is not there": (put(BARE, 16, "<q", 5), "nothing where the flags say so, came 5"),
    "a time that is not there": (put(BARE, 24, "<q", -5), "nothing where the flags say so"),
    "an id that is not there": (put(RECORD, 4, "<B", 11), "nothing where the flags say so"),
    "a source that is not there": (put(RECORD, 4, "<B", 7), "nothing where the flags say so"),
    "an empty id": (put(BARE, 4, "<B", 4), "a string that is not empty"),
    "an empty source": (put(BARE, 4, "<B", 8), "a string that is not empty"),
    "sections beyond the end": (put(RECORD, 32, "<H", 999), "as its sections say, came 197"),
    "fewer attributes": (put(RECORD, 6, "<H", 5), "5 attributes, as its head says, came 6"),
    "more attributes": (put(RECORD, 6, "<H", 7), "7 attributes, as its head says, came 6"),
    "no type": (put(BARE, 32, "<HHH", 2, 0, 0), "event type: wanted a string that is not empty"),
    "entered in the year 10000": (put(RECORD, 16, "<q", LATEST_US + 1), "the years 1 and 9999"),
    "a time before the year 1": (put(RECORD, 24, "<q", EARLIEST_US - 1), "the years 1 and 9999"),
    "an origin that is no text": (put(RECORD, 48, "<B", 0xFF), "origin: wanted UTF-8"),
    "a surrogate": (RECORD.replace(b"dc", b"\xed\xa0"), "homes: wanted UTF-8"),
    "a home that is too long": (put(RECORD, 55, "<H", 9), "bytes of a length and 9 of a name"),
    "half a length of a home": (put(RECORD, 42, "<HH", 4, 4), "2 bytes of a length and 0 of"),
    "a stamp without a value": (put(RECORD, 46, "<H", 11), "stamps, value 0: wanted a name and"),
    "an unknown kind": (
        put(RECORD, _AT_STAMP, "<B", 0),
        "a kind from 1 to 4, 16 or 17, came kind 0",
    ),
    "an unknown fixed kind": (put(RECORD, _AT_TIME, "<B", 15), "came kind 15"),
    "an unknown run": (put(RECORD, _AT_STRING, "<B", 18), "came kind 18"),
    "a boolean of 2": (put(RECORD, _AT_BOOLEAN + 4, "<q", 2), "0 or 1, came 2"),
    "a time of the year 10000": (put(RECORD, _AT_TIME + 4, "<q", LATEST_US + 1), "9999"),
    "a string that is none": (
        put(RECORD, _AT_STRING + 9, "<B", 0xFF),
        "attributes, value 3: wanted",
    ),
    "a name that is none": (put(RECORD, _AT_STRING + 3, "<B", 0xFF), "attributes, value 3: wanted"),
    "bytes beyond the end": (
        put(RECORD, _AT_BYTES + 4, "<I", 99),
        "a value of 99 bytes, came only",
    ),
    "a name beyond the end": (
        put(RECORD, _AT_BYTES + 1, "<H", 999),
        "a name of 999 bytes, came only",
    ),
    "a name again": (put(RECORD, _AT_TIME + 3, "<B", ord("o")), "another name, came 'o' again"),
    "an attribute without a name": (
        put(
            encode_parcel(Parcel("", 1, Event("e", {"n": "z"}))),
            HEAD_BYTES + 1,
            "<BHIB",
            *(16, 0, 2, 0),
        ),
        "attribute name: wanted a string that is not empty",
    ),
    "an attribute of the envelope": (
        encode_parcel(Parcel("", 1, Event("e", {"ce_tipe": 1}))).replace(b"tipe", b"type"),
        "a name that is not the envelope's",
    ),
}


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_a_bad_record_is_refused(name: str) -> None:
    bad, wanted = BAD_RECORDS[name]
    with pytest.raises(FrameRefused) as refusal:
        decode_parcel(bad, "parcel 3")
    assert wanted in str(refusal.value)
    assert refusal.value.where.startswith("parcel 3")


@pytest.mark.parametrize(
    "name", ["nothing", "half a head", "another length", "sections beyond the end"]
)
def test_a_bad_head_is_refused_where_the_event_is_not_read(name: str) -> None:
    bad, _ = BAD_RECORDS[name]
    with pytest.raises(FrameRefused):
        route_of(bad)
    with pytest.raises(FrameRefused):
        rerouted(bad, 1, ())


def test_a_refusal_names_the_parcel() -> None:
    bad = join([RECORD, put(RECORD, 4, "<B", 31)])
    with pytest.raises(FrameRefused, match=r"^parcel 1: wanted flags"):
        decode_batch(bad)


# What is not written

LONG = "x" * (NAME_BYTES_MAX + 1)
TOO_MUCH = {
    "origin": Parcel(LONG, 1, Event("e")),
    "publisher": Parcel("a", 1, Event("e"), publisher=LONG),
    "type": Parcel("a", 1, Event(LONG)),
    "id": Parcel("a", 1, Event("e", id=LONG)),
    "source": Parcel("a", 1, Event("e", source=LONG)),
    "name": Parcel("a", 1, Event("e", {LONG: 1})),
    "home": Parcel("a", 1, Event("e"), homes=(LONG,)),
    "homes": Parcel("a", 1, Event("e"), homes=("x" * 1000,) * 66),
    "stamps": Parcel("a", 1, Event("e"), stamps={"x": "x" * NAME_BYTES_MAX}),
    "hops": Parcel("a", 1, Event("e"), hops=HOPS_MAX + 1),
    "negative hops": Parcel("a", 1, Event("e"), hops=-1),
    "number": Parcel("a", 2**64, Event("e")),
    "negative number": Parcel("a", -1, Event("e")),
    "a number that is a float": Parcel("a", 1.0, Event("e")),  # type: ignore[arg-type]
    "attributes": Parcel("a", 1, Event("e", dict.fromkeys(map(str, range(ATTRIBUTES_MAX + 1)), 1))),
    "record": Parcel("a", 1, Event("e", {"x": bytes(RECORD_BYTES_MAX)})),
    "a stamp that is no value": Parcel("a", 1, Event("e"), stamps={"x": [1]}),
    "a stamp of nothing": Parcel("a", 1, Event("e"), stamps={"x": None}),
    "an origin that is no text": Parcel("\ud800", 1, Event("e")),
    "an origin that is a number": Parcel(7, 1, Event("e")),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_would_be_refused_is_not_written(name: str) -> None:
    with pytest.raises(InvalidValue):
        encode_parcel(TOO_MUCH[name])


def test_the_longest_of_everything_passes() -> None:
    longest = "x" * NAME_BYTES_MAX
    event = Event(
        longest, {longest: 1, "n": 2}, id=longest, source=longest, trace=f"{TRACE} {'x' * 512}"
    )
    homes = ("x" * (NAME_BYTES_MAX - 2),)
    sent = Parcel(longest, 2**64 - 1, event, longest, HOPS_MAX, homes)
    assert decode_batch(encode_batch([sent])) == [sent]
    many = Parcel("a", 1, Event("e", dict.fromkeys(map(str, range(ATTRIBUTES_MAX)), 1)))
    assert decode_batch(encode_batch([many])) == [many]


def test_a_record_may_fill_its_batch_and_no_more() -> None:
    empty = len(encode_parcel(Parcel("a", 1, Event("e", {"x": b""}))))
    full = Parcel("a", 1, Event("e", {"x": bytes(RECORD_BYTES_MAX - empty)}))
    assert decode_batch(encode_batch([full])) == [full]
    with pytest.raises(InvalidValue, match=f"at most {RECORD_BYTES_MAX} bytes"):
        rerouted(encode_parcel(full), 1, ("b",))
    with pytest.raises(InvalidValue, match="batch: wanted at most"):
        join([encode_parcel(full), BARE])


def test_no_more_records_are_joined_than_are_read() -> None:
    most = join([BARE] * RECORDS_MAX)
    assert len(split(most)) == RECORDS_MAX
    with pytest.raises(InvalidValue, match=f"at most {RECORDS_MAX} parcels"):
        join([BARE] * (RECORDS_MAX + 1))


@pytest.mark.parametrize("bad", [b"", b"\x30", RECORD[:-1], RECORD + b"\x00"])
def test_only_whole_records_are_joined(bad: bytes) -> None:
    with pytest.raises(InvalidValue, match="whole records"):
        join([RECORD, bad])


@pytest.mark.parametrize("hops", [-1, HOPS_MAX + 1])
def test_hops_that_do_not_fit_are_not_written(hops: int) -> None:
    with pytest.raises(InvalidValue, match="hops"):
        rerouted(RECORD, hops, ())


def test_the_head_is_as_long_as_the_table_says() -> None:
    assert HEAD_BYTES == 48
