"""One seeded run: an overlay, parties that come and go, faults, and then peace.

While there are faults only what must always hold is checked: nobody is told twice, or out of order,
or of something he did not ask for. After the last fault, when nothing is on its way any more,
everything must be as if there had been none: tables say what follows from the subscriptions alone,
and an event reaches exactly those whom it concerns.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from driftline.broker.broker import EVERYTHING, Role, Settings
from driftline.broker.requests import Cancel, Publish, Subscribe, Unsubscribe
from driftline.language.sql import parse
from driftline.model.covering import Statement, covers
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.sim.faults import GOOD, MILLISECOND, LinkFaults
from driftline.sim.overlay import SECOND, Overlay, Party

TOPOLOGIES = ("centralised", "hierarchical", "acyclic", "general", "figure 8", "figure 9")


# A run of sixty steps takes some thousand; one that takes so many goes round in circles.
_MOST = 300_000


class Violation(AssertionError):
    """Something that must hold did not."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is made of."""

    topology: str
    seed: int
    steps: int = 60
    brokers: int = 8
    faults: bool = True
    matcher: str = "auto"


class Scenario:
    """A run of a plan. `run` raises `Violation` where something did not hold."""

    def __init__(self, plan: Plan, trace: Callable[[str], None] | None = None) -> None:
        self.plan = plan
        self._draw = random.Random(f"{plan.topology} {plan.seed}")
        settings = Settings(matcher=plan.matcher)
        self.overlay = Overlay(self._draw.randrange(1 << 30), settings, trace)
        self._said: dict[int, Event] = {}
        self._publishers: dict[int, Party] = {}
        self._ever: dict[str, list[Standing]] = {}
        self.rewired = False
        build(self.overlay, plan, self._draw)
        self._first = set(self.overlay.names())
        self.overlay.most = _MOST

    def run(self) -> None:
        """Go through all of it."""
        overlay = self.overlay
        self._anchor()
        overlay.run()
        if self.plan.faults:
            self._trouble()
        rewires = self._draw.random() < 0.5
        for _ in range(self.plan.steps):
            self._step()
            if rewires and self._draw.random() < 0.08:
                self._rewire()
            if self.plan.faults and self._draw.random() < 0.15:
                self._fault()
            overlay.run(overlay.now + self._draw.randrange(50 * MILLISECOND))
            self._always()
        self._heal()
        self._always()
        self._nothing_lost()
        self._quiet()
        self._probe()
        self._leave()

    # What happens

    def _anchor(self) -> None:
        """Parties that want the same from before the first fault until the end."""
        for broker in self.overlay.names():
            if self._draw.random() < 0.5:
                party = self.overlay.party(f"{broker}-anchor", broker)
                standing = Standing.of(parse(f"SELECT * FROM q WHERE {condition(self._draw)}"))
                party.wants[party.name] = standing
                self._ever[party.name] = [standing]
                self.overlay.ask(party, Subscribe("subscribe", party.name, standing))

    def _rewire(self) -> None:
        """A broker joins; a link of a mesh comes or goes; a leaf of a tree goes elsewhere."""
        draw, overlay = self._draw, self.overlay
        links, names = list(overlay.links()), overlay.names()
        if not links:
            return
        here, there = draw.choice(links)
        role = overlay.role(here, there)
        if draw.random() < 0.3:
            name = f"b{len(names)}"
            overlay.broker(name)
            self.rewired |= role is Role.MESH
            overlay.link(name, here, Role.MASTER if role is Role.CLIENT else role)
        elif role is Role.MESH:
            members = [name for name in names if _meshed(overlay, here, name)]
            other = draw.choice(members)
            if other != here and (here, other) not in links:
                self.rewired = True
                overlay.link(here, other, Role.MESH)
            elif _meshed(overlay, here, there, (here, there)):
                self.rewired = True
                overlay.unlink(here, there)
        elif overlay.around(here) == [there] and role in (Role.PEER, Role.MASTER):
            others = [name for name in overlay.around(there) if name != here]
            if others:
                goes = draw.choice(others)
                if overlay.role(there, goes) is not Role.MESH:
                    self.rewired = True
                    overlay.unlink(here, there)
                    overlay.link(here, goes, role)

    def _step(self) -> None:
        draw, overlay = self._draw, self.overlay
        broker = draw.choice(overlay.names())
        party = overlay.party(f"{broker}-p{draw.randrange(2)}", broker)
        chance = draw.random()
        if chance < 0.4:
            id = f"{party.name}-{draw.randrange(4)}"
            standing = Standing.of(parse(f"SELECT * FROM q WHERE {condition(draw)}"))
            party.wants[id] = standing
            self._ever.setdefault(id, []).append(standing)
            overlay.ask(party, Subscribe(f"subscribe {id}", id, standing))
        elif chance < 0.55 and party.wants:
            id = draw.choice(list(party.wants))
            del party.wants[id]
            overlay.ask(party, Cancel(f"cancel {id}", id))
        elif chance < 0.6:
            general = parse(f"SELECT * FROM q WHERE {condition(draw)}")
            self._unsubscribe(party, general)
        else:
            self._publish(party)

    def _unsubscribe(self, party: Party, general: Statement) -> None:
        for id, standing in list(party.wants.items()):
            if covers(general, standing.statement):
                del party.wants[id]
        self.overlay.ask(party, Unsubscribe(f"unsubscribe {general}", general))

    def _publish(self, party: Party) -> Event:
        number = len(self._said)
        draw = self._draw
        values = {"x": draw.randrange(8), "y": draw.randrange(3), "n": number}
        event = self._said[number] = Event("q", values, time=number)
        self._publishers[number] = party
        self.overlay.ask(party, Publish(f"publish {number}", event))
        return event

    def _trouble(self) -> None:
        draw = self._draw
        self.overlay.faults = LinkFaults(
            slowest=draw.choice([10, 100, 400]) * MILLISECOND,
            loss=draw.choice([0.0, 0.05, 0.3]),
            duplicates=draw.choice([0.0, 0.1]),
            corruption=draw.choice([0.0, 0.02]),
            reordering=draw.random() < 0.5,
        )
        self.overlay.crashes = draw.choice([0.0, 0.002, 0.01, 0.05])
        self.overlay.journal_lost = self._losing = draw.choice([0.0, 0.3])

    def _fault(self) -> None:
        draw, overlay = self._draw, self.overlay
        chance = draw.random()
        links = list(overlay.links())
        if chance < 0.4:
            down = draw.randrange(10 * MILLISECOND, 2 * SECOND)
            lost = draw.random() < self._losing
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
            for asked in list(party.unanswered.values()):
                overlay._ask(party, asked)
        overlay.run(overlay.now + 600 * SECOND)
        if overlay._heap:
            raise Violation("it does not come to rest")

    # What must hold

    def _always(self) -> None:
        for party in self.overlay.parties.values():
            if party.repeated and not self.overlay.lost_journals:
                raise Violation(f"{party.name} was told again of {party.repeated[0].event}")
            last: dict[str, int] = {}
            events = set()
            for deliver in party.told:
                event = deliver.event
                number = int(str(event.attributes["n"]))
                for id in deliver.subscriptions:
                    if not any(one.matches(event, {}) for one in self._ever.get(id, ())):
                        raise Violation(
                            f"{party.name} was told of {number} for {id}: not asked for"
                        )
                if number in events:
                    raise Violation(f"{party.name} was told twice of {number}")
                events.add(number)
                if last.get(deliver.origin, 0) >= deliver.position:
                    raise Violation(f"{party.name} was told of {number} out of order")
                last[deliver.origin] = deliver.position

    def _nothing_lost(self) -> None:
        """What a broker has said it took has reached all who have wanted it all along.

        Unless a journal was lost, or a link was ended with what was on its way, or the ways in a
        mesh changed: what is on an old way may then be overtaken, and is dropped to keep the order.
        """
        if self.overlay.lost_journals or self.rewired:
            return
        for number, event in self._said.items():
            publisher = self._publishers[number]
            if publisher.broker not in self._first or f"publish {number}" not in publisher.answered:
                continue
            for party in self.overlay.parties.values():
                wants = party.wants.get(party.name)
                if wants is not None and wants.matches(event.stamped(1), {}):
                    told = [deliver.event.attributes["n"] for deliver in party.told]
                    if number not in told:
                        raise Violation(f"{party.name} was never told of {number}")

    def _quiet(self) -> None:
        """Are the tables what follows from the subscriptions alone?"""
        overlay = self.overlay
        for name in overlay.names():
            station = overlay.station(name)
            station.broker._check()
            held = {id for id, _, _ in station.broker.edge}
            wants = {id for party in overlay._at(name) for id in party.wants}
            if held != wants:
                raise Violation(f"{name} holds {held ^ wants} and should not, or not and should")
            if any(station.broker._outbox.values()):
                raise Violation(f"{name} still has events to send")
        for here, there in overlay.links():
            role = overlay.role(here, there)
            if role in (Role.PEER, Role.MASTER):
                told = overlay.station(here).broker.subscriptions.table.told(there)
                knows = overlay.station(there).broker.subscriptions.table
                known = {key for key in knows.keys(here) if key != ""}
                if set(told) != known:
                    raise Violation(f"{there} does not know what {here} wants: {told} {known}")

    def _probe(self) -> None:
        """Does an event reach exactly those whom it concerns?"""
        overlay = self.overlay
        for broker in overlay.names():
            for _ in range(3):
                before = {name: len(party.told) for name, party in overlay.parties.items()}
                publisher = overlay.party(f"{broker}-p0", broker)
                before.setdefault(publisher.name, 0)
                event = self._publish(publisher)
                overlay.run()
                for name, party in overlay.parties.items():
                    told = [set(one.subscriptions) for one in party.told[before.get(name, 0) :]]
                    concerned = {
                        id
                        for id, standing in party.wants.items()
                        if standing.matches(event.stamped(1), {})
                    }
                    if told != ([concerned] if concerned else []):
                        raise Violation(
                            f"{event} at {broker}: {name} was told {told}, wanted {concerned}"
                        )

    def _leave(self) -> None:
        """When all have gone, is nothing left of them?"""
        overlay = self.overlay
        for party in overlay.parties.values():
            for id in list(party.wants):
                del party.wants[id]
                overlay.ask(party, Cancel(f"cancel {id}", id))
        overlay.run()
        self._quiet()
        for name in overlay.names():
            broker = overlay.station(name).broker
            for id, one in broker.subscriptions.table:
                # Only masters still want everything, and brokers say so for them.
                if one != EVERYTHING:
                    owners = ", ".join(broker.subscriptions.table.owners(id))
                    raise Violation(f"{name} still knows that {owners} wants {one}")


