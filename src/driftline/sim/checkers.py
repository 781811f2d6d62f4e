"""What must hold, always and when everything has come to rest?

Checkers stand beside the system: they know what parties have said, and compare it with what they
were told and with what brokers hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from driftline.broker.broker import Broker
from driftline.broker.effects import Deliver
from driftline.broker.links import ANYTHING, EVERYTHING, MESH, Role
from driftline.model.event import Event
from driftline.model.pattern import Pattern, SequenceMatcher
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.sim.overlay import Overlay, Party


class Violation(AssertionError):
    """Something that must hold did not."""


@dataclass(slots=True)
class Story:
    """What has been said so far, by whom."""

    published: dict[int, tuple[Party, Event]] = field(default_factory=dict)
    """By the number that the event carries."""
    ever: dict[str, list[Standing]] = field(default_factory=dict)
    """All that has gone by the id of a subscription."""
    sure: set[str] = field(default_factory=set)
    """Parties that could publish anything from before the first fault."""
    watched: dict[str, str] = field(default_factory=dict)
    """Patterns over what one party publishes, and another at its broker that sees all of it."""
    first: set[str] = field(default_factory=set)
    """The brokers that were there at the beginning."""
    rewired: bool = False
    """Has a way in a mesh changed, or a link been ended with what was on its way?"""


def number_of(event: Event) -> int:
    """The number that an event carries."""
    return int(str(event.attributes["n"]))


def always(overlay: Overlay, story: Story) -> None:
    """Nobody is told twice, or out of order, or of something not asked for."""
    for party in overlay.parties.values():
        if party.repeated and not overlay.lost_journals:
            raise Violation(f"{party.name} was told again of {party.repeated[0].event}")
        if party.disturbed and not overlay.lost_journals:
            raise Violation(f"{party.name} was suspended and told of {party.disturbed[0].event}")
        last: dict[str, int] = {}
        events = set()
        matched: dict[str, list[int]] = {}
        for deliver in party.told:
            number = number_of(deliver.event)
            if number in events:
                raise Violation(f"{party.name} was told twice of {number}")
            events.add(number)
            if last.get(deliver.origin, 0) >= deliver.position:
                raise Violation(f"{party.name} was told of {number} out of order")
            last[deliver.origin] = deliver.position
            for id in deliver.subscriptions:
                if not _meant(story.ever.get(id, []), id, deliver):
                    raise Violation(f"{party.name} was told of {number} for {id}: not asked for")
                whole = deliver.sequences.get(id, ())
                times = [one.time for one in whole]
                if not all(a is not None and b is not None and a < b for a, b in pairwise(times)):
                    raise Violation(f"{party.name} was told of {id} out of order: {whole}")
                matched.setdefault(id, []).extend(map(number_of, whole))
        for id, numbers in matched.items():
            # A broker without its journal has forgotten how far it was.
            if len(set(numbers)) < len(numbers) and not overlay.lost_journals:
                raise Violation(f"{party.name}: an event is in two sequences of {id}: {numbers}")


def _meant(ever: list[Standing], id: str, deliver: Deliver) -> bool:
    """Could what has gone by an id have led to a delivery?"""
    whole = deliver.sequences.get(id)
    if whole is None:
        return any(
            isinstance(one.statement, Subscription) and one.matches(deliver.event, {})
            for one in ever
        )
    # Its parameters may have moved between one step and the next.
    patterns = [one for one in ever if isinstance(one.statement, Pattern)]
    return any(
        all(
            any(_fits(one, step, event) for one in patterns if one.statement == pattern)
            for step, event in enumerate(whole)
        )
        for pattern in {one.statement for one in patterns}
        if isinstance(pattern, Pattern) and len(pattern.steps) == len(whole)
    )


def _fits(standing: Standing, step: int, event: Event) -> bool:
    assert isinstance(standing.statement, Pattern)
    return standing.statement.steps[step].truth(standing.scope(event, {})) is True


def nothing_lost(overlay: Overlay, story: Story) -> None:
    """What a broker has said it took has reached all who have wanted it all along.

    Unless a journal was lost, or a link was ended with what was on its way, or the ways in a mesh
    changed: what is on an old way may then be overtaken, and is dropped to keep the order.
    """
    if overlay.lost_journals or story.rewired:
        return
    for number, (publisher, event) in story.published.items():
        reply = publisher.answered.get(f"publish {number}")
        if publisher.broker not in story.first or publisher.name not in story.sure:
            continue
        if reply is None or reply.refused is not None:
            continue
        for party in overlay.parties.values():
            wants = party.wants.get(party.name)
            if wants is None or not isinstance(wants.statement, Subscription):
                continue
            if wants.matches(event.stamped(1), {}):
                told = [number_of(deliver.event) for deliver in party.told]
                # What is forgotten of what is kept for a party is said to it.
                if number not in told and not any(deliver.gap for deliver in party.told):
                    raise Violation(f"{party.name} was never told of {number}")
    for id, watcher in story.watched.items():
        _same_sequences(overlay, id, overlay.parties[watcher])


def _same_sequences(overlay: Overlay, id: str, watcher: Party) -> None:
    """Was a pattern found in what entered at one broker just as the reference finds it?"""
    party = overlay.parties[id]
    if any(deliver.gap for deliver in (*party.told, *watcher.told)):
        return
    standing = party.wants[id]
    assert isinstance(standing.statement, Pattern)
    reference = SequenceMatcher(standing.statement)
    expected = []
    for deliver in watcher.told:
        whole = reference.take(standing.scope(deliver.event, {}))
        if whole is not None:
            expected.append([number_of(event) for event in whole])
    found = [
        [number_of(event) for event in deliver.sequences[id]]
        for deliver in party.told
        if id in deliver.sequences
    ]
    if found != expected:
        raise Violation(f"{party.name} was told the sequences {found}, and there were {expected}")


def quiet(overlay: Overlay) -> None:
    """Are the tables what follows from what parties have said alone, and journals likewise?"""
    for name in overlay.names():
        broker = overlay.station(name).broker
        broker._check()
        held = {id: standing for id, _, standing in broker.edge}
        wants = {id: one for party in overlay.at(name) for id, one in party.wants.items()}
        if held != wants:
            raise Violation(f"{name} holds {held}, and should hold {wants}")
        for party in overlay.at(name):
            if broker.advertised(party.name) != party.offers:
                raise Violation(f"{name} does not know what {party.name} offers")
        if any(broker._outbox.values()):
            raise Violation(f"{name} still has events to send")
        _remembered(overlay, name, broker)
    for here, there in overlay.links():
        if overlay.role(here, there) in (Role.PEER, Role.MASTER):
            _known(here, overlay.station(here).broker, there, overlay.station(there).broker)
    _members(overlay)


def _known(here: str, near: Broker, there: str, far: Broker) -> None:
    """Does the other end of a link know what it was told?"""
    filters, sequences = near.links.told(there)
    known = {key: one for key, one in far.links.subscriptions.held(here).items() if key != ""}
    if {**filters, **sequences} != known:
        raise Violation(f"{there} does not know what {here} wants: {filters} {sequences} {known}")
    if near.settings.advertised:
        offered = near.links.offers.table.told(there)
        heard = {key: one for key, one in far.links.offers.held(here).items() if key != ""}
        if offered != heard:
            raise Violation(f"{there} does not know what {here} offers: {offered} {heard}")


def _members(overlay: Overlay) -> None:
    """Does every member of a mesh know what all others want and offer?"""
    for here in overlay.names():
        near = overlay.station(here).broker.links
        for there in overlay.names():
            if here == there or not near.homes.links() or near.homes.next_hop(there) is None:
                continue
            far = overlay.station(there).broker.links
            wants, offers = far.homes.known(here)
            if wants != near.told(MESH)[0]:
                raise Violation(f"{there} does not know what {here} wants: {wants}")
            if near.advertised and offers != near.offers.table.told(MESH):
                raise Violation(f"{there} does not know what {here} offers: {offers}")


def _remembered(overlay: Overlay, name: str, broker: Broker) -> None:
    """Would a broker that began with the journal now be as this one is?"""
    fresh = Broker(name, 1 << 20, broker.settings, overlay.journal(name))
    fresh._check()
    for what, here, there in (
        ("subscriptions", _subscriptions(broker), _subscriptions(fresh)),
        ("parties", _parties(broker), _parties(fresh)),
        ("interests", broker.links.subscriptions._held, fresh.links.subscriptions._held),
        ("offers", broker.links.offers._held, fresh.links.offers._held),
        ("links", broker.roles(), fresh.roles()),
        ("events seen", broker._seen, fresh._seen),
        ("latest event", broker.links.latest, fresh.links.latest),
        ("publications", broker._published, fresh._published),
        ("advertisements", broker._advertised, fresh._advertised),
        ("environment", broker.environment.values, fresh.environment.values),
        ("mesh", broker.links.homes.states(), fresh.links.homes.states()),
        ("homes", broker.links.homes.versions(), fresh.links.homes.versions()),
    ):
        if here != there:
            raise Violation(f"{name}'s journal has other {what}: {there} for {here}")
    for id, _, _ in broker.edge:
        now, then = broker.edge.sequence(id), fresh.edge.sequence(id)
        if now is not None and then is not None and now.found != then.found:
            raise Violation(f"{name}'s journal has another partial match of {id}")


def _subscriptions(broker: Broker) -> dict[str, tuple[str, Standing]]:
    return {id: (owner, standing) for id, owner, standing in broker.edge}


def _parties(broker: Broker) -> dict[str, object]:
    """The parties of which something is known besides their subscriptions."""
    parties = broker.edge.parties.items()
    return {name: one for name, one in parties if one.suspended or one.handler or one.waiting}


def nothing_left(overlay: Overlay) -> None:
    """When all have gone, does any broker still know of them?"""
    quiet(overlay)
    for name in overlay.names():
        broker = overlay.station(name).broker
        for owner, one in broker.links.subscriptions.wanted():
            # Only masters still want everything, and brokers say so for them.
            if one != EVERYTHING:
                raise Violation(f"{name} still knows that {owner} wants {one}")
        for id, one in broker.links.subscriptions.table:
            if one != EVERYTHING:
                owners = ", ".join(broker.links.subscriptions.table.owners(id))
                raise Violation(f"{name} still tells that {owners} wants {one}")
        for owner in broker.links.offers.owners():
            # Only masters may still send anything, and brokers say so for them.
            if set(broker.links.offers.held(owner).values()) != {ANYTHING}:
                raise Violation(f"{name} still knows of what {owner} offers")
