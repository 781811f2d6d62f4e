"""How does NATS keep events on disk, and when does it say so?

JetStream: a stream of one replica in files, and `sync_interval: always`, which is the setting that
promises what a commit promises: what is acknowledged has been synced to disk. (Without it the
server syncs every two minutes, and acknowledges before.) There are two ways to publish a batch:

each       every message asks for an answer, all are sent, all answers awaited: a sync for each
together   an atomic batch, which is acknowledged as a whole: one sync of the messages, and a few
           for files that the server makes for the batch
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Sequence

from driftline.bench.broker_contestant import Address, Appends

SYNC = "sync_interval: always"

_ANSWERS = "_INBOX.bench"
_OPENING = f"SUB {_ANSWERS}.* 1\r\n"
_ANSWER = re.compile(rb"MSG [^\r]*\r\n(\{[^\r]*\})\r\n")
_TIMEOUT_S = 20.0


def appends_of(
    address: Address, connect: bytes, payloads: Sequence[str], batch: int
) -> list[Appends]:
    """Make a stream for each way, and say how these payloads are put into it."""
    ways: dict[str, tuple[Callable[[int, Sequence[str]], str], int]] = {
        "each": (_each, 1),
        "together": (_together, batch),
    }
    found = []
    for way, (written, events) in ways.items():
        stream = _Stream(address, connect, way)
        stream.make()
        found.append(
            Appends(
                f"NATS, {way}",
                f"JetStream, storage file, one replica, {SYNC}",
                connect + f"{_OPENING}PING\r\n".encode(),
                lambda came: b"PONG\r\n" in came,  # Something may be behind it, as in `nats`.
                [
                    written(at, payloads[at : at + batch]).encode()
                    for at in range(0, len(payloads), batch)
                ],
                batch,
                _Answers(events),
                stream.kept,
            )
        )
    return found


def _each(first: int, payloads: Sequence[str]) -> str:
    return "".join(
        f"PUB each.x {_ANSWERS}.a {len(payload)}\r\n{payload}\r\n" for payload in payloads
    )


def _together(first: int, payloads: Sequence[str]) -> str:
    """Headers say which batch and which of it; the last one commits, and is answered."""
    texts = []
    for at, payload in enumerate(payloads, 1):
        is_last = at == len(payloads)
        head = f"NATS/1.0\r\nNats-Batch-Id: b{first}\r\nNats-Batch-Sequence: {at}\r\n"
        head += "Nats-Batch-Commit: 1\r\n\r\n" if is_last else "\r\n"
        answer = f"{_ANSWERS}.a " if is_last else ""
        sizes = f"{len(head)} {len(head) + len(payload)}"
        texts.append(f"HPUB together.x {answer}{sizes}\r\n{head}{payload}\r\n")
    return "".join(texts)


class _Answers:
    """Counts what is acknowledged, where an answer stands for so many events."""

    def __init__(self, events: int) -> None:
        self._events = events

    def __call__(self, came: bytes) -> tuple[int, int]:
        count = end = 0
        for found in _ANSWER.finditer(came):
            if b'"error"' in found[1]:
                raise RuntimeError(f"wanted an acknowledgement, NATS says {found[1]!r}")
            count, end = count + self._events, found.end()
        return count, end


class _Stream:
    """A stream of its own for one way, and questions about it."""

    def __init__(self, address: Address, connect: bytes, way: str) -> None:
        self._address = address
        self._connect = connect
        self._way = way
        self._name = way.upper()

    def make(self) -> None:
        """In files, and such that batches may be atomic."""
        self._asked(
            "CREATE",
            name=self._name,
            subjects=[f"{self._way}.*"],
            storage="file",
            num_replicas=1,
            allow_atomic=True,
        )

    def kept(self) -> int:
        """How many messages it holds."""
        state = self._asked("INFO")["state"]
        assert isinstance(state, dict)
        return int(state["messages"])

    def _asked(self, what: str, **question: object) -> dict[str, object]:
        text = json.dumps(question)
        subject = f"$JS.API.STREAM.{what}.{self._name}"
        asking = f"{_OPENING}PUB {subject} {_ANSWERS}.q {len(text)}\r\n{text}\r\n"
        with socket.create_connection(self._address, _TIMEOUT_S) as link:
            link.sendall(self._connect + asking.encode())
            came = b""
            while (found := _ANSWER.search(came)) is None:
                some = link.recv(1 << 16)
                if not some:
                    raise RuntimeError(f"wanted an answer to {subject}, NATS said {came[-200:]!r}")
                came += some
        answer: dict[str, object] = json.loads(found[1])
        if "error" in answer:
            raise RuntimeError(f"{subject}: NATS says {answer['error']}")
        return answer
