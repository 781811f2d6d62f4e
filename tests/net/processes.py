"""How do tests come by brokers that are processes of their own?

    with Brokers(folder) as brokers:
        one = brokers.start("b0")
        two = brokers.start("b1", {"b0": "peer"})       # which dials b0
        one.kill(); one.restart()                       # on the same port and journal

Everything that was started is ended, whatever the test did.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import driftline
from driftline.broker.links import Role
from driftline.net.link import OTHER_END

READY_WITHIN = 300.0
"""Seconds. The first broker on a machine compiles its kernels."""
_CHILD = Path(__file__).with_name("serving_process.py")


class BrokerProcess:
    """One broker: a process that can be killed, stopped and begun again."""

    def __init__(self, folder: Path, said: dict[str, Any], prefix: list[str]) -> None:
        self.name: str = said["name"]
        self.port = 0
        self.http_port = 0
        self.host = "127.0.0.1"
        self.said = said
        self._folder = folder
        self._prefix = prefix
        self._process: subprocess.Popen[str] | None = None
        self._lives = 0

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process is not None
        return self._process.pid

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"driftline://{self.host}:{self.port}"

    @property
    def http(self) -> str:
        """Where it is reached over HTTP."""
        return f"http://{self.host}:{self.http_port}"

    @property
    def errors(self) -> str:
        """All that it said on standard error, in all of its lives."""
        texts = sorted(self._folder.glob(f"{self.name}.*.err"))
        return "\n".join(one.read_text() for one in texts)

    def launch(self) -> None:
        """Start the process; `ready` waits for it."""
        if self._process is not None:
            assert not self.is_up()
            self._close()
        self._lives += 1
        errors = (self._folder / f"{self.name}.{self._lives}.err").open("w")
        source = str(Path(driftline.__file__).parents[1])
        self._process = subprocess.Popen(
            [*self._prefix, sys.executable, str(_CHILD), json.dumps(self.said)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            bufsize=1,
            env=os.environ | {"PYTHONPATH": source, "PYTHONUNBUFFERED": "1"},
        )
        errors.close()

    def ready(self) -> BrokerProcess:
        """Wait until it listens."""
        said = self._line(READY_WITHIN)
        self.port = said["port"]
        self.said["listen"] = f"{self.host}:{self.port}"
        if "http" in said:
            self.http_port = said["http"]
            self.said["http"] = {**self.said["http"], "listen": f"{self.host}:{self.http_port}"}
        return self

    def restart(self) -> BrokerProcess:
        """Begin again, on the same port and with the same journal."""
        self.launch()
        return self.ready()

    def ask(self, do: str, **more: object) -> Any:
        """Ask the process itself; see `serving_process`."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **more}) + "\n")
        self._process.stdin.flush()
        return self._line(60.0)

    def _line(self, within: float) -> Any:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(within):
                raise AssertionError(f"{self.name} says nothing for {within:g} s: {self.errors}")
        line = process.stdout.readline()
        if not line:
            code = process.wait(10)
            raise AssertionError(f"{self.name} has ended with {code}: {self.errors}")
        return json.loads(line)

    def rss(self) -> int:
        """The bytes of memory it has in use."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def kill(self) -> None:
        """End it at once: kill -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._close()

    def pause(self) -> None:
        """Let it do nothing: SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on: SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def is_up(self) -> bool:
        """Is there a process?"""
        return self._process is not None and self._process.poll() is None

    def wait(self, within: float) -> int:
        """The code with which it ends."""
        assert self._process is not None
        return self._process.wait(within)

    def end(self, within: float = 30.0) -> int:
        """Let it end in peace; its code, 0 if nothing went wrong."""
        assert self._process is not None
        if self.is_up():
            self._process.terminate()
        try:
            code = self._process.wait(within)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} does not end: {self.errors}") from None
        self._close()
        return code

    def _close(self) -> None:
        assert self._process is not None
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


class Brokers:
    """The brokers of one test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.all: dict[str, BrokerProcess] = {}

    def define(
        self,
        name: str,
        peers: Mapping[str, str] | None = None,
        *,
        awaited: Mapping[str, str] | None = None,
        journal: bool | str = True,
        prefix: list[str] | None = None,
        host: str = "127.0.0.1",
        **said: Any,
    ) -> BrokerProcess:
        """A broker that is not started yet, and dials those of its `peers` that are known."""
        tables = []
        for other, role in (peers or {}).items():
            tables.append({"name": other, "role": role, "address": self._where(other)})
        for other, role in (awaited or {}).items():
            tables.append({"name": other, "role": role})
        config: dict[str, Any] = {"name": name, "listen": f"{host}:0", "peers": tables, **said}
        if journal:
            own = f"sqlite:///{self._folder / name}.journal"
            config["journal"] = journal if isinstance(journal, str) else own
        one = self.all[name] = BrokerProcess(self._folder, config, prefix or [])
        one.host = host
        return one

    def start(self, *args: Any, **named: Any) -> BrokerProcess:
        """Like `define`, and it is there when this returns."""
        one = self.define(*args, **named)
        one.launch()
        return one.ready()

    def overlay(
        self, links: list[tuple[str, str, Role]], names: list[str], **said: Any
    ) -> list[BrokerProcess]:
        """Brokers linked so: what the second is to the first. Later ones dial earlier ones."""
        ports = _free_ports(len(names))
        for at, name in enumerate(names):
            peers: dict[str, str] = {}
            awaited: dict[str, str] = {}
            for here, there, role in links:
                if name not in (here, there):
                    continue
                other = there if name == here else here
                what = role if name == here else OTHER_END[role]
                earlier = names.index(other) < at
                (peers if earlier else awaited)[other] = str(what)
            one = self.define(name, peers, awaited=awaited, **said)
            one.port = ports[at]
            one.said["listen"] = f"{one.host}:{one.port}"
            one.launch()
        return [self.all[name].ready() for name in names]

    def _where(self, name: str) -> str:
        known = self.all[name]
        return f"{known.host}:{known.port}"

    def __enter__(self) -> Brokers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        wrong = []
        for one in self.all.values():
            if one._process is None:
                continue
            if one.is_up():
                one.resume()
                if error is not None:
                    one.kill()
                    continue
                code = one.end()
            else:
                code = one._process.returncode
                one._close()
            if code not in (0, -signal.SIGKILL):
                wrong.append(f"{one.name} ended with {code}: {one.errors}")
        assert not wrong, "\n".join(wrong)


def _free_ports(many: int) -> list[int]:
    """Ports that were free just now, so that all can be started at once."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(many)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports
