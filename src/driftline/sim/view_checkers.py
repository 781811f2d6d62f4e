"""Is what parties are told of views right at every moment, and is nothing missed?

What is told says by which change of the home's tables it is so. The definition of the view over
the rows that a witness saw there then must give what the party knows from what it was told, and
between two deliveries nothing may have been that should have been told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from driftline.broker.broker import COUNTED_BITS
from driftline.broker.effects import MISSING, Deliver
from driftline.broker.tables import SNAPSHOT
from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.rows import LiveRows
from driftline.model.standing import Standing
from driftline.model.view import ViewKind
from driftline.sim.checkers import Violation
from driftline.sim.follower_story import FollowerStory
from driftline.sim.history import Contents, History, Moment
from driftline.sim.knowledge import Told, Unchained, equal
from driftline.sim.party import Party
from driftline.sim.version import Version
from driftline.stateful.distinct import reference as distinct
from driftline.stateful.gates import gate_of
from driftline.stateful.home import LIFE, SEQUENCE
from driftline.stateful.join import reference as join
from driftline.stateful.news import Values
from driftline.stateful.plan import RangePlan, plan_of
from driftline.stateful.range_min.structure import EXACT_MAX
from driftline.stateful.range_sum import reference as aggregates


@dataclass(slots=True)
class _Followed:
    """One view of one party, as far as it was told."""

    version: Version
    told: Told
    life: int
    """The life of the party's broker."""
    moment: Moment | None = None
    open: bool = False
    """Is it to be judged only when all messages of a change have come?"""


@dataclass(slots=True)
class ViewStory:
    """All views there have been, and what is known of them."""

    history: History
    followers: FollowerStory
    versions: dict[str, dict[int, Version]] = field(default_factory=dict)
    """By ids and epochs."""
    witnesses: dict[str, str] = field(default_factory=dict)
    """The ids of the witnesses' views, and their tables."""
    _followed: dict[str, _Followed] = field(default_factory=dict)
    _lost: dict[str, int] = field(default_factory=dict)
    """Those of which something that was kept was forgotten, and that were not told all anew, with
    how often they had begun by then."""
    _read: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, keys: Mapping[str, str]) -> ViewStory:
        """Over tables with these keys."""
        history = History(tuple(keys))
        return cls(history, FollowerStory(history, keys))

    def becomes(self, id: str, standing: Standing, *, anew: bool) -> Standing:
        """A party is about to ask for this; with an epoch of its own."""
        versions = self.versions.setdefault(id, {})
        epoch = len(versions)
        last = versions[epoch - 1] if versions else Version(standing, 0)
        standing = Standing(standing.statement, standing.params, standing.start_us, epoch)
        versions[epoch] = Version(standing, last.begun + anew, self.history.latest)
        return standing

    def _newest(self, id: str) -> Version:
        return next(reversed(self.versions[id].values()))

    def read(self, party: Party) -> None:
        """Judge what a party was told since it was last looked at."""
        new = party.told[self._read.get(party.name, 0) :]
        self._read[party.name] = len(party.told)
        for deliver in new:
            for id in deliver.gaps:
                if id not in self.versions:
                    continue
                # What is a row after all is told anew, or is not missing.
                of_rows = self._newest(id).view.source in self.followers.keys
                if deliver.event != MISSING or not of_rows:
                    self._lost[id] = self._newest(id).begun
                    self.followers.forget(id)
            for id, epoch in zip(deliver.subscriptions, deliver.epochs, strict=True):
                if id in deliver.news:
                    version = self.versions[id][epoch]
                    try:
                        self._one(party, id, version, deliver)
                    except Unchained as why:
                        raise Violation(f"{party.name} was told of {id}: {why}") from None

    def _one(self, party: Party, id: str, version: Version, deliver: Deliver) -> None:
        life, news = deliver.number >> COUNTED_BITS, deliver.news[id]
        if life < party.anew and id not in self.witnesses:
            return  # Its broker has forgotten that, and the party has asked anew.
        gap = news[0].kind is NotificationKind.GAP
        if version.view.of is ViewKind.MOVED:
            anew = gap or news[0].kind is NotificationKind.SNAPSHOT
            if version.begun <= self._lost.get(id, 0) and anew:
                del self._lost[id]
                self.followers.renew(id)
            if version.begun > self._lost.get(id, 0):
                self.followers.hear(party, id, self.versions[id], version.standing.epoch, deliver)
            return
        if version.begun <= self._lost.get(id, 0):
            if not gap and news[0].kind is not NotificationKind.SNAPSHOT:
                return
            del self._lost[id]
            self._followed.pop(id, None)
        one = self._followed.get(id)
        if one is None or one.version.begun != version.begun or one.life < party.anew <= life:
            one = self._followed[id] = _Followed(version, Told(version.view), life)
        elif one.life != life:
            if not gap:
                raise Violation(f"{party.name} was told of {id} in a new life: {news}")
            one.life = life
        moment = _moment(deliver.event)
        before, known = one.moment, _values(one.told)
        same = one.version is version
        if one.open and not gap and before != moment:
            self._judge(party, id, one)
        one.told.take(news)
        one.version, one.moment = version, moment
        if id in self.witnesses:
            self.history.add(self.witnesses[id], moment, one.told)
        by_message = not deliver.event.type.startswith(SNAPSHOT)
        if by_message and same and before is not None:
            self._missed(party, id, one, known, before)
        one.open = version.view.of is ViewKind.PAIRS
        if not one.open:
            self._judge(party, id, one, exactly=by_message)

    def _judge(self, party: Party, id: str, one: _Followed, *, exactly: bool = False) -> None:
        """Is what a party knows what the definition gives?"""
        assert one.moment is not None
        contents = self.history.at(one.moment)
        known = _values(one.told)
        if contents is not None and _tells(one.version, known, contents, exactly=exactly):
            right = definition(one.version, contents)
            raise Violation(
                f"{party.name} knows of {id} ({one.version.standing}) at {one.moment}: {known}, "
                f"and it is {right} in {contents}"
            )

    def _missed(
        self, party: Party, id: str, one: _Followed, known: list[Values], after: Moment
    ) -> None:
        """Was there something between two deliveries that should have been told?"""
        assert one.moment is not None
        if after[0] != one.moment[0]:
            raise Violation(f"{party.name} was told of {id} in another life of its home: {one}")
        before = self.history.at(after)
        for moment in self.history.between(after, one.moment):
            contents = self.history.at(moment)
            if contents is None or before is None:
                return
            if _asks_again(one.version, before) or _asks_again(one.version, contents):
                return
            before = contents
            if _tells(one.version, known, contents):
                raise Violation(
                    f"{party.name} was not told of {id} ({one.version.standing}) at {moment}, and "
                    f"knew {known}: it was {definition(one.version, contents)}"
                )

    def rest(self, party: Party, id: str, contents: Contents, now: Moment) -> None:
        """When nothing is on its way, does a party know what is so now?"""
        newest = self._newest(id)
        if newest.view.of is ViewKind.MOVED:
            self._rest_following(party, id, newest, now)
            return
        one = self._followed.get(id)
        if one is not None and (one.life < party.anew or one.version.begun != newest.begun):
            one = None
        if newest.begun <= self._lost.get(id, 0):
            raise Violation(f"{party.name} missed something of {id}, and was not told all anew")
        known = [] if one is None else _values(one.told)
        began = newest.view.of is not ViewKind.AGGREGATES or (one is not None and one.told.began)
        if not began or _tells(newest, known, contents):
            raise Violation(
                f"{party.name} knows of {id} ({newest.standing}) in the end: {known}, "
                f"and it is {definition(newest, contents)}"
            )

    def _rest_following(self, party: Party, id: str, newest: Version, now: Moment) -> None:
        if newest.begun <= self._lost.get(id, 0):
            if newest.view.source not in self.followers.keys:
                return  # It began anew, and nobody can see when.
            # It was told nothing since, so there must be nothing to tell.
            self.followers.renew(id)
        self.followers.rest(party, id, self.versions[id], now)


