"""Does a broker bear whatever is asked of it over HTTP? Schemathesis asks, by what OpenAPI says.

    python -m tests.gateway.fuzz --requests 10000 --seed 7

Requests that fit the description and requests that do not, one by one and in sequences that follow
its links. Every answer must be one that is described; nothing may end the broker, or stay behind.
Answers that do not end (streams) are asked for beside it, and left when they have begun.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, reject, seed, settings
from schemathesis import GenerationMode

from tests.gateway import hooks
from tests.net.processes import BrokerProcess, Brokers
from tests.net.secured import Authority

ACCESS = """
[[grants]]
who = ["fuzz"]
may = ["publish", "subscribe", "view", "set", "advertise", "declare", "delete", "read", "observe",
       "operate"]
on = ["*"]
attributes = ["*"]
"""
# What is too large is refused for that, whatever else is wrong with it.
CONFIG = """
[checks]
negative_data_rejection.expected-statuses = [
    "400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "428", "429", "5xx",
]
"""
_ADDRESS_MOST = 30_000
_PER_EXAMPLE = 31
"""About so many requests are made for each example that is asked for."""


@dataclass(slots=True)
class Fuzzed:
    """What was asked, and what is left of it."""

    requests: int = 0
    streams: int = 0
    seconds: float = 0.0
    statuses: dict[str, int] = field(default_factory=dict)
    rss_before: int = 0
    rss_after: int = 0
    left: dict[str, Any] = field(default_factory=dict)
    report: str = ""


def fuzz(folder: Path, requests: int, number: int) -> Fuzzed:
    """Ask a broker of one's own for so many things."""
    authority = Authority(folder / "keys")
    access = folder / "access.toml"
    access.write_text(ACCESS)
    found = Fuzzed()
    with Brokers(folder) as brokers:
        broker = brokers.start(
            "b",
            http={"listen": "127.0.0.1:0", "patience": 2.0, "heartbeat": 1.0},
            tokens=authority.tokens(),
            access=str(access),
        )
        token = authority.token("fuzz", 7200)
        found.rss_before = broker.ask("count")["rss"]
        began = time.monotonic()
        for some in count(number):
            # It ends when it has nothing new to say.
            _ask(broker, token, folder, requests - found.requests, some, found)
            print(f"{found.requests} of {requests} requests", file=sys.stderr)
            if found.requests >= requests:
                break
        _streams(broker, token, max(10, requests // 20), number, found)
        found.seconds = time.monotonic() - began
        found.left = _left(broker, token)
        found.rss_after = broker.ask("count")["rss"]
        assert broker.ask("check") == "sound"
        assert broker.end() == 0, broker.errors
        assert "ERROR" not in broker.errors, broker.errors
        assert token[:20] not in broker.errors
    return found


def _ask(
    broker: BrokerProcess, token: str, folder: Path, requests: int, number: int, found: Fuzzed
) -> None:
    """All that ends, by the command that users of schemathesis run."""
    report = folder / "report.ndjson"
    (folder / "schemathesis.toml").write_text(CONFIG)
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"{broker.http}/v1/openapi.json",
        "--header",
        f"Authorization: Bearer {token}",
        "--exclude-path-regex",
        "stream$",
        "--checks",
        "all",
        # A text that is well formed may still ask for what nobody has.
        "--exclude-checks",
        "positive_data_acceptance",
        "--max-examples",
        str(max(2, requests // _PER_EXAMPLE)),
        "--seed",
        str(number),
        "--continue-on-failure",
        "--suppress-health-check=all",
        "--no-color",
        "--report-ndjson-path",
        str(report),
    ]
    environment = os.environ | {
        "SCHEMATHESIS_HOOKS": hooks.__name__,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path]),
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, cwd=folder, check=False
    )
    found.report = done.stdout
    assert done.returncode == 0, done.stdout + done.stderr
    generated = re.search(r"(\d+) generated", done.stdout)
    assert generated is not None, done.stdout
    found.requests += int(generated[1])


def _streams(broker: BrokerProcess, token: str, each: int, number: int, found: Fuzzed) -> None:
    """What goes on and on: is it answered as is described, and does it end when nobody reads?"""
    headers = {"Authorization": f"Bearer {token}"}
    schema = schemathesis.openapi.from_url(f"{broker.http}/v1/openapi.json")
    operations = [one.ok() for one in schema.include(path_regex="stream$").get_all_operations()]
    with httpx.Client(base_url=broker.http, headers=headers, timeout=30) as client:
        for operation in operations:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

                @seed(number)
                @settings(
                    max_examples=each,
                    database=None,
                    deadline=None,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )
                @given(case=operation.as_strategy(generation_mode=mode))
                def one(case: Any) -> None:
                    said = case.as_transport_kwargs(base_url=broker.http, headers=headers)
                    for name in ("cookies", "timeout"):
                        said.pop(name, None)
                    said["content"] = said.pop("data", None)
                    said["headers"] = {
                        name: str(value).encode("utf-8", "replace")
                        for name, value in dict(said["headers"]).items()
                    }
                    request = _asked(client, said)
                    with closing(client.send(request, stream=True)) as answer:
                        _check(answer)
                    found.streams += 1
                    key = str(answer.status_code)
                    found.statuses[key] = found.statuses.get(key, 0) + 1

                one()


def _asked(client: httpx.Client, said: dict[str, Any]) -> httpx.Request:
    """A request; an address that no head has room for is none that anybody can ask for."""
    try:
        request = client.build_request(**said)
    except httpx.InvalidURL:
        reject()
    assume(len(request.url.raw_path) < _ADDRESS_MOST)
    return request


def _check(answer: httpx.Response) -> None:
    assert answer.status_code < 500, answer.read()
    kind = answer.headers["content-type"].partition(";")[0]
    if answer.status_code == 200:
        assert kind == "text/event-stream"
    else:
        assert kind == "application/problem+json", answer.read()


def _left(broker: BrokerProcess, token: str) -> dict[str, Any]:
    """What is there when all has been ended that was asked for."""
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=broker.http, headers=headers, timeout=30) as client:
        for one in client.get("/v1/subscriptions").json()["subscriptions"]:
            # A name that is a dot would be lost on its way: it is not one of ours.
            client.delete(f"/v1/subscriptions/{httpx.URL('/').copy_with(path=one['name']).path}")
    deadline = time.monotonic() + 20
    while (left := broker.ask("count"))["http"] and time.monotonic() < deadline:
        time.sleep(0.2)
    return left  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = fuzz(Path(folder), given.requests, given.seed)
    print(found.report)
    found.report = ""
    print(json.dumps(asdict(found), indent=2))


if __name__ == "__main__":
    main()
