"""How does a broker as a process end: when asked, when asked twice, when its journal breaks?"""

import asyncio
import signal
import subprocess
import sys
import time

import pytest

from driftline.errors import JournalDamaged
from driftline.net.address import Address
from driftline.net.config import Config
from driftline.net.running import AT_ONCE, run
from driftline.net.secrets import without_password
from tests.processes import SOON

# One whose ending takes long.
_SLOW = """
import asyncio
from driftline.net.address import Address
from driftline.net.config import Config
from driftline.net.running import run
from driftline.net.server import Server

async def drain(self, within):
    await asyncio.sleep(SECONDS)

Server.drain = drain
config = Config("b", Address("127.0.0.1", 0))
asyncio.run(run(config, lambda server: print("ready", flush=True), with_parent=True))
"""


def slow(seconds):
    program = _SLOW.replace("SECONDS", str(seconds))
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


def ended(process):
    try:
        return process.wait(SOON)
    finally:
        process.kill()
        process.communicate()


def test_a_second_signal_ends_it_at_once():
    process = slow(10 * SOON)
    process.send_signal(signal.SIGTERM)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert ended(process) == AT_ONCE


def test_two_signals_at_the_same_moment_are_one():
    process = slow(1)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    assert ended(process) == 0


def test_it_ends_when_whoever_started_it_has_gone():
    process = slow(0)
    process.stdin.close()
    process.stdin = None
    assert ended(process) == 0


def test_it_may_open_as_many_files_as_the_system_lets_it():
    resource = pytest.importorskip("resource")
    few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
    try:
        process = slow(0)
        now = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        assert now == (65_536 if most < 0 else min(most, 65_536), most)
        process.send_signal(signal.SIGTERM)
        assert ended(process) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, most))


def test_it_ends_with_the_reason_when_its_journal_is_broken_for_good(tmp_path):
    def ready(server):
        server.commits._end(JournalDamaged("b.journal", "an entry is not what was written"))

    config = Config("b", Address("127.0.0.1", 0), str(tmp_path / "b.journal"))
    with pytest.raises(JournalDamaged):
        asyncio.run(asyncio.wait_for(run(config, ready, drain=1.0), SOON))


@pytest.mark.parametrize(
    ("journal", "said"),
    [
        ("memory:", "memory:"),
        ("a/b.journal", "a/b.journal"),
        ("postgresql://host/db", "postgresql://host/db"),
        (
            "postgresql://host/db?user=me&password=secret",
            "postgresql://host/db?user=me&password=***",
        ),
        ("postgresql://me:secret@host:5/db", "postgresql://me:***@host:5/db"),
    ],
)
def test_a_journals_password_is_not_shown(journal, said):
    assert without_password(journal) == said
