"""One seeded run: an overlay, parties that come and go, faults, and then peace.

While there are faults only what must always hold is checked: nobody is told twice, or out of order,
or of something he did not ask for, and what he lets through is what he wants. After the last fault,
when nothing is on its way any more, everything must be as if there had been none: tables say what
follows from the subscriptions alone, an event reaches exactly those whom it concerns, and patterns
go on from where they were. Before that is tried variables move once more while events are on their
way: what was confirmed must count. In half of the runs there are tables, too (`tables`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from driftline.broker.links import Role
from driftline.broker.requests import (
    Advertise,
    Cancel,
    Confirm,
    Observed,
    Publish,
    Resume,
    Subscribe,
    Suspend,
    Unadvertise,
    Unsubscribe,
)
from driftline.broker.settings import Settings
from driftline.model.advertisement import Advertisement, advertisement_covers
from driftline.model.covering import Statement, covers
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.value import Value
from driftline.moving.evolving.ways import WAYS
from driftline.sim import checkers
from driftline.sim.checkers import Violation
from driftline.sim.faults import GOOD, MILLISECOND, RANDOM, SECOND, Faults, drawn, faults_of
from driftline.sim.following import WITNESS, Doors
from driftline.sim.overlay import Overlay
from driftline.sim.party import Party
from driftline.sim.probes import Probes
from driftline.sim.story import Story, Version
from driftline.sim.tables import TableRun
from driftline.sim.texts import advertised, condition, evolving, offered, parsed
from driftline.sim.topologies import build, meshed

# A run of sixty steps takes some thousand; one that takes so many goes round in circles.
_MOST = 300_000

# At most so long a step lasts. A view that is asked for, or moved, must have time to join.
_PACE = 50 * MILLISECOND
_PACE_OF_VIEWS = 200 * MILLISECOND

# Parties are away from their brokers by at most so much, in some runs.
_AWAY = 20 * MILLISECOND

_MOVING = "SELECT * FROM q WHERE x > :low AND y = :y"
_EVOLVING = "SELECT * FROM q WHERE x > :low * env('v') - 0.001 * elapsed() AND y = :y"
_WATCHED = advertised("SELECT * FROM w WHERE x IS NOT NULL AND y IS NOT NULL AND n > -1")
_ANYTHING = advertised("SELECT * FROM q WHERE x IS NOT NULL AND y IS NOT NULL AND n > -1")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is made of; None: the seed decides."""

    topology: str
    seed: int
    steps: int = 60
    brokers: int = 8
    faults: str = RANDOM
    matcher: str = "auto"
    advertised: bool | None = None
    tables: bool | None = None


