"""Is what a bundle says read as it was written, and anything else refused?"""

from __future__ import annotations

import random

import numpy as np
import pytest

from driftline.errors import FrameRefused
from driftline.kernels.bundles import NOTICE_LEAST, latest, unbundle
from driftline.model.event import Event
from driftline.wire import bundles
from driftline.wire.bundles import Bundle, bundled, open_bundle, stamps_of
from driftline.wire.compact import read_record, split_records, write_record
from driftline.wire.forms import NO_FORM, Form, form_of
from driftline.wire.notices import Notice, write_notice

ENV = {"load": 0.5, "mode": "night"}


def some(draw: random.Random, count: int) -> tuple[list[Event], list[tuple[int, Form]], bytes]:
    """Events of three forms, those forms, and their notices with numbers from 10 on."""
    kinds = ({"x": 1}, {"x": 1.5, "text": "ü" * draw.randrange(9)}, {"raw": b"abc", "flag": True})
    events = [
        Event(
            "q",
            draw.choice(kinds),
            time=draw.choice([None, 5]),
            id=draw.choice([None, "7"]),
            source=draw.choice([None, "s"]),
        ).entering(100 + at)
        for at in range(count)
    ]
    forms = list(dict.fromkeys(form_of(event) for event in events))
    numbered = [(10 * at + 3, form) for at, form in enumerate(forms)]
    number_of = {form: number for number, form in numbered}
    notices = []
    for at, event in enumerate(events):
        form = form_of(event)
        notices.append(write_notice(Notice((), 10 + 2 * at, False, event), number_of[form], form))
    return events, numbered, b"".join(notices)


def opened(bundle: Bundle, after: int = 0) -> tuple[list[int], list[int], list[Event]]:
    said = open_bundle(bundle.payload)
    size = len(said.notices)
    out = np.empty(size, np.uint8)
    numbers = np.empty(size // NOTICE_LEAST + 1, np.int64)
    entered = np.empty_like(numbers)
    state = np.zeros(1, np.int64)
    raw = np.frombuffer(said.notices, np.uint8)
    count = unbundle(raw, after, out, numbers, entered, state)
    if count < 0:
        raise FrameRefused("bundle", "notices", "something else")
    events = [
        read_record(record, said.forms).entering(int(at))
        for record, at in zip(split_records(out[: state[0]].tobytes()), entered, strict=False)
    ]
    return numbers[:count].tolist(), entered[:count].tolist(), events


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_what_is_written_is_read(count: int, seed: int) -> None:
    events, forms, notices = some(random.Random(seed), count)
    (bundle,) = bundled(memoryview(notices), count, forms, "a", 3, stamps_of(ENV))
    assert bundle.events == count
    said = open_bundle(bundle.payload)
    assert (said.events, said.hops, said.origin, said.stamps) == (count, 3, "a", ENV)
    assert said.forms == dict(forms)
    numbers, entered, found = opened(bundle)
    assert numbers == [10 + 2 * at for at in range(count)]
    assert entered == [100 + at for at in range(count)]
    assert found == events


def test_what_came_before_is_left_out() -> None:
    events, forms, notices = some(random.Random(1), 20)
    (bundle,) = bundled(memoryview(notices), 20, forms, "a", 1, b"")
    numbers, entered, found = opened(bundle, after=10 + 2 * 7)
    assert numbers == [10 + 2 * at for at in range(8, 20)]
    assert entered == [100 + at for at in range(8, 20)]
    assert found == events[8:]
    assert opened(bundle, after=1000) == ([], [], [])


def test_many_bytes_are_several_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "BYTES_AIM", 200)
    events, forms, notices = some(random.Random(2), 40)
    made = list(bundled(memoryview(notices), 40, forms, "a", 1, b""))
    assert len(made) > 5
    assert sum(one.events for one in made) == 40
    assert [event for one in made for event in opened(one)[2]] == events


def test_a_bundle_has_the_forms_that_it_uses_and_not_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bundles, "BYTES_AIM", 40)
    events, forms, notices = some(random.Random(3), 40)
    made = list(bundled(memoryview(notices), 40, forms, "a", 1, b""))
    assert [event for one in made for event in opened(one)[2]] == events
    for one in made:
        used = {form_of(event) for event in opened(one)[2]}
        assert used == {*open_bundle(one.payload).forms.values()}


def test_a_form_has_a_number_that_notices_can_name() -> None:
    _, forms, notices = some(random.Random(1), 1)
    ((_, form),) = forms
    for number in (NO_FORM, 1 << 40):
        (bundle,) = bundled(memoryview(notices), 1, [(number, form)], "a", 1, b"")
        with pytest.raises(FrameRefused):
            open_bundle(bundle.payload)


def test_when_the_newest_was_generated() -> None:
    form = Form("q", (("x", 1),))
    times = [5, None, 900, None]
    records = [write_record(Event("q", {"x": 1}, time=time), 0, form) for time in times]
    starts = np.cumsum([0, *map(len, records)])[:4]
    raw = np.frombuffer(b"".join(records), np.uint8)
    entered = np.array([100, 200, 300, 400])
    assert latest(raw, starts, entered, 2) == 200
    assert latest(raw, starts, entered, 4) == 900


def test_anything_else_is_refused_or_reads_as_something(seed: int) -> None:
    """A byte changed, bytes cut off or put in: nothing is read outside of what came."""
    draw = random.Random(seed)
    refused = 0
    for _ in range(2000):
        count = draw.randrange(1, 5)
        _, forms, notices = some(draw, count)
        (bundle,) = bundled(memoryview(notices), count, forms, "a", 1, stamps_of(ENV))
        raw = bytearray(bundle.payload)
        for _ in range(draw.randrange(1, 3)):
            at = draw.randrange(len(raw))
            choice = draw.random()
            if choice < 0.5:
                raw[at] = draw.randrange(256)
            elif choice < 0.8:
                del raw[at : at + draw.randrange(1, 9)]
            else:
                raw[at:at] = draw.randbytes(draw.randrange(1, 9))
            if not raw:
                break
        try:
            opened(Bundle(bytes(raw)))
        except FrameRefused:
            refused += 1
    assert refused > 1000
