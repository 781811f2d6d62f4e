"""What follows when a party publishes, one event or many?

A party that counts what it publishes may ask again when it got no reply: what came before is passed
over. So is what was published *once* before, by its source and id (see `once`). Many at once go
through kernels (`intake`), as far as kernels can take them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from driftline.broker.access import Access
from driftline.broker.advertising import Advertising
from driftline.broker.edge import Edge
from driftline.broker.effects import Effect, Key, Reply
from driftline.broker.environment import Environment
from driftline.broker.links import Links
from driftline.broker.once import Once, no_name
from driftline.broker.outbox import Outbox
from driftline.broker.passing import RECORD_BYTES_MAX, Passing
from driftline.broker.requests import Publish, PublishMany
from driftline.broker.settings import Settings
from driftline.broker.tables import Tables
from driftline.errors import (
    DriftlineError,
    FrameRefused,
    InvalidValue,
    NotAdvertised,
    NotAllowed,
    NotSupported,
    TableError,
)
from driftline.model.event import Event
from driftline.model.message import Parcel
from driftline.model.recent import mark_of
from driftline.model.value import type_name
from driftline.stateful.rows.change import check_published, is_derived
from driftline.wire.bundles import bundled, stamps_of
from driftline.wire.compact import split_records
from driftline.wire.records import encode_parcel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from driftline.broker.formed import Forms
    from driftline.broker.intake import Further, Intake, Told

_REFUSED = (InvalidValue, NotAdvertised, NotAllowed, TableError)
_SMALL, _FEW = 1 << 20, 50


@dataclass(slots=True)
class _Done:
    """What has become of a batch so far."""

    said: list[Effect] = field(default_factory=list)
    taken: int = 0
    """How many were looked at, with those that came before."""
    again: int = 0
    """How many of these were passed over because they had been published once."""
    problems: list[tuple[int, DriftlineError]] = field(default_factory=list)
    refused: DriftlineError | None = None


class Here(Protocol):
    """The broker that events enter."""

    name: str
    settings: Settings
    edge: Edge
    links: Links
    tables: Tables
    environment: Environment
    advertising: Advertising
    access: Access
    passing: Passing
    outbox: Outbox

    def at(self) -> int:
        """A number above all that were given."""

    def reserve(self, count: int) -> int:
        """The first of so many such numbers."""

    def tell_of(self, table: str, messages: list[Event], now: int) -> list[Effect]:
        """What follows from what is said of a table that is kept here."""

    def _settled(self, said: list[Effect], now: int) -> list[Effect]: ...


class Publishing:
    """What parties publish at one broker. `put` journals."""

    __slots__ = ("_forms", "_here", "_intake", "_put", "numbers", "once")

    def __init__(self, here: Here, put: Callable[[Key, object], None]) -> None:
        self._here = here
        self._put = put
        self._forms: Forms | None = None
        self._intake: Intake | None = None
        self.numbers: dict[str, tuple[int, int]] = {}
        """Of each party that counts, the life and the number of the last that came."""
        self.once = Once(put, here.settings.once)

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept."""
        for key, value in stored.items():
            if key[0] == "published":
                assert isinstance(value, tuple)
                self.numbers[key[1]] = value
        self.once.restore(stored)
        if any(key[0] == "form" for key in stored):
            self.forms.restore(stored)

    def leave(self, party: str) -> None:
        """A party that is gone will not publish again what it published."""
        if self.numbers.pop(party, None) is not None:
            self._put(("published", party), None)

    def _came(self, party: str, life: int, number: int) -> None:
        self.numbers[party] = life, number
        if self._here.edge.parties.is_durable(party):
            self._put(("published", party), (life, number))

    # One

    def one(self, asked: Publish, party: str, now: int) -> list[Effect]:
        """A party publishes an event."""
        number = (asked.life, asked.number)
        said: list[Effect] = []
        # A party that has not heard what became of it may ask again.
        if not asked.number or number > self.numbers.get(party, (0, 0)):
            try:
                if not asked.once:
                    said = self.publish(asked.event, party, now)
                else:
                    said = self._publish_once(asked.event, party, now)
            except _REFUSED as problem:
                return [Reply(party, asked.request, problem)]
            if asked.number:
                self._came(party, *number)
            self._store_something(now)
        return [*said, Reply(party, asked.request, events=1)]

    def _publish_once(self, event: Event, party: str, now: int) -> list[Effect]:
        """What follows from an event, unless it came before."""
        if event.source is None or event.id is None:
            raise no_name(event.source, event.id)
        mark = mark_of(event.source, event.id)
        if self.once.knows(party, mark):
            return []
        said = self.publish(event, party, now)
        self.once.note(party, [mark])
        return said

    def _store_something(self, now: int) -> None:
        """Be no quicker where nobody wants it (see `Settings.even`)."""
        if self._here.settings.even:
            self._put(("evenly",), now)

    def publish(self, event: Event, party: str, now: int) -> list[Effect]:
        """What follows from an event that enters here; raises if it must not, or cannot travel."""
        here = self._here
        if not here.settings.alone:
            return here.passing.parcels((self._parcel(event, party, now),), None, now)
        event = self._admitted(event, party, now)
        env = here.environment.values
        told = here.edge.take(event, here.name, here.at(), env, event.stamp)
        if event.type not in here.tables:
            return [*told]
        messages = here.tables.put(event, now)
        return here._settled([*told, *here.tell_of(event.type, messages, now)], now)

    def _admitted(self, event: Event, party: str, now: int) -> Event:
        """An event as it enters, if it may."""
        here = self._here
        event = event.entering(now)
        check_published(event)
        here.access.publish(party, event.type, event.attributes)
        here.advertising.check(event, party)
        if here.tables:
            here.tables.admit(event)
        return event

    def _parcel(self, event: Event, party: str, now: int, size: int | None = None) -> Parcel:
        """An event that enters, on its way; its size is known if it came as a record."""
        here = self._here
        event = self._admitted(event, party, now)
        stamps = here.environment.stamps() if here.settings.stamped else {}
        parcel = Parcel(here.name, here.at(), event, party, stamps=stamps)
        # A parcel names what a form says: one that is small by far need not be written to be sure.
        small = size is not None and size < _SMALL and len(event.attributes) < _FEW
        if not small and len(encode_parcel(parcel)) > RECORD_BYTES_MAX:
            raise InvalidValue("event", f"at most {RECORD_BYTES_MAX} bytes", "more")
        return parcel

    # Many

    @property
    def forms(self) -> Forms:
        """The forms of events that are known here."""
        if self._forms is None:
            # Imported when they are wanted: they bring compiled code with them.
            from driftline.broker.formed import Forms

            self._forms = Forms(self._put)
        return self._forms

    def many(self, asked: PublishMany, party: str, now: int) -> list[Effect]:
        """A party publishes events that lie as records."""
        intake = self.ready()
        done = _Done()
        known = 0
        try:
            records, known = self._unknown(asked, party)
            done.taken = known
            if asked.once:
                self._take_once(done, intake, records, asked, party, now)
            else:
                self._take(done, intake, records, asked, party, now)
        except FrameRefused as problem:
            # What came before it has been taken. Who waits for the journal must not hold the frames
            # of where it was raised: what the records lie in would not be free again.
            done.refused = problem.with_traceback(None)
        if asked.number and done.taken:
            self._came(party, asked.life, asked.number + done.taken - 1)
        self._store_something(now)
        reply = Reply(
            party,
            asked.request,
            done.refused,
            events=done.taken - known - len(done.problems) - done.again,
            came=done.taken,
            denied=len(done.problems),
            problems=tuple(done.problems),
        )
        return [*done.said, reply]

    def light(self, records: bytes | memoryview, forms: NDArray[np.int64], most: int) -> int:
        """How many of these, from the first on, take no more than so much to be judged?"""
        return self.ready().light(records, forms, most)

    def _take(
        self,
        done: _Done,
        intake: Intake,
        records: bytes | memoryview,
        asked: PublishMany,
        party: str,
        now: int,
    ) -> None:
        """Let all of these records enter."""
        from driftline.broker.intake import Further, Lot, Told

        here = self._here
        stamps = stamps_of(here.environment.stamps() if here.settings.stamped else {})
        latest = 0
        for piece in intake.take(records, asked.forms, Lot(now), here.reserve):
            if isinstance(piece, Told):
                done.taken += piece.events
                done.said += self.tell(piece)
                latest = piece.latest
                continue
            if isinstance(piece, Further):
                here.links.passed(latest)
                done.said += self.send(piece, here.name, 0, stamps)
                continue
            parcels: list[Parcel] = []
            try:
                for one in piece:
                    event = intake.hard(records, one, asked.forms, asked.own)
                    try:
                        parcels.append(self._parcel(event, party, now, one.end - one.start))
                    except _REFUSED as problem:
                        done.problems.append((done.taken, problem.with_traceback(None)))
                    done.taken += 1
            finally:
                done.said += here.passing.parcels(parcels, None, now)
            self.plan(intake)

    def _take_once(
        self,
        done: _Done,
        intake: Intake,
        records: memoryview,
        asked: PublishMany,
        party: str,
        now: int,
    ) -> None:
        """Let those of these records enter that did not come before."""
        before = done.taken
        apart = partial(_apart, intake, asked) if asked.apart else None
        fresh = self.once.fresh(party, records, apart)
        some = _Done()
        try:
            self._take(some, intake, fresh.records, asked, party, now)
        finally:
            # Who is refused may come again, with the same name.
            refused = {at for at, _ in some.problems}
            new = [mark for at, mark in enumerate(fresh.marks[: some.taken]) if at not in refused]
            self.once.note(party, new)
            is_all = some.taken == len(fresh.places)
            done.taken += fresh.came if is_all else fresh.places[some.taken]
            done.said += some.said
            why = {fresh.places[at]: one for at, one in some.problems}
            # Nor has what has the name of one that is refused been published.
            of_these = [(at, why[first]) for at, first in fresh.twice if first in why]
            of_these = [(at, one) for at, one in of_these if at < done.taken - before]
            problems = [*why.items(), *of_these, *fresh.problems]
            done.problems += sorted(
                ((before + at, one) for at, one in problems), key=lambda pair: pair[0]
            )
            done.again += done.taken - before - some.taken - len(fresh.problems) - len(of_these)

    def _unknown(self, asked: PublishMany, party: str) -> tuple[memoryview, int]:
        """The records that did not come before, and how many did."""
        records = memoryview(asked.records)
        life, last = self.numbers.get(party, (0, 0))
        if not asked.number or (asked.life, asked.number) > (life, last):
            return records, 0
        had = last - asked.number + 1 if asked.life == life else len(records)
        at = known = 0
        for record in split_records(records):
            if known == had:
                break
            at += len(record)
            known += 1
        return records[at:], known

    def tell(self, told: Told) -> list[Effect]:
        """What events that kernels took come to for parties here."""
        said: list[Effect] = [] if told.now is None else [told.now]
        for party, kept in told.kept:
            if self._here.edge.parties.keep(party, kept):
                said.append(kept.delivery(party))
        return said

    def send(self, further: Further, origin: str, hops: int, stamps: bytes) -> list[Effect]:
        """Send on what goes to a link, unless it has come too far already."""
        link, notices, events, forms = further
        if hops >= self._here.settings.hops:
            return []
        bundles = bundled(notices, events, forms, origin, hops + 1, stamps)
        return [self._here.outbox.post(link, tuple(bundles))]

    def ready(self) -> Intake:
        """What takes many events at a time, by what is asked for now."""
        if self._intake is None:
            from driftline.broker.intake import Intake
            from driftline.matching.index import Index

            edge, ways = self._here.edge, self._here.links.ways
            if not isinstance(edge.index, Index) or ways is None:
                raise NotSupported("events as records", "the broker's matcher is no index")
            parties, links = (edge.index, edge.parties.slots), (ways.index, ways.slots)
            self._intake = Intake(parties, links, self.forms, edge.counted)
        self.plan(self._intake)
        return self._intake

    def plan(self, intake: Intake) -> None:
        """Let it go by what is asked for now."""
        here = self._here
        concern, subscriptions = here.edge.concern, here.links.subscriptions
        version = (concern.version, subscriptions.version, here.tables.version)
        intake.plan(version, self._plainly)

    def _plainly(self, type: str) -> bool:
        """Is an event of this type told to parties, sent to neighbours, and nothing else?"""
        here = self._here
        return (
            not is_derived(type)
            and not here.settings.advertised
            and not here.settings.as_of
            and type not in here.tables
            and here.edge.concern.plain(type)
            and here.links.subscriptions.plain(type)
        )


def _apart(intake: Intake, asked: PublishMany, record: memoryview) -> str:
    """What tells a record apart from others of the same source and id."""
    value = intake.read(record, asked.forms, asked.own).attributes.get(asked.apart)
    if not isinstance(value, str):
        came = "none" if value is None else f"a value of type {type_name(value)}"
        raise InvalidValue("event", f"a text {asked.apart}, to be told apart by", came)
    return value
