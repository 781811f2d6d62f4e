"""Who has said what, when, and since when has it been in effect?

A subscription has versions: each is what it was from one request of its party on. A version is in
effect at its broker when the reply to that request comes, at the latest, and everywhere when a
`Confirm` that was asked after it is answered and nobody was silent. Until then an older one may
count, here or there. Times are the simulator's own; at the same time may be earlier or later, so
before is always truly before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.value import Value
from driftline.sim.party import Party

_NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Version:
    """What a subscription was from a request on, by the request's number; None: cancelled."""

    standing: Standing | None
    number: int
    asked: int


@dataclass(slots=True)
class Story:
    """What has been said so far, by whom."""

    published: dict[int, tuple[Party, Event, int]] = field(default_factory=dict)
    """By the number that the event carries; and when that was asked."""
    versions: dict[str, list[Version]] = field(default_factory=dict)
    """All that has gone by the id of a subscription."""
    owner: dict[str, Party] = field(default_factory=dict)
    """Whose subscription it is."""
    confirms: dict[str, list[int]] = field(default_factory=dict)
    """For each party the numbers of its requests to confirm."""
    sure: set[str] = field(default_factory=set)
    """Parties that could publish anything from before the first fault."""
    rows: set[str] = field(default_factory=set)
    """Parties that could publish rows of tables from before the first fault."""
    watched: dict[str, str] = field(default_factory=dict)
    """Patterns over what one party publishes, and another at its broker that sees all of it."""
    first: set[str] = field(default_factory=set)
    """The brokers that were there at the beginning."""
    rewired: bool = False
    """Has a way in a mesh changed, or a link been ended with what was on its way?"""

    rests: list[int] = field(default_factory=list)
    """The moments at which nothing was on its way, nobody suspended and nothing broken."""
    calm: int = _NEVER
    """When the last fault was over, and all that was said in effect everywhere."""
    said: dict[str, list[tuple[int, dict[str, Value]]]] = field(default_factory=dict)
    """What the environment is at each broker, from when on; sure after the last fault only."""

    def env(self, broker: str, time: int) -> dict[str, Value]:
        """The environment at a broker, after the last fault."""
        said = self.said.get(broker, ())
        return next((values for since, values in reversed(said) if since <= time), {})

    def becomes(self, party: Party, id: str, version: Version) -> None:
        """A party has asked that a subscription be this from now on."""
        self.owner[id] = party
        self.versions.setdefault(id, []).append(version)

    def wanted(self, id: str, asked: int) -> Standing | None:
        """What a subscription was to its party after so many requests."""
        before = [one for one in self.versions.get(id, ()) if one.number <= asked]
        return before[-1].standing if before else None

    def answered(self, id: str, version: Version) -> int:
        """When a version was known to be in effect at its broker."""
        return self.owner[id].done.get(version.number, _NEVER)

    def everywhere(self, id: str, version: Version) -> int:
        """When a version was known to be in effect everywhere."""
        party = self.owner[id]
        numbers = self.confirms.get(party.name, ())
        done = (party.done.get(one, _NEVER) for one in numbers if one > version.number)
        return min(done, default=_NEVER)

    def at_the_edge(self, id: str, time: int) -> list[Version]:
        """The versions that may count at the broker, then or later."""
        versions = self.versions.get(id, [])
        known = [at for at, one in enumerate(versions) if self.answered(id, one) < time]
        return versions[known[-1] :] if known else versions

    def anywhere(self, id: str, time: int) -> list[Version]:
        """The versions that may count for an event published then; none if nothing is sure."""
        # Where nothing is on its way any more, it has come through.
        end = next((rest for rest in self.rests if rest > time), _NEVER)
        versions = [one for one in self.versions.get(id, ()) if one.asked < end]
        known = [at for at, one in enumerate(versions) if self.everywhere(id, one) < time]
        return versions[known[-1] :] if known else []
