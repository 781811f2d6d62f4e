"""How is a delivery kept until its party has had it?

As an array: party, number, subscriptions, event, sequences, origin, position, gap, gaps, handler,
epochs, stamps, news. Events are records, as they travel; news of a view is `[kind, values, old,
keys]`.
"""

from __future__ import annotations

from typing import Any

from driftline.broker.effects import Deliver
from driftline.model.event import Event
from driftline.model.message import Parcel
from driftline.model.notification import NotificationKind
from driftline.stateful.news import News
from driftline.wire.records import decode_parcel, encode_parcel


def write_event(event: Event) -> bytes:
    """The record of an event that is not on its way."""
    return encode_parcel(Parcel("", 0, event))


def read_event(record: bytes) -> Event:
    """The inverse of `write_event`."""
    return decode_parcel(record, "event").event


def write_delivery(one: Deliver) -> list[Any]:
    """The array of a delivery."""
    sequences = {id: [*map(write_event, events)] for id, events in one.sequences.items()}
    news = {id: [*map(_write_news, some)] for id, some in one.news.items()}
    return [
        one.party,
        one.number,
        one.subscriptions,
        write_event(one.event),
        sequences,
        one.origin,
        one.position,
        one.gap,
        one.gaps,
        one.handler,
        one.epochs,
        dict(one.stamps),
        news,
    ]


def read_delivery(written: list[Any]) -> Deliver:
    """The inverse of `write_delivery`."""
    party, number, ids, event, sequences, origin, position, *rest = written
    gap, gaps, handler, epochs, stamps, news = rest
    return Deliver(
        party,
        number,
        tuple(ids),
        read_event(event),
        {id: tuple(map(read_event, events)) for id, events in sequences.items()},
        origin,
        position,
        gap,
        tuple(gaps),
        handler,
        tuple(epochs),
        stamps,
        {id: tuple(map(_read_news, some)) for id, some in news.items()},
    )


def _write_news(one: News) -> list[Any]:
    return [one.kind.value, one.values, one.old, one.keys]


def _read_news(written: list[Any]) -> News:
    kind, values, old, keys = written
    return News(NotificationKind(kind), values, old, tuple(keys))
