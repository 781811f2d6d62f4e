"""Do the checkers bite? Each fault below is put into the code on purpose, and must be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from driftline.broker import edge
from driftline.broker.advertising import Advertising
from driftline.broker.broker import Broker
from driftline.broker.edge import Edge
from driftline.broker.effects import Deliver, Effect, Send, SendBytes, SendParcels
from driftline.broker.links import LOCAL, Links
from driftline.broker.parties import Parties
from driftline.broker.passing import Passing
from driftline.broker.requests import Subscribe
from driftline.broker.session import Session
from driftline.broker.station import Station
from driftline.broker.subscribing import Subscribing
from driftline.broker.waves import Waves
from driftline.model.message import Interest, Offer
from driftline.moving.evolving import started
from driftline.moving.evolving.matcher import Evolving
from driftline.moving.parametric import monitor
from driftline.moving.parametric.updates import updated
from driftline.routing.advertisements import Advertisements
from driftline.routing.mesh import Mesh
from driftline.routing.patterns import Monitor
from driftline.routing.subscriptions import Subscriptions
from driftline.routing.table import Table
from driftline.sim import party
from driftline.sim.faults import RANDOM
from driftline.sim.party import Party
from driftline.sim.scenario import Plan, Scenario
from driftline.sim.soak import plans
from driftline.wire.framing import FrameKind

# The rarest is noticed in one run of two hundred: a crash must come just between two effects.
RUNS = 1200
ACK = FrameKind.ACK

# Where the rarest were noticed: these runs are tried first, as long as they do.
NOTICED = {
    "a_session_acknowledges_what_it_has_not_dealt_with": 311,
    "a_monitor_starts_anew_after_each_match": 139,
    "a_member_believes_old_news": 17,
}

Patch = Callable[[pytest.MonkeyPatch], None]
Held = dict[Broker, dict[object, tuple[int, Callable[[], list[Effect]]]]]
FAULTS: dict[str, Patch] = {}


def fault(patch: Patch) -> Patch:
    FAULTS[patch.__name__] = patch
    return patch


@fault
def what_a_cancelled_filter_covered_is_not_told(patched: pytest.MonkeyPatch) -> None:
    remove = Table._remove

    def forgetful(self, node) -> None:
        touched = dict(self._touched)
        remove(self, node)
        self._touched = {one: None for one in touched if one is not node}

    patched.setattr(Table, "_remove", forgetful)


@fault
def an_unsubscription_is_lost(patched: pytest.MonkeyPatch) -> None:
    interest = Links._interest
    patched.setattr(
        Links,
        "_interest",
        lambda self, said, link: interest(self, Interest(said.added, (), said.reset), link),
    )


@fault
def a_neighbour_is_told_what_only_it_wants(patched: pytest.MonkeyPatch) -> None:
    def knowing(self, out, node):
        return not any(above in self._known[out] for above in node.successors)

    patched.setattr(Table, "_knowing", knowing)


@fault
def covered_filters_are_told_all_the_same(patched: pytest.MonkeyPatch) -> None:
    def knowing(self, out, node):
        return True if any(owner != out for owner in node.owners) else None

    patched.setattr(Table, "_knowing", knowing)


@fault
def a_new_session_does_not_replace_what_was_said_before(patched: pytest.MonkeyPatch) -> None:
    interest = Links._interest
    patched.setattr(
        Links,
        "_interest",
        lambda self, said, link: interest(self, Interest(said.added, said.removed), link),
    )


@fault
def an_event_that_comes_again_is_taken_again(patched: pytest.MonkeyPatch) -> None:
    take = Passing._take

    def forgetful(self, *parcel):
        self._seen.clear()
        return take(self, *parcel)

    patched.setattr(Passing, "_take", forgetful)


@fault
def what_was_seen_is_not_stored(patched: pytest.MonkeyPatch) -> None:
    _without(patched, "seen")


@fault
def what_was_published_is_not_stored(patched: pytest.MonkeyPatch) -> None:
    _without(patched, "published")


@fault
def deliveries_are_not_stored(patched: pytest.MonkeyPatch) -> None:
    _without(patched, "deliver")


@fault
def events_on_their_way_are_not_stored(patched: pytest.MonkeyPatch) -> None:
    _without(patched, "out")


@fault
def subscriptions_are_not_stored(patched: pytest.MonkeyPatch) -> None:
    _without(patched, "sub", "partial")


def _without(patched: pytest.MonkeyPatch, *kinds: str) -> None:
    out = Broker._out

    def forgetful(self, effects):
        for key in [key for key in self._puts if key[0] in kinds]:
            del self._puts[key]
        return out(self, effects)

    patched.setattr(Broker, "_out", forgetful)


@fault
def an_acknowledgement_goes_out_before_the_store(patched: pytest.MonkeyPatch) -> None:
    receive = Station.receive

    def hasty(self, link, frame, now):
        effects = receive(self, link, frame, now)
        acks = [one for one in effects if isinstance(one, SendBytes) and one.data[2] == ACK]
        return acks + [one for one in effects if one not in acks]

    patched.setattr(Station, "receive", hasty)


@fault
def a_new_session_does_not_repeat_events(patched: pytest.MonkeyPatch) -> None:
    connect = Broker.connect
    patched.setattr(
        Broker,
        "connect",
        lambda self, *opened: [
            one for one in connect(self, *opened) if not isinstance(one, SendParcels)
        ],
    )


@fault
def nothing_is_sent_again(patched: pytest.MonkeyPatch) -> None:
    wake = Session.wake
    patched.setattr(Session, "wake", lambda self, now: wake(self, now) if not self.up else [])


@fault
def what_comes_too_early_is_taken(patched: pytest.MonkeyPatch) -> None:
    receive = Session.receive

    def eager(self, frame, now):
        if frame.sequence > self._heard + 1 and frame.sender == self.theirs:
            self._heard = frame.sequence - 1
        return receive(self, frame, now)

    patched.setattr(Session, "receive", eager)


@fault
def a_member_that_lost_its_journal_does_not_say_so(patched: pytest.MonkeyPatch) -> None:
    say = Links._say_home
    patched.setattr(
        Links,
        "_say_home",
        lambda self, offers, news: say(self, offers, news) if offers or news else [],
    )


@fault
def a_member_believes_old_news(patched: pytest.MonkeyPatch) -> None:
    def hear(self, said):
        self._versions[said.origin] = said.version
        home = self._homes.setdefault(said.origin, {})
        self._offers.setdefault(said.origin, {})
        for key, moved in said.updates.items():
            if key in home:
                home[key] = updated(home[key], moved)
        if said.base == 0:
            home.clear()
        for key in said.removed:
            home.pop(key, None)
        home.update(said.added)
        return True

    patched.setattr(Mesh, "hear_home", hear)


@fault
def a_link_is_used_that_the_other_end_has_not(patched: pytest.MonkeyPatch) -> None:
    def one_way(self, member):
        state = self._states.get(member)
        return () if state is None else state.links

    patched.setattr(Mesh, "_both_ways", one_way)


@fault
def a_cancelled_subscription_leaves_a_filter(patched: pytest.MonkeyPatch) -> None:
    parts = Subscribing._parts

    def forgetful(self, id, standing, ranges):
        """Without its first part, once it is there."""
        found = parts(self, id, standing, ranges)
        known = set(self._links.subscriptions.keys(LOCAL))
        return found if not found.keys() <= known else dict(list(found.items())[1:])

    patched.setattr(Subscribing, "_parts", forgetful)


@fault
def a_party_is_told_twice_of_one_event(patched: pytest.MonkeyPatch) -> None:
    take = Edge.take
    patched.setattr(
        Edge,
        "take",
        lambda self, *event: [
            again
            for one in take(self, *event)
            for again in (one, replace(one, number=self._count()))
        ],
    )


@fault
def everybody_is_told_everything(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Edge, "take", _told_to_all)


def _told_to_all(self, event, origin, position, *judged):
    return [
        Deliver(owner, self._count(), (id,), event, {}, origin, position)
        for id, owner in self._owner.items()
    ][:1]


@fault
def a_session_acknowledges_what_it_has_not_dealt_with(patched: pytest.MonkeyPatch) -> None:
    receive = Session.receive

    def hasty(self, frame, now):
        heard, frames = receive(self, frame, now)
        if heard.said is not None:
            self._heard += 1
            frames = [self.acknowledge(), *frames]
        return heard, frames

    patched.setattr(Session, "receive", hasty)
    patched.setattr(Session, "took", lambda self: None)


@fault
def a_late_advertisement_draws_nothing(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Table, "reconsider", lambda self, out, concerned: None)


@fault
def an_unadvertisement_is_lost(patched: pytest.MonkeyPatch) -> None:
    offered = Links._offered
    patched.setattr(
        Links,
        "_offered",
        lambda self, said, link: offered(self, Offer(said.added, (), said.reset), link),
    )


@fault
def interest_goes_where_nothing_is_offered(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Advertisements, "provides", lambda self, owner, wanted: owner in self._held)


@fault
def anybody_may_publish_anything(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Advertising, "check", lambda self, event, party: None)


@fault
def offers_of_neighbours_are_not_stored(patched: pytest.MonkeyPatch) -> None:
    _without(patched, "offer")


@fault
def advertisements_are_not_stored(patched: pytest.MonkeyPatch) -> None:
    _without(patched, "advertised")


@fault
def half_a_pattern_is_not_stored(patched: pytest.MonkeyPatch) -> None:
    _without(patched, "partial")


@fault
def a_monitor_begins_as_if_nothing_had_been(patched: pytest.MonkeyPatch) -> None:
    begin = Monitor.__init__

    def empty(self, steps, latest=0):
        begin(self, steps, latest)
        self._open = [[] for _ in self._open]

    patched.setattr(Monitor, "__init__", empty)


@fault
def a_monitor_starts_anew_after_each_match(patched: pytest.MonkeyPatch) -> None:
    """As the paper has it: then matches that began elsewhere are missed."""
    matched = Monitor._matched

    def once(self, step, time):
        matched(self, step, time)
        if step == len(self._open):
            self._open = [[] for _ in self._open]

    patched.setattr(Monitor, "_matched", once)


@fault
def who_looks_after_a_pattern_is_not_asked_again(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Subscriptions, "plan", lambda self: None)


@fault
def a_suspended_party_is_told_all_the_same(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Parties, "suspend", lambda self, name: None)


@fault
def what_came_meanwhile_is_not_told_on_resuming(patched: pytest.MonkeyPatch) -> None:
    resume = Edge.resume
    patched.setattr(Edge, "resume", lambda self, name: resume(self, name)[1:])


@fault
def moving_a_parameter_leaves_the_network_as_it_was(patched: pytest.MonkeyPatch) -> None:
    let = Subscribing._let

    def only_new(self, parts, before=()):
        if not before:
            let(self, parts)

    patched.setattr(Subscribing, "_let", only_new)


@fault
def nobody_is_interested(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Broker, "_wants", lambda self, says, asker, now: False)


# What follows is right again as soon as there is peace: only strictness, coverage and what is told
# of values that had been replaced can show it.


@fault
def a_confirmation_does_not_wait_for_answers(patched: pytest.MonkeyPatch) -> None:
    begin = Waves.begin
    patched.setattr(
        Waves,
        "begin",
        lambda self, asked, party, request, links, *rest: begin(
            self, asked, party, request, links if asked.says is not None else (), *rest
        ),
    )


@fault
def the_edge_goes_on_with_old_values_for_a_while(patched: pytest.MonkeyPatch) -> None:
    request, held = Broker._request, _held_back(patched)

    def late(self, asked, party, now):
        if not isinstance(asked, Subscribe):
            return request(self, asked, party, now)
        known = {id: standing for id, _, standing in self.edge}
        said = request(self, asked, party, now)
        before = known.get(asked.id)
        if before is not None and asked.id in self.edge._plain and _moved(before, asked.standing):
            self.edge._plain.change(asked.id, before.params, before.start_us)
            held.setdefault(self, {})[asked.id] = now + LATE, lambda: catch_up(self, asked)
        return said

    def catch_up(self, asked) -> list[Effect]:
        if asked.id in self.edge._plain and _moved(self.edge.standing(asked.id), asked.standing):
            now = self.edge.standing(asked.id)
            self.edge._plain.change(asked.id, now.params, now.start_us)
        return []

    patched.setattr(Broker, "_request", late)


@fault
def a_neighbour_is_late_with_an_update(patched: pytest.MonkeyPatch) -> None:
    handle, held = Broker.handle, _held_back(patched)

    def late(self, message, sender, now):
        if not isinstance(message, Interest):
            return handle(self, message, sender, now)
        mine = held.setdefault(self, {})
        effects = mine.pop(sender)[1]() if sender in mine else []
        if message.updates:
            mine[sender] = now + LATE, lambda: catch_up(self, message.updates, sender, now)
        return [*effects, *handle(self, replace(message, updates={}), sender, now)]

    def catch_up(self, updates, sender, now) -> list[Effect]:
        known = self.links.subscriptions.keys(sender)
        updates = {key: moved for key, moved in updates.items() if key in known}
        return handle(self, Interest(updates=updates), sender, now)

    patched.setattr(Broker, "handle", late)


LATE = 1_000_000


def _moved(before, after) -> bool:
    return before.statement == after.statement


def _held_back(patched: pytest.MonkeyPatch) -> Held:
    """What brokers do late: by keys, when, and what."""
    held: Held = {}
    wake, wake_at = Broker.wake, Broker.wake_at

    def and_late(self, now):
        effects = wake(self, now)
        mine = held.get(self, {})
        for key in [key for key, (time, _) in mine.items() if time <= now]:
            effects += mine.pop(key)[1]()
        return effects

    patched.setattr(Broker, "wake", and_late)
    patched.setattr(
        Broker,
        "wake_at",
        lambda self: min([wake_at(self), *(time for time, _ in held.get(self, {}).values())]),
    )
    return held


@fault
def the_old_is_taken_back_before_the_new_is_told(patched: pytest.MonkeyPatch) -> None:
    tell = Links.tell

    def parted(self, reset=None):
        for send in tell(self, reset):
            said = send.message
            if not isinstance(said, Interest) or said.reset:
                yield send
                continue
            yield Send(send.peer, Interest(removed=(*said.removed, *said.updates)))
            filters, _ = self.told(send.peer)
            moved = {key: filters[key] for key in said.updates}
            yield Send(send.peer, Interest({**said.added, **moved}, sequences=said.sequences))

    patched.setattr(Links, "tell", lambda self, reset=None: list(parted(self, reset)))


@fault
def a_range_does_not_hold_its_value(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(monitor.Monitor, "_ahead", lambda self, value: (value + 3, value + 4))


@fault
def a_subscriber_does_not_look_again(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(party, "still_wanted", lambda wants, event, ids, completed, env: ids)


@fault
def a_subscriber_drops_what_was_found_before_it_moved(patched: pytest.MonkeyPatch) -> None:
    """Though it is wanted after the move as it was before."""
    decided = Party._still

    def narrow(self, deliver):
        asked = self.unanswered.values()
        moving = {one.id for one in asked if isinstance(one, Subscribe)}
        return tuple(id for id in decided(self, deliver) if id not in moving)

    patched.setattr(Party, "_still", narrow)


@fault
def an_event_is_judged_by_the_environment_where_it_is(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(
        Passing,
        "_judged",
        lambda self, parcel, now: (self._environment.values, parcel.event.stamp),
    )


@fault
def an_event_is_judged_by_the_clock_where_it_is(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Passing, "_judged", lambda self, parcel, now: (parcel.stamps, now))


@fault
def a_start_does_not_travel(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(edge, "told", lambda one, start: started.told(one, 0))


@fault
def nobody_beyond_a_link_is_asked_what_evolves(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Evolving, "any", lambda self, event, env, at=None: False)


@fault
def the_environment_is_not_stored(patched: pytest.MonkeyPatch) -> None:
    _without(patched, "env")


@fault
def other_parameters_begin_anew(patched: pytest.MonkeyPatch) -> None:
    change = Evolving.change
    patched.setattr(
        Evolving, "change", lambda self, id, bounds, start=0: change(self, id, bounds, 0)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_code_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    runs = [*enumerate(plans(RUNS, Plan("", 0, tables=False)))]
    first = NOTICED.get(name, 0)
    for run, plan in runs[first:] + runs[:first]:
        # Some faults need a crash at the right moment, others everything at once.
        faults = "crashes=0.05" if run % 2 else RANDOM
        try:
            Scenario(replace(plan, faults=faults)).run()
        except AssertionError:  # A checker's, not an accident of the fault itself.
            return
    pytest.fail(f"{RUNS} runs have not noticed that {name.replace('_', ' ')}")
