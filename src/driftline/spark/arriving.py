"""How do events of a broker get an order for good, each once, whatever dies on the way?

What was taken is written to a file of the directory of events, whose name says which numbers of the
durable subscription are in it; then it is noted, and only then is the broker told that it need not
keep them. A file has its name in one step. So whoever comes next finds in the directory how far
whoever came before has come, and what it had taken and not written is told again:

    died              is there          next time
    before the file   nothing           the broker tells it again
    before the note   the file          it goes on behind the file's last number
    before the ack    file and note     the broker hears of it when it is attached to again

An event that was published twice is known by its source and id, and taken once.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from driftline.errors import PipelineFailed, Unreachable
from driftline.language.cloudevents import event_to
from driftline.model.event import Event
from driftline.model.recent import Recent, mark_of
from driftline.recorded.config import InputConfig, PipelineConfig
from driftline.recorded.sequence import replace_file, sync
from driftline.spark.taking import Taken, Taking

log = logging.getLogger(__name__)

NOTE = "arrived.json"
FILE_EVENTS = 100_000
"""So many events in a file at most: they are in memory until they are in it."""
GAPS_KEPT = 1000


class Gap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something is missing before the event of a number."""

    number: int
    seen: int
    """When that was heard, in microseconds since 1970."""


class Arrived(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a pipeline is with a durable subscription."""

    broker: str
    subscription: str
    number: int = 0
    """All up to here is in files."""
    events: int = 0
    repeated: int = 0
    """Events that had come before, by source and id."""
    gaps: tuple[Gap, ...] = ()
    missing: int = 0
    """When it was heard that something is missing before whatever comes next; 0: nothing is."""
    mark: str = ""
    """By what the subscription is known that no other ever was; empty: that is not known."""


def arrived(config: PipelineConfig) -> Arrived | None:
    """What is noted of a pipeline's input, None if it has none or nothing has come."""
    try:
        return msgspec.json.decode((config.checkpoint / NOTE).read_bytes(), type=Arrived)
    except FileNotFoundError:
        return None


class Arriving:
    """The input of a pipeline that is a broker, while it runs."""

    def __init__(self, config: PipelineConfig) -> None:
        said = config.events.broker
        assert said is not None
        self._said: InputConfig = said
        self._note = config.checkpoint / NOTE
        self._directory = Path(config.events.path)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._interval = config.run.interval
        self._written = 0.0
        self._taking = Taking(said.address, said.authority)
        try:
            self._begin(config)
        except BaseException:
            self.close()
            raise

    def _begin(self, config: PipelineConfig) -> None:
        """Go on where whoever came before has left."""
        said = self._said
        whose = self._taking.broker, said.subscription
        # Numbers are a broker's own, and those of a subscription are its own.
        self._prefix = f"broker-{mark_of(*whose).hex()[:12]}-"
        files = sorted(self._directory.glob(f"{self._prefix}*.jsonl"))
        for half in self._directory.glob(f".{self._prefix}*"):
            half.unlink()
        found = arrived(config)
        noted = found is not None and (found.broker, found.subscription) == whose
        if found is None or not noted:
            found = Arrived(*whose)
        last = max([_last(file) for file in files], default=0)
        self.state = msgspec.structs.replace(found, number=max(found.number, last))
        self._date = max((file.stat().st_mtime_ns for file in files), default=0)
        self._recent = Recent(max(1, said.distinct))
        self._remember(files)
        number = self.state.number
        known = noted or number > 0
        self._taking.attach(said.subscription, said.standing, number, known=known)
        if self._taking.is_lost:
            self._renew()
        elif found.mark != self._taking.mark:
            # From here on it is known to have been there, though nothing may come for long. If
            # another was noted, that was ended, and with it went what it had kept.
            missing = found.missing or (time.time_ns() // 1000 if found.mark else 0)
            self._noted(missing=missing, mark=self._taking.mark)

    def _renew(self) -> None:
        """The broker has lost the subscription: that is noted, and then it is made again."""
        log.warning(
            "%s has lost %s, which is made again: something is missing from here on",
            self._said.address,
            self._said.subscription,
        )
        self._note_missing()
        self._taking.renew(self.state.number)

    @contextmanager
    def _missing_if_taken(self) -> Iterator[None]:
        """Whoever else has the subscription may let go what we were not told."""
        try:
            yield
        except PipelineFailed:
            self._note_missing()
            raise

    def _note_missing(self) -> None:
        if not self.state.missing:
            self._noted(missing=time.time_ns() // 1000)

    def _remember(self, files: list[Path]) -> None:
        """The names of the last events that came: they are in the last files."""
        wanted = self._said.distinct
        marks: list[list[bytes]] = []
        for file in reversed(files):
            if wanted <= 0:
                break
            with file.open("rb") as lines:
                marks.append([one for line in lines if (one := _mark(*_name_in(line)))])
            wanted -= len(marks[-1])
        for some in reversed(marks):
            self._recent.add(some)

    def take_all(self) -> None:
        """Take all that was kept when it was attached to."""
        while self.state.number < self._taking.kept_up_to:
            try:
                with self._missing_if_taken():
                    some = self._taking.take_up_to(self._taking.kept_up_to, FILE_EVENTS)
            except TimeoutError:
                why = f"it does not tell what it keeps for {self._said.subscription}"
                raise Unreachable(self._said.address, why) from None
            if some:
                self._write(some)
            if self._taking.is_lost:
                self._renew()

    def take(self) -> bool:
        """Take what has come, if it is time for another file; has anything?"""
        if time.monotonic() < self._written + self._interval:
            return False
        with self._missing_if_taken():
            some = self._taking.take(FILE_EVENTS)
        if some:
            self._write(some)
        elif self._taking.is_lost:
            self._renew()
        return bool(some)

    def _write(self, some: list[Taken]) -> None:
        if some[0].number <= self.state.number:
            why = f"number {some[0].number} came behind {self.state.number}: it has lost its"
            why += " journal, and its clock was set back; take another name for the subscription"
            raise PipelineFailed(f"reading from {self._said.address}", why)
        now = time.time_ns() // 1000
        gaps = tuple(Gap(one.number, now) for one in some if one.gap)
        if self.state.missing:
            gaps = Gap(some[0].number, self.state.missing), *gaps
        if gaps:
            # Before the file: behind it nobody would hear of them again.
            log.warning(
                "%s has not kept everything for %s: something is missing before number %d",
                self._said.address,
                self._said.subscription,
                gaps[0].number,
            )
            known = {gap.number: gap for gap in (*gaps[::-1], *self.state.gaps)}
            kept = tuple(sorted(known.values(), key=lambda gap: gap.number)[-GAPS_KEPT:])
            self._noted(gaps=kept, missing=0, mark=self._taking.mark or self.state.mark)
        events = [one.event for one in some if one.event is not None]
        fresh = self._distinct(events)
        last = some[-1].number
        if fresh:
            self._put(f"{self._prefix}{some[0].number:020d}-{last:020d}.jsonl", fresh)
        state = self.state
        self._noted(
            number=last,
            events=state.events + len(fresh),
            repeated=state.repeated + len(events) - len(fresh),
        )
        self._acknowledge(last)
        self._written = time.monotonic()

    def _put(self, name: str, events: list[Event]) -> None:
        hidden = self._directory / f".{name}"
        with hidden.open("wb") as file:
            for event in events:
                file.write(msgspec.json.encode(event_to(event)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        # Files count in the order of their dates, also if the clock was set back.
        self._date = max(self._date + 1, time.time_ns())
        os.utime(hidden, ns=(self._date, self._date))
        os.replace(hidden, self._directory / name)
        sync(self._directory)

    def _noted(self, **changed: object) -> None:
        self.state = msgspec.structs.replace(self.state, **changed)
        replace_file(self._note, msgspec.json.format(msgspec.json.encode(self.state)) + b"\n")

    def _acknowledge(self, number: int) -> None:
        self._taking.acknowledge(number)

    def _distinct(self, events: list[Event]) -> list[Event]:
        """Those that did not come before."""
        if not self._said.distinct:
            return events
        fresh: list[Event] = []
        marks: dict[bytes, None] = {}
        for event in events:
            mark = _mark(event.source, event.id)
            if mark is not None:
                if mark in self._recent or mark in marks:
                    continue
                marks[mark] = None
            fresh.append(event)
        self._recent.add(marks)
        return fresh

    def close(self) -> None:
        """Leave the broker; what comes is kept there."""
        self._taking.close()


def _last(file: Path) -> int:
    """The last number that is in a file."""
    with suppress(ValueError):
        return int(file.stem.rpartition("-")[2])
    return 0


def _mark(source: str | None, id: str | None) -> bytes | None:
    return None if source is None or id is None else mark_of(source, id)


class _Name(msgspec.Struct):
    source: str | None = None
    id: str | None = None


_read_name = msgspec.json.Decoder(_Name).decode


def _name_in(line: bytes) -> tuple[str | None, str | None]:
    name = _read_name(line)
    return name.source, name.id
