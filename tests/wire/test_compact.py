"""Events on a client's connection: what is written comes back, and nothing else is read."""

from __future__ import annotations

import struct
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import FrameRefused, InvalidValue
from driftline.kernels import intake
from driftline.kernels.intake import is_utf8
from driftline.model.event import Event
from driftline.model.trace import is_trace
from driftline.testing import strategies
from driftline.wire.compact import RECORD_BYTES_MAX, read_record, split_records, write_record
from driftline.wire.forms import NO_FORM, Form, check_form, form_of
from driftline.wire.notices import Notice, marks_of, read_notice, remarked, write_notice
from tests.wire.drawn import TRACE, TRACES

EVENTS = st.builds(Event.with_trace, strategies.events(), st.sampled_from(TRACES))
MARKS = st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), max_size=5)


@given(EVENTS, st.sampled_from((0, 7, NO_FORM)))
def test_a_record_comes_back(event, number):
    form = form_of(event)
    raw = write_record(event, number, form)
    assert read_record(raw, {number: form}) == event
    assert [bytes(one) for one in split_records(raw * 3)] == [raw] * 3


@given(
    EVENTS,
    MARKS,
    st.integers(0, 2**63),
    st.booleans(),
    st.booleans(),
    st.sampled_from((3, NO_FORM)),
)
def test_a_notice_comes_back(event, marks, number, gap, repeated, form_number):
    event = event.entering(5)
    form = form_of(event)
    notice = Notice(tuple(marks), number, gap, event, repeated)
    raw = write_notice(notice, form_number, form)
    assert read_notice(raw, {form_number: form}) == notice
    assert marks_of(raw) == marks
    fewer = remarked(raw, marks[:1])
    assert read_notice(fewer, {form_number: form}).marks == tuple(marks[:1])


def test_very_many_marks():
    event = Event("t", {"n": 1}).entering(1)
    marks = tuple((n, n % 3) for n in range(1_000))
    raw = write_notice(Notice(marks, 9, False, event), 0, form_of(event))
    assert read_notice(raw, {0: form_of(event)}).marks == marks
    assert len(marks_of(remarked(raw, list(marks[:254])))) == 254
    assert len(marks_of(remarked(raw, list(marks[:255])))) == 255


@given(strategies.events(), st.data())
def test_other_bytes_are_refused_or_something_else(event, data):
    form = form_of(event)
    raw = bytearray(write_record(event, 0, form))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(0, len(raw)))
    for bad in (raw, raw[:cut]):
        try:
            found = read_record(bytes(bad), {0: form})
        except FrameRefused:
            continue
        # What is read is an event that can be written again.
        assert read_record(write_record(found, 0, form_of(found)), {0: form_of(found)})


def test_the_bytes_are_these():
    event = Event("t", {"i": -1, "f": 0.5, "b": True, "s": "é", "r": b"\1"}, id="x", time=2)
    form = form_of(event)
    assert form == Form("t", (("i", 1), ("f", 2), ("b", 3), ("s", 16), ("r", 17)))
    body = (
        "0200000000000000" + "0100" + "78"  # the time, and the id behind its length
        "ffffffffffffffff" + "000000000000e03f" + "0100000000000000" + "02000000c3a9" + "0100000001"
    )
    assert write_record(event, 3, form).hex() == "36000000" + "0300" + "03" + "00" + body
    told = Notice(((7, 1),), 9, True, event.stamped(4))
    assert write_notice(told, 3, form).hex() == (
        "4e000000" + "0300" + "63" + "01" + "0700000001000000" + "0900000000000000"
        "0400000000000000" + body
    )


def test_what_cannot_be_said_is_refused_where_it_is_written():
    event = Event("t", {"s": "x" * RECORD_BYTES_MAX})
    with pytest.raises(InvalidValue):
        write_record(event, 0, form_of(event))
    for bad in (
        Form("", ()),
        Form("t", (("", 1),)),
        Form("t", (("a", 1), ("a", 2))),
        Form("t", (("ce_type", 16),)),
        Form("t", (("a", 5),)),
    ):
        with pytest.raises(InvalidValue):
            check_form(bad)


def test_times_outside_of_the_calendar_are_refused():
    event = Event("t", {"at": datetime(2026, 1, 1, tzinfo=UTC)})
    form = form_of(event)
    raw = bytearray(write_record(event, 0, form))
    raw[-8:] = (2**62).to_bytes(8, "little")
    with pytest.raises(FrameRefused):
        read_record(bytes(raw), {0: form})


@given(st.binary(max_size=12) | st.text(max_size=6).map(lambda text: text.encode()))
def test_kernels_know_what_a_text_is(raw):
    import numpy as np

    try:
        raw.decode()
        wanted = True
    except UnicodeDecodeError:
        wanted = False
    padded = np.frombuffer(b"\x80" + raw + b"\x80", np.uint8).copy()
    assert is_utf8(padded, 1, 1 + len(raw)) is wanted


BAD_TRACES = ("t", TRACE.upper(), TRACE[:-1], TRACE + "0", TRACE + " ", TRACE + " \x7f", "é" * 28)


@pytest.mark.parametrize("bad", BAD_TRACES)
@pytest.mark.parametrize("number", [0, NO_FORM])
def test_a_trace_that_is_none_is_left_out_and_the_event_is_not(bad, number):
    event = Event("t", {"n": 1}, id="i", trace=TRACE)
    raw = write_record(event, number, form_of(event))
    said = bad.encode()
    found = raw.replace(struct.pack("<H", 55) + TRACE.encode(), struct.pack("<H", len(said)) + said)
    changed = struct.pack("<I", len(found)) + found[4:]
    assert read_record(changed, {0: form_of(event)}) == event.with_trace(None)


@given(
    st.text("0af-z \x7f", max_size=60) | st.text(max_size=4), st.integers(0, 60), st.integers(0, 60)
)
def test_kernels_know_a_trace_when_they_see_one(other, first, last):
    text = TRACE[:first] + other + (TRACE + " vendor=7")[last:]
    raw = text.encode()
    assert intake.is_trace(np.frombuffer(b"x" + raw + b"x", np.uint8), 1, len(raw)) == is_trace(
        text
    )


@pytest.mark.parametrize("text", [TRACE, f"{TRACE} a=1", f"{TRACE} {'a' * 512}"])
def test_what_is_a_trace(text):
    assert is_trace(text)
    assert Event("t", trace=text).trace == text


ZEROS = (f"00-{'0' * 32}{TRACE[35:]}", f"{TRACE[:36]}{'0' * 16}-01")


@pytest.mark.parametrize("bad", [*BAD_TRACES, *ZEROS, f"ff{TRACE[2:]}", f"{TRACE} {'a' * 513}", 7])
def test_what_is_none_is_refused_where_it_is_said(bad):
    with pytest.raises(InvalidValue, match=r"^trace: wanted a traceparent"):
        Event("t", trace=bad)
    if isinstance(bad, str):
        raw = np.frombuffer(bad.encode(), np.uint8)
        assert not intake.is_trace(raw, 0, len(raw))
