"""Random programs of events and changes, and what one engine tells of each.

A program has tables, types and variables of its own, so that many can be recorded as one sequence
and still be told apart: what each is told must be what an engine of its own tells it.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

import driftline as dl
from driftline.errors import DriftlineError
from driftline.language.cloudevents import value_to
from driftline.model.event import Event
from driftline.model.notification import Notification
from driftline.recorded.config import PipelineConfig, TableConfig
from driftline.recorded.interpreter import EntryClock, _of_follower
from driftline.recorded.replay import Answer, answers
from driftline.recorded.told import Row
from driftline.sim import texts
from driftline.workload.files import write_events, write_json_events
from tests.engine.worlds import CHANGED, CROWDS, PLAIN, ROWS

PATTERNS = [
    "SELECT * FROM t WHERE y > :low THEN SELECT v FROM m",
    "SELECT * FROM t THEN SELECT * FROM t WHERE y < 3 WITHIN 3",
    "SELECT v FROM m THEN SELECT * WHERE y > 2 WITHIN 5",
]

ROUNDS = 8
BEGIN = 1_700_000_000_000_000
END = BEGIN + 3_600_000_000
"""When all programs end, so that time has passed alike for all."""


@dataclass
class Program:
    """Rounds of changes and then events, each with its time."""

    name: str
    spread: bool
    rounds: list[tuple[list[dict], list[Event]]] = field(default_factory=list)
    followed: set[str] = field(default_factory=set)
    """Who is told when time alone moves a bound: whenever somebody looks."""

    @property
    def tables(self) -> dict[str, TableConfig]:
        group = f"g{int(self.name) % 5}"
        return {
            f"{table}{self.name}": TableConfig(key, group=group, spread=self.spread)
            for table, key in texts.KEYS.items()
        }


class _Drawing:
    """Draws one program."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.name = str(seed)
        self.spread = seed % 4 == 0
        self.program = Program(self.name, self.spread)
        self.standing: dict[str, dict] = {}
        self.numbers = 0

    def drawn(self) -> Program:
        for _ in range(ROUNDS):
            changes = [self.change() for _ in range(self.draw.randrange(6))]
            events = [self.event() for _ in range(self.draw.randrange(12))]
            self.program.rounds.append(([one for one in changes if one], events))
        last = [Event(self.own(type), self.row(type), source=self.name) for type in "tu"]
        self.program.rounds.append(([], last))
        return self.program

    def own(self, text: str) -> str:
        text = re.sub(r"\b([tum])\b(?!')", rf"\g<1>{self.name}", text)
        text = text.replace("env('v')", f"env('v{self.name}')")
        # What asks for any type would be told of other programs.
        return re.sub(r"^(SELECT .*) WHERE (.*?)$", self._narrowed, text, flags=re.S)

    def _narrowed(self, found: re.Match[str]) -> str:
        select, where = found[1], found[2]
        if "FROM" in select.rsplit("SELECT", 1)[1]:
            return found[0]
        where, within, rest = where.partition(" WITHIN ")
        return f"{select} WHERE ce_source = '{self.name}' AND ({where}){within}{rest}"

    def change(self) -> dict | None:
        draw = self.draw
        if draw.random() < 0.45 or not self.standing:
            return self.subscribe()
        op = draw.choice(["set", "set", "set", "cancel", "env", "delete", "restate", "wrong"])
        if op == "env":
            value = draw.choice([None, 0, 0.5, 1, 2])
            return {"op": op, "name": f"v{self.name}", "value": value}
        if op == "delete":
            table = self.own("t")
            return {"op": op, "table": table, "key": draw.randrange(5)}
        if op == "wrong":
            return draw.choice(
                [
                    {"op": "cancel", "id": f"nobody{self.name}"},
                    {"op": "nonsense"},
                    {"id": f"w{self.name}", "text": "SELECT"},
                    {"op": "delete", "table": f"no{self.name}", "key": 1},
                    {"op": "set", "id": draw.choice([*self.standing]), "params": {"no": 1}},
                ]
            )
        id = draw.choice([*self.standing])
        asked = self.standing[id]
        if op == "cancel":
            del self.standing[id]
            return {"op": op, "id": id}
        if op == "restate" and asked["plain"]:
            text = self.own(draw.choice([text for text in PLAIN if "WHERE" in text]))
            names = dl.parse(text).variables().parameters
            self.standing[id] = {"names": names, "plain": True}
            return {
                "op": op,
                "id": id,
                "text": text,
                "params": self.params(names),
            }
        rebase = {"rebase": True} if draw.random() < 0.2 else {}
        return {"op": "set", "id": id, "params": self.params(asked["names"]), **rebase}

    def subscribe(self) -> dict:
        draw = self.draw
        kinds = [PLAIN, PATTERNS, texts._FOLLOWED, CROWDS]
        kinds += [] if self.spread else [texts._VIEWS, texts._VIEWS, ROWS]
        kind = draw.choice(kinds)
        text = draw.choice(kind).format(k=draw.randrange(3), j=draw.randrange(3))
        text = self.own(text)
        names = dl.parse(text).variables().parameters
        self.numbers += 1
        id = f"{self.name}-{self.numbers}"
        asked = {"id": id, "text": text, "params": self.params(names)}
        if kind is ROWS:
            asked |= {"rows": True, "on_change": draw.choice(CHANGED)}
            if asked["on_change"] == "follow":
                self.program.followed.add(id)
        self.standing[id] = {"names": names, "plain": kind is PLAIN}
        return asked

    def params(self, names: frozenset[str]) -> dict:
        draw = self.draw
        low, r = draw.randrange(7), draw.choice([0.5, 1, 2, 2.5])
        of = {"low": low, "high": low + draw.randrange(4), "z": draw.randrange(3), "r": r}
        of |= {"s": r + draw.randrange(3), "p": draw.choice([10, 40]), "f": draw.choice([1.1, 2])}
        return {name: of[name] for name in sorted(names)}

    def event(self) -> Event:
        type = self.draw.choice("ttttum")
        row = self.row(type)
        if self.draw.random() < 0.05:
            # One that its table refuses.
            row.pop(texts.KEYS.get(type, "v"), None)
        return Event(self.own(type), row, source=self.name)

    def row(self, table: str) -> dict:
        draw = self.draw
        if table == "u":
            return {"j": draw.randrange(3), "w": draw.randrange(6), "z": draw.randrange(3)}
        if table == "m":
            return {"v": draw.randrange(7), "x": draw.randrange(7), "y": float(draw.randrange(7))}
        row = {"k": draw.randrange(5), "x": draw.randrange(8), "z": draw.randrange(3)}
        row["y"] = draw.choice([draw.randrange(9) * 1.0, draw.randrange(90) / 10])
        if draw.random() < 0.1:
            del row[draw.choice("xyz")]
        return row


