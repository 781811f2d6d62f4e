"""What must neighbours bring for the subscriptions of local parties?

The edge has them as they stand. Neighbours are told what the network can say of each: filters with
parameters bound, or within a range while they move too often; the steps of a pattern; of a view,
the messages that change it.

None of it is worked out before there is a neighbour, or is to be one (`route`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from driftline.broker.edge import NO_RANGES, Edge, exactly_routed, routed
from driftline.broker.effects import Effect
from driftline.broker.labels import relabelled
from driftline.broker.links import LOCAL, Links
from driftline.broker.requests import Cancel, Subscribe, Unsubscribe
from driftline.broker.restless import Restless
from driftline.broker.settings import Settings
from driftline.broker.stating import check_executable, check_remote, stated
from driftline.broker.views import interest_of
from driftline.errors import InvalidValue
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.message import Interest, Sequence, Steps
from driftline.model.pattern import Pattern
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.moving.hull import Range
from driftline.routing.table import Key as Part
from driftline.stateful.value_based.address import Relabelling
from driftline.wire.codec import encode_control

Parts: TypeAlias = Mapping[Part, Filter | Steps]
_LIGHT = 1000


class Subscribing:
    """The subscriptions of one edge, as its neighbours are told of them."""

    __slots__ = ("_edge", "_links", "_restless", "_routes", "_settings", "_viewed")

    def __init__(self, settings: Settings, edge: Edge, links: Links) -> None:
        self._settings = settings
        self._routes = False
        self._edge = edge
        self._links = links
        self._restless = Restless(None if settings.alone else settings.often)
        # What neighbours are told of views, which may change by what views are told.
        self._viewed: dict[str, Parts] = {}

    def route(self) -> None:
        """There is to be a neighbour: let count what the edge has."""
        if self._routes or self._settings.alone:
            return
        self._routes = True
        for id, _, standing in self._edge:
            parts = self._routed(id, standing)
            self._let(parts)
            self._note(id, parts)

    def subscribe(self, asked: Subscribe, party: str, now: int) -> list[Effect]:
        """A party asks to be told, or asks for something else by the same id."""
        owner = self._edge.owner(asked.id)
        if owner is not None and owner != party:
            raise InvalidValue(
                "id", "one of your own, or a new one", f"{asked.id} of another party"
            )
        asked = replace(
            asked, standing=replace(asked.standing, statement=stated(asked.standing.statement))
        )
        check_executable(asked.standing.statement, asked.standing.params)
        parts: Parts = {}
        if not self._settings.alone:
            check_remote(asked.standing.statement)
            # Refused here, where somebody can be told, if it cannot travel.
            if self._routes or not _is_light(asked.standing):
                parts = self._parts(asked.id, asked.standing, NO_RANGES)
                filters = (one for part in parts.values() for one in _filters(part))
                encode_control(Interest({str(at): one for at, one in enumerate(filters)}))
        before = None if owner is None else self._edge.standing(asked.id)
        if before is not None and before.same(asked.standing):
            return []
        old: Parts = {}
        if before is not None and self._routes:
            old = self._viewed.get(asked.id) or self._routed(asked.id, before)
        if before is None or before.statement != asked.standing.statement:
            if before is not None:
                self._edge.restate(party, asked.id, asked.standing, asked.handle)
                self._restless.forget(asked.id)
            else:
                self._edge.subscribe(party, asked.id, asked.standing, asked.handle)
        else:
            self._edge.move(asked.id, asked.standing, quietly=asked.quietly)
            self._restless.moved(asked.id, before, asked.standing, now)
            if self._restless.ranges(asked.id):
                parts = self._routed(asked.id, asked.standing)
        if not self._routes:
            return []
        if asked.id in self._edge.views:
            parts = self._routed(asked.id, asked.standing)
        self._let(parts, old)
        self._note(asked.id, parts)
        return self._links.tell()

    def _note(self, id: str, parts: Parts) -> None:
        if id in self._edge.views:
            self._viewed[id] = parts
        else:
            self._viewed.pop(id, None)

    def readdress(self) -> None:
        """Let views ask the network for what they need by now."""
        changed, self._edge.views.changed = self._edge.views.changed, {}
        for id in changed:
            self._edge.readdress(id)
            if self._routes:
                parts = self._routed(id, self._edge.standing(id))
                self._let(parts, self._viewed[id])
                self._note(id, parts)

    def relabelled(self, event: Event, by: Relabelling) -> dict[Filter, Filter]:
        """Followers here have heard that their places are others: what they ask for instead.

        Neighbours who brought it know.
        """
        moved: dict[Filter, Filter] = {}
        for id in list(self._edge.views.changed):
            before = [*self._viewed.get(id, {}).values()]
            after = self._routed(id, self._edge.standing(id))
            if len(before) != 1 or not isinstance(before[0], Filter):
                continue
            shifted = relabelled(before[0], event, by)
            if shifted is not None and [shifted] == [*after.values()]:
                moved[before[0]] = shifted
                del self._edge.views.changed[id]
                self._edge.readdress(id)
                self._let(after, self._viewed[id])
                self._note(id, after)
        return moved

    def unsubscribe(self, asked: Cancel | Unsubscribe, party: str) -> list[Effect]:
        """A party no longer asks for some of what it asked for."""
        if isinstance(asked, Unsubscribe):
            ended = self._edge.covered(party, asked.statement, asked.params)
        else:
            ended = [asked.id] if self._edge.owner(asked.id) == party else []
        return self._end(ended)

    def leave(self, party: str) -> list[Effect]:
        """A party asks for nothing any more."""
        known = self._edge.parties.get(party)
        return self._end([*known.ids] if known else [])

    def _end(self, ended: list[str]) -> list[Effect]:
        for id in ended:
            if self._routes:
                parts = self._viewed.pop(id, None) or self._routed(id, self._edge.standing(id))
                for key in parts:
                    self._links.subscriptions.drop(LOCAL, key)
            self._edge.cancel(id)
            self._restless.forget(id)
        return self._links.tell()

    def _let(self, parts: Parts, before: Iterable[Part] = ()) -> None:
        """Let a local subscription count for what neighbours are told."""
        for key in before:
            if key not in parts:
                self._links.subscriptions.drop(LOCAL, key)
        for key, one in parts.items():
            self._links.subscriptions.let(LOCAL, key, one)

    def _routed(self, id: str, standing: Standing) -> Parts:
        """What the network must bring for a subscription as it is told now, by keys."""
        if id in self._edge.views:
            standing = self._edge.views.interest(id)
        return self._parts(id, standing, self._restless.ranges(id))

    def _parts(self, id: str, standing: Standing, ranges: Mapping[str, Range]) -> Parts:
        standing = interest_of(standing)
        steps = routed(standing, ranges)
        if isinstance(standing.statement, Pattern) and exactly_routed(standing) and _fits(steps):
            return {(id, -1): steps}
        filters = dict.fromkeys(one for step in steps for one in step)
        return {(id, at): one for at, one in enumerate(filters)}

    def wake(self, now: int) -> None:
        """Let variables that are calm by now be told by their values again."""
        for id in self._restless.due(now):
            standing = self._edge.standing(id)
            before = self._routed(id, standing) if self._routes else {}
            self._restless.calm(id, now)
            if self._routes:
                self._let(self._routed(id, standing), before)

    def wake_at(self) -> int:
        """When `wake` has something to do."""
        return self._restless.wake_at()


def _is_light(standing: Standing) -> bool:
    """Is it so little that it can travel, without a closer look?"""
    statement = standing.statement
    if not isinstance(statement, Subscription) or not all(one.small for one in statement.filters()):
        return False
    return all(
        not isinstance(value, str | bytes) or len(value) <= _LIGHT
        for value in standing.params.values()
    )


def _fits(steps: Steps) -> bool:
    """Could somebody else be asked to look after it?"""
    try:
        encode_control(Interest(sequences={"": Sequence(steps)}))
    except InvalidValue:
        return False
    return True


def _filters(part: Filter | Steps) -> Iterable[Filter]:
    return (part,) if isinstance(part, Filter) else (one for step in part for one in step)
