"""Does a broker tell Prometheus what is so, and only those who may know?"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import driftline as dl
from driftline.errors import NotSupported
from driftline.net.authority import sign_token
from driftline.net.metrics import metrics_of
from driftline.net.server import Server
from tests.net.here import eventually, served
from tests.net.secured import Authority, closed
from tests.net.serving import client, run


async def get(
    server: Server, path: str, *headers: str, method: str = "GET"
) -> tuple[int, str, str]:
    """The code, the headers and the body of an answer."""
    where = server.health_address
    assert where is not None
    reader, writer = await asyncio.open_connection(where.host, where.port)
    writer.write("\r\n".join((f"{method} {path} HTTP/1.1", "Host: b", *headers, "", "")).encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), head, body


def read(text: str) -> dict[str, float]:
    """Every sample that has no label but a link, by name."""
    return {
        one.name + "".join(one.labels.values()): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.labels.keys() <= {"link"}
    }


def test_everything_that_is_counted_is_told(tmp_path: Path) -> None:
    async def test() -> None:
        said = {"health": "127.0.0.1:0", "journal": str(tmp_path / "j")}
        peers = [{"name": "far", "role": "peer"}]
        async with served(peers=peers, **said) as server, client(server, name="secretary") as c:
            s = await c.subscribe("SELECT * FROM q WHERE n > 1", within=0)
            # A neighbour that is away does not answer.
            await (await c.subscribe("SELECT * FROM q", durable="d", within=0)).detach()
            few = await c.subscribe(
                "SELECT * FROM q", policy={"limit": 1, "min_interval": 60}, within=0
            )
            for _ in range(20):
                await c.publish_many([dl.Event("q", {"n": n}) for n in range(5)])
            code, head, body = await get(server, "/metrics")
            assert code == 200
            assert "text/plain; version=0.0.4" in head
            found = read(body)
            wanted = {
                "driftline_events_published_total": 100,
                "driftline_matches_total": 60 + 100 + 100,
                "driftline_notifications_dropped_total": 98,
                "driftline_subscriptions": 3,
                "driftline_durable_subscriptions": 1,
                "driftline_kept_notifications": 100,
                "driftline_guests": 1,
                "driftline_links": 1,
                "driftline_link_upfar": 0,
                "driftline_link_given_up_events_totalfar": 0,
                "driftline_journal_troubled": 0,
            }
            assert wanted == {name: found[name] for name in wanted}
            assert found["driftline_received_bytes_total"] > 2000
            assert found["driftline_sent_bytes_total"] > 2000
            assert found["driftline_commit_seconds_count"] > 0
            assert found["driftline_told_seconds_count"] > 0
            assert found["process_resident_memory_bytes"] > 1e6
            assert f'driftline_build_info{{broker="b",version="{dl.__version__}"}} 1.0' in body
            # Nothing of anybody's.
            assert all(word not in body for word in ("SELECT", "secretary", "anyone", '"d"', '"q"'))
            await s.cancel()
            await few.cancel()
            again = read((await get(server, "/metrics"))[2])
            counters = [name for name in found if name.endswith("_total") and "cpu" not in name]
            assert all(again[name] >= found[name] for name in counters)
            assert again["driftline_matches_total"] == found["driftline_matches_total"]
            await c.close()
            await eventually(lambda: not server.guests)
            last = read((await get(server, "/metrics"))[2])
            assert all(last[name] >= again[name] for name in counters)

    run(test)


def test_a_neighbour_is_seen_as_it_comes_and_goes() -> None:
    async def test() -> None:
        said = {"health": "127.0.0.1:0", "limits": {"outbox": 200}}
        near_of_far = {"name": "far", "role": "peer"}
        async with served(peers=[near_of_far], **said) as near, client(near) as p:
            where = [{"name": "b", "role": "peer", "address": str(near.address)}]
            async with served(name="far", peers=where) as far, client(far) as c:
                await eventually(lambda: near.links["far"].is_up)
                s = await c.subscribe("SELECT * FROM q", durable="d")
                await p.publish_many([dl.Event("q", {"n": n}) for n in range(100)])
                for _ in range(100):
                    await s.next(5)
                await eventually(lambda: not near.broker.outbox.counts()["far"])
                found = read((await get(near, "/metrics"))[2])
                assert found["driftline_link_upfar"] == 1
                assert found["driftline_link_sent_bytes_totalfar"] > 1000
                assert found["driftline_link_received_bytes_totalfar"] > 10
            await eventually(lambda: not near.links["far"].is_up)
            for n in range(300):
                await p.publish(dl.Event("q", {"n": n}))
            last = read((await get(near, "/metrics"))[2])
            assert last["driftline_link_upfar"] == 0
            waiting = last["driftline_link_waiting_eventsfar"]
            assert 0 < waiting <= 200
            assert last["driftline_link_given_up_events_totalfar"] == 300 - waiting
            sent = "driftline_link_sent_bytes_totalfar"
            assert last[sent] >= found[sent]

    run(test)


def test_a_loop_that_is_held_up_is_seen() -> None:
    async def test() -> None:
        async with served() as server:
            await eventually(lambda: server.sampling.lag.cumulative()[-1][1] > 0)
            time.sleep(0.6)
            await eventually(lambda: server.sampling.lag.sum > 0.2)

    run(test)


ACCESS = """
[[grants]]
who = ["op"]
may = ["operate"]

[[grants]]
who = ["alice"]
may = ["subscribe"]
on = ["q"]
attributes = ["*"]
"""


@pytest.mark.parametrize("path", ["/metrics", "/health"])
def test_at_a_closed_broker_they_are_for_operators(path: str, tmp_path: Path) -> None:
    async def test() -> None:
        authority = Authority(tmp_path)
        async with closed(authority, ACCESS, health="127.0.0.1:0") as server:

            async def code(*headers: str) -> int:
                found, head, body = await get(server, path, *headers)
                if found != 200:
                    assert "application/problem+json" in head
                    assert json.loads(body)["status"] == found
                    assert ("WWW-Authenticate: Bearer" in head) == (found == 401)
                return found

            assert await code() == 401
            assert await code("Authorization: Basic b3A6b3A=") == 401
            assert await code("Authorization: Bearer nonsense") == 401
            old = sign_token(tmp_path, "op", time.time() - 3600, 60)
            assert await code(f"Authorization: Bearer {old}") == 401
            assert await code(f"Authorization: Bearer {authority.token('alice')}") == 403
            assert await code(f"authorization: bearer {authority.token('op')}") == 200
            for open_to_all in ("/health/live", "/health/ready"):
                assert (await get(server, open_to_all))[0] == 200

    run(test)


def test_without_prometheus_client_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with served(health="127.0.0.1:0") as server:
            assert (await get(server, "/metrics", method="HEAD"))[::2] == (200, "")
            monkeypatch.setitem(sys.modules, "prometheus_client", None)
            with pytest.raises(NotSupported, match="pip install"):
                metrics_of(server)
            code, _, body = await get(server, "/metrics")
            assert code == 501
            assert "driftline[open]" in json.loads(body)["detail"]

    run(test)
