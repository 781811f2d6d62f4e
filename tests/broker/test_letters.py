"""Are dead letters kept in the store that says they were had, whatever crashes when?"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from driftline import Event, parse
from driftline.broker import requests
from driftline.broker.broker import Broker
from driftline.broker.effects import Effect, Store
from driftline.broker.letters import Letter, Letters
from driftline.broker.settings import Settings
from driftline.model.standing import Standing
from driftline.net.journal.stored import decode, encode

PARTY = "alice/alerts"
MOST = 3
SETTINGS = Settings(dead=MOST, keep=1000)
STANDING = Standing.of(parse("SELECT * FROM q"), {}, 0)


def test_of_too_many_bytes_the_oldest_is_forgotten_and_counted() -> None:
    stored: dict = {}
    letters = Letters(most=100, most_bytes=3_000, put=stored.__setitem__)
    for id in ("1", "2", "3"):
        letters.bury(PARTY, Letter(id, "why", 1, 0, b"x" * 1_000))
        letters._check()
    assert ([one.id for one in letters], letters.forgotten) == (["2", "3"], 1)
    # Tried again, it takes no more than before.
    letters.bury(PARTY, Letter("3", "why", 2, 0, b"x" * 1_000))
    assert len(letters) == 2
    letters.bury(PARTY, Letter("4", "why", 1, 0, b"x" * 10_000))
    assert ([one.id for one in letters], letters.forgotten) == (["4"], 3)
    assert [key for key, value in stored.items() if value is None] == [
        ("dead", PARTY, id) for id in ("1", "2", "3")
    ]
    letters.leave(PARTY)
    letters._check()
    assert letters.bytes == 0


class Disk:
    """What a broker has stored. Of what the last step stored a crash keeps all or nothing."""

    def __init__(self) -> None:
        self.stores: list[dict] = []
        self.kept: dict = {}
        self.lives = 1

    def perform(self, effects: list[Effect]) -> None:
        self.flush()
        self.stores += [dict(one.values) for one in effects if isinstance(one, Store)]

    def flush(self) -> None:
        for store in self.stores:
            for key, value in store.items():
                if value is None:
                    self.kept.pop(key, None)
                else:
                    self.kept[key] = encode(key, value)
        self.stores.clear()

    def restart(self, *, lost: bool = False) -> Broker:
        if lost:
            self.stores.clear()
        self.flush()
        self.lives += 1
        stored = {key: decode(key, data) for key, data in self.kept.items()}
        return Broker("b", self.lives, SETTINGS, stored)


class Reference:
    """The same, from the definition: what waits, what is dead, and how many were forgotten."""

    def __init__(self) -> None:
        self.waits: list[int] = []
        self.dead: dict[str, Letter] = {}
        self.forgotten = 0
        self.generation = 0

    def had(self, number: int) -> None:
        self.waits = [one for one in self.waits if one > number]

    def bury(self, number: int, letter: Letter) -> None:
        is_waiting = bool(self.waits) and self.waits[0] <= number
        if is_waiting if number else letter.id in self.dead:
            self.dead[letter.id] = letter
            if len(self.dead) > MOST:
                del self.dead[next(iter(self.dead))]
                self.forgotten += 1
        if letter.id == str(number):
            self.had(number)


def letter(id: str, attempts: int) -> Letter:
    return Letter(id, "it answered 500", attempts, 7, b"{}")


WORDS = (
    "publish publish publish bury bury part again told revive discard renew crash suspend resume"
)
STEPS = st.lists(st.tuples(st.sampled_from(WORDS.split()), st.integers(0, 5)), max_size=40)


@settings(max_examples=150)
@given(STEPS)
def test_every_letter_is_there_once_and_everything_else_waits(steps):
    disk, broker, wanted = Disk(), Broker("b", 1, SETTINGS), Reference()
    broker.enter(PARTY, durable=True)
    disk.perform(broker.handle(requests.Subscribe("s", f"{PARTY}#0", STANDING), PARTY, 0))
    before = deepcopy(wanted)
    disk.flush()
    for what, nth in steps:
        if what != "crash":
            disk.flush()
            before = deepcopy(wanted)
        asked: requests.Request | None = None
        if what == "publish":
            disk.perform(broker.handle(requests.Publish("e", Event("q", {"x": nth})), "feed", 0))
            wanted.waits.append(broker.edge.parties[PARTY].waiting[-1].last)
        elif what in ("bury", "part", "told"):
            number = wanted.waits[min(nth // 3, len(wanted.waits) - 1)] if wanted.waits else 5
            if what == "told":
                asked = requests.Told(number)
                wanted.had(number)
            else:
                one = letter(str(number) if what == "bury" else f"{number}-1", nth)
                asked = requests.Bury("r", number, one)
                wanted.bury(number, one)
        elif what == "again":
            some = [*wanted.dead, "5"]
            one = letter(some[nth % len(some)], 100 + nth)
            asked = requests.Bury("r", 0, one)
            wanted.bury(0, one)
        elif what in ("revive", "discard"):
            some = tuple([*wanted.dead, "5"][:nth]) if nth < 4 else None
            named = [*wanted.dead] if some is None else [id for id in some if id in wanted.dead]
            if what == "revive":
                asked = requests.Revive("r", some)
                wanted.dead |= {id: replace(wanted.dead[id], again=True) for id in named}
            else:
                asked = requests.Discard("r", some)
                wanted.dead = {id: one for id, one in wanted.dead.items() if id not in named}
        elif what == "renew":
            asked = requests.Renew("r")
            wanted.generation += 1
        elif what == "crash":
            # Of two crashes one comes before the last store is written.
            if nth % 2 and disk.stores:
                wanted = deepcopy(before)
            broker = disk.restart(lost=nth % 2 == 1)
        else:
            asked = (requests.Suspend if what == "suspend" else requests.Resume)("r")
        if asked is not None:
            effects = broker.handle(asked, PARTY, 0)
            # Whoever relies on a letter relies on what was had with it: one store has both.
            assert sum(isinstance(one, Store) for one in effects) <= 1
            disk.perform(effects)
        broker._check()
        known = broker.edge.parties[PARTY]
        assert [*known.letters] == [*wanted.dead.values()]
        assert (known.letters.forgotten, known.generation) == (wanted.forgotten, wanted.generation)
        assert _waiting(known) == wanted.waits


def _waiting(party) -> list[int]:
    return [one.number for one in party.waiting if one.last > party.had]


def test_of_notices_that_lie_together_one_can_be_buried_and_an_overtaken_word_changes_nothing():
    import asyncio

    import driftline as dl
    from tests.net.here import address, served

    async def test():
        async with served() as server, dl.connect(address(server)) as client:
            await client.durables.keep("alerts", "SELECT * FROM q")
            (guest,) = server.guests.values()
            while not guest.incoming._slices.is_quick:
                await client.publish_many([Event("other", {"x": x}) for x in range(64)])
            await client.publish_many([Event("q", {"x": x}) for x in range(4)])
            s = await client.attach("alerts", ack="manual")
            numbers = [(await s.next(5)).number for _ in range(4)]
            party = "anyone/alerts"
            known = server.edge.parties[party]
            assert len(known.waiting) == 1
            server.driver.ask(party, requests.Bury("r", numbers[2], letter(str(numbers[2]), 1)))
            server.driver.ask(party, requests.Told(numbers[1]))
            assert server.edge.parties.left(party) == (1, numbers[3])
            # What was had is not buried, however late somebody gives it up.
            server.driver.ask(party, requests.Bury("r", numbers[1], letter(str(numbers[1]), 1)))
            assert [one.id for one in known.letters] == [str(numbers[2])]
            await client.durables.drop("alerts")

    asyncio.run(test())


def test_who_leaves_leaves_no_letters_behind():
    disk, broker = Disk(), Broker("b", 1, Settings(dead=1))
    broker.enter(PARTY, durable=True)
    disk.perform(broker.handle(requests.Subscribe("s", f"{PARTY}#0", STANDING), PARTY, 0))
    for x in range(2):
        disk.perform(broker.handle(requests.Publish("e", Event("q", {"x": x})), "feed", 0))
        number = broker.edge.parties[PARTY].waiting[-1].last
        disk.perform(broker.handle(requests.Bury("r", number, letter(str(number), 1)), PARTY, 0))
    disk.perform(broker.handle(requests.Renew("r"), PARTY, 0))
    disk.perform(broker.handle(requests.Leave("r"), PARTY, 0))
    broker = disk.restart()
    assert not [key for key in disk.kept if PARTY in key]
    assert PARTY not in broker.edge.parties
