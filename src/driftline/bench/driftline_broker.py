"""How does Driftline do the job of `driftline bench broker`?

The server is `driftline serve`, a process of its own, with its limits, counters and the places
where access is checked as anybody gets them. Each connection subscribes by texts with parameters;
an event is the four values that NATS carries as JSON, in a form that is said once. The publisher
sends 100 events in a frame, as clients do that publish many; where latency is measured, those that
are due in the same tenth of a millisecond.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from driftline.bench.broker_contestant import Address, Appends, Load
from driftline.bench.broker_job import Job
from driftline.bench.cpu_clocks import process_cpu_s
from driftline.client.address import BrokerAddress
from driftline.kernels.bench_driftline import read_driftline
from driftline.kernels.bench_tally import Inbox, Tally
from driftline.model.event import Event
from driftline.wire import asking
from driftline.wire.compact import write_record
from driftline.wire.forms import Form, form_of
from driftline.wire.publishing import batch as batch_of
from driftline.wire.stream import Frames, Kind, frame
from driftline.workload.draws import SYMBOLS

WANTED = "SELECT * FROM quote WHERE symbol = :symbol AND price BETWEEN :low AND :high"
EVERYTHING = "SELECT * FROM quote"
_READY = b"ready"
_DURABLE = "bench"
_KEPT = 100_000_000


class Driftline:
    """A broker of our own."""

    name = "driftline"

    def __init__(
        self,
        durable: bool = False,
        name: str = "bench",
        peers: Mapping[str, Address | None] | None = None,
    ) -> None:
        self.called = name
        self._durable = durable
        self._peers = peers or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._address: Address = ("", 0)

    def start(self) -> Address:
        """Start the server, and return when it takes connections."""
        self._folder = folder = Path(tempfile.mkdtemp(prefix="driftline-bench-"))
        journal = "broker.journal" if self._durable else "memory:"
        (folder / "broker.toml").write_text(
            f'name = "{self.called}"\nlisten = "127.0.0.1:0"\njournal = "{journal}"\n'
            f"{self._settings(folder)}"
            f"[limits]\nkept = {_KEPT}\nsilence = 3600\n"
            + "".join(_peer(*peer) for peer in self._peers.items())
        )
        return self.start_again()

    def _settings(self, folder: Path) -> str:
        """What else its configuration says."""
        return ""

    def _token(self, client: str) -> str:
        """What proves whose a connection is."""
        return ""

    def start_again(self) -> Address:
        """Start it on what it kept."""
        assert self._folder is not None
        if self._process is not None:
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
        config = str(self._folder / "broker.toml")
        command = [sys.executable, "-m", "driftline", "serve", "--config", config, "--json"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.stop()
            raise RuntimeError("driftline serve did not start: see driftline serve --config")
        address = BrokerAddress.of(json.loads(line)["address"])
        self._address = address.host, address.port
        return self._address

    def stop(self) -> None:
        """Stop it, and remove what it kept."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._process = self._folder = None

    @property
    def address(self) -> Address:
        """Where it is."""
        return self._address

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process is not None
        return self._process.pid

    def cpu_s(self) -> float:
        """The CPU time the server has spent so far."""
        return process_cpu_s(self.pid)

    def load(self, job: Job, together: int = 100) -> Load:
        """The job in our protocol."""
        records, form = _records(job)
        stream, ends = _stream(records, together)
        wanted = job.subscriptions
        everything = job.payload_bytes is not None
        openings = []
        for connection in range(job.connections):
            rows = np.flatnonzero(wanted.connection == connection)
            asked = [_subscribe(job, int(row), everything) for row in rows]
            name = f"s{connection}"
            openings.append(_opening(name, asked, token=self._token(name)))
        openings.append(_opening("publisher", [], form, self._token("publisher")))
        left = np.zeros((job.connections + 1, 2), np.int64)

        def read(inbox: Inbox, count: int, tally: Tally) -> None:
            read_driftline(inbox, count, left, tally)

        def begun() -> None:
            left[:] = 0

        return Load(openings, is_open, stream, ends, _deliveries(job), read, begun)

    def appends(self, job: Job, batch: int) -> Sequence[Appends]:
        """Publishing what a durable subscription wants."""
        if not self._durable:
            return ()
        records, form = _records(job)
        batches = []
        for request, at in enumerate(range(0, len(records) - batch + 1, batch), 1):
            payload = batch_of(request, batch, at + 1, b"".join(records[at : at + batch]))
            batches.append(frame(Kind.EVENTS, payload))
        wanted = asking.Subscribe(1, 1, EVERYTHING, durable=_DURABLE)
        opening = _opening("publisher", [wanted, asking.Detach(2, 1)], form)

        def acknowledged(came: bytes) -> tuple[int, int]:
            events, read = 0, 0
            frames = Frames()
            for kind, payload in frames.feed(came):
                read += 8 + len(payload)
                if kind is Kind.REPLY:
                    assert not asking.decode_reply(payload).error
                    events += batch
            return events, read

        setting = "SQLite, WAL, synchronous=FULL; a durable subscription wants every event"
        return [
            Appends(self.name, setting, opening, is_open, batches, batch, acknowledged, self._kept)
        ]

    def _kept(self) -> int:
        """How many notifications wait for the durable subscription."""
        import socket

        with socket.create_connection(self._address, 20) as link:
            link.sendall(_opening("asker", [asking.Status(1)]))
            frames = Frames()
            while True:
                for kind, payload in frames.feed(link.recv(1 << 16)):
                    if kind is Kind.REPLY:
                        return int(asking.decode_reply(payload).value["kept"])


