"""What must hold, always and when everything has come to rest?

Checkers stand beside the system: they know what parties have said, and compare it with what they
were told and with what brokers hold.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import pairwise

from driftline.broker.broker import Broker
from driftline.broker.effects import MISSING, Deliver
from driftline.broker.links import ANYTHING, EVERYTHING, LOCAL, MESH, Role
from driftline.broker.tables import DELETE, SNAPSHOT
from driftline.model.advertisement import Advertisement
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.pattern import Pattern, SequenceMatcher
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.view import View, ViewKind
from driftline.sim.overlay import Overlay
from driftline.sim.party import Party
from driftline.sim.places import alike, home_of, is_on_the_way, wrong_place
from driftline.sim.story import Story
from driftline.stateful.rows.change import is_derived

_OF_HOME = (SNAPSHOT, DELETE)
"""What the home of a table offers, and whoever has removed a row of it."""


class Violation(AssertionError):
    """Something that must hold did not."""


def number_of(event: Event) -> int:
    """The number that an event carries."""
    return int(str(event.attributes["n"]))


def always(overlay: Overlay, story: Story) -> None:
    """Nobody is told twice, or out of order, or of something not asked for when it was entered."""
    for party in overlay.parties.values():
        if party.repeated and not overlay.lost_journals:
            raise Violation(f"{party.name} was told again of {party.repeated[0].event}")
        if party.disturbed and not overlay.lost_journals:
            raise Violation(f"{party.name} was suspended and told of {party.disturbed[0].event}")
        last: dict[str, int] = {}
        events = set()
        matched: dict[str, list[int]] = {}
        for deliver in party.told:
            if last.get(deliver.origin, 0) >= deliver.position:
                raise Violation(f"{party.name} was told of {deliver.event} out of order")
            last[deliver.origin] = deliver.position
            if deliver.news or deliver.event == MISSING:
                continue  # Of views: see `view_checkers`.
            if is_derived(deliver.event.type):
                raise Violation(f"{party.name} was told of {deliver.event}, which is for views")
            number = number_of(deliver.event)
            # Notices do not say where an event entered: who lost its journal may tell it again.
            if number in events and not (overlay.as_records and overlay.lost_journals):
                raise Violation(f"{party.name} was told twice of {number}")
            events.add(number)
            for id in deliver.subscriptions:
                if not _meant(story, id, deliver):
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


def _meant(story: Story, id: str, deliver: Deliver) -> bool:
    """Could what went by an id since an event was published have led to a delivery?

    What was in effect at the broker by then is the oldest that counts. That holds for what is kept
    for a party, which was matched when it came, and where a journal was lost: the party then asks
    for the newest.
    """
    whole = deliver.sequences.get(id)
    if whole is None:
        return any(_told(one, deliver) for one in _since(story, id, deliver.event))
    # Its parameters may have moved between one step and the next.
    patterns = {one.standing.statement for one in story.versions.get(id, ()) if one.standing}
    return any(
        all(
            any(
                one is not None and one.statement == pattern and _fits(one, step, event, deliver)
                for one in _since(story, id, event)
            )
            for step, event in enumerate(whole)
        )
        for pattern in patterns
        if isinstance(pattern, Pattern) and len(pattern.steps) == len(whole)
    )


def _since(story: Story, id: str, event: Event) -> list[Standing | None]:
    """What a subscription was when an event was published, as far as is known, and later."""
    _, _, asked = story.published[number_of(event)]
    return [one.standing for one in story.at_the_edge(id, asked)]


def _told(standing: Standing | None, deliver: Deliver) -> bool:
    """Does an event satisfy what stands, by its stamps, if that is a plain subscription?"""
    if standing is None or not isinstance(standing.statement, Subscription):
        return False
    return standing.matches(deliver.event, deliver.stamps)


def _fits(standing: Standing, step: int, event: Event, deliver: Deliver) -> bool:
    assert isinstance(standing.statement, Pattern)
    wanted = standing.statement.steps[step]
    if event is not deliver.event and wanted.variables().environment:
        return True  # By stamps that are not kept: the probes look at such a pattern.
    return wanted.truth(standing.scope(event, deliver.stamps)) is True


def strict(overlay: Overlay, story: Story) -> None:
    """What a party lets through satisfies what it wanted at that moment [PARAM §4.3]."""
    for party in overlay.parties.values():
        for deliver, decided in zip(party.told, party.decided, strict=True):
            for id in decided.ids if not deliver.news else ():
                if not _wanted(story.wanted(id, decided.asked), id, deliver):
                    number = number_of(deliver.event)
                    raise Violation(f"{party.name} let {number} through for {id}: not wanted then")


def _wanted(standing: Standing | None, id: str, deliver: Deliver) -> bool:
    if id in deliver.sequences:
        return standing is not None and isinstance(standing.statement, Pattern)
    return _told(standing, deliver)


def entered(overlay: Overlay, story: Story, number: int) -> tuple[Event, Mapping[str, Value]]:
    """An event as it must have entered, after the last fault: its stamps are known by then."""
    publisher, event, asked = story.published[number]
    at = asked + publisher.away
    stamped = event.entering(overlay.clock(publisher.broker, at))
    return stamped, story.env(publisher.broker, at)


def coverage(overlay: Overlay, story: Story) -> None:
    """What a broker has said it took has come through to all who wanted it [PARAM §4.3].

    Who wanted it: under what was in effect everywhere when it was published, and under all that the
    subscription has been until nothing was on its way. Unless a journal was lost, or a link was
    ended with what was on its way, or the ways in a mesh changed: what is on an old way may then be
    overtaken, and is dropped to keep the order.
    """
    unsure = overlay.lost_journals > 0 or story.rewired
    taken = {
        number: asked
        for number, (publisher, _, asked) in story.published.items()
        if asked > story.calm or not unsure
        if _taken(story, number, publisher)
    }
    for id, party in story.owner.items():
        # What is forgotten of what is kept for a party is said to it.
        if any(deliver.gap for deliver in party.told):
            continue
        through = {
            number_of(deliver.event)
            for deliver, decided in zip(party.told, party.decided, strict=True)
            if id in decided.ids and not deliver.news
        }
        for number, asked in taken.items():
            since = story.anywhere(id, asked)
            judged = entered(overlay, story, number)
            sure = asked > story.calm
            wanted = bool(since) and all(_wants(one.standing, *judged, sure) for one in since)
            if wanted and number not in through:
                raise Violation(f"{party.name} was never told of {number} for {id}")
    for id, watcher in story.watched.items():
        if not unsure:
            _same_sequences(overlay, id, overlay.parties[watcher])


def _wants(standing: Standing | None, event: Event, env: Mapping[str, Value], sure: bool) -> bool:
    """Does a plain subscription surely want an event, whose stamps may not be sure?"""
    if standing is None or not isinstance(standing.statement, Subscription):
        return False
    if not sure and standing.statement.variables().evolving:
        return False
    return standing.matches(event, env)


def _taken(story: Story, number: int, publisher: Party) -> bool:
    """Did a broker say that it took an event, which may come from there?"""
    reply = publisher.answered.get(f"publish {number}")
    sure = publisher.name in story.sure or publisher.name in story.rows
    if publisher.broker not in story.first or not sure:
        return False
    return reply is not None and reply.refused is None


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
        whole = reference.take(standing.scope(deliver.event, deliver.stamps))
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
            if broker.advertising.of(party.name) != party.offers:
                raise Violation(f"{name} does not know what {party.name} offers")
        if broker.outbox.links():
            raise Violation(f"{name} still has events to send")
        _remembered(overlay, name, broker)
    for here, there in overlay.links():
        if overlay.role(here, there) in (Role.PEER, Role.MASTER):
            _known(overlay, here, there)
    _members(overlay)
    wrong = wrong_place(overlay)
    if wrong is not None:
        raise Violation(f"there is a follower: {wrong}")


def _known(overlay: Overlay, here: str, there: str) -> None:
    """Does the other end of a link know what it was told?"""
    near, far = (overlay.station(name).broker for name in (here, there))
    filters, sequences = near.links.told(there)
    known = {key: one for key, one in far.links.subscriptions.held(here).items() if key != ""}
    exactly = is_on_the_way(overlay, here, there)
    if not alike({**filters, **sequences}, known, exactly=exactly):
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
            wants = {key: far.labels.current(one) for key, one in wants.items()}
            if not alike(near.told(MESH)[0], wants, exactly=there == home_of(overlay)):
                raise Violation(f"{there} does not know what {here} wants: {wants}")
            if near.advertised and offers != near.offers.table.told(MESH):
                raise Violation(f"{there} does not know what {here} offers: {offers}")


def _remembered(overlay: Overlay, name: str, broker: Broker) -> None:
    """Would a broker that began with the journal now be as this one is?"""
    fresh = Broker(name, 1 << 20, broker.settings, overlay.journal(name))
    fresh._check()
    # What views need is asked for when they are looked after.
    fresh.asking._listen()
    for what, here, there in (
        ("subscriptions", _subscriptions(broker), _subscriptions(fresh)),
        ("parties", _parties(broker), _parties(fresh)),
        ("interests", _interests(broker), _interests(fresh)),
        ("offers", _offers(broker), _offers(fresh)),
        ("tables", _tables(broker), _tables(fresh)),
        ("resyncs", broker._resyncs._known, fresh._resyncs._known),
        ("links", broker.roles(), fresh.roles()),
        ("events seen", broker.passing._seen, fresh.passing._seen),
        ("latest event", _latest(broker), _latest(fresh)),
        ("publications", broker.publishing.numbers, fresh.publishing.numbers),
        ("advertisements", broker.advertising._advertised, fresh.advertising._advertised),
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


def _interests(broker: Broker) -> dict[str, dict[Hashable, Filter | None]]:
    """What is wanted of a broker, by the places that it knows.

    Where its own followers are found it learns when it asks.
    """
    labels = broker.links.labels
    held = {
        owner: {key: None if one is None else labels.current(one) for key, one in wanted.items()}
        for owner, wanted in broker.links.subscriptions._held.items()
    }
    mine = held.get(LOCAL, {})
    held[LOCAL] = {key: one for key, one in mine.items() if not _follows(broker, key)}
    return held


def _follows(broker: Broker, key: Hashable) -> bool:
    assert isinstance(key, tuple)
    statement = broker.edge.standing(key[0]).statement if key[0] in broker.edge.views else None
    return isinstance(statement, View) and statement.of is ViewKind.MOVED


def _offers(broker: Broker) -> dict[str, dict[Hashable, Advertisement]]:
    """What is offered to a broker. That it may ask to remove rows it says anew when it does."""
    offers = broker.links.offers
    held = {owner: dict(offers.held(owner)) for owner in offers.owners()}
    if LOCAL in held:
        mine = held[LOCAL].items()
        held[LOCAL] = {key: one for key, one in mine if not str(one.type).startswith(DELETE)}
    return {owner: found for owner, found in held.items() if found}


def _tables(broker: Broker) -> tuple[object, ...]:
    home = broker.tables.home
    # In any order: a row that goes and comes again is stored in its place.
    rows = {name: dict(table.items()) for name, table in home.tables.items()}
    return rows, home.life, home.sequence, sorted(home.types())


def _subscriptions(broker: Broker) -> dict[str, tuple[str, Standing]]:
    return {id: (owner, standing) for id, owner, standing in broker.edge}


def _latest(broker: Broker) -> int | None:
    """The newest event, where there is somebody to be told of it."""
    return broker.links.latest if broker.roles() else None


def _parties(broker: Broker) -> dict[str, object]:
    """The parties of which something is known besides their subscriptions."""
    parties = broker.edge.parties.items()
    return {name: one for name, one in parties if one.suspended or one.handler or one.waiting}


def nothing_left(overlay: Overlay) -> None:
    """When all have gone, does any broker still know of them? Tables stay, with what they need."""
    quiet(overlay)
    kept = [overlay.station(name).broker.tables for name in overlay.names()]
    wanted = {one for tables in kept for name in tables.home.tables for one in tables.wants(name)}
    wanted.add(EVERYTHING)  # Only masters still want it, and brokers say so for them.
    offered = {type for tables in kept for type in tables.home.types()}
    offered |= {kind + name for tables in kept for name in tables.home.tables for kind in _OF_HOME}
    for name in overlay.names():
        broker = overlay.station(name).broker
        for owner, one in broker.links.subscriptions.wanted():
            if one not in wanted:
                raise Violation(f"{name} still knows that {owner} wants {one}")
        for id, one in broker.links.subscriptions.table:
            if one not in wanted:
                owners = ", ".join(broker.links.subscriptions.table.owners(id))
                raise Violation(f"{name} still tells that {owners} wants {one}")
        for owner in broker.links.offers.owners():
            # Only masters may still send anything, and brokers say so for them.
            for says in broker.links.offers.held(owner).values():
                if says != ANYTHING and says.type not in offered:
                    raise Violation(f"{name} still knows that {owner} offers {says}")
