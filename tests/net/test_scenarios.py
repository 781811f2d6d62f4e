"""Do brokers that are processes tell what the engine tells, whatever is asked of them?

Random programs as the simulator makes them, over overlays of several topologies, through the real
client. The engine does the same steps, and says what each subscription must be told: each step is
waited for everywhere before the next, so there is one answer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import driftline as dl
from driftline.client.client import Client
from driftline.errors import DriftlineError
from driftline.model.notification import Notification, NotificationKind
from tests.net.processes import BrokerProcess, Brokers
from tests.net.programs import Program, Step, program

STEPS = 120
_WITHIN = 15.0

CASES = [
    pytest.param("acyclic", 4, id="acyclic", marks=pytest.mark.slow),
    pytest.param("hierarchical", 3, id="hierarchical", marks=pytest.mark.slow),
    pytest.param("general", 4, id="general"),
    pytest.param("figure 8", 5, id="figure 8", marks=pytest.mark.slow),
    pytest.param("mixed", 4, id="mixed"),
]


def _plain(told: Notification) -> tuple[Any, ...]:
    """What a notification says, without when."""
    events = tuple((one.type, *sorted(one.attributes.items())) for one in told.events)
    old = None if told.old is None else tuple(sorted(told.old.items(), key=str))
    values = tuple(sorted(told.values.items(), key=str))
    return str(told.kind), told.key, values, old, events


class Both:
    """The engine and the brokers, step by step."""

    def __init__(
        self, said: Program, clients: dict[str, Client], brokers: list[BrokerProcess]
    ) -> None:
        self._program = said
        self._clients = clients
        self._brokers = brokers
        self._marks: list[Any] = []
        self._marked = 0
        self._engine = dl.Engine()
        self._handles: dict[str, Any] = {}
        self._subscriptions: dict[str, Any] = {}
        self.wanted: dict[str, list[Notification]] = {}
        self.came: dict[str, list[Notification]] = {}
        self.texts: dict[str, Step] = {}
        self.refused = 0

    async def run(self) -> None:
        """Do all of it."""
        for client in self._clients.values():
            self._marks.append(await client.subscribe("SELECT * FROM mark"))
        for at, step in enumerate(self._program.steps):
            wanted = self._refusal(self._engine_does, step)
            came = await self._refusal_of(self._broker_does(step))
            assert wanted == came, f"step {at}, {step}: {came}, and the engine: {wanted}"
            self.refused += wanted is not None
            if step.does in ("publish", "delete"):
                await self._mark(step)
            elif step.does in ("subscribe", "set"):
                await self._join()
            await self._settle(at, step)
        await asyncio.sleep(0.3)
        self._collect()

    def _refusal(self, does: Callable[[Step], None], step: Step) -> str | None:
        try:
            does(step)
        except DriftlineError as problem:
            return type(problem).__name__
        return None

    async def _refusal_of(self, doing: Awaitable[None]) -> str | None:
        try:
            await doing
        except DriftlineError as problem:
            return type(problem).__name__
        return None

    def _engine_does(self, step: Step) -> None:
        engine, values = self._engine, step.values
        if step.does == "declare":
            engine.table(step.id, step.text)
        elif step.does == "observe":
            engine.set_env(step.id, values["value"])
        elif step.does == "subscribe":
            handle = engine.subscribe(step.text, values, rows=step.rows)
            self._handles[step.id] = handle
            self.wanted[step.id] = []
            self.texts[step.id] = step
        elif step.does == "set" and step.id in self._handles:
            self._handles[step.id].set(**values)
        elif step.does == "cancel" and step.id in self._handles:
            self.wanted[step.id] += self._handles[step.id].pending()
            self._handles.pop(step.id).cancel()
        elif step.does == "delete":
            engine.delete(step.id, values["key"])
        elif step.does == "publish":
            engine.publish(dl.Event(step.id, values))

    async def _broker_does(self, step: Step) -> None:
        values = step.values
        client = self._clients.get(step.broker)
        if step.does == "observe":
            for each in self._clients.values():
                await each.observe(step.id, values["value"])
            return
        assert client is not None
        if step.does == "declare":
            await client.declare(step.id, step.text)
        elif step.does == "advertise":
            await client.advertise(step.text)
        elif step.does == "subscribe":
            one = await client.subscribe(step.text, values, rows=step.rows)
            self._subscriptions[step.id] = one
            self.came[step.id] = []
        elif step.does == "set" and step.id in self._subscriptions:
            await self._subscriptions[step.id].set(**values)
        elif step.does == "cancel" and step.id in self._subscriptions:
            self.came[step.id] += self._subscriptions[step.id].pending()
            await self._subscriptions.pop(step.id).cancel()
        elif step.does == "delete":
            await client.delete(step.id, values["key"])
        elif step.does == "publish":
            await client.publish(dl.Event(step.id, values))

    async def _mark(self, step: Step) -> None:
        """What one publishes keeps its order: where a mark has come all before it has."""
        self._marked += 1
        await self._clients[step.broker].publish(dl.Event("mark", {"n": self._marked}))
        for one in self._marks:
            assert (await one.next(_WITHIN)).values["n"] == self._marked

    async def _join(self) -> None:
        """Wait until each view has what its table holds."""
        for one in self._brokers:
            while await asyncio.to_thread(one.ask, "joining"):
                await asyncio.sleep(0.005)

    def _collect(self) -> None:
        for id, handle in self._handles.items():
            self.wanted[id] += handle.pending()
        for id, one in self._subscriptions.items():
            self.came[id] += one.pending()

    async def _settle(self, at: int, step: Step) -> None:
        """Wait until brokers have told as much as the engine has."""
        deadline = asyncio.get_running_loop().time() + _WITHIN
        while True:
            self._collect()
            late = [id for id in self._handles if len(self.came[id]) < len(self.wanted[id])]
            if not late:
                return
            if asyncio.get_running_loop().time() > deadline:
                id = late[0]
                raise AssertionError(
                    f"seed {self._program.seed}, {self._program.topology}, step {at}, {step}: "
                    f"{self.texts[id]} was told {[*map(_plain, self.came[id])]} "
                    f"and not {[*map(_plain, self.wanted[id])]}"
                )
            await asyncio.sleep(0.005)

    def compare(self) -> None:
        """The same for everybody."""
        for id, wanted in self.wanted.items():
            came = self.came[id]
            gaps = [one for one in came if one.kind is NotificationKind.GAP]
            assert not gaps, f"{self.texts[id]}: {gaps}"
            found, expected = Counter(map(_plain, came)), Counter(map(_plain, wanted))
            assert found == expected, (
                f"{self.texts[id]}: {[*(found - expected)]} too much, "
                f"{[*(expected - found)]} too little"
            )


@pytest.mark.parametrize(("topology", "most"), CASES)
def test_brokers_tell_what_the_engine_tells(
    topology: str, most: int, tmp_path: Path, seed: int
) -> None:
    made = program(seed, topology, most, STEPS)

    async def main(brokers: Brokers) -> None:
        started = await asyncio.to_thread(brokers.overlay, made.links, made.brokers)
        clients = {one.name: await dl.connect(one.address).open() for one in started}
        both = Both(made, clients, started)
        try:
            for client in clients.values():
                await client.confirm(30)
            await both.run()
        finally:
            for client in clients.values():
                await client.close()
        both.compare()
        told = sum(map(len, both.came.values()))
        print(f"{len(both.came)} subscriptions, {told} notifications, {both.refused} refused")
        assert told > 50
        for one in started:
            assert one.ask("check") == "sound"

    with Brokers(tmp_path) as brokers:
        asyncio.run(asyncio.wait_for(main(brokers), 170))