def is_open(came: bytes) -> bool:
    """Has the broker answered the ping at the end of an opening, and refused nothing?"""
    frames = Frames()
    done = False
    for kind, payload in frames.feed(came):
        if kind is Kind.GOODBYE:
            raise RuntimeError(f"the broker says {asking.decode_goodbye(payload).why}")
        if kind is Kind.REPLY and (reply := asking.decode_reply(payload)).error:
            raise RuntimeError(f"the broker says {reply.error}: {reply.facts}")
        done = kind is Kind.PONG and payload == _READY
    return done and not frames.held


def _opening(
    name: str, asked: Sequence[object], form: Form | None = None, token: str = ""
) -> bytes:
    parts = [frame(Kind.HELLO, asking.encode(asking.Hello(name, token)))]
    parts += [frame(Kind.REQUEST, asking.encode(one)) for one in asked]  # type: ignore[arg-type]
    if form is not None:
        parts.append(frame(Kind.FORM, asking.encode_form(0, form)))
    return b"".join((*parts, frame(Kind.PING, _READY)))


def _subscribe(job: Job, row: int, everything: bool) -> asking.Subscribe:
    wanted = job.subscriptions
    if everything:
        return asking.Subscribe(row + 1, row + 1, EVERYTHING, within=0)
    low, high = int(wanted.low[row]), int(wanted.high[row])
    params = {"symbol": SYMBOLS[int(wanted.symbol[row])], "low": low / 100, "high": high / 100}
    return asking.Subscribe(row + 1, row + 1, WANTED, params, within=0)


def _records(job: Job) -> tuple[list[bytes], Form]:
    """The events as records, and their form."""
    events = job.events
    columns = (events.symbol, events.price, events.volume)
    found = []
    form = Form("", ())
    pad = 0
    for number, (symbol, price, volume) in enumerate(
        zip(*(one.tolist() for one in columns), strict=True)
    ):
        values = {
            "n": number,
            "symbol": SYMBOLS[symbol],
            "price": price / 100,
            "volume": volume,
        }
        if job.payload_bytes is not None:
            values["pad"] = "x" * pad
        event = Event("quote", values)
        if number == 0:
            form = form_of(event)
            if job.payload_bytes is not None:
                # As many bytes of values as the others have of JSON.
                pad = job.payload_bytes - len(write_record(event, 0, form)) + 8
                event = Event("quote", {**values, "pad": "x" * pad})
        found.append(write_record(event, 0, form))
    return found, form


def _stream(records: list[bytes], together: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The publisher's bytes, and where those of each event end."""
    parts = []
    ends = np.empty(len(records), np.int64)
    size = 0
    for at in range(0, len(records), together):
        some = records[at : at + together]
        whole = frame(Kind.EVENTS, batch_of(0, len(some), 0, b"".join(some)))
        start = size + len(whole) - sum(map(len, some))
        ends[at : at + len(some)] = start + np.cumsum([len(one) for one in some])
        parts.append(whole)
        size += len(whole)
    return np.frombuffer(b"".join(parts), np.uint8), ends


def _deliveries(job: Job) -> int:
    """How many notices there will be: one for an event and a connection that wants it."""
    from driftline.bench.broker_job import truth_of

    return int(truth_of(job).useful_until[-1])


def _peer(name: str, address: Address | None) -> str:
    """One that is dialled, or waited for."""
    dialled = "" if address is None else f'address = "{address[0]}:{address[1]}"\n'
    return f'[[peers]]\nname = "{name}"\nrole = "peer"\n{dialled}'
