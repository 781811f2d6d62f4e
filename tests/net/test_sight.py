"""Is exactly what may not be seen left out of notices, whoever does it?"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

import driftline as dl
from driftline.broker import formed
from driftline.broker.access import Granted
from driftline.broker.formed import FORMS_MAX, Forms
from driftline.broker.grants import Grant, Grants, Names, Operation
from driftline.model.event import Event
from driftline.net import sight as sighted
from driftline.net.sight import Sight
from driftline.wire.compact import split_records
from driftline.wire.forms import NO_FORM, Form, form_of
from driftline.wire.notices import Notice, read_notice, write_notice
from driftline.wire.stream import Frames, Kind
from tests.wire.drawn import events


def grants(**names: Names) -> Granted:
    def one(type: str) -> Grant:
        return Grant(frozenset({"alice"}), frozenset({Operation.SUBSCRIBE}), (type,), names[type])

    return Granted(Grants(map(one, names)))


def forms() -> Forms:
    return Forms(lambda key, value: None)


def written(told: Notice, known: Forms, *, unknown: bool = False) -> bytes:
    form = form_of(told.event)
    number = NO_FORM if unknown else known.number(form)
    return write_notice(told, number, Form(form.type, ()) if number == NO_FORM else form)


def of(sight: Sight, raw: bytes) -> sighted.Seen:
    numbers = [one[4] | one[5] << 8 for one in split_records(raw)]
    return sight.notices(raw, min(numbers), max(numbers))


def read(raw: bytes | memoryview, known: Forms) -> list[Notice]:
    return [read_notice(one, known.known) for one in split_records(raw)]


@given(st.data())
def test_kernels_leave_out_what_the_definition_says(data: DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # Or do not, if there is no room for the forms of what is left.
        patch.setattr(formed, "FORMS_MAX", data.draw(st.sampled_from((0, 1, 2, 3, 16384))))
        leave_out(data)


def leave_out(data: DataObject) -> None:
    some = data.draw(st.lists(events(), min_size=1, max_size=5))
    names = sorted({name for one in some for name in one.attributes})
    picked = st.sets(st.sampled_from(names)) if names else st.just(set())
    allowed = {type: data.draw(picked) for type in {one.type for one in some}}
    known = forms()
    sight = Sight(
        grants(**{type: Names.of(some) for type, some in allowed.items()}), "alice", known
    )
    # Twice, so that what is known of forms by then is used; and in another order.
    for _ in range(2):
        order = data.draw(st.permutations(some))
        told = [
            Notice(
                tuple((at, 0) for at in range(data.draw(st.sampled_from((1, 2, 254, 255, 300))))),
                data.draw(st.sampled_from((0, 7, 2**63))),
                data.draw(st.booleans()),
                one.entering(5),
                data.draw(st.booleans()),
            )
            for one in order
        ]
        unknown = data.draw(st.sampled_from((False, False, True)))
        raw = b"".join(written(one, known, unknown=unknown) for one in told)
        seen = of(sight, raw)
        wanted = [one._replace(event=one.event.with_only(allowed[one.event.type])) for one in told]
        assert read(seen.notices, known) == wanted
        assert bytes(seen.notices) == sight.one_by_one(raw)
        # The same as frames, of two runs of which the second begins somewhere.
        sizes = [len(one) for one in split_records(raw)]
        cut = sum(sizes[: data.draw(st.integers(0, len(sizes) - 1))])
        runs = [(0, len(raw)), (cut, len(raw))]
        for one, (start, end) in zip(sight.frames(raw, runs), runs, strict=True):
            ((kind, told_now),) = Frames().feed(one.notices)
            assert kind is Kind.NOTICES
            assert told_now == sight.one_by_one(raw[start:end])
        used = [one[4] | one[5] << 8 for one in split_records(seen.notices)]
        assert seen.low <= min(used)
        assert max(used) <= seen.high
        if all(dict(one.attributes).keys() <= allowed[one.type] for one in order):
            assert bytes(seen.notices) == raw


def notice(event: Event) -> Notice:
    return Notice(((1, 0),), 0, False, event.entering(5))


def test_what_all_may_be_seen_of_is_told_as_it_lies() -> None:
    known = forms()
    sight = Sight(grants(q=Names.of(["a", "b"]), r=Names.of(["*"])), "alice", known)
    raw = written(notice(dl.Event("q", {"a": 1})), known)
    assert of(sight, raw).notices is raw
    both = raw + written(notice(dl.Event("r", {"x": "y"})), known)
    assert of(sight, both) == (both, 0, 1)


def test_a_kernel_does_what_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody looks at each notice then."""
    known = forms()
    sight = Sight(grants(q=Names.of(["a"])), "alice", known)
    raw = written(notice(dl.Event("q", {"a": 1, "b": "secret"})), known) * 3
    monkeypatch.setattr(Sight, "one_by_one", None)
    assert b"secret" not in of(sight, raw).notices
    assert of(sight, raw)[1:] == (1, 1)


def test_with_too_many_forms_to_count_it_is_done_one_by_one() -> None:
    known = forms()
    for at in range(FORMS_MAX - 1):
        known.number(Form("other", ((f"a{at}", 1),)))
    # What is left says its names itself, and may be longer than what was there.
    event = dl.Event("q", {"a": 1, "b": "!"})
    sight = Sight(grants(q=Names.of(["a"])), "alice", known)
    raw = written(notice(event), known)
    assert len(of(sight, raw).notices) >= len(raw)
    assert struct.unpack_from("<H", raw, 4) == (FORMS_MAX - 1,)
    (told,) = read(of(sight, raw).notices, known)
    assert told.event == dl.Event("q", {"a": 1}).entering(5)