def condition(draw: random.Random) -> str:
    """A condition on small numbers: they meet, overlap and cover one another often."""
    low = draw.randrange(7)
    shapes = ("x > {low}", "x BETWEEN {low} AND {high}", "x = {low}", "x = {low} OR y = 1")
    rest = draw.choice(("", " AND y = 1", " AND y < 2", ""))
    return f"({draw.choice(shapes).format(low=low, high=low + draw.randrange(4))}){rest}"


def _meshed(
    overlay: Overlay, here: str, there: str, without: tuple[str, str] | None = None
) -> bool:
    """Are two members of one mesh, also without some link between them?"""
    queue, seen = [here], {here}
    for near in queue:  # which grows
        for far in overlay.around(near):
            ended = without is not None and {near, far} == set(without)
            if far not in seen and not ended and overlay.role(near, far) is Role.MESH:
                seen.add(far)
                queue.append(far)
    return there in seen


def build(overlay: Overlay, plan: Plan, draw: random.Random) -> None:
    """Brokers and links of a topology."""
    count = 1 if plan.topology == "centralised" else draw.randrange(2, plan.brokers + 1)
    names = [f"b{at}" for at in range(count)]
    for name in names:
        overlay.broker(name, skew=draw.choice((0, 0, SECOND, 3600 * SECOND)))
    if plan.topology == "hierarchical":
        _tree(overlay, names, Role.MASTER, draw)
    elif plan.topology == "acyclic":
        _tree(overlay, names, Role.PEER, draw)
    elif plan.topology == "general":
        _mesh(overlay, names, draw)
    elif plan.topology == "figure 8":
        # Hierarchies whose roots form a mesh.
        roots = max(1, count // 2)
        _mesh(overlay, names[:roots], draw)
        for at in range(roots, count):
            overlay.link(names[at], draw.choice(names[:at]), Role.MASTER)
    elif plan.topology == "figure 9":
        # Meshes whose gateways form a tree.
        near, far = names[: count // 2], names[count // 2 :]
        for cluster in (near, far):
            _mesh(overlay, cluster, draw)
        overlay.link(draw.choice(near), draw.choice(far), Role.PEER)


def _tree(overlay: Overlay, names: list[str], role: Role, draw: random.Random) -> None:
    for at, name in enumerate(names[1:], 1):
        overlay.link(name, draw.choice(names[:at]), role)


def _mesh(overlay: Overlay, names: list[str], draw: random.Random) -> None:
    _tree(overlay, names, Role.MESH, draw)
    linked = set(overlay.links())
    for at, here in enumerate(names):
        for there in names[at + 1 :]:
            if (here, there) not in linked and draw.random() < 0.4:
                overlay.link(here, there, Role.MESH)
