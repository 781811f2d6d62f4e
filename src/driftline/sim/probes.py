"""In peace: does an event reach exactly those whom it concerns, and a pattern go on from where it
was? Is it known whether anybody is interested?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from driftline.broker.effects import Deliver
from driftline.broker.environment import OWN
from driftline.broker.requests import Interested
from driftline.model.advertisement import Advertisement
from driftline.model.covering import intersects
from driftline.model.event import Event
from driftline.model.pattern import Pattern, SequenceMatcher
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.view import View
from driftline.sim import checkers
from driftline.sim.checkers import Violation
from driftline.sim.overlay import Overlay
from driftline.sim.party import Party
from driftline.sim.story import Story


class Probes:
    """Events published one after the other; `publish` publishes something for a party."""

    def __init__(
        self, overlay: Overlay, story: Story, publish: Callable[[Party], Event], *, advertised: bool
    ) -> None:
        self._overlay = overlay
        self._story = story
        self._publish = publish
        self._advertised = advertised
        self._references = {id: _reference(overlay, party, id) for party, id in _patterns(overlay)}

    def publish(self, publisher: Party) -> None:
        """A party publishes something, and everybody is told who should be."""
        overlay = self._overlay
        before = {name: len(party.told) for name, party in overlay.parties.items()}
        event = self._publish(publisher)
        overlay.run()
        allowed = True
        if self._advertised:
            allowed = any(one.covers(event) for one in publisher.offers.values())
            reply = publisher.answered[f"publish {checkers.number_of(event)}"]
            if (reply.refused is None) is not allowed:
                raise Violation(f"{publisher.name} may publish {event}: {allowed}, {reply}")
        stamped, env = checkers.entered(overlay, self._story, checkers.number_of(event))
        for name, party in overlay.parties.items():
            expected = self._concerned(party, stamped, env) if allowed else set()
            new = party.told[before[name] :]
            told = [set(one.subscriptions) for one in new]
            if told != ([expected] if expected else []):
                raise Violation(
                    f"{stamped} of {publisher.name} in {env}: {name} was told {told}, "
                    f"wanted {expected}"
                )
            # A notice does not say the environment: who is told by it does not look at that.
            given = (env, {}) if overlay.as_records else (env,)
            if any(one.event != stamped or _given(one) not in given for one in new):
                raise Violation(f"{stamped} in {env} came to {name} as {new}")

    def ask(self, publisher: Party, says: Advertisement, *, surely: bool) -> None:
        """A party asks whether anybody is interested; unless `surely`, yes is said too often."""
        self._overlay.ask(publisher, Interested("interested", says))
        self._overlay.run()
        reply = publisher.answered["interested"]
        expected = any(
            intersects(says, standing.statement, standing.params)
            for party in self._overlay.parties.values()
            for standing in party.wants.values()
        )
        if reply.silent or ((expected or surely) and reply.interested is not expected):
            raise Violation(f"is anybody interested in {says}? {expected}; came {reply}")

    def _concerned(self, party: Party, event: Event, env: Mapping[str, Value]) -> set[str]:
        """The subscriptions of a party that an event satisfies or completes."""
        found = set()
        for id, standing in party.wants.items():
            if isinstance(standing.statement, View):
                continue
            if isinstance(standing.statement, Subscription):
                if standing.matches(event, env):
                    found.add(id)
            elif self._references[id].take(standing.scope(event, env)) is not None:
                found.add(id)
        return found


def _patterns(overlay: Overlay) -> list[tuple[Party, str]]:
    return [
        (party, id)
        for party in overlay.parties.values()
        for id, standing in party.wants.items()
        if isinstance(standing.statement, Pattern)
    ]


def _reference(overlay: Overlay, party: Party, id: str) -> SequenceMatcher:
    """The reference, as far as the party's broker has come."""
    sequence = overlay.station(party.broker).broker.edge.sequence(id)
    assert sequence is not None
    reference = SequenceMatcher(sequence.pattern)
    reference.found = list(sequence.found)
    return reference


def _given(deliver: Deliver) -> dict[str, Value]:
    """The environment that an event was stamped with where it entered."""
    return {name: value for name, value in deliver.stamps.items() if not name.startswith(OWN)}
