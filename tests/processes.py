"""How do tests run the command as processes, and end each by its own id?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

READY = 300.0
"""The very first start on a machine compiles for a minute or more."""
SOON = 60.0
COMMAND = (sys.executable, "-m", "driftline")
ENVIRONMENT = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
ENVIRONMENT.pop("DRIFTLINE_ADDRESS", None)


class Running:
    """A command that runs; its standard error goes to a file."""

    def __init__(self, folder: Path, *words: object, cwd: Path | None = None, **env: str) -> None:
        self._errors = folder / f"stderr-{time.monotonic_ns()}"
        with open(self._errors, "wb") as errors:
            self.process = subprocess.Popen(
                [*COMMAND, *map(str, words)],
                stdout=subprocess.PIPE,
                stderr=errors,
                stdin=subprocess.DEVNULL,
                text=True,
                cwd=cwd,
                env={**ENVIRONMENT, **env},
            )
        self.pid = self.process.pid

    @property
    def err(self) -> str:
        return self._errors.read_text()

    def line(self) -> str:
        """The next line of its standard output."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def object(self) -> Any:
        """The JSON object that it prints next."""
        text = ""
        while line := self.line():
            text += line
            # One object on a line, or one that is written for people.
            if line == "}" or (text == line and line.endswith("}")):
                return json.loads(text)
        raise AssertionError(f"{text!r}, and on standard error: {self.err}")

    def end(self, by: int = signal.SIGTERM) -> int:
        """Signal it, and wait for its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(by)
        return self.wait()

    def wait(self) -> int:
        try:
            return self.process.wait(SOON)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def served(folder: Path, *words: object) -> Iterator[tuple[Running, str]]:
    """A broker that is ready, on any port unless told, and its address."""
    listen = () if "--listen" in words else ("--listen", "127.0.0.1:0")
    running = Running(folder, "serve", "--json", *listen, *words)
    try:
        yield running, running.object()["address"]
    finally:
        running.kill()


def until(holds: Callable[[], bool], within: float = SOON) -> None:
    """Wait until something holds."""
    end = time.monotonic() + within
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
