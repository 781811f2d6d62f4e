"""Running the command line in this process, as a shell would see it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from driftline.cli.main import main


@dataclass(frozen=True)
class Ran:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output, which must be one JSON value and nothing else."""
        return json.loads(self.out)


@pytest.fixture
def driftline(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Call it with the words of a command line."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["driftline", *map(str, words)])
        code: object = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        printed = capsys.readouterr()
        return Ran(int(str(code or 0)), printed.out, printed.err)

    return run
