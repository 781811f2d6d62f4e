"""A PostgreSQL server of our own, for as long as a test file needs it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

NO_SERVER = "no PostgreSQL server here, and scripts/servers.sh could not install one"


class Server:
    """A server in a folder, reached by a socket there. As root it runs as somebody else."""

    def __init__(self, programs: Path) -> None:
        # In memory if that can be: its processes are killed here, its disk is not.
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self.folder = Path(mkdtemp(prefix="driftline-pg-", dir=memory))
        self._programs = programs
        self._as = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        if os.geteuid():
            self._as = []
        else:
            shutil.chown(self.folder, "nobody", "nogroup")
        self._process: subprocess.Popen[bytes] | None = None
        self._made = 0
        self._data = self.folder / "data"
        made = [programs / "initdb", "-D", self._data, "-U", "b", "-A", "trust", "-E", "UTF8"]
        subprocess.run([*self._as, *made, "-N"], check=True, capture_output=True, cwd=self.folder)
        self.start()

    def start(self) -> None:
        command = [self._programs / "postgres", "-D", self._data, "-k", self.folder]
        settings = ["-c", "listen_addresses=", "-c", "max_connections=20"]
        self._process = subprocess.Popen(
            [*self._as, *command, *settings],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            start_new_session=True,
        )
        ready = [self._programs / "pg_isready", "-q", "-t", "30", "-h", self.folder, "-U", "b"]
        while subprocess.run(ready).returncode:
            assert self._process.poll() is None, "the server has ended"

    def kill(self) -> None:
        """End it at once, and all of its processes."""
        assert self._process is not None
        first = self._process.pid
        os.kill(first, signal.SIGSTOP)  # So that it does not begin others meanwhile.
        children = Path(f"/proc/{first}/task/{first}/children")
        # Where that is not known they end by themselves, when they see that it has.
        for child in children.read_text().split() if children.exists() else ():
            os.kill(int(child), signal.SIGKILL)
        os.kill(first, signal.SIGKILL)
        self._process.wait()

    def database(self) -> str:
        """The address of a place of its own, a schema."""
        self._made += 1
        address = f"postgresql://b@/postgres?host={self.folder}"
        command = ["-q", "-c", f"CREATE SCHEMA s{self._made}", address]
        subprocess.run([self._programs / "psql", *command], check=True)
        return f"{address}&options=-csearch_path%3Ds{self._made}"

    def end(self) -> None:
        assert self._process is not None
        # Not at once: it would leave memory that it shares with nobody.
        self._process.send_signal(signal.SIGINT)
        self._process.wait()
        shutil.rmtree(self.folder)


def _programs() -> Path | None:
    found = [Path(one).resolve().parent for one in [shutil.which("postgres")] if one]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((one for one in found if (one / "initdb").exists()), None)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="an extra: pip install 'driftline[postgres]'")
    programs = _programs()
    if programs is None:
        pytest.skip(NO_SERVER)
    made = Server(programs)
    yield made
    made.end()


@pytest.fixture
def database(server: Server) -> str:
    return server.database()
