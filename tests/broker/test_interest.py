"""Is it found out whether anybody is interested, in parts where very many must be looked at?"""

from __future__ import annotations

import random

import pytest

from driftline import parse
from driftline.broker import edge
from driftline.broker.broker import Broker
from driftline.broker.effects import Effect, Reply, Send
from driftline.broker.links import Role
from driftline.broker.requests import Cancel, Interested, Subscribe
from driftline.broker.waves import LOOKS, PERIOD, QUICK
from driftline.language.advertising import advertisement
from driftline.model.covering import intersects
from driftline.model.message import Answer, Ask, Interest
from driftline.model.standing import Standing

SAYS = advertisement("SELECT * FROM q WHERE x = -1")
WITHIN = 10_000_000


def of(kind: type, effects: list[Effect]) -> list:
    return [effect for effect in effects if isinstance(effect, kind)]


def subscribed(some: range, type: str = "q", broker: Broker | None = None) -> Broker:
    broker = broker or Broker("a")
    for n in some:
        standing = Standing.of(parse(f"SELECT * FROM {type} WHERE x = :n"), {"n": n})
        broker.handle(Subscribe("r", f"{type}{n}", standing), "p", 0)
    return broker


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What came of each that was looked at."""
    found: list[bool] = []

    def looks(*said) -> bool:
        found.append(intersects(*said))
        return found[-1]

    monkeypatch.setattr(edge, "intersects", looks)
    return found


def woken(broker: Broker, looked: list[bool]) -> tuple[int, list[Effect]]:
    """Wake it whenever it wants to be until it says something; when, and what."""
    while True:
        now, before = broker.wake_at(), len(looked)
        effects = broker.wake(now)
        assert len(looked) - before <= LOOKS
        if effects:
            return now, effects


def test_of_a_few_it_is_said_at_once(looked) -> None:
    broker = subscribed(range(LOOKS - 1))
    (reply,) = of(Reply, broker.handle(Interested("r", SAYS), "c", 0))
    assert (reply.interested, len(looked)) == (False, LOOKS - 1)


@pytest.mark.parametrize("most", [LOOKS, LOOKS + 1, 1000])
def test_nobody_of_very_many(looked, most) -> None:
    broker = subscribed(range(most))
    assert of(Reply, broker.handle(Interested("r", SAYS), "c", 0)) == []
    assert len(looked) == LOOKS
    now, (reply,) = woken(broker, looked)
    assert (reply.party, reply.interested, reply.silent) == ("c", False, ())
    assert len(looked) == most
    assert now <= (most // LOOKS + 1) * PERIOD
    broker._check()


def test_the_last_of_very_many(looked) -> None:
    broker = subscribed(range(998, -2, -1))
    assert of(Reply, broker.handle(Interested("r", SAYS), "c", 0)) == []
    _, (reply,) = woken(broker, looked)
    assert reply.interested
    assert looked.count(True) == 1


def test_all_who_ask_share_the_time(looked) -> None:
    """A thousand who ask at once have no more looked at than one."""
    broker = subscribed(range(150))
    for n in range(20):
        broker.handle(Interested(f"r{n}", SAYS), "c", 0)
    assert len(looked) == LOOKS
    told: list[str] = []
    while len(told) < 20:
        _, effects = woken(broker, looked)
        told += [one.request for one in of(Reply, effects)]
    assert told == [f"r{n}" for n in range(20)]
    assert len(looked) == 20 * 150


def test_a_neighbour_is_answered_in_parts_too_and_others_are_asked_meanwhile(looked) -> None:
    broker = subscribed(range(1000))
    for link in ("b", "m"):
        broker.connect(link, Role.PEER if link == "b" else Role.MASTER, 0)
    said = of(Send, broker.handle(Ask("t", WITHIN, SAYS), "b", 0))
    assert [(one.peer, type(one.message)) for one in said] == [("m", Ask)]
    assert broker.handle(Answer("t"), "m", 5) == []
    _, (answer,) = woken(broker, looked)
    assert (answer.peer, answer.message) == ("b", Answer("t"))
    assert len(looked) == 1000


def test_what_another_says_ends_the_looking(looked) -> None:
    broker = subscribed(range(1000))
    for link in ("b", "m"):
        broker.connect(link, Role.PEER if link == "b" else Role.MASTER, 0)
    broker.handle(Ask("t", WITHIN, SAYS), "b", 0)
    (answer,) = broker.handle(Answer("t", interested=True), "m", 5)
    assert answer.message == Answer("t", interested=True)
    for now in range(PERIOD, 20 * PERIOD, PERIOD):
        assert broker.wake(now) == []
    assert len(looked) == LOOKS


@pytest.mark.parametrize("wanted", [False, True])
def test_who_asks_again_because_the_answer_was_lost_gets_the_same(looked, wanted) -> None:
    broker = subscribed(range(500, -2 if wanted else -1, -1))
    broker.connect("b", Role.PEER, 0)
    assert broker.handle(Ask("t", WITHIN, SAYS), "b", 0) == []
    # While it is still looked for the question is the same.
    assert broker.handle(Ask("t", WITHIN, SAYS), "b", 0) == []
    _, (said,) = woken(broker, looked)
    assert said == Send("b", Answer("t", interested=wanted))
    assert broker.handle(Ask("t", WITHIN, SAYS), "b", 10 * PERIOD) == [said]


def test_if_time_is_over_first_it_is_yes() -> None:
    broker = subscribed(range(1000))
    broker.handle(Interested("r", SAYS, within=2 * PERIOD), "c", 0)
    assert broker.wake(PERIOD) == []
    (reply,) = broker.wake(2 * PERIOD)
    assert (reply.interested, reply.silent) == (True, ())


def test_those_of_other_types_are_quickly_looked_at(looked) -> None:
    broker = subscribed(range(3000), "other")
    (reply,) = of(Reply, broker.handle(Interested("r", SAYS), "c", 0))
    assert not reply.interested
    assert looked == []
    # Where somebody is of this one, all are gone through, several as one.
    subscribed(range(1), "q", broker)
    (reply,) = of(Reply, broker.handle(Interested("r", SAYS), "c", PERIOD))
    assert not reply.interested
    assert looked == [False]
    assert 3000 // QUICK < LOOKS


def test_what_is_behind_links_is_looked_at_in_parts_and_may_change_meanwhile() -> None:
    broker = Broker("a")
    broker.connect("b", Role.CLIENT, 0)
    for n in range(1000):
        (wanted,) = parse(f"SELECT * FROM q WHERE x = {n}").filters()
        broker.handle(Interest({f"k{n}": wanted}), "b", 0)
    assert of(Reply, broker.handle(Interested("r", SAYS), "c", 0)) == []
    (wanted,) = parse("SELECT * FROM q WHERE x = 5000").filters()
    broker.handle(Interest({"k5000": wanted}, ("k999",)), "b", 0)
    _, (reply,) = woken(broker, [])
    assert not reply.interested


@pytest.mark.parametrize("seed", range(8))
def test_it_is_what_looking_at_all_would_say(seed) -> None:
    """Of those who are there from beginning to end; who comes or goes may count or not."""
    draw = random.Random(seed)
    texts = ("q WHERE x = :n", "other WHERE x = :n", "q WHERE x = :n AND y > 3", "s WHERE x > :n")
    broker, stays = Broker("a"), {}
    for at in range(draw.randrange(1, 600)):
        text = f"SELECT * FROM {draw.choice(texts)}" if at % 50 else "SELECT * WHERE x = :n"
        standing = Standing.of(parse(text), {"n": draw.randrange(2000)})
        broker.handle(Subscribe("r", f"s{at}", standing), "p", 0)
        stays[f"s{at}"] = standing
    known = {**stays}
    said = advertisement(
        f"SELECT * FROM q WHERE x > {draw.choice((900, 1900, 1990, 3000))} AND y IS NOT NULL"
    )
    answers = of(Reply, broker.handle(Interested("asked", said), "c", 0))
    while not answers:
        now = broker.wake_at()
        answers = of(Reply, broker.wake(now))
        if draw.random() < 0.3 and stays and not answers:
            gone = draw.choice([*stays])
            del stays[gone]
            broker.handle(Cancel("r", gone), "p", now)
        broker._check()
    (answer,) = answers
    wanted = {id for id, one in known.items() if intersects(said, one.statement, one.params)}
    if wanted & stays.keys():
        assert answer.interested
    if not wanted:
        assert not answer.interested
