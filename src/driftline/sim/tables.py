"""What is done with tables in a run: kept, filled, emptied, and looked at from everywhere.

A keeper has two tables kept at its broker, from before the first fault; where that loses its
journal, the keeper declares them again. Rows are published, and removed, at any broker.
"""

from __future__ import annotations

import random

from driftline.broker.effects import MISSING
from driftline.broker.requests import (
    Cancel,
    Declare,
    Delete,
    Publish,
    Resume,
    Suspend,
)
from driftline.errors import TableError
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.model.value import Value
from driftline.model.view import View
from driftline.sim.checkers import Violation, number_of
from driftline.sim.following import Doors, Following
from driftline.sim.history import Contents, Moment
from driftline.sim.overlay import Overlay
from driftline.sim.party import Party
from driftline.sim.story import Story
from driftline.sim.texts import KEYS, bounds, other_row, row, rows_of, viewed
from driftline.sim.view_checkers import ViewStory
from driftline.stateful.home import LIFE

_OTHER = TableDeclaration.of("t", "x")
WITNESS = "witness"
_PUBLISHERS = 3


class TableRun:
    """The tables of one run, and whoever has to do with them."""

    def __init__(self, overlay: Overlay, story: Story, draw: random.Random, doors: Doors) -> None:
        self._overlay = overlay
        self._story = story
        self._draw = draw
        self._doors = doors
        self.views = ViewStory.of(KEYS)
        self._deleted: set[tuple[str, Value]] = set()
        self.following = Following(overlay, story, self.views, draw, doors)

    # What happens

    def begin(self) -> None:
        """The tables have a home, and there are some who publish rows, before the first fault."""
        draw, overlay = self._draw, self._overlay
        overlay.run()  # Or nobody can be asked yet.
        broker = draw.choice(overlay.names())
        self.keeper = overlay.party("keeper", broker)
        for name, key in KEYS.items():
            self.keeper.keeps[name] = TableDeclaration.of(name, key)
            self._declare(name)
        overlay.run()
        self._check_claims(self._claim())
        # Beside the tables, so that nothing is on its way to them.
        self.witness = overlay.party(WITNESS, broker)
        for name in KEYS:
            self._doors.subscribe(self.witness, f"rows {name}", f"SELECT * FROM {name}")
            self.views.witnesses[f"witness {name}"] = name
            view = rows_of(f"SELECT * FROM {name}")
            asked = Standing.of(view)
            self.following.subscribe(self.witness, f"witness {name}", asked, anew=True)
        for at in range(_PUBLISHERS):
            there = draw.choice(overlay.names())
            publisher = self._doors.party(f"{there}-rows {at}", there)
            self._story.rows.add(publisher.name)
        for _ in range(3):
            self._view()
        self.following.begin(broker)
        if draw.random() < 0.3:
            # What is said of tables is for views, whoever may ask for anything.
            there = draw.choice(overlay.names())
            curious = self._doors.party(f"{there}-curious", there)
            self._doors.subscribe(curious, curious.name, f"SELECT * WHERE {LIFE} IS NOT NULL")

    def step(self) -> None:
        """Something is done with tables, or nothing."""
        draw = self._draw
        for _ in range(draw.randrange(3)):
            self._publish()
        chance = draw.random()
        if chance < 0.15:
            self._delete()
        elif chance < 0.3:
            self._view()
        elif chance < 0.5:
            self._move()
        elif chance < 0.56:
            self._cancel()
        elif chance < 0.62:
            self._pause()
        elif chance < 0.66 and not self._overlay.journal_lost:
            self._claim()
        self._keep()
        self.following.step()

    def _declare(self, name: str) -> None:
        asked = Declare(f"declare {name}", self.keeper.keeps[name])
        self._overlay.ask(self.keeper, asked)

    def _keep(self) -> None:
        """Declare again what was refused because somebody was silent."""
        for name in KEYS:
            reply = self.keeper.answered.get(f"declare {name}")
            if reply is not None and reply.refused is not None:
                del self.keeper.answered[f"declare {name}"]
                self._declare(name)

    def _claim(self) -> Party:
        """Somebody else claims a table that has a home."""
        there = self._draw.choice(self._overlay.names())
        claimant = self._doors.party(f"{there}-claimant", there)
        same = there != self.keeper.broker
        asked = Declare("claim", self.keeper.keeps["t"] if same else _OTHER)
        self._overlay.ask(claimant, asked)
        self._overlay.run(self._overlay.now + 1)
        return claimant

    @property
    def claiming(self) -> bool:
        """Is a claim being asked about?"""
        claimants = (
            party for name, party in self._overlay.parties.items() if name.endswith("-claimant")
        )
        return any("claim" not in party.answered for party in claimants)

    def _check_claims(self, claimant: Party) -> None:
        self._overlay.run()
        reply = claimant.answered.get("claim")
        if reply is None or not isinstance(reply.refused, TableError):
            raise Violation(f"{claimant.name} claims a table that has a home: {reply}")

    def _publish(self) -> None:
        draw, number = self._draw, len(self._story.published)
        name = draw.choice("tttu")
        values = {**(row(draw) if name == "t" else other_row(draw)), "n": number}
        publisher = self._overlay.parties[draw.choice(sorted(self._story.rows))]
        event = Event(name, values, time=number)
        self._story.published[number] = publisher, event, self._overlay.now
        self._overlay.ask(publisher, Publish(f"publish {number}", event))

    def _delete(self) -> None:
        draw = self._draw
        there = draw.choice(self._overlay.names())
        name, key = draw.choice((("t", draw.randrange(5)), ("u", draw.randrange(3))))
        self._deleted.add((name, key))
        asked = Delete(f"delete {name} {key}", name, key)
        self._overlay.ask(self._doors.party(f"{there}-deletes", there), asked)

    def _view(self) -> None:
        """A party follows a view, perhaps in place of another."""
        draw = self._draw
        there = draw.choice(self._overlay.names())
        party = self._doors.party(f"{there}-viewer", there)
        id = f"{party.name}-{draw.randrange(4)}"
        view = viewed(draw)
        before = party.wants.get(id)
        anew = before is None or before.statement != view
        standing = Standing.of(view, bounds(view, draw))
        self.following.subscribe(party, id, standing, anew=anew)

    def _followed(self) -> list[tuple[Party, str]]:
        """The views of all but the witness."""
        return [
            (party, id)
            for party in self._overlay.parties.values()
            for id, standing in party.wants.items()
            if isinstance(standing.statement, View) and party is not self.witness
        ]

    def _move(self) -> None:
        moving = [one for one in self._followed() if one[0].wants[one[1]].params]
        if moving:
            party, id = self._draw.choice(moving)
            standing = party.wants[id]
            assert isinstance(standing.statement, View)
            params = bounds(standing.statement, self._draw)
            moved = Standing.of(standing.statement, params)
            self.following.subscribe(party, id, moved, anew=False)

    def _cancel(self) -> None:
        followed = self._followed()
        if followed:
            party, id = self._draw.choice(followed)
            del party.wants[id]
            self._overlay.ask(party, Cancel(f"cancel {id}", id))

    def _pause(self) -> None:
        """Somebody who follows views is told nothing for a while, or is again."""
        followed = self._followed()
        if followed:
            party, _ = self._draw.choice(followed)
            self._overlay.ask(party, self._draw.choice((Suspend, Resume))("pause"))

    # What must hold

    def look(self) -> None:
        """Is what was told until now right?"""
        self.views.read(self.witness)
        self.following.look()
        for party in self._overlay.parties.values():
            self.views.read(party)
            reply = party.answered.get("claim")
            if reply is not None and reply.refused is None:
                raise Violation(f"{party.name} was given a table that has a home")

    def mend(self) -> None:
        """After the last fault: what a broker has lost for good is declared again."""
        self._keep()
        self._overlay.run()
        for name in KEYS:
            if name not in self._overlay.station(self.keeper.broker).broker.tables:
                raise Violation(f"{name} has no home: {self.keeper.answered}")

    def rest(self) -> None:
        """When nothing is on its way: does everybody know what is in the tables?"""
        self.look()
        for name in self._overlay.names():
            unjoined = self._overlay.station(name).broker.edge.views.unjoined()
            if unjoined:
                raise Violation(f"views at {name} that have not joined: {unjoined}")
        contents = self._contents()
        for party, id in [*self._followed(), *((self.witness, id) for id in self.views.witnesses)]:
            self.views.rest(party, id, contents, self._now())
        if not self._overlay.lost_journals:
            self._check_rows(contents)

    def _contents(self) -> Contents:
        broker = self._overlay.station(self.keeper.broker).broker
        tables = broker.tables.home.tables
        return {name: tuple(tables[name].items()) for name in KEYS}

    def _now(self) -> Moment:
        home = self._overlay.station(self.keeper.broker).broker.tables.home
        return home.life, home.sequence

    def _check_rows(self, contents: Contents) -> None:
        """Is each row the last that came to its home, unless it may have been removed?"""
        if any(deliver.gap for deliver in self.witness.told):
            return
        last: dict[tuple[str, Value], int] = {}
        for deliver in self.witness.told:
            event = deliver.event
            if not deliver.news and event != MISSING:
                last[event.type, event.attributes[KEYS[event.type]]] = number_of(event)
        now = {
            (name, key): number_of(event) for name, rows in contents.items() for key, event in rows
        }
        for about, number in last.items():
            if now.get(about) != number and (about in now or about not in self._deleted):
                raise Violation(f"the row {about} is {now.get(about)}, and {number} came last")

    def probe(self) -> None:
        """In peace, whatever is done is at once known to everybody whom it concerns."""
        for _ in range(6):
            steps = (self._publish, self._publish, self._delete, self._view, self._move)
            self._draw.choice((*steps, self.following.step, self.following.step))()
            self._overlay.run()
            self.rest()
