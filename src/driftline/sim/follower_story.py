"""Which followers of values have there been, and what was each told?

A table may be none for a while, when its home has lost its journal and not been declared again:
then a follower is told of events, and of a gap when there is a table again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from driftline.broker.broker import COUNTED_BITS
from driftline.broker.effects import Deliver
from driftline.broker.tables import SNAPSHOT
from driftline.model.event import RESERVED, Event
from driftline.model.notification import NotificationKind
from driftline.sim.checkers import Violation, number_of
from driftline.sim.event_log import EventLog
from driftline.sim.follower_checkers import EventFollower, Follower, Heard
from driftline.sim.followers import Judge
from driftline.sim.history import NEVER, History, Moment
from driftline.sim.party import Party
from driftline.sim.version import Version
from driftline.stateful.home import LIFE, SEQUENCE


@dataclass(slots=True)
class _Followed:
    follower: Follower
    begun: int
    life: int = 0
    """The life of the party's broker, when it was last told something."""
    owed: bool = False
    """Must a gap be told next, as it knew rows and was then told of events?"""
    unplaced: list[tuple[int, Heard]] = field(default_factory=list)
    """What was told of events that the witness was not told of yet, by their numbers."""


class FollowerStory:
    """All followers, by their ids. `keys` are the keys of tables."""

    def __init__(self, history: History, keys: Mapping[str, str]) -> None:
        self._history = history
        self.keys = keys
        self.logs: dict[str, EventLog] = {}
        """What came to brokers of types that are no tables."""
        self.homeless = False
        """May a table have been none for a while?"""
        self._followed: dict[str, _Followed] = {}

    def hear(
        self, party: Party, id: str, versions: Mapping[int, Version], epoch: int, deliver: Deliver
    ) -> None:
        """A party was told of a follower, under an epoch."""
        life, news, begun = deliver.number >> COUNTED_BITS, deliver.news[id], versions[epoch].begun
        one = self._followed.get(id)
        if one is None or one.begun != begun or 0 < one.life < party.anew <= life:
            one = self._begin(party, id, _first(versions, begun))
        self._sync(one, versions)
        is_event = not deliver.event.type.startswith(RESERVED)
        gap = news[0].kind is NotificationKind.GAP
        if isinstance(one.follower, EventFollower):
            one.life = life
            if life != party.anew:
                heard = Heard(NEVER, epoch, news, exactly=True)
                one.unplaced.append((number_of(deliver.event), heard))
                self._place(one, self.logs[party.broker])
            return
        if 0 < one.life != life and not gap and not is_event:
            raise Violation(f"{party.name} was told of {id} in a new life: {news}")
        one.life = life
        if is_event:
            self._told_of_events(one, deliver)
            return
        if one.owed and not gap:
            raise Violation(f"{party.name} was told of {id} without a gap: {news}")
        one.owed = False
        exactly = not deliver.event.type.startswith(SNAPSHOT)
        one.follower.hear(Heard(_moment(deliver.event), epoch, news, exactly))

    def _begin(self, party: Party, id: str, version: Version) -> _Followed:
        name = f"{party.name} ({id}: {version.view}, {dict(version.standing.params)})"
        table = version.view.source
        follower = (
            Follower(name, table, self._history, version.asked)
            if table in self.keys
            else EventFollower(name, table, self.logs[party.broker], NEVER)
        )
        one = self._followed[id] = _Followed(follower, version.begun)
        return one

    def _sync(self, one: _Followed, versions: Mapping[int, Version]) -> None:
        """Let a follower know how it has stood."""
        for epoch, version in versions.items():
            if version.begun == one.begun and not one.follower.knows(epoch):
                judge = Judge(version.standing, self.keys.get(version.view.source, ""))
                one.follower.becomes(epoch, judge, version.asked)

    def _place(self, one: _Followed, log: EventLog) -> None:
        while one.unplaced:
            number, heard = one.unplaced[0]
            moment = log.moment(number)
            if moment is None:
                return
            one.unplaced.pop(0)
            one.follower.hear(replace(heard, moment=moment))

    def _told_of_events(self, one: _Followed, deliver: Deliver) -> None:
        if not self.homeless:
            raise Violation(f"{one.follower.name} was told of {deliver.event}, and it is a row")
        one.follower.judge(everything=True)
        one.owed |= one.follower.began
        one.follower.begin(0)

    def forget(self, id: str) -> None:
        """Something that was kept for a follower was forgotten."""
        if id in self._followed:
            self._followed[id].follower.lose()
            self._followed[id].unplaced.clear()

    def renew(self, id: str) -> None:
        """A follower of which something was forgotten begins anew."""
        self._followed.pop(id, None)

    def rest(self, party: Party, id: str, versions: Mapping[int, Version], now: Moment) -> None:
        """When nothing is on its way: does a follower know what is so now?"""
        epoch = max(versions)
        newest = versions[epoch]
        one = self._followed.get(id)
        if one is None or one.begun != newest.begun or 0 < one.life < party.anew:
            one = self._begin(party, id, _first(versions, newest.begun))
        self._sync(one, versions)
        if one.unplaced:
            # Its broker has lost what it had for the witness.
            self.forget(id)
        if isinstance(one.follower, EventFollower):
            now = self.logs[party.broker].latest
            if now[0] <= party.anew:
                # Events may have come again that its witness had before the journal was lost.
                return
        if one.owed:
            raise Violation(f"{one.follower.name} was told of no gap when there was a table again")
        one.follower.rest(now, epoch)


def _first(versions: Mapping[int, Version], begun: int) -> Version:
    return next(one for one in versions.values() if one.begun == begun)


def _moment(event: Event) -> Moment:
    said = event.attributes
    return int(said[LIFE]), int(said[SEQUENCE])  # type: ignore[arg-type]  # as homes write them
