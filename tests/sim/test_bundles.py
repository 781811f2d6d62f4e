"""Are many events that cross brokers in one piece told as if each had gone by itself?

Brokers in a row or a tree; subscriptions that kernels can match and such as they cannot (patterns,
what evolves, types that a table keeps), so that events change from one way to the other on theirs.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

import numpy as np
import pytest

from driftline.broker.carrying import Carrying
from driftline.broker.effects import Effect
from driftline.broker.links import Role
from driftline.broker.requests import (
    Cancel,
    Declare,
    Observed,
    Publish,
    PublishMany,
    Subscribe,
)
from driftline.broker.settings import Settings
from driftline.broker.station import Station
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.sim.faults import MILLISECOND, SECOND
from driftline.sim.overlay import Overlay
from driftline.wire.compact import write_record
from driftline.wire.forms import NO_FORM, form_of

PLAIN = [
    "SELECT * FROM q WHERE x BETWEEN :low AND :high",
    "SELECT * FROM r WHERE text LIKE 'a%' AND x >= :low",
    "SELECT * WHERE x = :low",
    "SELECT * FROM t WHERE x > :low",
]
HARD = [
    "SELECT * FROM r WHERE x > :low * env('factor')",
    "SELECT * FROM q WHERE x = :low THEN SELECT * FROM q WHERE x = :high",
    "SELECT * FROM q WHERE x > :low AND ce_id = '3'",
]
TREES = {
    "a row": [("a", "b", Role.PEER), ("b", "c", Role.PEER), ("c", "d", Role.PEER)],
    "a star": [("a", "b", Role.PEER), ("a", "c", Role.PEER), ("a", "d", Role.PEER)],
    "servers above": [("b", "a", Role.MASTER), ("c", "a", Role.MASTER), ("d", "c", Role.MASTER)],
}


def drawn(draw: random.Random, number: int) -> Event:
    """An event of one of some forms."""
    type = draw.choice("qqrt")
    values: dict = {"x": draw.choice([draw.randrange(8), float(draw.randrange(8))]), "n": number}
    if draw.random() < 0.4:
        values["text"] = draw.choice(["ab", "ba", ""])
    if type == "t":
        values["k"] = draw.randrange(3)
    id = str(draw.randrange(5)) if draw.random() < 0.2 else None
    return Event(type, values, time=draw.choice([None, number]), id=id)


class Run:
    """A random program; the same seed is the same program, however its events are published."""

    def __init__(self, seed: int, tree: str, *, hard: bool, together: bool, faults: bool) -> None:
        self._draw = draw = random.Random(f"{seed} {tree} {hard}")
        self._faults = random.Random(f"{seed} faults") if faults else None
        self._together = together
        self._hard = hard
        self.overlay = Overlay(seed, Settings(matcher="index"))
        for name in "abcd":
            self.overlay.broker(name)
        self._links = TREES[tree]
        for here, there, role in self._links:
            self.overlay.link(here, there, role)
        self._parties = [self.overlay.party(f"{name}{at}", name) for name in "abcd" for at in "12"]
        self._number = 0
        self.overlay.run()
        if hard:
            table = TableDeclaration.of("t", "k", {})
            self.overlay.ask(self._parties[draw.randrange(8)], Declare("declare", table))
            for party in self._parties:
                self.overlay.ask(party, Observed("factor", "factor", 1))
        self.overlay.run()
        for step in range(40):
            self._step(step)
        self._heal()
        self.overlay.run()
        for name in "abcd":
            self.overlay.station(name).broker._check()

    def _step(self, step: int) -> None:
        draw, overlay = self._draw, self.overlay
        party = draw.choice(self._parties)
        choice = draw.random()
        low = draw.randrange(6)
        texts = PLAIN + HARD if self._hard else PLAIN
        if choice < 0.3 or not step:
            text = draw.choice(texts)
            given = {"low": low, "high": low + 2}
            params = {name: value for name, value in given.items() if f":{name}" in text}
            id = f"{party.name} {draw.randrange(3)} {texts.index(text)}"
            standing = Standing.of(parse(text), params)
            if id in party.wants:
                standing = party.wants[id].moved_to(params)
            party.wants[id] = standing
            overlay.ask(party, Subscribe(f"s{step}", id, standing))
            overlay.run()
        elif choice < 0.35 and party.wants:
            id = draw.choice(sorted(party.wants))
            del party.wants[id]
            overlay.ask(party, Cancel(f"c{step}", id))
            overlay.run()
        else:
            events = []
            for _ in range(draw.randrange(1, 30)):
                self._number += 1
                events.append(drawn(draw, self._number))
            self._disturb(party.broker)
            if self._together:
                overlay._do(party.broker, partial(_many, party.name, events))
            else:
                for event in events:
                    overlay.ask(party, Publish("", event))
            if self._faults is not None:
                overlay.run(overlay.now + self._faults.randrange(300) * MILLISECOND)
            # What is asked for next must not overtake them.
            self._heal()
            overlay.run()

    def _disturb(self, publishing: str) -> None:
        if self._faults is None:
            return
        chance = self._faults.random()
        here, there, _ = self._faults.choice(self._links)
        if chance < 0.3:
            self.overlay.cut(here, there)
        elif chance < 0.6:
            name = self._faults.choice([name for name in "abcd" if name != publishing])
            self.overlay.crash(name, down=self._faults.randrange(SECOND))

    def _heal(self) -> None:
        for here, there, _ in self._links:
            self.overlay.cut(here, there, healed=True)
            self.overlay.cut(there, here, healed=True)

    def told(self) -> dict[str, list[tuple[object, ...]]]:
        """What each was told, in order."""
        return {
            party.name: [
                (
                    one.event.attributes["n"],
                    sorted(zip(one.subscriptions, one.epochs, strict=True)),
                    {id: [e.attributes["n"] for e in some] for id, some in one.sequences.items()},
                    dict(one.event.attributes),
                    one.event.type,
                    one.event.id,
                )
                for one in party.told
            ]
            for party in self.overlay.parties.values()
        }


def _many(party: str, events: list[Event], station: Station, now: int) -> list[Effect]:
    forms: dict = {}
    records = []
    for event in events:
        form = form_of(event)
        number = forms.setdefault(form, len(forms))
        if event.attributes["n"] % 11 == 0:
            number = NO_FORM  # It says its names itself.
        records.append(write_record(event, number, form))
    numbers = [station.broker.publishing.forms.number(form) for form in forms]
    asked = PublishMany("", b"".join(records), np.array(numbers, np.int64))
    return station.ask(party, asked, now)


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many bundles came, to see that some do."""
    counted: Counter[str] = Counter()
    take = Carrying.take

    def counting(self: Carrying, payload: bytes, sender: str, now: int) -> list[Effect]:
        counted["bundles"] += 1
        effects = take(self, payload, sender, now)
        counted["garbled"] += self.garbled
        return effects

    monkeypatch.setattr(Carrying, "take", counting)
    return counted


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("seed", range(8))
def test_together_or_one_by_one_is_the_same(
    seed: int, tree: str, hard: bool, carried: Counter[str]
) -> None:
    alone = Run(seed, tree, hard=hard, together=False, faults=False).told()
    assert not carried["bundles"]
    together = Run(seed, tree, hard=hard, together=True, faults=False).told()
    assert together == alone
    assert sum(map(len, alone.values())) > 20
    assert hard or carried["bundles"] > 20
    assert not carried["garbled"]


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("seed", range(8))
def test_crashes_and_cuts_on_the_way_lose_and_double_nothing(
    seed: int, tree: str, carried: Counter[str]
) -> None:
    quiet = Run(seed, tree, hard=False, together=True, faults=False).told()
    before = carried["bundles"]
    disturbed = Run(seed, tree, hard=False, together=True, faults=True).told()
    assert disturbed == quiet
    # Some came again, or were lost and sent again.
    assert carried["bundles"] >= before
