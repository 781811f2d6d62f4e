"""What is done by those who follow values in a run: they come, in crowds, and go.

Many follow one row under one radius, so that their places become others while they come and go; and
there is a type that is no table, of whose events somebody sees all at each broker.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from driftline.broker.requests import Advertise, Cancel, Publish, Subscribe
from driftline.model.advertisement import Advertisement
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.value import Value
from driftline.model.view import View
from driftline.sim.event_log import EventLog
from driftline.sim.faults import MILLISECOND
from driftline.sim.overlay import Overlay
from driftline.sim.party import Party
from driftline.sim.story import Story
from driftline.sim.texts import KEYS, NO_TABLE, bounds, crowded, crowded_row, event, followed
from driftline.sim.view_checkers import ViewStory

WITNESS = "witness"
"""What the names of those begin with who must be told of everything at once."""
_CROWD = 12
_AT_ONCE = 6
_PAUSE = 100 * MILLISECOND


@dataclass(frozen=True, slots=True)
class Doors:
    """What a scenario does for those who keep and follow tables."""

    party: Callable[[str, str], Party]
    subscribe: Callable[[Party, str, str], None]
    """A plain subscription by an id, from a text."""


class Following:
    """The followers of one run."""

    def __init__(
        self, overlay: Overlay, story: Story, views: ViewStory, draw: random.Random, doors: Doors
    ) -> None:
        self._overlay = overlay
        self._story = story
        self._views = views
        self._draw = draw
        self._doors = doors
        self._heard: dict[str, int] = {}
        self._between = (1.0, 5.0)
        self.relabelled = 0
        """How often a broker has heard that places are others."""

    def begin(self, home: str) -> None:
        """Before the first fault, some follow, most of them beside the tables."""
        overlay = self._overlay
        self._home = home
        self._crowd = overlay.party(f"{home}-crowd", home)
        self._story.rows.add(self._crowd.name)
        for name in sorted(self._story.rows):
            publisher = overlay.parties[name]
            for type in (*KEYS, NO_TABLE):
                says = publisher.offers[type] = Advertisement(type, anything=True)
                overlay.ask(publisher, Advertise(f"advertise {type}", type, says))
        for broker in overlay.names():
            witness = overlay.party(f"{WITNESS} {broker}", broker)
            self._doors.subscribe(witness, witness.name, f"SELECT * FROM {NO_TABLE}")
            self._views.followers.logs[broker] = EventLog(witness)
        for _ in range(_AT_ONCE):
            self._follow(crowded(self._draw))

    def step(self) -> None:
        """Some come, or go, and values move."""
        draw = self._draw
        if draw.random() < 0.3:
            self._come_between()
        if draw.random() < 0.4:
            self._publish(NO_TABLE, event(draw), self._anybody())
        chance = draw.random()
        if chance < 0.25:
            self._follow(crowded(draw))
        elif chance < 0.6:
            self._follow(followed(draw))
        elif chance < 0.7:
            self._cancel()
        elif chance < 0.85:
            self._move()

    def _come_between(self) -> None:
        """Some come beside the table, each at a value between those of the two before it.

        So there is soon no label left between two.
        """
        draw = self._draw
        if draw.random() < 0.3:
            self._between = 1.0, 5.0
        for _ in range(1 + draw.randrange(_AT_ONCE)):
            low, high = self._between
            y = (low + high) / 2
            self._between = (low, y) if draw.random() < 0.5 else (y, high)
            self._publish("t", crowded_row(y, draw), self._crowd)
            id = f"{self._crowd.name}-{draw.randrange(_CROWD)}"
            if id in self._crowd.wants:
                self._end(self._crowd, id)
            self.subscribe(self._crowd, id, Standing.of(crowded(draw)), anew=True)

    def _anybody(self) -> Party:
        return self._overlay.parties[self._draw.choice(sorted(self._story.rows))]

    def _publish(self, type: str, values: Mapping[str, Value], publisher: Party) -> None:
        number = len(self._story.published)
        made = Event(type, {**values, "n": number}, time=number)
        self._story.published[number] = publisher, made, self._overlay.now
        self._overlay.ask(publisher, Publish(f"publish {number}", made))

    def _follow(self, view: View) -> None:
        """A party follows, perhaps in place of something else that it followed."""
        draw = self._draw
        brokers = [one for one in self._overlay.names() if one in self._views.followers.logs]
        broker = draw.choice((self._home, *brokers))
        party = self._doors.party(f"{broker}-follower", broker)
        id = f"{party.name}-{draw.randrange(12)}"
        before = party.wants.get(id)
        anew = before is None or before.statement != view
        self.subscribe(party, id, Standing.of(view, bounds(view, draw)), anew=anew)

    def subscribe(self, party: Party, id: str, standing: Standing, *, anew: bool) -> None:
        """A party asks to follow, or under other parameters."""
        party.wants[id] = self._views.becomes(id, standing, anew=anew)
        self._overlay.ask(party, Subscribe(f"subscribe {id}", id, party.wants[id]))

    def _move(self) -> None:
        """Somebody moves radii or bounds, perhaps again before that has been answered."""
        draw = self._draw
        moving = [
            (party, id)
            for party in self._parties()
            for id, standing in party.wants.items()
            if standing.params
        ]
        if not moving:
            return
        party, id = draw.choice(moving)
        for _ in range(draw.choice((1, 2, 3))):
            view = party.wants[id].statement
            assert isinstance(view, View)
            self.subscribe(party, id, Standing.of(view, bounds(view, draw)), anew=False)
            self._overlay.run(self._overlay.now + draw.randrange(_PAUSE))
            self._publish("t", crowded_row(6 * draw.random(), draw), self._crowd)

    def _parties(self) -> list[Party]:
        parties = self._overlay.parties.values()
        return [one for one in parties if one.name.endswith("-follower") and one.wants]

    def _cancel(self) -> None:
        some = self._parties()
        if some:
            party = self._draw.choice(some)
            id = self._draw.choice(list(party.wants))
            self._end(party, id)

    def _end(self, party: Party, id: str) -> None:
        del party.wants[id]
        self._overlay.ask(party, Cancel(f"cancel {id}", id))

    def look(self) -> None:
        """Read what witnesses were told, and count."""
        for log in self._views.followers.logs.values():
            log.read()
        self._views.followers.homeless = bool(self._overlay.lost_journals or self._story.rewired)
        for name in self._overlay.names():
            if self._overlay.up(name):
                heard = self._overlay.station(name).broker.links.labels.heard
                self.relabelled += max(0, heard - self._heard.get(name, 0))
                self._heard[name] = heard