def _moment(event: Event) -> Moment:
    said = event.attributes
    return int(said[LIFE]), int(said[SEQUENCE])  # type: ignore[arg-type]  # as homes write them


def _values(told: Told) -> list[Values]:
    return [values for _, values in told.known.values()]


def _tells(
    version: Version, known: list[Values], contents: Contents, *, exactly: bool = False
) -> bool:
    """Should somebody who knows this be told something? Exactly: also what a gate holds back."""
    right = definition(version, contents)
    if version.view.having is not None and not exactly:
        (before,), (now,) = known, right
        return gate_of(version.standing).tells(before, now)
    left = list(right)
    for values in known:
        found = next((one for one in left if equal(values, one)), None)
        if found is None:
            return True
        left.remove(found)
    return bool(left)


def definition(version: Version, contents: Contents) -> list[Values]:
    """What a view is over these rows: slow and obvious."""
    view, params = version.view, version.standing.params
    rows = contents[view.source]
    if view.of is ViewKind.AGGREGATES:
        return [aggregates.answer(view, params, (row for _, row in rows), {})]
    if view.of is ViewKind.DISTINCT:
        return distinct.answer(view, params, (row for _, row in rows))
    if view.join is not None:
        pairs = join.answer(view, params, rows, contents[view.join.table])
        return [values for _, values in pairs]
    live = LiveRows(view.condition())
    for key, row in rows:
        live.take((key,), version.standing.scope(row, {}))
    return [values for _, values in live.told()]


def _asks_again(version: Version, contents: Contents) -> bool:
    """May its home have said that it is to be asked, so that changes in between are not told?"""
    if not isinstance(plan_of(version.view, version.standing.params), RangePlan):
        return False
    rows = (row for _, row in contents[version.view.source])
    return any(_odd(row.attributes.get(name)) for row in rows for name in ("x", "y"))


def _odd(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, int) and abs(value) > EXACT_MAX)