def programs(count: int) -> list[Program]:
    """So many, each by its own number, at times that go forward as they are recorded together."""
    some = [_Drawing(seed).drawn() for seed in range(count)]
    draw, now = random.Random(count), BEGIN
    for number in range(ROUNDS + 1):
        for program in some:
            for change in program.rounds[number][0]:
                now += draw.choice([0, 1, 1000, 30_000])
                change["time"] = now
        for program in some:
            events = program.rounds[number][1]
            for at, event in enumerate(events):
                now += draw.choice([0, 1, 1000, 30_000])
                events[at] = event.stamped(END if number == ROUNDS else now)
    return some


def recorded(some: list[Program], root: Path, *, parquet: bool) -> list[list[Path]]:
    """Write the rounds of all programs as files, with dates in their order: those of each round."""
    written: list[list[Path]] = []
    date = 1_000_000_000
    for number in range(ROUNDS + 1):
        files = [root / "changes" / f"{number}.jsonl"]
        files[0].parent.mkdir(parents=True, exist_ok=True)
        changes = [change for program in some for change in program.rounds[number][0]]
        files[0].write_bytes(b"".join(msgspec.json.encode(_tagged(c)) + b"\n" for c in changes))
        events = [event for program in some for event in program.rounds[number][1]]
        name = root / "events" / f"{number}.{'parquet' if parquet else 'jsonl'}"
        name.parent.mkdir(parents=True, exist_ok=True)
        if parquet:
            (file,) = write_events(events, str(root / "events" / ".new"))
            os.replace(file, name)
        else:
            write_json_events(events, str(name))
        files.append(name)
        for file in files:
            date += 1
            os.utime(file, (date, date))
        written.append(files)
    return written


