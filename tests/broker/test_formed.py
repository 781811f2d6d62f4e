"""Is only that form read of which an event comes, and does nobody bring too many?"""

from __future__ import annotations

import numpy as np
import pytest

from driftline.broker import formed
from driftline.broker.broker import Broker
from driftline.broker.effects import DeliverMany
from driftline.broker.formed import TYPE_LONGEST, Forms, Plan
from driftline.broker.requests import PublishMany, Subscribe
from driftline.broker.settings import Settings
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.wire.compact import write_record
from driftline.wire.forms import NO_FORM, Form, form_of
from driftline.wire.values import INTEGER

NOW = 1_000_000


def publish(broker: Broker, events: list[Event]) -> int:
    """As bytes; how many notices follow."""
    forms = [form_of(one) for one in events]
    numbers = np.array([broker.publishing.forms.number(one) for one in forms], np.int64)
    records = b"".join(
        write_record(one, at, form)
        for at, (one, form) in enumerate(zip(events, forms, strict=True))
    )
    effects = broker.handle(PublishMany("m", records, numbers), "publisher", NOW)
    many = [one for one in effects if isinstance(one, DeliverMany)]
    return sum(run.notices for one in many for run in one.runs)


def subscribe(broker: Broker, id: str, text: str) -> None:
    standing = Standing.of(parse(text), {}, NOW)
    broker.handle(Subscribe("s", id, standing, handle=int(id[1:])), "alice", NOW)


def test_a_form_is_read_when_an_event_of_it_comes_and_not_before(monkeypatch: pytest.MonkeyPatch):
    read: list[int] = []
    plainly = Plan._form

    def counted(self: Plan, form: Form, span: tuple[int, int]) -> list[int]:
        read.append(len(form.fields))
        return plainly(self, form, span)

    monkeypatch.setattr(Plan, "_form", counted)
    broker = Broker("b", settings=Settings(matcher="index"))
    broker.enter("alice", durable=False)
    events = [Event(f"t{n % 7}", {f"a{n}": n, "x": n}) for n in range(500)]
    for one in events:
        broker.publishing.forms.number(form_of(one))
    subscribe(broker, "s1", "SELECT * FROM t1 WHERE x >= 0")
    # For parties and for links, once each, however often they come.
    assert publish(broker, [events[1], events[8], events[2], events[1]]) == 3
    assert len(read) == 2 * 3
    assert publish(broker, [events[1], events[8], events[2]]) == 2
    assert len(read) == 2 * 3
    # Others are told: it is known how they are read, as long as nobody asks for other attributes.
    subscribe(broker, "s2", "SELECT * FROM t2 WHERE x >= 0")
    assert publish(broker, [events[1], events[2]]) == 2
    assert len(read) == 2 * 3
    subscribe(broker, "s3", "SELECT * FROM t1 WHERE a8 = 8")
    assert publish(broker, [events[8]]) == 2 - 1
    assert publish(broker, [events[8], events[1]]) == 2
    assert len(read) == 2 * 3 + 2
    broker._check()


def test_there_may_be_more_forms_than_before_between_two_batches():
    broker = Broker("b", settings=Settings(matcher="index"))
    broker.enter("alice", durable=False)
    subscribe(broker, "s1", "SELECT * WHERE x >= 0 AND ce_type LIKE 'a%' OR x < 0")
    for n in range(200):
        # Each of another type, behind which its record lies in a buffer.
        event = Event(f"{'ab'[n % 2]}{n}{'-' * (n % 60)}", {f"a{n}": n, "x": n})
        assert publish(broker, [event]) == 1 - n % 2


def test_nobody_takes_more_than_a_share_of_the_forms(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(formed, "FORMS_MAX", 80)
    monkeypatch.setattr(formed, "LETTERS_MAX", 8000)
    stored: dict[tuple[str, ...], object] = {}

    def form(name: str, letters: int = 1) -> Form:
        return Form("t", ((name * letters, INTEGER),))

    forms = Forms(stored.__setitem__)
    numbers = [forms.number(form(f"a{n}"), "alice") for n in range(12)]
    assert numbers == [*range(10), NO_FORM, NO_FORM]
    # Those that are known are, whoever knew them first; others have their own share.
    assert forms.number(form("a3"), "alice") == forms.number(form("a3"), "bob") == 3
    assert forms.number(form("b"), "bob") == 10
    # In letters as well.
    assert forms.number(form("c", 950), "bob") == NO_FORM
    assert forms.number(form("c", 700), "bob") == 11
    assert forms.number(form("d", 300), "bob") == NO_FORM
    assert forms.number(form("d", 90), "bob") == 12
    # What comes by a link, or where nobody has a name, is nobody's.
    assert [forms.number(form(f"l{n}")) for n in range(20)] == [*range(13, 33)]
    assert len(stored) == 33


def test_types_lie_once_each_and_not_too_long():
    forms = Forms(lambda key, value: None)
    for at, type in enumerate(("one", "zwei", "one", "três", "zwei")):
        assert forms.number(Form(type, ((f"a{at}", INTEGER),))) == at
    assert bytes(forms.types).decode() == "onezweitrês"
    for type in ("one", "zwei", "três"):
        start, size = forms.span(type)
        assert bytes(forms.types[start : start + size]).decode() == type
    assert forms.number(Form("x" * (TYPE_LONGEST + 1), ())) == NO_FORM
    assert forms.number(Form("x" * TYPE_LONGEST, ())) == 5
