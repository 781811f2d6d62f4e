"""Does the page on pipelines between brokers do what it says, as it stands there?"""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

import driftline as dl
from tests.processes import COMMAND, ENVIRONMENT, Running, served, until

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "pipeline-brokers.md"


def said(folder: Path, *words: str, address: str) -> str:
    ran = subprocess.run(
        [*COMMAND, *words],
        cwd=folder,
        env={**ENVIRONMENT, "DRIFTLINE_ADDRESS": address},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_it_is_set_up_and_run_as_the_page_says(tmp_path: Path) -> None:
    block = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    commands = re.findall(r"^    driftline (.*)$", PAGE.read_text(), re.MULTILINE)
    with served(tmp_path, "--journal", tmp_path / "london.journal") as (_, address):
        steps = block.replace("driftline://127.0.0.1:7400", address)
        subprocess.run(["bash", "-e", "-c", steps], cwd=tmp_path, check=True)
        run, sub, pub = map(shlex.split, commands)
        assert run[:2] == ["pipeline", "run"]
        run[2] = str(tmp_path / run[2])
        said(tmp_path, *sub, "--for", "0", address=address)
        running = Running(tmp_path, *run)
        try:
            until(lambda: has(address, 2), within=120)
            said(tmp_path, *pub, address=address)
            said(tmp_path, *pub, address=address)
            told = json.loads(
                said(tmp_path, *sub, "--count", "1", "--for", "60", "--json", address=address)
            )
            assert told["values"]["price"] == 9.5
            assert told["values"]["told_to"] == "cheap"
        finally:
            assert running.end(signal.SIGINT) == 0, running.err
        found = json.loads(said(tmp_path, "pipeline", "status", "mine", "--json", address=address))
        assert (found["arrived"]["events"], found["arrived"]["repeated"]) == (1, 1)
        assert (found["arrived"]["gaps"], found["published"]["notifications"]) == (0, 1)
        shown = said(tmp_path, "pipeline", "status", "mine", address=address)
        assert "1 events of mine at" in shown
        assert "1 notifications at" in shown


def has(address: str, subscriptions: int) -> bool:
    """Are there so many subscriptions at the broker?"""
    with dl.connect(address) as client:
        return bool(client.status()["subscriptions"] == subscriptions)
