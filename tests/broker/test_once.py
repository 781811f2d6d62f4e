"""Is an event that is published once told once, whatever crashes and comes again?

The reference is a set: of what was committed by (identity, source, id).
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline.broker.broker import Broker
from driftline.broker.effects import Deliver, DeliverMany, Effect, Key, Reply, Store
from driftline.broker.requests import Declare, Publish, PublishMany, Subscribe
from driftline.broker.settings import Settings
from driftline.errors import FrameRefused, InvalidValue
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.recent import MARK_BYTES, PAGE_MARKS, Recent, mark_of
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.wire.compact import split_records, write_record
from driftline.wire.forms import NO_FORM, form_of
from driftline.wire.notices import read_notice

NOW = 1_000_000
PARTIES = ("alice~laptop", "alice~phone", "bob~laptop")


class Lives:
    """One broker in all of its lives, and a durable subscriber of everything it is told."""

    def __init__(self, once: int = 1000) -> None:
        self._settings = Settings(matcher="index", once=once, keep=100_000)
        self.stored: dict[Key, object] = {}
        self._life = 0
        self.told: dict[int, tuple[str | None, str | None]] = {}
        """By number: what comes again has the same one."""
        self.begin()
        wanted = Subscribe("s", "all", Standing.of(parse("SELECT * FROM q WHERE n >= 0")))
        self.perform(self.broker.handle(wanted, "reader/all", NOW))

    def begin(self) -> None:
        self._life += 1
        self.broker = Broker("b", self._life, self._settings, self.stored)
        self.perform(self.broker.begin(NOW))

    def perform(self, effects: list[Effect]) -> list[Reply]:
        for effect in effects:
            if isinstance(effect, Store):
                for key, value in effect.values.items():
                    if value is None:
                        self.stored.pop(key, None)
                    else:
                        self.stored[key] = value
            elif isinstance(effect, Deliver):
                self.told[effect.number] = effect.event.source, effect.event.id
            elif isinstance(effect, DeliverMany):
                for run in effect.runs:
                    for one in split_records(effect.raw[run.start : run.end]):
                        notice = read_notice(one, self.broker.publishing.forms.known)
                        self.told[notice.number] = notice.event.source, notice.event.id
        return [one for one in effects if isinstance(one, Reply)]

    def publish(
        self, party: str, events: list[Event], *, once: bool, together: bool, dies: str = ""
    ) -> bool:
        """Publish; is it acknowledged? It may die before what must be kept is, or behind that."""
        replies = []
        for effects in self._asked(party, events, once, together):
            if dies == "before":
                self.begin()
                return False
            if dies == "behind":
                self.perform([one for one in effects if isinstance(one, Store)])
                self.begin()
                return False
            replies += self.perform(effects)
        self.broker._check()
        assert all(one.refused is None and not one.problems for one in replies)
        return True

    def _asked(self, party: str, events: list[Event], once: bool, together: bool):
        if not together:
            for event in events:
                yield self.broker.handle(Publish("p", event, once=once), party, NOW)
            return
        yield self.broker.handle(self.many(events, once), party, NOW)

    def many(self, events: list[Event], once: bool = True, apart: str = "") -> PublishMany:
        forms = [self.broker.publishing.forms.number(form_of(event)) for event in events]
        records = [write_record(one, at, form_of(one)) for at, one in enumerate(events)]
        numbers = np.array(forms or [0], np.int64)
        return PublishMany("m", b"".join(records), numbers, once=once, apart=apart)


def named(id: int, source: str = "feed") -> Event:
    return Event("q", {"n": id}, source=source, id=f"{id}", time=NOW)


names = st.tuples(st.integers(0, 12), st.sampled_from(["feed", "fee"]))
steps = st.tuples(
    st.sampled_from(PARTIES),
    st.lists(names, min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from(["", "", "", "before", "behind"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=25))
def test_it_is_told_once_over_any_crashes_and_retries(program):
    lives = Lives()
    committed: set[tuple[str, str, int]] = set()
    for party, which, together, dies in program:
        events = [named(id, source) for id, source in which]
        while not lives.publish(party, events, once=True, together=together, dies=dies):
            dies = ""  # It asks again, and gets an answer.
        committed |= {(party.partition("~")[0], source, id) for id, source in which}
    wanted = Counter((source, f"{id}") for _, source, id in committed)
    assert Counter(lives.told.values()) == wanted
    lives.begin()
    lives.broker._check()
    assert Counter(lives.told.values()) == wanted


def test_who_does_not_say_once_is_told_each_time_and_remembers_nothing():
    lives = Lives()
    for together in (True, False):
        assert lives.publish("alice~a", [named(1), named(1)], once=False, together=together)
        assert lives.publish("alice~a", [named(1), named(1)], once=True, together=together)
    assert Counter(lives.told.values()) == {("feed", "1"): 5}
    assert [key for key in lives.stored if key[0] == "once"] == [("once", "alice", "1")]
    assert lives.stored["once", "alice", "1"] == mark_of("feed", "1")


def test_by_an_attribute_those_of_one_name_are_told_apart_over_a_crash():
    lives = Lives()

    def by(topic: str | int | None, id: int = 1) -> Event:
        said = {} if topic is None else {"topic": topic}
        return Event("q", {"n": id, **said}, source="feed", id=f"{id}", time=NOW)

    def published(*events: Event, apart: str = "topic") -> Reply:
        asked = lives.many([*events], apart=apart)
        (reply,) = lives.perform(lives.broker.handle(asked, "alice~a", NOW))
        assert reply.came == len(events)
        return reply

    assert published(by("a"), by("b"), by("a"), by("a", 2)).events == 3
    lives.begin()
    assert published(by("b"), by("a"), by("c")).events == 1
    # That is not what is known by source and id alone, in either direction.
    assert published(by("a"), apart="").events == 1
    assert published(by("a")).events == 0
    # What tells nothing apart is refused by itself, and remembered nowhere.
    reply = published(by(7), by("d"), by(None), by("d"))
    assert reply.events == 1
    assert [(at, str(one)) for at, one in reply.problems] == [
        (0, "event: wanted a text topic, to be told apart by, came a value of type integer"),
        (2, "event: wanted a text topic, to be told apart by, came none"),
    ]
    assert len(lives.told) == 6


def test_a_record_that_is_none_is_refused_where_it_is_told_apart():
    lives = Lives()
    good = write_record(named(1), NO_FORM, form_of(named(1)))
    asked = PublishMany("m", good[:-1] + b"?", np.array([0], np.int64), once=True, apart="topic")
    (reply,) = lives.perform(lives.broker.handle(asked, "alice~a", NOW))
    assert reply.refused is not None or reply.problems
    assert not lives.told


def test_what_tells_apart_counts_where_one_ends_and_the_other_begins():
    marks = {mark_of(*one) for one in [("s", "ab"), ("s", "a", "b"), ("s", "ab", ""), ("sa", "b")]}
    assert len(marks) == 4


def test_what_is_refused_may_come_again_under_the_same_name():
    lives = Lives()
    table = TableDeclaration.of("q", "n", {"price": "0.5"})
    lives.perform(lives.broker.handle(Declare("d", table), "alice~a", NOW))
    wrong = Event("q", {"n": 1, "price": 0.3}, source="feed", id="1", time=NOW)
    nameless = Event("q", {"n": 2, "price": 0.5}, source="feed", time=NOW)
    right = Event("q", {"n": 1, "price": 0.5}, source="feed", id="1", time=NOW)
    last = Event("q", {"n": 3, "price": 0.5}, source="feed", id="3", time=NOW)
    (reply,) = lives.perform(
        lives.broker.handle(lives.many([wrong, nameless, last, last]), "alice~a", NOW)
    )
    assert [at for at, _ in reply.problems] == [0, 1]
    assert str(reply.problems[1][1]) == (
        "event: wanted a source and an id, to be published once, came no id"
    )
    assert (reply.came, reply.events) == (4, 1)
    (reply,) = lives.perform(lives.broker.handle(lives.many([last, right]), "alice~a", NOW))
    assert not reply.problems
    assert (reply.came, reply.events) == (2, 1)
    (reply,) = lives.perform(lives.broker.handle(Publish("p", nameless, once=True), "alice~a", NOW))
    assert isinstance(reply.refused, InvalidValue)
    assert Counter(lives.told.values()) == {("feed", "1"): 1, ("feed", "3"): 1}


def test_what_has_the_name_of_something_refused_in_its_batch_is_not_said_to_have_been_published():
    lives = Lives()
    table = TableDeclaration.of("q", "n", {"price": "0.5"})
    lives.perform(lives.broker.handle(Declare("d", table), "alice~a", NOW))
    wrong = Event("q", {"n": 1, "price": 0.3}, source="feed", id="1", time=NOW)
    right = Event("q", {"n": 1, "price": 0.5}, source="feed", id="1", time=NOW)
    other = Event("q", {"n": 2, "price": 0.5}, source="feed", id="2", time=NOW)
    some = [other, wrong, right, other, wrong]
    (reply,) = lives.perform(lives.broker.handle(lives.many(some), "alice~a", NOW))
    assert [at for at, _ in reply.problems] == [1, 2, 4]
    assert len({str(problem) for _, problem in reply.problems}) == 1
    assert (reply.came, reply.events, reply.denied) == (5, 1, 3)
    # By itself it is published, since nothing was under its name.
    (reply,) = lives.perform(lives.broker.handle(lives.many([right]), "alice~a", NOW))
    assert (reply.came, reply.events, reply.problems) == (1, 1, ())
    assert Counter(lives.told.values()) == {("feed", "2"): 1, ("feed", "1"): 1}


def test_a_batch_that_is_none_is_refused_and_nothing_of_it_is_remembered():
    lives = Lives()
    good = write_record(named(1), NO_FORM, form_of(named(1)))
    asked = PublishMany("m", good + good[:-1], np.array([0], np.int64), once=True)
    (reply,) = lives.perform(lives.broker.handle(asked, "alice~a", NOW))
    assert isinstance(reply.refused, FrameRefused)
    assert not lives.told
    assert lives.publish("alice~a", [named(1)], once=True, together=True)
    assert list(lives.told.values()) == [("feed", "1")]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 3 * PAGE_MARKS),
    st.lists(st.tuples(st.integers(0, 6 * PAGE_MARKS), st.integers(1, 2 * PAGE_MARKS)), max_size=8),
    st.integers(0, 7),
)
def test_at_least_the_last_are_remembered_and_not_many_more(size, runs, restored_after):
    recent = Recent(size)
    kept: dict[int, bytes] = {}
    came: list[bytes] = []
    for step, (first, many) in enumerate(runs):
        marks = [mark_of("s", f"{number}") for number in range(first, first + many)]
        came += [one for one in marks if one not in recent]
        for page, content in recent.add(marks).items():
            if content is None:
                kept.pop(page, None)
            else:
                kept[page] = content
        if step == restored_after:
            recent = Recent(size, dict(reversed(kept.items())))
        recent._check()
        assert all(one in recent for one in came[-size:])
        assert not any(
            one in recent
            for one in set(came[: -size - PAGE_MARKS]) - set(came[-size - PAGE_MARKS :])
        )
        assert sum(map(len, kept.values())) == len(recent) * MARK_BYTES


@pytest.mark.parametrize("together", [True, False])
def test_one_identity_does_not_push_another_out(together):
    lives = Lives(once=10)
    assert lives.publish("alice~a", [named(0)], once=True, together=together)
    some = [named(number, "other") for number in range(3 * PAGE_MARKS)]
    assert lives.publish("bob~b", some, once=True, together=together)
    assert lives.publish("alice~a", [named(0)], once=True, together=together)
    assert Counter(lives.told.values())["feed", "0"] == 1
    assert lives.publish("bob~b", some[:1], once=True, together=together)
    assert Counter(lives.told.values())["other", "0"] == 2, "forgotten, as was said"


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("wrong", ["cut", "refused"])
def test_what_records_lie_in_is_free_while_the_reply_waits(once, wrong):
    """A reply may wait for the journal, and with it whatever its problems refer to."""
    lives = Lives()
    table = TableDeclaration.of("q", "n", {"price": "0.5"})
    lives.perform(lives.broker.handle(Declare("d", table), "alice~a", NOW))
    bad = Event("q", {"n": 1, "price": 0.3}, source="feed", id="1", time=NOW)
    raw = bytearray(write_record(bad, NO_FORM, form_of(bad)))
    if wrong == "cut":
        raw += raw[:-1]

    def taken() -> list[Effect]:
        with memoryview(raw) as data:
            asked = PublishMany("m", data[:], np.array([0], np.int64), once=once)
            return lives.broker.handle(asked, "alice~a", NOW)

    waiting = taken()
    raw.clear()
    (reply,) = (one for one in waiting if isinstance(one, Reply))
    assert reply.refused is not None or reply.problems
