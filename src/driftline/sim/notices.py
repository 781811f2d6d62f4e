"""What do notices tell a simulated party? What deliveries of the same events would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from driftline.broker.effects import Deliver, DeliverMany, Run
from driftline.wire.compact import split_records
from driftline.wire.forms import Form
from driftline.wire.notices import read_notice
from driftline.wire.stream import HEAD_BYTES


def deliveries(
    told: DeliverMany,
    run: Run,
    forms: Mapping[int, Form],
    handles: Mapping[str, int],
    broker: str,
) -> Iterator[Deliver]:
    """The notices of one party as deliveries, by the ids that its handles stand for."""
    ids = {handle: id for id, handle in handles.items()}
    start = run.start if told.kept else run.start + HEAD_BYTES
    for raw in split_records(told.raw[start : run.end]):
        notice = read_notice(raw, forms)
        yield Deliver(
            run.party,
            notice.number,
            tuple(ids[handle] for handle, _ in notice.marks),
            notice.event,
            {},
            broker,
            notice.number,
            gap=notice.gap,
            epochs=tuple(epoch for _, epoch in notice.marks),
        )
