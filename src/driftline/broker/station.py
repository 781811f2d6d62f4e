"""A broker on links that lose, repeat, delay and garble what is sent on them.

Each link has a session (see `session`). When one begins, the broker says everything on it anew; an
acknowledgement goes out behind the store of what is acknowledged, so that nothing a neighbour has
forgotten can be lost here by a crash.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from driftline.broker.broker import Broker, Role, Settings
from driftline.broker.effects import Effect, Key, Send, SendFrame, SendParcels, WakeAt
from driftline.broker.requests import Request
from driftline.broker.session import Frame, Session
from driftline.model.message import Control

Payload = Control | SendParcels

_NEVER = 1 << 62


class _Link:
    """A session, and which of its payloads carry events up to which position."""

    __slots__ = ("parcels", "role", "said", "session")

    def __init__(self, role: Role, number: int) -> None:
        self.role = role
        self.session = Session[Payload](number)
        self.said = 0
        self.parcels: deque[tuple[int, int]] = deque()


class Station:
    """What a driver holds: frames, requests and time in, effects out."""

    def __init__(
        self,
        name: str,
        incarnation: int = 1,
        settings: Settings | None = None,
        stored: Mapping[Key, object] | None = None,
    ) -> None:
        self.broker = Broker(name, incarnation, settings, stored)
        self._links: dict[str, _Link] = {}
        self._number = incarnation << 20

    def begin(self, now: int) -> list[Effect]:
        """The first thing to do; after a crash the links are opened again."""
        effects = self.broker.begin()
        for link, role in self.broker.roles().items():
            effects += self.connect(link, role, now)
        return effects

    def connect(self, link: str, role: Role, now: int) -> list[Effect]:
        """There is a link; call out on it until somebody answers."""
        self._number += 1
        opened = self._links[link] = _Link(role, self._number)
        return self._and_wake([SendFrame(link, one) for one in opened.session.wake(now)])

    def disconnect(self, link: str, now: int) -> list[Effect]:
        """There is no such link any more."""
        self._links.pop(link, None)
        effects = self.broker.disconnect(link) if link in self.broker.roles() else []
        return self._and_wake(self._carried(effects, now))

    def receive(self, link: str, frame: Frame[Payload], now: int) -> list[Effect]:
        """A frame came on a link."""
        on = self._links.get(link)
        if on is None:
            return []
        heard, frames = on.session.receive(frame, now)
        effects: list[Effect] = [SendFrame(link, one) for one in frames]
        if heard.began:
            on.said = 0
            on.parcels.clear()
            effects += self._carried(self.broker.connect(link, on.role), now)
        arrived = 0
        while on.parcels and on.parcels[0][0] <= heard.acknowledged:
            arrived = on.parcels.popleft()[1]
        if arrived:
            effects += self.broker.delivered(link, arrived)
        for payload in heard.payloads:
            if isinstance(payload, SendParcels):
                followed = self.broker.handle_parcels(payload.parcels, link)
            else:
                followed = self.broker.handle(payload, link, now)
            effects += self._carried(followed, now)
        if heard.answer:
            effects.append(SendFrame(link, on.session.acknowledge()))
        return self._and_wake(effects)

    def ask(self, party: str, asked: Request, now: int) -> list[Effect]:
        """A party asks for something."""
        return self._and_wake(self._carried(self.broker.handle(asked, party, now), now))

    def wake(self, now: int) -> list[Effect]:
        """Time has passed."""
        effects: list[Effect] = [
            SendFrame(link, frame)
            for link, on in self._links.items()
            for frame in on.session.wake(now)
        ]
        return self._and_wake(effects)

    def _carried(self, effects: list[Effect], now: int) -> list[Effect]:
        """The effects, with what is sent put into frames."""
        carried: list[Effect] = []
        for effect in effects:
            if not isinstance(effect, Send | SendParcels):
                carried.append(effect)
                continue
            on = self._links.get(effect.peer)
            if on is None or not on.session.up:
                continue  # All of it will be said when a session begins.
            on.said += 1
            payload: Payload = effect if isinstance(effect, SendParcels) else effect.message
            if isinstance(effect, SendParcels):
                on.parcels.append((on.said, effect.position))
            carried += [SendFrame(effect.peer, one) for one in on.session.send(payload, now)]
        return carried

    def _and_wake(self, effects: list[Effect]) -> list[Effect]:
        soonest = min((on.session.wake_at() for on in self._links.values()), default=_NEVER)
        if soonest < _NEVER:
            effects.append(WakeAt(soonest))
        return effects
