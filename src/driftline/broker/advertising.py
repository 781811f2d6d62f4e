"""What have local parties said they will publish, and may they publish this? [SIENA §3.4]"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from driftline.broker.effects import Effect, Key
from driftline.broker.identity import owner_of
from driftline.broker.links import LOCAL, Links
from driftline.broker.requests import Advertise, Unadvertise
from driftline.broker.settings import Settings
from driftline.broker.weight import weight_of_advertisement
from driftline.errors import NotAdvertised
from driftline.model.advertisement import Advertisement, advertisement_covers
from driftline.model.event import Event
from driftline.model.message import Offer
from driftline.wire.codec import encode_control


class Advertising:
    """The advertisements of one broker's parties. `put` journals."""

    __slots__ = ("_advertised", "_alone", "_links", "_put", "_weights")

    def __init__(
        self, settings: Settings, links: Links, put: Callable[[Key, object], None]
    ) -> None:
        self._alone = settings.alone
        self._links = links
        self._put = put
        self._advertised: dict[str, dict[str, Advertisement]] = {}
        self._weights: Counter[str] = Counter()

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept."""
        for key, value in stored.items():
            if key[0] == "advertised":
                assert isinstance(value, Advertisement)
                self._advertises(key[1], key[2], value)

    def advertise(self, asked: Advertise, party: str) -> list[Effect]:
        """A party says what it will publish."""
        if not self._alone:
            encode_control(Offer({"": asked.says}))
        self._put(("advertised", party, asked.id), asked.says)
        self._advertises(party, asked.id, asked.says)
        return self._links.tell()

    def _advertises(self, party: str, id: str, says: Advertisement | None) -> None:
        mine = self._advertised.setdefault(party, {})
        more = weight_of_advertisement(says) - weight_of_advertisement(mine.get(id))
        if more:
            self._weights[owner_of(party)] += more
            if not self._weights[owner_of(party)]:
                del self._weights[owner_of(party)]
        if says is None:
            del mine[id]
        else:
            mine[id] = says
        if not mine:
            del self._advertised[party]
        self._links.offer(LOCAL, (party, id), says)

    def unadvertise(self, asked: Unadvertise, party: str) -> list[Effect]:
        """A party takes back what it said."""
        for id, says in self.of(party).items():
            if advertisement_covers(asked.says, says):
                self._put(("advertised", party, id), None)
                self._advertises(party, id, None)
        return self._links.tell()

    def leave(self, party: str) -> list[Effect]:
        """A party takes back all that it said."""
        for id in self.of(party):
            self._put(("advertised", party, id), None)
            self._advertises(party, id, None)
        return self._links.tell()

    def of(self, party: str) -> dict[str, Advertisement]:
        """What a local party has advertised, by its ids."""
        return dict(self._advertised.get(party, {}))

    def weight(self, party: str) -> int:
        """Of all that is advertised by whose this party is."""
        return self._weights[owner_of(party)]

    def check(self, event: Event, party: str) -> None:
        """Raise if a party must not publish what it has not advertised, and has not."""
        if not self._links.advertised:
            return
        problems = [one.uncovered(event) for one in self._advertised.get(party, {}).values()]
        if None not in problems:
            why = "; ".join(problem for problem in problems if problem) or "nothing is advertised"
            raise NotAdvertised(party, event.type, why)

    def _check(self) -> None:
        weights: Counter[str] = Counter()
        for party, mine in self._advertised.items():
            weights[owner_of(party)] += sum(map(weight_of_advertisement, mine.values()))
        assert self._weights == +weights