def _tagged(change: dict) -> dict:
    params = {name: value_to(value) for name, value in change.get("params", {}).items()}
    return change | ({"params": params} if params else {})


def config_of(some: list[Program], root: Path, out: str = "out", **run: object) -> PipelineConfig:
    """A pipeline of these programs."""
    said = {
        "events": {"path": str(root / "events")},
        "changes": {"path": str(root / "changes")},
        "out": {"path": str(root / out)},
        "run": run,
    }
    config = msgspec.convert(said, PipelineConfig)
    tables = {name: one for program in some for name, one in program.tables.items()}
    return msgspec.structs.replace(config, tables=tables).check()


def told_by_engines(some: list[Program]) -> Counter[Answer]:
    """What an engine of its own tells each program, by the numbers of the sequence."""
    runs = {program.name: _Told(program) for program in some}
    seq = 0
    for number in range(ROUNDS + 1):
        for program in some:
            for change in program.rounds[number][0]:
                runs[program.name].change(seq, change)
                seq += 1
        for program in some:
            for event in program.rounds[number][1]:
                runs[program.name].publish(seq, event)
                seq += 1
    return _sum(runs.values())


def _sum(runs) -> Counter[Answer]:
    total: Counter[Answer] = Counter()
    for run in runs:
        total.update(comparable(answers(run.rows), run.program.followed))
    return total


def comparable(found: Counter[Answer], followed: set[str]) -> Counter[Answer]:
    """What time alone tells is told when somebody looks, which is said by no number."""
    same: Counter[Answer] = Counter()
    for answer, count in found.items():
        same[(None, *answer[1:]) if answer[1] in followed else answer] += count
    return same


class _Told:
    """One engine, with everything in it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.clock = EntryClock()
        self.engine = dl.Engine(clock=self.clock)
        for name, table in program.tables.items():
            self.engine.table(name, table.key)
        self.handles: dict[str, dl.Handle] = {}
        self.rows: list[Row] = []

    def change(self, seq: int, change: dict) -> None:
        self.clock.us = change.get("time", self.clock.us)
        op = change.get("op", "subscribe")
        try:
            if op == "subscribe":
                how = {name: change[name] for name in ("rows", "on_change") if name in change}
                handle = self.engine.subscribe(change["text"], change.get("params"), **how)
                self.handles[change["id"]] = handle
            elif op == "env":
                self.engine.set_env(change["name"], change["value"])
            elif op == "delete":
                self.engine.delete(change["table"], change["key"])
            elif op in ("set", "cancel", "restate") and change["id"] in self.handles:
                handle = self.handles[change["id"]]
                if op == "cancel":
                    handle.cancel()
                    del self.handles[change["id"]]
                elif op == "restate":
                    handle._restate(dl.parse(change["text"]), change["params"])
                elif change.get("rebase"):
                    handle.rebase(**change["params"])
                else:
                    handle.set(**change["params"])
        except DriftlineError:
            pass
        self.take(seq)

    def publish(self, seq: int, event: Event) -> None:
        assert event.entered is not None
        self.clock.us = event.entered
        with suppress(DriftlineError):
            self.engine.publish(event)
        self.take(seq)

    def take(self, seq: int) -> None:
        for id, handle in self.handles.items():
            for told in handle.pending():
                self.rows.append(Row(seq, 0, (id,), self._said(handle, told)))

    def _said(self, handle: dl.Handle, told: Notification) -> Notification:
        return _of_follower(handle, told)
