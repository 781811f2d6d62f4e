"""Many events in one piece come to what the same events come to one by one."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline.broker.broker import Broker
from driftline.broker.effects import Deliver, DeliverMany, Effect, Reply, Store
from driftline.broker.kept import Kept
from driftline.broker.requests import (
    Cancel,
    Declare,
    Leave,
    Observed,
    Publish,
    PublishMany,
    Resume,
    Subscribe,
    Suspend,
    Told,
)
from driftline.broker.settings import Settings
from driftline.errors import FrameRefused, TableError
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.testing import strategies
from driftline.wire.compact import read_record, split_records, write_record
from driftline.wire.forms import NO_FORM, form_of
from driftline.wire.notices import marks_of, read_notice, remarked

NOW = 1_000_000


class Twin:
    """Two brokers that are asked the same: one takes events together, the other one by one."""

    def __init__(self, keep: int = 10_000) -> None:
        made = Settings(matcher="index", keep=keep)
        self.many, self.single = Broker("b", settings=made), Broker("b", settings=made)
        self.handles: dict[str, int] = {}
        self.journal: dict[tuple[str, ...], object] = {}

    def ask(self, asked, party: str, now: int = NOW):
        found = [broker.handle(asked, party, now) for broker in (self.many, self.single)]
        self.stored(found[0])
        replies = [[one for one in some if isinstance(one, Reply)] for some in found]
        refused = [[type(one.refused) for one in some] for some in replies]
        assert refused[0] == refused[1]
        told = [self.told(found[0], self.many), self.told(found[1], self.single)]
        assert told[0] == told[1]
        return replies[0][0].refused if replies[0] else None

    def stored(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Store):
                for key, value in effect.values.items():
                    if value is None:
                        self.journal.pop(key, None)
                    else:
                        self.journal[key] = value

    def enter(self, party: str, durable: bool) -> None:
        for broker in (self.many, self.single):
            broker.enter(party, durable=durable)

    def subscribe(self, party: str, id: str, standing: Standing):
        handle = self.handles.setdefault(id, len(self.handles) + 1)
        return self.ask(Subscribe("s", id, standing, handle=handle), party)

    def publish(self, events: list[Event], now: int = NOW, number: int = 0):
        """Publish, and compare what everybody is told; of the events that were refused."""
        forms, records = [], []
        local: dict[object, int] = {}
        for event in events:
            form = form_of(event)
            if form not in local:
                local[form] = len(local)
                forms.append(self.many.publishing.forms.number(form))
            records.append(write_record(event, local[form], form))
        asked = PublishMany("m", b"".join(records), np.array(forms or [0], np.int64), number)
        found = self.many.handle(asked, "publisher", now)
        self.stored(found)
        (reply,) = (one for one in found if isinstance(one, Reply))
        assert reply.refused is None
        assert reply.came == len(events)
        expected: dict[str, list[object]] = defaultdict(list)
        problems = []
        for at, event in enumerate(events):
            asked_one = Publish("p", event, number + at if number else 0)
            effects = self.single.handle(asked_one, "publisher", now)
            for effect in effects:
                if isinstance(effect, Reply) and effect.refused is not None:
                    problems.append((at, effect.refused))
            for party, told in self.told(effects, self.single).items():
                expected[party] += told
        assert [(at, str(one)) for at, one in reply.problems] == [
            (at, str(one)) for at, one in problems
        ]
        assert self.told(found, self.many) == expected
        return problems

    def told(self, effects: list[Effect], broker: Broker) -> dict[str, list[object]]:
        """What each party is told, in order."""
        found: dict[str, list[object]] = defaultdict(list)
        for effect in effects:
            if isinstance(effect, Deliver):
                marks = {
                    (self.handles[id], epoch)
                    for id, epoch in zip(effect.subscriptions, effect.epochs, strict=True)
                }
                # As text: NaN is not equal to itself.
                rest = (repr(effect.sequences), repr(effect.news), effect.gap)
                found[effect.party].append((effect.event, marks, *rest))
            elif isinstance(effect, DeliverMany):
                forms = broker.publishing.forms.known
                for run in effect.runs:
                    raw = effect.raw[run.start : run.end]
                    for notice in split_records(raw if effect.kept else raw[8:]):
                        one = read_notice(notice, forms)
                        assert bool(one.number) is effect.kept
                        assert run.low <= int.from_bytes(notice[4:6], "little") <= run.high
                        told = (one.event, set(one.marks), "{}", "{}", one.gap)
                        found[run.party].append(told)
        return found

    def check(self) -> None:
        self.many._check()
        self.single._check()


PARTIES = {"passing": False, "durable": True, "other": False}


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(PARTIES)), strategies.standings()), min_size=1, max_size=8
    ),
    st.lists(st.lists(strategies.events(), max_size=8), min_size=1, max_size=4),
    strategies.environments(),
)
def test_what_is_told_is_the_same(wanted, batches, env):
    twin = Twin()
    for party, durable in PARTIES.items():
        twin.enter(party, durable)
    for name, value in env.items():
        twin.ask(Observed(name, value, "o"), "somebody")
    for at, (party, standing) in enumerate(wanted):
        twin.subscribe(party, f"s{at}", standing)
    for at, events in enumerate(batches):
        twin.publish(events, NOW + at)
    twin.check()


TEXTS = (
    "SELECT * FROM t WHERE a = :x",
    "SELECT * FROM t WHERE a BETWEEN :x AND 7 AND b != 'no'",
    "SELECT * WHERE b LIKE 'x%' AND a < :x",
    "SELECT * FROM \"a long type of event\" WHERE note = 'a long text that is hashed'",
    "SELECT * FROM t WHERE b LIKE '%_z' OR a > :x",
    "SELECT * FROM t WHERE a IS NULL",
    "SELECT * FROM u WHERE big > 9007199254740993 AND a >= :x",
    "SELECT * FROM u WHERE flag = TRUE AND raw = 'x'",
    "SELECT * FROM v WHERE a IN (1, 2, :x)",
)
SPECIAL = (
    "SELECT * FROM w WHERE a < :x + elapsed()",
    "SELECT * FROM w WHERE moved(a, by => 2)",
    "SELECT * FROM t WHERE a = 1 THEN SELECT * FROM u WHERE a = 2",
)


def drawn_event(draw: Random) -> Event:
    values: dict[str, object] = {}
    if draw.random() < 0.9:
        values["a"] = draw.choice((draw.randint(0, 9), draw.uniform(0, 9), "a text", -0.0))
    if draw.random() < 0.7:
        values["b"] = draw.choice(("x", "xyz", "no", "über", "x" * 40))
    if draw.random() < 0.3:
        values["note"] = draw.choice(("a long text that is hashed", "another long text"))
    if draw.random() < 0.2:
        values["big"] = draw.choice((2**53, 2**53 + 1, 2**60, float("nan")))
    if draw.random() < 0.2:
        values |= {"flag": draw.random() < 0.5, "raw": b"\0\xff"}
    extra = {
        "time": draw.choice((None, None, 5)),
        "id": draw.choice((None, "i1")),
        "source": draw.choice((None, "somewhere")),
        "entered": draw.choice((None, None, None, 7)),
    }
    type = draw.choice(("t", "t", "u", "v", "w", "row", "a long type of event"))
    return Event(type, values, **extra)


@pytest.mark.parametrize("seed", range(30))
def test_long_programs(seed):
    draw = Random(seed)
    twin = Twin(keep=draw.choice((3, 20, 10_000)))
    parties = {f"p{at}": draw.random() < 0.5 for at in range(4)}
    for party, durable in parties.items():
        twin.enter(party, durable)
    if draw.random() < 0.5:
        twin.ask(Declare("d", TableDeclaration.of("row", "a")), "p0")
    standing: dict[str, tuple[str, Standing]] = {}
    for step in range(60):
        now = NOW + step
        choice = draw.random()
        if choice < 0.3:
            pool = TEXTS + (SPECIAL if draw.random() < 0.3 else ())
            statement = parse(draw.choice(pool))
            names = statement.variables().parameters
            one = Standing.of(statement, {name: draw.randint(0, 9) for name in names}, now)
            id, party = f"s{step}", draw.choice(list(parties))
            if twin.subscribe(party, id, one) is None:
                standing[id] = party, one
        elif choice < 0.45 and standing:
            id = draw.choice(list(standing))
            party, one = standing[id]
            if one.params:
                one = one.moved_to({name: draw.randint(0, 9) for name in one.params})
                assert twin.subscribe(party, id, one) is None
                standing[id] = party, one
        elif choice < 0.55 and standing:
            id = draw.choice(list(standing))
            twin.ask(Cancel("c", id), standing.pop(id)[0])
        elif choice < 0.6:
            twin.ask(draw.choice((Suspend, Resume))("r"), draw.choice(list(parties)))
        elif choice < 0.63:
            party = draw.choice(list(parties))
            twin.ask(Leave("l"), party)
            standing = {id: one for id, one in standing.items() if one[0] != party}
            twin.enter(party, parties[party])
        else:
            twin.publish([drawn_event(draw) for _ in range(draw.randint(1, 30))], now)
    twin.check()
    if draw.random() < 0.5:
        restarted = Broker("b", 2, Settings(matcher="index"), dict(twin.journal))
        restarted._check()
        for party, durable in parties.items():
            if durable and party in twin.many.edge.parties:
                waiting = twin.many.edge.parties[party].waiting
                # One that waits for nothing and asked for nothing is not remembered.
                known = restarted.edge.parties.get(party)
                assert list(waiting) == (list(known.waiting) if known else [])


def test_events_of_a_table_are_rows_in_their_place():
    twin = Twin()
    twin.enter("p", False)
    twin.ask(Declare("d", TableDeclaration.of("stock", "id")), "p")
    twin.subscribe("p", "all", Standing.of(parse("SELECT * WHERE n >= 0")))
    twin.subscribe("p", "least", Standing.of(parse("SELECT MIN(price) FROM stock")))
    mixed = []
    for n in range(20):
        mixed.append(Event("quote", {"n": n}))
        mixed.append(Event("stock", {"n": n, "id": n % 3, "price": 50 - n}))
    assert twin.publish(mixed) == []
    ((at, problem),) = twin.publish([Event("stock", {"price": 3}), Event("quote", {"n": 1})])
    assert at == 0
    assert isinstance(problem, TableError)


def test_a_batch_that_is_asked_for_again_is_passed_over():
    broker = Broker("b", settings=Settings(matcher="index"))
    broker.enter("p", durable=False)
    standing = Standing.of(parse("SELECT * FROM t"))
    broker.handle(Subscribe("", "s", standing, handle=1), "p", 0)
    events = [Event("t", {"n": n}) for n in range(6)]
    form = form_of(events[0])
    forms = np.array([broker.publishing.forms.number(form)], np.int64)
    records = [write_record(one, 0, form) for one in events]

    def sent(first: int, last: int, life: int = 1) -> list[int]:
        raw = b"".join(records[first:last])
        told = broker.handle(PublishMany("m", raw, forms, first + 1, life), "q", 0)
        found = []
        for one in told:
            for run in one.runs if isinstance(one, DeliverMany) else ():
                for notice in split_records(one.raw[run.start + 8 : run.end]):
                    event = read_notice(notice, broker.publishing.forms.known).event
                    found.append(event.attributes["n"])
        return found

    assert sent(0, 2) == [0, 1]
    assert sent(0, 2) == []
    assert sent(0, 4) == [2, 3]
    assert sent(3, 6) == [4, 5]
    assert sent(0, 1, life=2) == [0]
    assert sent(5, 6) == []


def test_bytes_that_are_no_record_are_refused_behind_what_was_taken():
    broker = Broker("b", settings=Settings(matcher="index"))
    broker.enter("p", durable=False)
    broker.handle(Subscribe("", "s", Standing.of(parse("SELECT * FROM t")), handle=1), "p", 0)
    form = form_of(Event("t", {"n": 1, "s": "text"}))
    forms = np.array([broker.publishing.forms.number(form)], np.int64)
    good = write_record(Event("t", {"n": 1, "s": "text"}), 0, form)
    draw = Random(1)
    for _ in range(3_000):
        bad = bytearray(good)
        for _ in range(draw.randint(1, 3)):
            bad[draw.randrange(len(bad))] = draw.randrange(256)
        if draw.random() < 0.2:
            bad = bad[: draw.randrange(len(bad))]
        try:
            expected = 1 + sum(1 for one in split_records(bad) if read_record(one, {0: form}))
        except FrameRefused:
            expected = None
        told = broker.handle(PublishMany("m", good + bytes(bad), forms), "q", 0)
        reply = told[-1]
        assert isinstance(reply, Reply)
        if expected is None:
            assert isinstance(reply.refused, FrameRefused)
            assert reply.came >= 1
        else:
            assert reply.refused is None
            assert reply.came == expected
    broker._check()


def test_one_event_for_everybody_is_told_in_pieces_that_fit():
    broker = Broker("b", settings=Settings(matcher="index"))
    standing = Standing.of(parse("SELECT * FROM t"))
    for n in range(2_000):
        broker.enter(f"p{n % 1500}", durable=False)
        broker.handle(Subscribe("", f"s{n}", standing, handle=n + 1), f"p{n % 1500}", 0)
    event = Event("t", {"s": "x" * 50_000})
    form = form_of(event)
    forms = np.array([broker.publishing.forms.number(form)], np.int64)
    raw = write_record(event, 0, form)
    told = broker.handle(PublishMany("m", raw * 3, forms), "q", 0)
    found = defaultdict(set)
    for one in told:
        for run in one.runs if isinstance(one, DeliverMany) else ():
            for notice in split_records(one.raw[run.start + 8 : run.end]):
                found[run.party].update(marks_of(notice))
    assert len(found) == 1500
    assert sum(map(len, found.values())) == 2_000


def test_a_notice_for_some_of_those_it_is_for():
    broker = Broker("b", settings=Settings(matcher="index"))
    broker.enter("p", durable=False)
    for n in range(300):
        wanted = Standing.of(parse("SELECT * FROM t"))
        broker.handle(Subscribe("", f"s{n}", wanted, handle=n + 1), "p", 0)
    event = Event("t", {"n": 1})
    form = form_of(event)
    forms = np.array([broker.publishing.forms.number(form)], np.int64)
    told = broker.handle(PublishMany("m", write_record(event, 0, form), forms), "q", 0)
    (many,) = (one for one in told if isinstance(one, DeliverMany))
    (run,) = many.runs
    (notice,) = split_records(many.raw[run.start + 8 : run.end])
    marks = marks_of(notice)
    assert sorted(handle for handle, _ in marks) == list(range(1, 301))
    fewer = read_notice(remarked(notice, marks[:2]), broker.publishing.forms.known)
    assert fewer.marks == tuple(marks[:2])
    assert fewer.event == event.entering(0)


def test_what_waits_is_forgotten_when_it_was_had():
    twin = Twin()
    twin.enter("p", True)
    twin.subscribe("p", "s", Standing.of(parse("SELECT * FROM t")))
    for at in range(3):
        twin.publish([Event("t", {"n": n}) for n in range(5)], NOW + at)
    waiting = list(twin.many.edge.parties["p"].waiting)
    assert all(isinstance(one, Kept) for one in waiting)
    assert [one.notices for one in waiting] == [5, 5, 5]
    twin.many.handle(Told(waiting[1].last - 1), "p", NOW)
    assert list(twin.many.edge.parties["p"].waiting) == waiting[1:]
    twin.many.handle(Told(waiting[2].last), "p", NOW)
    assert not twin.many.edge.parties["p"].waiting
    behind = waiting[1].after(waiting[1].last - 2)
    assert len(list(split_records(behind))) == 2


def test_a_record_without_a_form_comes_back():
    event = Event("t", {"a": 1, "b": "text"}, id="i", source="s", time=3, entered=4)
    raw = write_record(event, NO_FORM, form_of(event))
    assert read_record(raw, {}) == event
