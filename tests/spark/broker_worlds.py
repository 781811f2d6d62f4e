"""A pipeline between two brokers: what is published at the one, and what the other is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

import driftline as dl
from driftline.language.cloudevents import event_from
from driftline.model.event import Event
from driftline.recorded.config import InputConfig, OutputConfig
from driftline.recorded.recorder import read_sequence
from driftline.spark.telling import published
from tests.net.processes import BrokerProcess, Brokers
from tests.recorded.worlds import World, made_event

ASKED = "SELECT * FROM quote WHERE n >= :least"
"""Trades are not asked for: what the broker is to filter does not come."""
TOLD = "SELECT * FROM alert"


def sent(number: int) -> Event:
    """The how manyth event that is published; all of them are quotes."""
    made = made_event(number if number % 3 else number + 1)
    attributes = {**made.attributes, "n": number}
    return Event("quote", attributes, id=f"e{number}", source="feed", time=made.time)


class BetweenBrokers(World):
    """A world whose events come from a broker, and whose notifications go to one."""

    def __init__(self, root: Path, brokers: Brokers, **run: Any) -> None:
        super().__init__(root, **run)
        self.come: BrokerProcess = brokers.start("come")
        self.go: BrokerProcess = brokers.start("go")
        replace = msgspec.structs.replace
        come = InputConfig(self.come.address, "pipeline", ASKED, {"least": 0})
        self.config = replace(
            self.config,
            events=replace(self.config.events, broker=come),
            out=replace(self.config.out, broker=OutputConfig(self.go.address, "alert")),
        )
        # There before anything is published.
        self._attach(self.come, "pipeline", ASKED, {"least": 0})
        self._attach(self.go, "reader", TOLD, {})

    @staticmethod
    def _attach(broker: BrokerProcess, name: str, text: str, params: dict[str, Any]) -> None:
        with dl.connect(broker.address) as client:
            client.subscribe(text, params, durable=name).detach()

    def publish(self, numbers: Iterable[int]) -> None:
        """Publish these at the broker that events come from."""
        with dl.connect(self.come.address) as client:
            client.publish_many(sent(number) for number in numbers)

    def came(self) -> Counter[str | None]:
        """How often each event is in the files of the pipeline."""
        found: Counter[str | None] = Counter()
        for file in Path(self.config.events.path).glob("[!.]*.jsonl"):
            for line in file.read_bytes().splitlines():
                found[event_from(msgspec.json.decode(line)).id] += 1
        return found

    def published(self) -> int:
        """How many notifications are published, as the pipeline notes it."""
        return sum(one.total for one in published(self.config).values())

    def recorded(self) -> int:
        """How many numbers there are."""
        return read_sequence(self.config.checkpoint).end

    def is_told(self) -> bool:
        """Are all notifications published that one engine tells of what is recorded?"""
        return self.published() == self.wanted().total()

    def kept(self) -> int:
        """How much the broker still keeps for the pipeline."""
        with dl.connect(self.come.address) as client:
            kept: int = client.status()["kept"]
            return kept

    def alerts(self) -> list[Event]:
        """What the other broker was told, all of it: each notification has a number of its own."""
        end = Event("alert", id=uuid4().hex, source="reader")
        found: dict[int, Event] = {}
        with (
            dl.connect(self.go.address) as client,
            client.subscribe(TOLD, durable="reader", ack="manual") as reader,
        ):
            client.publish(end)
            for told in reader:
                assert told.event is not None
                if told.event.id == end.id:
                    break
                if told.event.source != end.source:
                    found[told.number] = told.event
        return list(found.values())


def said(alerts: Iterable[Event]) -> Counter[tuple[object, ...]]:
    """Of what each was told: the number, who, and how."""
    names = ("told_seq", "told_to", "told_kind")
    return Counter(tuple(one.attributes[name] for name in names) for one in alerts)
