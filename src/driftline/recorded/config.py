"""What is a pipeline? Where events come from, what is kept, and where goes what was told.

Said in TOML, or in Python by the same names:

    [events]
    path = "events"             # a directory of Parquet files or JSON lines
    default_type = "quote"      # for events that say none

    [changes]
    path = "changes"            # a directory of files of changes, or one file

    [out]
    path = "out"

    [tables.quote]
    key = "symbol"
    spread = true               # rows on the shards of their keys: for moved(…) and crossed(…)

Paths are seen from where the file is. Everything has a default but the two paths of events and out.
"""

from __future__ import annotations

import hashlib
import math
import os
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from driftline.broker.identity import ANYONE, durable_of
from driftline.client.address import BrokerAddress
from driftline.errors import DriftlineError, FileRefused, InvalidValue
from driftline.language.cloudevents import value_from
from driftline.language.sql import parse
from driftline.model.event import RESERVED
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.table import TableDeclaration
from driftline.recorded.places import Kept, Places

RECORDED = "recorded"
TIME = "time"


class InputConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A durable subscription at a broker, whose events come in.

    `distinct` is how many events are looked back for one with the same source and id, 0: none.
    """

    address: str
    subscription: str
    text: str
    params: dict[str, Any] = {}
    authority: str | None = None
    distinct: int = 100_000

    @property
    def standing(self) -> Standing:
        """What is asked for; raises if it cannot be."""
        statement = parse(self.text)
        if not isinstance(statement, Subscription) or statement.change is not None:
            wanted = "a text that is told events and has no memory: SELECT … FROM … WHERE …"
            raise InvalidValue("events.broker.text", wanted, str(statement))
        params = {name: value_from(one, f":{name}") for name, one in self.params.items()}
        return Standing.of(statement, params)

    def check(self) -> None:
        """Raise if it cannot be asked for."""
        BrokerAddress.of(self.address)
        durable_of(ANYONE, self.subscription)
        if not self.subscription:
            raise InvalidValue("events.broker.subscription", "a name", "none")
        if self.distinct < 0:
            raise InvalidValue("events.broker.distinct", "0 or more", str(self.distinct))
        _ = self.standing


class EventsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files below a directory; or a broker, or with a format that is neither, any source that Spark
    knows.

    What another source gives is written to the directory first, so that it has an order for good.
    """

    path: str
    format: str | None = None
    options: dict[str, str] = {}
    default_type: str | None = None
    broker: InputConfig | None = None


class ChangesConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A directory of files of changes, or one file."""

    path: str | None = None


class OutputConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broker where what was told is published, as events of a type."""

    address: str
    type: str = "notification"
    authority: str | None = None


class OutConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where tables are written; if wanted, a table of a database and a broker get them as well."""

    path: str
    jdbc: dict[str, str] = {}
    broker: OutputConfig | None = None


class TableConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table: its key, the ticks of its money columns, and how it is kept (see `places`)."""

    key: str
    ticks: dict[str, str] = {}
    group: str = ""
    spread: bool = False


class OrderConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """In which order the events of one item count, for what has memory (see `order`).

    `by` is "recorded", "time", or an attribute that counts. `lateness` is how much an event may be
    behind (seconds; for a count, so many) and still be put in its place.
    """

    by: str = RECORDED
    lateness: float = 0.0
    late: Literal["refuse", "accept"] = "refuse"


class RunConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How it runs. `checkpoint` is by default a directory of that name in the output."""

    checkpoint: str | None = None
    shards: int = 2
    events_per_batch: int = 1_000_000
    interval: float = 0.2
    replayed: int = 200_000


class PipelineConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it."""

    events: EventsConfig
    out: OutConfig
    changes: ChangesConfig = ChangesConfig()
    tables: dict[str, TableConfig] = {}
    order: OrderConfig = OrderConfig()
    run: RunConfig = RunConfig()

    @property
    def checkpoint(self) -> Path:
        """Where it is remembered what is done."""
        return Path(self.run.checkpoint or Path(self.out.path, "checkpoint"))

    @property
    def places(self) -> Places:
        """Where things are remembered."""
        kept = {
            name: Kept(TableDeclaration.of(name, one.key, dict(one.ticks)), one.group, one.spread)
            for name, one in self.tables.items()
        }
        return Places(self.run.shards, kept, ordered=self.order.by != RECORDED)

    @property
    def fingerprint(self) -> str:
        """What tells states apart: of another configuration they are other states."""
        said = {
            "tables": self.tables,
            "order": self.order,
            "shards": self.run.shards,
            "default_type": self.events.default_type,
        }
        return hashlib.sha256(msgspec.json.encode(said, order="sorted")).hexdigest()[:16]

    def check(self) -> PipelineConfig:
        """Itself, if it can be run; DriftlineError if not."""
        places = self.places
        if not 1 <= places.shards <= 10_000:
            raise InvalidValue("run.shards", "from 1 to 10,000", str(places.shards))
        if self.run.events_per_batch < 1:
            raise InvalidValue("run.events_per_batch", "1 or more", str(self.run.events_per_batch))
        if not 0 <= self.run.interval < math.inf:
            raise InvalidValue("run.interval", "seconds, 0 or more", str(self.run.interval))
        if not self.order.lateness >= 0:
            raise InvalidValue("order.lateness", "0 or more", str(self.order.lateness))
        self._check_brokers()
        for source in filter(None, (self.events.path, self.changes.path)):
            for other in (Path(self.out.path), self.checkpoint):
                if other.resolve().is_relative_to(Path(source).resolve()):
                    why = f"wanted a place outside {source}, came one in it"
                    raise FileRefused(str(other), None, why)
        return self

    def _check_brokers(self) -> None:
        come, go = self.events.broker, self.out.broker
        if come is not None:
            if self.events.format is not None:
                wanted = "a broker or a format of events, not both"
                raise InvalidValue("events.format", wanted, self.events.format)
            come.check()
        if go is not None:
            BrokerAddress.of(go.address)
            if not go.type or go.type.startswith(RESERVED):
                wanted = f"a type that does not begin with {RESERVED}"
                raise InvalidValue("out.broker.type", wanted, repr(go.type))


def read_config(path: str | Path) -> PipelineConfig:
    """The pipeline in a TOML file; FileRefused if it says none."""
    file = Path(path)
    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
        config = msgspec.convert(said, PipelineConfig)
    except OSError as problem:
        raise FileRefused(str(path), None, problem.strerror or str(problem)) from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as problem:
        raise FileRefused(str(path), None, str(problem)) from problem
    except RecursionError:
        raise FileRefused(str(path), None, "no TOML: lists in lists, too deep") from None
    try:
        return _seen_from(config, Path(os.path.abspath(file)).parent).check()
    except DriftlineError as problem:
        raise FileRefused(str(path), None, str(problem)) from problem


def _seen_from(config: PipelineConfig, here: Path) -> PipelineConfig:
    # Files are recorded by their paths, which must not depend on where somebody stood.
    replace = msgspec.structs.replace
    changes, checkpoint = config.changes.path, config.run.checkpoint
    come, go = config.events.broker, config.out.broker
    if come is not None and come.authority is not None:
        come = replace(come, authority=str(here / come.authority))
    if go is not None and go.authority is not None:
        go = replace(go, authority=str(here / go.authority))
    return replace(
        config,
        events=replace(config.events, path=str(here / config.events.path), broker=come),
        out=replace(config.out, path=str(here / config.out.path), broker=go),
        changes=ChangesConfig(None if changes is None else str(here / changes)),
        run=replace(config.run, checkpoint=None if checkpoint is None else str(here / checkpoint)),
    )