class Scenario:
    """A run of a plan. `run` raises `Violation` where something did not hold."""

    def __init__(self, plan: Plan, trace: Callable[[str], None] | None = None) -> None:
        self.plan = plan
        self._draw = draw = random.Random(f"{plan.topology} {plan.seed}")
        labels = random.Random(f"{plan.topology} {plan.seed} labels")
        advertised = draw.random() < 0.5
        self._settings = Settings(
            matcher=plan.matcher,
            advertised=advertised if plan.advertised is None else plan.advertised,
            keep=draw.choice((1000, 1000, 5)),
            often=draw.choice((None, None, 3)),
            evolving=draw.choice(WAYS),
            # Few labels, and structures of few: places of followers become others all the time.
            label_bits=labels.choice((4, 5, 6, 8)),
            many=labels.choice((1, 2, 4)),
        )
        self._away = draw.choice((0, 0, _AWAY))
        self.overlay = Overlay(draw.randrange(1 << 30), self._settings, trace)
        self.overlay.as_records = plan.matcher == "index"
        self.story = Story()
        self._movers: list[Party] = []
        build(self.overlay, plan.topology, plan.brokers, draw)
        self.story.first = set(self.overlay.names())
        self.overlay.most = _MOST
        # By chances of their own: without tables a run is what it was.
        chance = random.Random(f"{plan.topology} {plan.seed} tables")
        tables = chance.random() < 0.5
        self._tables: TableRun | None = None
        if tables if plan.tables is None else plan.tables:
            doors = Doors(self._party, self._subscribe)
            self._tables = TableRun(self.overlay, self.story, chance, doors)

    def run(self) -> None:
        """Go through all of it."""
        overlay, story, draw = self.overlay, self.story, self._draw
        self._anchor()
        if self._tables:
            self._tables.begin()
        overlay.run()
        self._confirm_all(party for party in overlay.parties.values() if party.wants)
        chosen = faults_of(self.plan.faults)
        faults = drawn(draw) if chosen is None else chosen
        self._trouble(faults)
        rewires = draw.random() < 0.3
        pace = _PACE_OF_VIEWS if self._tables else _PACE
        for _ in range(self.plan.steps):
            self._step()
            if self._tables:
                self._tables.step()
            if rewires and draw.random() < 0.08:
                self._rewire()
            if draw.random() < faults.trouble:
                self._fault()
            overlay.run(overlay.now + draw.randrange(pace))
            self._check_what_was_told()
        self._heal()
        for name in overlay.names():
            self._weather(name)
        self._check_what_was_told()
        if self._tables:
            self._tables.rest()
        checkers.coverage(overlay, story)
        checkers.quiet(overlay)
        self._move_on()
        self._check_what_was_told()
        checkers.coverage(overlay, story)
        self._probe()
        if self._tables:
            self._tables.probe()
        self._leave()

    @property
    def relabelled(self) -> int:
        """How often a broker has heard that places of followers are others."""
        return self._tables.following.relabelled if self._tables else 0

    def _check_what_was_told(self) -> None:
        checkers.always(self.overlay, self.story)
        checkers.strict(self.overlay, self.story)
        if self._tables:
            self._tables.look()

    # What happens

    def _anchor(self) -> None:
        """Parties that want, or offer, the same from before the first fault until the end."""
        draw, overlay = self._draw, self.overlay
        for broker in overlay.names():
            if draw.random() < 0.5:
                party = self._party(f"{broker}-anchor", broker)
                self._subscribe(party, party.name, f"SELECT * FROM q WHERE {condition(draw)}")
            if draw.random() < 0.5:
                publisher = self._party(f"{broker}-p0", broker)
                self.story.sure.add(publisher.name)
                self._advertise(publisher, "sure", _ANYTHING)
        if not self._settings.advertised:
            self.story.sure.update(f"{broker}-p{at}" for broker in overlay.names() for at in (0, 1))
        self._watch()
        for _ in range(2):
            # Somebody whose variables move all the time.
            broker = draw.choice(overlay.names())
            mover = self._party(f"{broker}-mover", broker)
            self._movers.append(mover)
            self._move(mover)

    def _confirm_all(self, parties: Iterable[Party]) -> None:
        """When there are no faults, they are told that all is in effect everywhere."""
        asked = [(party, self._confirm(party)) for party in parties]
        self._rest()
        for party, number in asked:
            if number not in party.done:
                reply = party.answered.get("confirm")
                raise Violation(f"{party.name} should know that all is in effect: {reply}")

    def _rest(self) -> None:
        """Let nothing be on its way; what comes next is truly later."""
        self.overlay.run()
        self.overlay.run(self.overlay.now + 1)
        self.story.rests.append(self.overlay.now)

    def _party(self, name: str, broker: str) -> Party:
        """A party, which may be away from its broker."""
        known = self.overlay.parties.get(name)
        return known or self.overlay.party(name, broker, self._draw.randrange(self._away + 1))

    def _watch(self) -> None:
        """A pattern over what one party publishes, and somebody there who sees all of it."""
        draw, overlay = self._draw, self.overlay
        source, broker = draw.choice(overlay.names()), draw.choice(overlay.names())
        self._source = self._party(f"{source}-source", source)
        self._advertise(self._source, "source", _WATCHED)
        self.story.sure.add(self._source.name)
        watcher = self._party(f"{source}-watcher", source)
        self._subscribe(watcher, watcher.name, "SELECT * FROM w")
        far = draw.choice(overlay.names())
        anybody = self._party(f"{far}-far", far)
        self._subscribe(anybody, anybody.name, "SELECT * FROM w")
        party = self._party(f"{broker}-pattern", broker)
        lows = (draw.randrange(7) for _ in range(draw.randrange(2, 5)))
        steps = (f"SELECT * FROM w WHERE x BETWEEN {low} AND {low + 1}" for low in lows)
        within = draw.choice(("", "", " WITHIN 0.000005"))
        self._subscribe(party, party.name, " THEN ".join(steps) + within)
        self.story.watched[party.name] = watcher.name

    def _rewire(self) -> None:
        """A broker joins; a link of a mesh comes or goes; a leaf of a tree goes elsewhere."""
        draw, overlay, story = self._draw, self.overlay, self.story
        links, names = list(overlay.links()), overlay.names()
        if not links:
            return
        here, there = draw.choice(links)
        role = overlay.role(here, there)
        if draw.random() < 0.3:
            name = f"b{len(names)}"
            overlay.broker(name)
            story.rewired |= role is Role.MESH
            overlay.link(name, here, Role.MASTER if role is Role.CLIENT else role)
        elif role is Role.MESH:
            members = [name for name in names if meshed(overlay, here, name)]
            other = draw.choice(members)
            if other != here and (here, other) not in links:
                story.rewired = True
                overlay.link(here, other, Role.MESH)
            elif meshed(overlay, here, there, (here, there)):
                story.rewired = True
                overlay.unlink(here, there)
        elif overlay.around(here) == [there] and role in (Role.PEER, Role.MASTER):
            others = [name for name in overlay.around(there) if name != here]
            if others:
                goes = draw.choice(others)
                # A claim asks everybody where they are: one that goes elsewhere may be missed.
                claiming = self._tables is not None and self._tables.claiming
                if overlay.role(there, goes) is not Role.MESH and not claiming:
                    story.rewired = True
                    overlay.unlink(here, there)
                    overlay.link(here, goes, role)

    def _step(self) -> None:
        draw, overlay = self._draw, self.overlay
        broker = draw.choice(overlay.names())
        party = self._party(f"{broker}-p{draw.randrange(2)}", broker)
        if draw.random() < 0.3:
            self._move(draw.choice(self._movers))
        if draw.random() < 0.1:
            self._weather(broker)
        if draw.random() < 0.15:
            self._confirm(draw.choice((*self._movers, party)))
        chance = draw.random()
        if chance < 0.35:
            self._want(party)
        elif chance < 0.5 and party.wants:
            self._cancel(party, draw.choice(list(party.wants)))
        elif chance < 0.55:
            self._unsubscribe(party)
        elif chance < 0.6:
            # A witness must be told at once, or it is none.
            names = [name for name in overlay.parties if not name.startswith(WITNESS)]
            somebody = overlay.parties[draw.choice(names)]
            overlay.ask(somebody, draw.choice((Suspend, Resume))("pause"))
        elif chance < 0.68 and self._settings.advertised:
            self._offer(party)
        else:
            self._publish(self._publisher(party))

    def _want(self, party: Party) -> None:
        draw = self._draw
        id = f"{party.name}-{draw.randrange(4)}"
        if draw.random() < 0.25:
            where, low = evolving(draw), draw.randrange(7)
            pattern = draw.choice(("", "", "", " THEN SELECT * FROM q WHERE y < 2"))
            self._subscribe(party, id, f"SELECT * FROM q WHERE {where}{pattern}", {"low": low})
        elif draw.random() < 0.2:
            # The same text under other parameters: what stands is moved.
            low, y = draw.randrange(7), draw.randrange(3)
            self._subscribe(party, id, _MOVING, {"low": low, "y": y})
        elif draw.random() < 0.15:
            text = "SELECT * FROM w WHERE x = :a THEN SELECT * FROM w WHERE x = :b"
            self._subscribe(party, id, text, {"a": draw.randrange(3), "b": draw.randrange(3)})
        elif draw.random() < 0.2:
            first, second = condition(draw), condition(draw)
            text = f"SELECT * FROM q WHERE {first} THEN SELECT * FROM q WHERE {second}"
            self._subscribe(party, id, text)
        else:
            self._subscribe(party, id, f"SELECT * FROM q WHERE {condition(draw)}")

    def _subscribe(
        self, party: Party, id: str, text: str, params: dict[str, object] | None = None
    ) -> None:
        standing = Standing.of(parsed(text), params, self._start(party.wants.get(id), parsed(text)))
        party.wants[id] = standing
        number = self.overlay.ask(party, Subscribe(f"subscribe {id}", id, standing))
        self._becomes(party, id, standing, number)

    def _start(self, before: Standing | None, statement: Statement) -> int:
        """From when a subscription counts: where it stands, mostly from when it did before."""
        if not statement.variables().elapsed:
            return 0
        if before is not None and before.statement == statement and self._draw.random() < 0.8:
            return before.start_us
        return self.overlay.now - self._draw.choice((0, 300, 500)) * SECOND

    def _becomes(self, party: Party, id: str, standing: Standing | None, number: int) -> None:
        self.story.becomes(party, id, Version(standing, number, self.overlay.now))

    def _move(self, party: Party) -> None:
        """Move one of a party's variables, mostly the one that widens and narrows."""
        draw, id = self._draw, f"{party.name}-moving"
        params: dict[str, object] = {"low": draw.randrange(7), "y": draw.randrange(3)}
        if id in party.wants and draw.random() < 0.8:
            params["y"] = party.wants[id].params["y"]
        text = _MOVING if party is self._movers[0] else _EVOLVING
        self._subscribe(party, id, text, params)

    def _weather(self, broker: str) -> None:
        """The environment changes, as one broker sees it."""
        draw, overlay = self._draw, self.overlay
        provider = overlay.party(f"{broker}-weather", broker)
        values: dict[str, Value] = {"v": draw.choice((0, 0.5, 1, 2)), "mode": draw.randrange(3)}
        overlay.run(overlay.now + 1)  # What was published before enters before.
        for name, value in values.items():
            overlay.ask(provider, Observed(name, value))
        self.story.said.setdefault(broker, []).append((overlay.now, values))
        overlay.run(overlay.now + 1)

    def _confirm(self, party: Party) -> int:
        number = self.overlay.ask(party, Confirm("confirm"))
        self.story.confirms.setdefault(party.name, []).append(number)
        return number

    def _move_on(self) -> None:
        """Variables move while events are on their way, between one moment of rest and the next."""
        draw, overlay = self._draw, self.overlay
        self._confirm_all(self._movers)
        self.story.calm = overlay.now
        for mover in self._movers:
            for _ in range(4):
                self._move(mover)
                self._weather(draw.choice(overlay.names()))
                if draw.random() < 0.5:
                    self._confirm(mover)
                overlay.run(overlay.now + draw.randrange(30 * MILLISECOND))
                self._publish_near(mover)
            self._confirm(mover)
            overlay.run(overlay.now + draw.randrange(200 * MILLISECOND))
            for _ in range(4):
                self._publish_near(mover)
            self._rest()

    def _publish_near(self, mover: Party) -> None:
        """Somebody publishes something that a party may just want, or just not."""
        params = mover.wants[f"{mover.name}-moving"].params
        publishers = sorted(self.story.sure & self.overlay.parties.keys() - {self._source.name})
        if publishers:
            publisher = self.overlay.parties[self._draw.choice(publishers)]
            self._publish(publisher, params["y"])

    def _cancel(self, party: Party, id: str) -> None:
        del party.wants[id]
        self._becomes(party, id, None, self.overlay.ask(party, Cancel(f"cancel {id}", id)))

    def _unsubscribe(self, party: Party) -> None:
        general = parsed(f"SELECT * FROM q WHERE {condition(self._draw)}")
        covered = [
            id
            for id, standing in party.wants.items()
            if covers(general, standing.statement, None, standing.params)
        ]
        for id in covered:
            del party.wants[id]
        number = self.overlay.ask(party, Unsubscribe(f"unsubscribe {general}", general))
        for id in covered:
            self._becomes(party, id, None, number)

    def _offer(self, party: Party) -> None:
        draw = self._draw
        text = f"SELECT * FROM q WHERE {offered(draw)} AND y IS NOT NULL AND n IS NOT NULL"
        says = advertised(text)
        if draw.random() < 0.6:
            self._advertise(party, f"offer {draw.randrange(2)}", says)
            return
        if party.name in self.story.sure and advertisement_covers(says, _ANYTHING):
            return
        for id, one in list(party.offers.items()):
            if advertisement_covers(says, one):
                del party.offers[id]
        self.overlay.ask(party, Unadvertise("unadvertise", says))

    def _advertise(self, party: Party, id: str, says: Advertisement) -> None:
        party.offers[id] = says
        self.overlay.ask(party, Advertise(f"advertise {id}", id, says))

    def _publisher(self, party: Party) -> Party:
        """Whoever may publish, mostly."""
        if self._draw.random() < 0.4:
            return self._source
        sure = sorted(self.story.sure & self.overlay.parties.keys())
        if not sure or self._draw.random() < 0.3:
            return party
        return self.overlay.parties[self._draw.choice(sure)]

    def _publish(self, party: Party, y: Value | None = None) -> Event:
        draw, number = self._draw, len(self.story.published)
        values = {"x": draw.randrange(8), "y": draw.randrange(3) if y is None else y, "n": number}
        event = Event("w" if party is self._source else "q", values, time=number)
        self.story.published[number] = party, event, self.overlay.now
        self.overlay.ask(party, Publish(f"publish {number}", event))
        return event

    def _trouble(self, faults: Faults) -> None:
        self.overlay.faults = faults.link
        self.overlay.crashes = faults.crashes
        self.overlay.journal_lost = faults.lost

    def _fault(self) -> None:
        draw, overlay = self._draw, self.overlay
        chance = draw.random()
        links = list(overlay.links())
        if chance < 0.4:
            down = draw.randrange(10 * MILLISECOND, 2 * SECOND)
            lost = draw.random() < overlay.journal_lost
            overlay.crash(draw.choice(overlay.names()), lost=lost, down=down)
        elif chance < 0.55:
            overlay.pause(draw.choice(overlay.names()), draw.randrange(SECOND))
        elif links:
            overlay.cut(*draw.choice(links), healed=chance > 0.8)

    def _heal(self) -> None:
        overlay = self.overlay
        overlay.faults, overlay.crashes = GOOD, 0.0
        for link in overlay.links():
            overlay.cut(*link, healed=True)
        overlay.run(overlay.now + 30 * SECOND)
        # Some requests may have been refused an answer by a crash; all others are through.
        for party in overlay.parties.values():
            overlay.ask_again(party)
            overlay.ask(party, Resume("go on"))
        overlay.run(overlay.now + 600 * SECOND)
        if self._tables:
            self._tables.mend()
        if not overlay.at_rest:
            raise Violation("it does not come to rest")

    # What must hold in the end

    def _probe(self) -> None:
        """In peace: events from every broker, and those that a pattern is about."""
        probes = Probes(
            self.overlay, self.story, self._publish, advertised=self._settings.advertised
        )
        for broker in self.overlay.names():
            publisher = self._party(f"{broker}-p0", broker)
            for _ in range(3):
                probes.publish(publisher)
            # A broker with a master tells others that it wants everything.
            offer = advertised(f"SELECT * FROM q WHERE {offered(self._draw)} AND y IS NOT NULL")
            probes.ask(publisher, offer, surely=self.plan.topology != "mixed")
        for _ in range(12):
            probes.publish(self._source)

    def _leave(self) -> None:
        """When all have gone, is nothing left of them?"""
        overlay = self.overlay
        for party in overlay.parties.values():
            for id in list(party.wants):
                self._cancel(party, id)
            for says in party.offers.values():
                overlay.ask(party, Unadvertise("unadvertise", says))
            party.offers.clear()
        overlay.run()
        checkers.nothing_left(overlay)
