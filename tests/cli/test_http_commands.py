"""Does the handbook of HTTP do what it shows, step by step?"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from driftline.net.config import config_of
from tests.cli.test_secure_commands import free_port

HANDBOOK = Path(__file__).parents[2] / "docs" / "howto" / "http.md"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not there")
def test_the_steps_one_after_the_other(tmp_path):
    command = tmp_path / "driftline"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m driftline "$@"\n')
    command.chmod(0o755)
    blocks = re.findall(r"```bash\n(.*?)```", HANDBOOK.read_text(), re.DOTALL)
    assert len(blocks) == 2
    steps = (
        "".join([*blocks, "kill %1\nwait\n"])
        .replace("7480", str(free_port()))
        .replace("--name london", f"--name london --listen 127.0.0.1:{free_port()}")
    )
    ran = subprocess.run(
        ["bash", "-e", "-m", "-c", steps],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads((tmp_path / "openapi.json").read_text())
    assert said["openapi"].startswith("3.")
    assert '{"name":"cheap","created":true,"epoch":0}' in ran.stdout
    assert '{"published":2}' in ran.stdout
    assert '{"epoch":1}' in ran.stdout
    assert re.search(r"^id: [0-9a-f]+-\d+$", ran.stdout, re.M)
    assert '"values":{"firm":"IBM","price":9.5}' in ran.stdout
    assert "DIS" not in ran.stdout
    # The event whose envelope is in headers, at the same broker.
    assert ran.stdout.endswith('{"published":1}')


def test_the_settings_are_those_there_are():
    block = re.findall(r"```toml\n(.*?)```", HANDBOOK.read_text(), re.DOTALL)[0]
    config = config_of(tomllib.loads(block))
    assert config.http is not None
    assert config.http.streams == 200
