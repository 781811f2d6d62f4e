"""What does it cost that nobody reads along, everybody is known, and few may do what?

The same broker, taking turns at the same job: as anybody gets it; with TLS, a token for each
connection, and lists of access by type and attribute; and with such lists by which those who are
told may not see one of the attributes. Every connection must have received exactly what it wants.
"""

from __future__ import annotations

import os
import ssl
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from driftline.bench.broker_contestant import Load
from driftline.bench.broker_driver import TICK_S
from driftline.bench.broker_job import Job, stock_job, truth_of
from driftline.bench.broker_runs import Prepared, Say, in_turns, middle, middle_latency, started
from driftline.bench.broker_tables import latency_table, saturated_table
from driftline.bench.driftline_broker import Driftline
from driftline.bench.report import Claim, Report, at_least
from driftline.net.authority import create, sign_broker, sign_token

RATE = 10_000
_ALL = '"n", "symbol", "price", "volume"'
_ACCESS = """
[[grants]]
who = ["feed"]
may = ["publish"]
on = ["quote"]
attributes = [%s]

[[grants]]
who = ["reader"]
may = ["subscribe", "set"]
on = ["quote"]
attributes = [%s]
"""


class Secure(Driftline):
    """A broker of our own that knows who is who."""

    name = "driftline, secure"
    seen = _ALL

    def _settings(self, folder: Path) -> str:
        create(folder / "keys")
        certificate, key = sign_broker(folder / "keys", self.called, ["127.0.0.1"])
        (folder / "access.toml").write_text(_ACCESS % (_ALL, self.seen))
        self._tokens = {
            who: sign_token(folder / "keys", who, time.time()) for who in ("feed", "reader")
        }
        self._trust = ssl.create_default_context(cafile=str(folder / "keys" / "ca.pem"))
        return (
            'access = "access.toml"\n'
            f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n'
            f'[tokens]\nkey = "{folder / "keys" / "tokens.pub"}"\n'
        )

    def _token(self, client: str) -> str:
        return self._tokens["feed" if client == "publisher" else "reader"]

    def load(self, job: Job, together: int = 100) -> Load:
        """The job in our protocol, over TLS."""
        return replace(super().load(job, together), tls=self._trust)


class Hiding(Secure):
    """The same, where nobody who is told may see the volume."""

    name = "driftline, secure, volume hidden"
    seen = '"n", "symbol", "price"'


def run_secure(full: bool, say: Say) -> Report:
    """All at saturation, and how late notifications come at a fixed rate."""
    events, repeats, paced_s = (4_000_000, 5, 5.0) if full else (1_000_000, 3, 2.0)
    job = stock_job(events)
    truth = truth_of(job)
    figures: dict[str, Any] = {"load": [os.getloadavg()[0]], "saturated": {}, "latency": {}}
    with started([Driftline(), Secure(), Hiding()]) as all_started:
        prepared = []
        for one in all_started:
            say(f"{one.contestant.name}: writing the events")
            prepared.append(Prepared.of(one, job, truth))
        for ready, runs in zip(prepared, in_turns(prepared, repeats, say), strict=True):
            figures["saturated"][ready.started.contestant.name] = {
                "events": ready.events,
                **middle(runs).as_data(),
                "runs": [each.as_data() for each in runs],
            }
        few = stock_job(int(RATE * paced_s))
        for one in all_started:
            say(f"{one.contestant.name}: {RATE:,} events a second")
            paced = Prepared.of(one, few, None, max(1, int(RATE * TICK_S)))
            found = middle_latency([paced.paced(float(RATE)) for _ in range(repeats)])
            figures["latency"][one.contestant.name] = {"fixed": found.as_data()}
    figures["load"].append(os.getloadavg()[0])
    first, second = saturated_table(figures), latency_table(figures)
    return Report("broker", figures, first.columns, first.rows, claims(figures), [second])


def claims(figures: dict[str, Any]) -> list[Claim]:
    """What we stand for."""
    plain, secure, hiding = (
        figures["saturated"][one.name]["events_per_s"] for one in (Driftline, Secure, Hiding)
    )
    return [
        at_least("open_overhead", 0.5, secure / plain, "x events/s"),
        at_least("hidden_overhead", 0.5, hiding / plain, "x events/s"),
    ]
