"""What becomes of bundles that are not what they should be, and of those in between?"""

from __future__ import annotations

import numpy as np
import pytest

from driftline import Event, parse
from driftline.broker.broker import Broker
from driftline.broker.effects import Deliver, DeliverMany, Effect, SendParcels
from driftline.broker.links import Role
from driftline.broker.requests import Cancel, Publish, PublishMany, Subscribe
from driftline.broker.settings import Settings
from driftline.errors import FrameRefused
from driftline.model.filter import Filter
from driftline.model.message import Interest
from driftline.model.standing import Standing
from driftline.wire.bundles import Bundle, bundled
from driftline.wire.compact import write_record
from driftline.wire.forms import form_of
from driftline.wire.notices import Notice, write_notice


def of(kind: type, effects: list[Effect]) -> list:
    return [effect for effect in effects if isinstance(effect, kind)]


def wanted(text: str) -> Filter:
    (one,) = parse(text).filters()
    return one


def broker(*links: str, role: Role = Role.PEER) -> Broker:
    made = Broker("b", settings=Settings(matcher="index"))
    for link in links:
        made.connect(link, role, 0)
    made.enter("s", durable=False)
    return made


def subscribe(to: Broker, id: str, text: str) -> None:
    handle = int(id.removeprefix("s"))
    to.handle(Subscribe("", id, Standing.of(parse(text)), handle=handle), "s", 0)


def bundle_of(
    events: list[Event], origin: str = "a", first: int = 10, *, wrong: bool = False
) -> bytearray:
    """A bundle, of which the last event has a flag that nobody knows if it is wrong."""
    forms = {form_of(event): at for at, event in enumerate(events)}
    notices = []
    for at, event in enumerate(events):
        notice = Notice((), first + at, False, event.entering(5))
        notices.append(bytearray(write_notice(notice, forms[form_of(event)], form_of(event))))
    notices[-1][6] |= 64 * wrong
    known = [(number, form) for form, number in forms.items()]
    (one,) = bundled(memoryview(b"".join(notices)), len(events), known, origin, 1, b"")
    return bytearray(one.payload)


def many(to: Broker, events: list[Event]) -> list[Effect]:
    forms: dict = {}
    records = []
    for event in events:
        form = form_of(event)
        records.append(write_record(event, forms.setdefault(form, len(forms)), form))
    numbers = np.array([to.publishing.forms.number(form) for form in forms], np.int64)
    return to.handle(PublishMany("r", b"".join(records), numbers), "p", 0)


def told(effects: list[Effect]) -> int:
    notices = sum(run.notices for one in of(DeliverMany, effects) for run in one.runs)
    return notices + len(of(Deliver, effects))


def sent(effects: list[Effect]) -> int:
    return sum(
        item.events if isinstance(item, Bundle) else 1
        for one in of(SendParcels, effects)
        for _, item in one.parcels
    )


@pytest.mark.parametrize("hard", [False, True])
def test_of_a_bundle_in_which_one_is_none_those_before_it_are_taken(hard: bool) -> None:
    here = broker("a", "c")
    subscribe(here, "s1", "SELECT * FROM q WHERE x > 0" + " AND ce_id = 'i'" * hard)
    here.handle(Interest({"k": wanted("SELECT * FROM q WHERE x > 0")}), "c", 0)
    raw = bundle_of([Event("q", {"x": 1}, id="i")] * 3, wrong=True)
    effects = here.handle_bundle(bytes(raw), "a", 0)
    assert (told(effects), sent(effects), here.carrying.garbled) == (2, 2, 1)
    assert here.passing.had("a") == 11
    # What comes next does not wait for it.
    effects = here.handle_bundle(bytes(bundle_of([Event("q", {"x": 1}, id="i")], first=20)), "a", 0)
    assert (told(effects), sent(effects)) == (1, 1)
    here._check()


def test_there_are_none_in_a_mesh() -> None:
    here = broker("a", role=Role.MESH)
    subscribe(here, "s1", "SELECT * FROM q WHERE x > 0")
    with pytest.raises(FrameRefused):
        here.handle_bundle(bytes(bundle_of([Event("q", {"x": 1})])), "a", 0)
    assert not here.passing.had("a")


def test_what_began_here_or_came_before_is_passed_over() -> None:
    here = broker("a", "c")
    subscribe(here, "s1", "SELECT * FROM q WHERE x > 0")
    here.handle(Interest({"k": wanted("SELECT * FROM q WHERE x > 0")}), "c", 0)
    three = [Event("q", {"x": 1})] * 3
    assert told(here.handle_bundle(bytes(bundle_of(three, "b")), "a", 0)) == 0
    assert told(here.handle_bundle(bytes(bundle_of(three)), "a", 0)) == 3
    effects = here.handle_bundle(bytes(bundle_of(three, first=11)), "a", 0)
    assert (told(effects), sent(effects)) == (1, 1)
    assert told(here.handle_bundle(bytes(bundle_of(three, first=11)), "a", 0)) == 0


def test_it_does_not_go_back_nor_for_ever() -> None:
    here = broker("a", "c")
    for link in ("a", "c"):
        here.handle(Interest({"k": wanted("SELECT * FROM q")}), link, 0)
    effects = here.handle_bundle(bytes(bundle_of([Event("q", {"x": 1})])), "a", 0)
    assert [one.peer for one in of(SendParcels, effects)] == ["c"]
    raw = bundle_of([Event("q", {"x": 1})], first=20)
    raw[4] = here.settings.hops
    assert not of(SendParcels, here.handle_bundle(bytes(raw), "a", 0))


@pytest.mark.parametrize("together", [False, True])
def test_who_asks_for_something_else_after_everybody_had_left_is_told(together: bool) -> None:
    """An index that was empty begins anew, and kernels must read events as it does then."""

    def publish(to: Broker, x: int, y: int) -> tuple[int, int]:
        event = Event("q", {"x": x, "y": y})
        effects = many(to, [event]) if together else to.handle(Publish("r", event), "p", 0)
        return told(effects), sent(effects)

    here = broker("far")
    subscribe(here, "s1", "SELECT * FROM q WHERE x > 0")
    here.handle(Interest({"k": wanted("SELECT * FROM q WHERE x > 0")}), "far", 0)
    assert publish(here, 1, -1) == (1, 1)
    here.handle(Cancel("", "s1"), "s", 0)
    here.handle(Interest({}, ("k",)), "far", 0)
    subscribe(here, "s2", "SELECT * FROM q WHERE y > 0")
    here.handle(Interest({"k2": wanted("SELECT * FROM q WHERE y > 0")}), "far", 0)
    assert publish(here, -1, 1) == (1, 1)
    assert publish(here, 1, -1) == (0, 0)


def test_many_attributes_come_and_go_between_batches() -> None:
    here = broker("far")
    event = Event("q", {f"a{at}": 1 for at in range(400)})

    def want(names: list[str]) -> None:
        filters = {f"k{name}": wanted(f"SELECT * FROM q WHERE {name} > 0") for name in names}
        here.handle(Interest(filters), "far", 0)

    for at in range(300):
        want([f"b{at}"])
        if at:
            here.handle(Interest({}, (f"kb{at - 1}",)), "far", 0)
    assert sent(many(here, [event])) == 0
    here.handle(Interest({}, ("kb299",)), "far", 0)
    for at in range(400):
        want([f"a{at}"])
        if at % 50 == 0:
            assert sent(many(here, [event])) == 1
    here._check()
