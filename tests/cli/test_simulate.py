"""What does `driftline simulate` print, and how does it end?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from driftline.cli.main import app
from driftline.routing.table import Table
from driftline.sim.topologies import TOPOLOGIES


def run(*arguments: str):
    return CliRunner().invoke(app, ["simulate", *arguments])


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_one_run_tells_what_happened(topology: str) -> None:
    done = run("--topology", topology, "--seed", "3", "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert (facts["topology"], facts["seed"], facts["violation"]) == (topology, 3, None)
    assert facts["told"] > 0


@pytest.mark.parametrize("topology", ["general", "figure 9"])
def test_the_same_seed_gives_the_same_run(topology: str, tmp_path: Path) -> None:
    """In processes that order their sets differently."""
    for hashes in ("1", "2"):
        subprocess.run(
            [
                *(sys.executable, "-c", "from driftline.cli.main import main; main()"),
                *("simulate", "--topology", topology, "--seed", "5"),
                *("--trace", str(tmp_path / hashes)),
            ],
            env={**os.environ, "PYTHONHASHSEED": hashes},
            check=True,
            capture_output=True,
        )
    assert (tmp_path / "1").read_text() == (tmp_path / "2").read_text()
    assert "wants" in (tmp_path / "1").read_text()


def test_a_soak_counts_its_runs() -> None:
    facts = json.loads(run("--soak", "6", "--json").stdout)
    assert (facts["runs"], facts["violations"], facts["failed_seeds"]) == (6, 0, [])


def test_a_failure_ends_with_the_command_that_replays_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "drop", lambda self, owner, key: None)
    done = run("--soak", "6", "--json")
    assert done.exit_code == 1
    facts = json.loads(done.stdout)
    assert facts["violations"] == len(facts["failed_seeds"]) > 0
    assert "replay: driftline simulate --topology" in done.stderr


def test_an_unknown_topology_is_refused_by_name() -> None:
    done = run("--topology", "ring")
    assert done.exit_code == 2
    assert "ring" in done.output
