"""How are the brokers of an overlay started, watched, restarted and ended?

Each is a process of its own, `driftline serve` with a file that is written for it. It says on its
standard output when it is ready; after that it is asked there twice a second which links are up:
its health page may be closed to us. One that dies is started again, later each time. When the
supervisor dies, whatever way, their standard input ends, and they end too.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from driftline.errors import BrokerFailed, Unreachable
from driftline.net.address import Address
from driftline.net.another import environment
from driftline.net.config import VARIABLES
from driftline.net.overlay import Plan, toml_of
from driftline.net.overlay_state import Lock, remove_state, write_state

LOOK = 0.5
DELAY_FIRST = 1.0
DELAY_LAST = 30.0
STEADY = 60.0
"""A broker that was up for so long is started again without delay, as if it had never died."""
ENDING = 15.0
PATIENCE = 5.0
"""Whoever does not answer for so long is taken for away."""

Say = Callable[[str], None]


class Process:
    """One broker: its process, if there is one, and what it says of itself."""

    def __init__(self, name: str, said: dict[str, Any], folder: Path, tls: bool) -> None:
        self.name = name
        self.address = f"driftline{'s' if tls else ''}://{Address.of(said['listen']).reached}"
        self.file = folder / f"{name}.toml"
        self.log = folder / f"{name}.log"
        self.journal = str(said["journal"])
        self.facts: dict[str, Any] | None = None
        """What it said when it was ready; None: it is not."""
        self.links: dict[str, bool] = {}
        self.restarts = 0
        self.process: asyncio.subprocess.Process | None = None
        self._is_asked = False
        self.file.write_text(toml_of(said) + "\n")

    async def start(self, command: Sequence[str]) -> None:
        """Start it, and wait until it is ready; `BrokerFailed` with its last words if it ends."""
        with open(self.log, "ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *command,
                "--config",
                str(self.file),
                "--json",
                "--with-parent",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=_environment(),
                # Ctrl-C is for the supervisor, which ends them in order.
                start_new_session=True,
            )
        self._is_asked = False
        assert self.process.stdout is not None
        if line := await self.process.stdout.readline():
            self.facts = json.loads(line)
            return
        await self.process.wait()
        raise BrokerFailed(self.name, self.last_words())

    def last_words(self) -> str:
        """The last line of its log; of one in JSON, what the problem was."""
        last = "it ended without a word"
        with suppress(OSError, IndexError):
            last = self.log.read_text(errors="replace").splitlines()[-1]
        with suppress(ValueError, KeyError, TypeError):
            return f"driftline: {json.loads(last)['problem']}"
        return last

    async def look(self) -> None:
        """Ask it which links are up."""
        process = self.process
        if self.facts is None or process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if not self._is_asked:
                # Once, until it answers: so neither can ever have to wait for the other to read.
                process.stdin.write(b"\n")
                self._is_asked = True
            self.links = json.loads(await asyncio.wait_for(process.stdout.readline(), PATIENCE))
            self._is_asked = False
        except (OSError, TimeoutError, ValueError):
            self.links = dict.fromkeys(self.links, False)

    def state(self) -> dict[str, Any]:
        """What there is, for whoever asks."""
        return {
            "name": self.name,
            "address": self.address,
            "process": None if self.process is None else self.process.pid,
            "up": self.facts is not None,
            "restarts": self.restarts,
            "health": None if self.facts is None else self.facts["health"],
            "journal": self.journal,
            "log": str(self.log),
        }

    async def end(self) -> None:
        """Ask it to end, and after a while end it."""
        process = self.process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), ENDING)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _environment() -> dict[str, str]:
    """The environment of a broker: ours, without what several brokers cannot be told at once."""
    own = {VARIABLES[name][0] for name in ("name", "listen", "journal", "health", "http.listen")}
    return {name: word for name, word in environment().items() if name not in own}


class Supervisor:
    """The brokers of a plan. `say` hears of what changes; `command` is `driftline serve`."""

    def __init__(self, plan: Plan, folder: Path, command: Sequence[str], say: Say) -> None:
        self.plan = plan
        self._folder = folder
        self._command = tuple(command)
        self._say = say
        self._lock = Lock(folder)
        self._ready = False
        self._links: dict[str, bool] = {}
        self.brokers: dict[str, Process] = {}

    async def run(self, ready: Callable[[dict[str, Any]], None], within: float) -> None:
        """Start all, call `ready` when all links are up, and look after them until SIGTERM or
        SIGINT; then end all. A second signal ends all at once.
        """
        self._lock.take()
        loop = asyncio.get_running_loop()
        asked = asyncio.Event()
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, self._asked, asked)
        ending = loop.create_task(asked.wait())
        work = loop.create_task(self._work(ready, within))
        try:
            await asyncio.wait((ending, work), return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
        finally:
            for task in (work, ending):
                task.cancel()
            await asyncio.gather(work, ending, return_exceptions=True)
            await asyncio.gather(*(one.end() for one in self.brokers.values()))
            remove_state(self._folder)
            self._lock.release()

    def _asked(self, asked: asyncio.Event) -> None:
        if asked.is_set():
            for one in self.brokers.values():
                if one.process is not None and one.process.returncode is None:
                    os.kill(one.process.pid, signal.SIGKILL)
        else:
            self._say("ending all brokers; once more to end them at once")
            asked.set()

    async def _work(self, ready: Callable[[dict[str, Any]], None], within: float) -> None:
        files = [
            one["journal"] for one in self.plan.brokers.values() if "://" not in one["journal"]
        ]
        for journal in {Path(one).parent for one in files}:
            if str(journal) != ".":
                # What is in there is of all parties.
                journal.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, said in self.plan.brokers.items():
            self.brokers[name] = Process(name, said, self._folder, "tls" in said)
        try:
            await asyncio.wait_for(self._begin(), within)
        except TimeoutError:
            waiting = [str(link) for link in self.plan.links if not self._is_up(str(link))]
            names = [one.name for one in self.brokers.values() if one.facts is None]
            why = f"not ready within {within:g} s: {', '.join(names or waiting)}"
            raise Unreachable(str(self.plan.file), why) from None
        self._ready = True
        self._write()
        ready(self.state())
        async with asyncio.TaskGroup() as tasks:
            for one in self.brokers.values():
                tasks.create_task(self._keep(one))
            tasks.create_task(self._watch())

    async def _begin(self) -> None:
        # The first alone: what it compiles on a machine's first day the others only load.
        first, *others = self.brokers.values()
        self._say(f"starting {first.name}")
        await first.start(self._command)
        if others:
            self._say(f"starting {', '.join(one.name for one in others)}")
        starting = [asyncio.ensure_future(one.start(self._command)) for one in others]
        try:
            await asyncio.gather(*starting)
        finally:
            for task in starting:
                task.cancel()
        while True:
            await self._look()
            if all(self._links.values()):
                return
            await asyncio.sleep(0.1)

    async def _look(self) -> None:
        await asyncio.gather(*(one.look() for one in self.brokers.values()))
        for link in self.plan.links:
            a, b = self.brokers[link.dialling], self.brokers[link.dialled]
            up = a.links.get(b.name, False) and b.links.get(a.name, False)
            before = self._links.get(str(link))
            self._links[str(link)] = up
            if self._ready and before != up:
                self._say(f"link {link} is {'up' if up else 'down'}")
        self._write()

    def _is_up(self, link: str) -> bool:
        return self._links.get(link, False)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            await self._look()

    async def _keep(self, one: Process) -> None:
        """Start a broker again whenever it has died."""
        loop = asyncio.get_running_loop()
        delay, since = DELAY_FIRST, loop.time()
        while True:
            assert one.process is not None
            code = await one.process.wait()
            one.facts = None
            if loop.time() - since > STEADY:
                delay = DELAY_FIRST
            why = signal.Signals(-code).name if code < 0 else one.last_words()
            self._say(f"{one.name} has died ({why}); again in {delay:g} s")
            self._write()
            await asyncio.sleep(delay)
            delay = min(2 * delay, DELAY_LAST)
            one.restarts += 1
            with suppress(BrokerFailed):
                await one.start(self._command)
                since = loop.time()
                self._say(f"{one.name} is up again, process {one.process.pid}")
                self._write()

    def state(self) -> dict[str, Any]:
        """All brokers and links, as they are now."""
        return {
            "file": str(self.plan.file),
            "process": os.getpid(),
            "ready": self._ready,
            "brokers": [one.state() for one in self.brokers.values()],
            "links": [
                {
                    "from": link.dialling,
                    "to": link.dialled,
                    "role": str(link.role),
                    "up": self._is_up(str(link)),
                }
                for link in self.plan.links
            ],
        }

    def _write(self) -> None:
        write_state(self._folder, self.state())
