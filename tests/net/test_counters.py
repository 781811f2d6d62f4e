"""Are the counters of subscriptions what one would count by hand?

The reference counts from the definition: each event is judged by each condition, one by one.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

import driftline as dl
from driftline.client.subscription import Subscription
from driftline.errors import NotAllowed
from driftline.model.scope import Scope
from driftline.model.standing import Standing
from driftline.net import counting, keeping, turns
from tests.net.here import address, configured, served
from tests.net.secured import Authority, client_of, closed
from tests.net.serving import broker, client, run

FOUR = ("evaluated", "matched", "suppressed", "sent")
TEXTS = (
    "SELECT * FROM a WHERE x < :limit",
    "SELECT * FROM b WHERE x > :limit",
    "SELECT x FROM a WHERE x < :limit OR s = 'one'",
    "SELECT * WHERE x = :limit",
    "SELECT * FROM a WHERE x < :limit AND x < elapsed() * 1000000",  # event by event
    "SELECT * FROM c WHERE x < :limit",
)


class Reference:
    """One subscription, by the definition."""

    def __init__(self, text: str, limit: int) -> None:
        self.standing = Standing.of(dl.parse(text), {"limit": limit})
        self.evaluated = self.matched = 0

    def hear(self, event: dl.Event) -> None:
        statement = self.standing.statement
        if statement.source not in (None, event.type):
            return
        self.evaluated += 1
        # What has elapsed is enough for any of the values here.
        scope = Scope(event, self.standing.params, elapsed=1.0)
        self.matched += statement.truth(scope) is True

    def counters(self) -> tuple[int, ...]:
        return self.evaluated, self.matched, 0, self.matched


def _event(draw: random.Random) -> dl.Event:
    attributes: dict[str, object] = {"x": draw.randrange(10)}
    if draw.random() < 0.3:
        attributes["s"] = draw.choice(("one", "two"))
    return dl.Event(draw.choice("aaabbcd"), attributes)


async def _four(s: Subscription) -> tuple[int, ...]:
    found = await s.counters()
    return tuple(found[name] for name in FOUR)


@pytest.mark.parametrize("seed", range(4))
def test_by_random_programs(seed: int, tmp_path: Path) -> None:
    print(f"seed {seed}")
    draw = random.Random(seed)

    async def test() -> None:
        journal = str(tmp_path / "j") if seed % 2 else "memory:"
        async with served(journal=journal) as server, dl.connect(address(server)) as c:
            live: list[tuple[Subscription, Reference]] = []
            for step in range(60):
                what = draw.random()
                if what < 0.2 or not live:
                    text, limit = draw.choice(TEXTS), draw.randrange(10)
                    durable = f"d{step}" if draw.random() < 0.3 else ""
                    s = await c.subscribe(text, {"limit": limit}, durable=durable)
                    live.append((s, Reference(text, limit)))
                elif what < 0.27:
                    s, _ = live.pop(draw.randrange(len(live)))
                    await s.cancel()
                elif what < 0.4:
                    s, known = draw.choice(live)
                    limit = draw.randrange(10)
                    await s.set(limit=limit)
                    known.standing = known.standing.moved_to({"limit": limit})
                elif what < 0.46:
                    s, known = draw.choice(live)
                    await s.add(f"x != {draw.randrange(10)}")
                    known.standing = known.standing.restated(s.statement, s.params)
                else:
                    events = [_event(draw) for _ in range(draw.choice((1, 3, 200)))]
                    await c.publish_many(events)
                    for event in events:
                        for _, known in live:
                            known.hear(event)
            for s, known in live:
                assert await _four(s) == known.counters(), (seed, str(s.statement))
            status = await c.status(subscriptions=True)
            shown = {one["handle"]: one for one in status["mine"]}
            for s, known in live:
                assert shown[s._handle]["matched"] == known.matched
            assert status["matched"] >= sum(known.matched for _, known in live)
            server.broker._check()

    run(test)


def test_what_is_matched_and_not_told_is_suppressed() -> None:
    async def test() -> None:
        async with served() as server, dl.connect(address(server)) as c:
            moved = await c.subscribe("SELECT * FROM q WHERE moved(x, by => 5)")
            pattern = await c.subscribe("SELECT * FROM q THEN SELECT * FROM r")
            least = await c.subscribe("SELECT min(x) AS least FROM t WHERE x < 100")
            await c.declare("t", "k")
            rows = await c.subscribe("SELECT * FROM t WHERE x < 50", rows=True)
            await c.publish_many([dl.Event("q", {"x": x}, time=x) for x in (0, 1, 5, 6, 11)])
            await c.publish(dl.Event("r", {"x": 1}, time=99))
            for k, x in enumerate((9, 7, 8, 60)):
                await c.publish(dl.Event("t", {"k": k, "x": x}))
            # 0, 5 and 11 are told; one waits for it to be known that q is no table.
            evaluated, matched, suppressed, sent = await _four(moved)
            assert (matched, suppressed, sent) == (5, 2, 3)
            assert evaluated == 5
            assert (await _four(pattern))[1:] == (6, 5, 1)
            told = await rows.counters()
            assert told["sent"] == len(rows.pending()) + 1  # and that there was nothing at first
            counted = await least.counters()
            assert counted["sent"] == len(least.pending())
            assert counted["matched"] >= counted["suppressed"]

    run(test)


def test_who_does_not_read_loses_and_that_is_counted() -> None:
    async def test() -> None:
        async with served() as server, dl.connect(address(server)) as c:
            policy = {"overflow": "conflate", "key": "k", "min_interval": 0.2}
            latest = await c.subscribe("SELECT * FROM q", policy=policy)
            few = await c.subscribe("SELECT * FROM q", policy={"limit": 3, "min_interval": 60.0})
            await c.publish_many([dl.Event("q", {"k": n % 2, "n": n}) for n in range(50)])
            one = await few.counters()
            assert one["matched"] == 50
            assert one["matched"] == one["sent"] + one["suppressed"] + one["waiting"]
            assert (one["sent"], one["dropped"], one["waiting"]) == (1, 46, 3)
            two = await latest.counters()
            assert two["matched"] == two["sent"] + two["suppressed"] + two["waiting"] == 50
            assert two["conflated"] >= 40
            status = await c.status()
            assert status["dropped"] == 46
            assert status["conflated"] == two["conflated"]
            await few.cancel()
            assert (await c.status())["dropped"] == 46  # what was lost stays lost

    run(test)


def test_what_waits_while_another_text_takes_the_place_is_counted_once() -> None:
    async def test() -> None:
        async with served() as server, dl.connect(address(server)) as c:
            policy = {"limit": 3, "min_interval": 60.0}
            s = await c.subscribe("SELECT * FROM q WHERE n < 100", policy=policy)
            await c.publish_many([dl.Event("q", {"n": n}) for n in range(20)])
            await s.replace("n < 100", "n < 120")
            await c.publish_many([dl.Event("q", {"n": n}) for n in range(20)])
            one = await s.counters()
            assert one["evaluated"] == one["matched"] == 40
            assert one["matched"] == one["sent"] + one["suppressed"] + one["waiting"]
            assert (one["sent"], one["waiting"]) == (1, 3)
            assert (await c.status())["matched"] == 40
            await s.cancel()
            assert (await c.status())["matched"] == 40

    run(test)


def test_of_a_durable_one_that_waits_which_it_has_not_said_that_it_had(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(journal=str(tmp_path / "j")) as server, dl.connect(address(server)) as c:
            async with c.subscribe("SELECT * FROM q", durable="d", ack="manual") as s:
                await c.publish_many([dl.Event("q", {"n": n}) for n in range(100)])
                told = [await s.next(5) for _ in range(100)]
                await s.ack(told[49])
                await c.confirm()
                (shown,) = (await c._status(True, others=True))["mine"]
                assert shown["waiting"] == (await c.durables.get("d")).kept == 50

    run(test)


def test_a_durable_one_is_counted_while_nobody_is_connected(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(journal=str(tmp_path / "j"), limits={"kept": 20}) as server:
            async with dl.connect(address(server)) as c:
                await (await c.subscribe("SELECT * FROM q WHERE n > 4", durable="d")).detach()
                for n in range(30):
                    await c.publish(dl.Event("q", {"n": n}))
                (shown,) = (await c._status(True, others=True))["mine"]
                assert shown["durable"] == "d"
                assert [shown[name] for name in FOUR] == [30, 25, 5, 0]
                assert (shown["waiting"], shown["dropped"]) == (20, 5)
                async with c.subscribe("SELECT * FROM q WHERE n > 4", durable="d") as s:
                    told = [await s.next(5) for _ in range(21)]
                    assert told[0].kind == "gap"
                    assert await _four(s) == (30, 25, 5, 20)

    run(test)


ACCESS = """
[[grants]]
who = ["alice", "bob"]
may = ["subscribe", "publish", "view", "declare"]
on = ["*"]
attributes = ["k", "x"]

[[grants]]
who = ["op"]
may = ["operate"]
"""


def test_all_of_very_many_subscriptions_are_shown() -> None:
    """More than are shown at once, and more than fit a frame."""
    text = "SELECT * FROM q WHERE firm = :firm"

    async def test() -> None:
        async with broker() as server, client(server) as c:
            many = [await c.subscribe(text, {"firm": f"{n}" * 40}) for n in range(300)]
            for n in range(300):
                await many[n].set(firm="x" * 40_000)
            for one in many[::3]:
                await one.cancel()
            status = await c.status(subscriptions=True)
            left = [one._handle for n, one in enumerate(many) if n % 3]
            assert [one["handle"] for one in status["mine"]] == left
            assert {len(one["params"]["firm"]) for one in status["mine"]} == {40_000}
            assert status["subscriptions"] == 200
            assert (await many[299].counters())["matched"] == 0
            for n in range(250):
                await c.durables.keep(f"d{n}", text, {"firm": "x" * 40_000})
            names = [one.name for one in await c.durables.all()]
            assert names == sorted(f"d{n}" for n in range(250))
            assert (await c.durables.get("d249")).kept == 0

    run(test)


def test_who_asks_for_all_of_very_many_subscriptions_lets_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        async with broker() as server, client(server) as c, client(server) as other:
            for n in range(150):
                await c.subscribe(f"SELECT * FROM q WHERE x > {n}", within=0)
                await c.durables.keep(f"d{n}", "SELECT * FROM q")
            # One step in each turn.
            monkeypatch.setattr(turns, "SECONDS", 1e-9)
            for asked in (c.status(subscriptions=True), c.durables.all()):
                task = asyncio.create_task(asked)
                for _ in range(3):
                    await other.confirm()
                assert not task.done()
                # What it asks behind that is answered behind it.
                await c.confirm()
                found = await task
                assert len(found if isinstance(found, list) else found["mine"]) == 150

    run(test)


def test_a_subscription_that_ends_while_it_is_looked_at_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dropped = asyncio.Event()

    def left_when_dropped(*asked: Any) -> counting.Steps[tuple[int, int]]:
        while not dropped.is_set():
            yield
        return (yield from counting.left_of(*asked))

    async def test() -> None:
        async with broker() as server, client(server) as c, client(server) as other:
            for n in range(3):
                await c.durables.keep(f"d{n}", "SELECT * FROM q")
            monkeypatch.setattr(keeping, "left_of", left_when_dropped)
            task = asyncio.create_task(c.durables.all())
            await other.durables.drop("d2")
            assert not task.done()
            dropped.set()
            assert [one.name for one in await task] == ["d0", "d1"]

    run(test)


def test_a_party_sees_its_own_and_an_operator_the_sums(tmp_path: Path) -> None:
    async def test() -> None:
        authority = Authority(tmp_path)
        async with closed(authority, ACCESS) as server:
            alice, bob, op = (
                client_of(server, authority.token(who)) for who in ("alice", "bob", "op")
            )
            async with alice, bob, op, client_of(server, authority.token("alice")) as other:
                s = await alice.subscribe("SELECT x FROM q WHERE x > 1")
                await (await alice.subscribe("SELECT k FROM q", durable="d")).detach()
                await bob.subscribe("SELECT x FROM q")
                await bob.publish_many([dl.Event("q", {"x": n}) for n in range(4)])
                mine = (await other._status(True, others=True))["mine"]
                assert {one["text"] for one in mine} == {
                    "SELECT x FROM q WHERE x > 1",
                    "SELECT k FROM q",
                }
                assert await _four(s) == (4, 2, 0, 2)
                with pytest.raises(NotAllowed):
                    await alice.status()
                assert (await alice.status(subscriptions=True)).keys() == {"mine"}
                seen = await op.status(subscriptions=True)
                assert (seen["matched"], seen["mine"]) == (10, [])
                assert "SELECT" not in str(seen)

    run(test)


def test_what_a_party_may_not_see_is_suppressed(tmp_path: Path) -> None:
    hidden = ACCESS.replace(
        '"op"]\nmay = ["operate"]',
        '"feed"]\nmay = ["publish", "declare"]\non = ["*"]\nattributes = ["*"]',
    )

    async def test() -> None:
        authority = Authority(tmp_path)
        async with closed(authority, hidden) as server:
            feed = client_of(server, authority.token("feed"))
            async with feed, client_of(server, authority.token("alice")) as alice:
                await feed.declare("t", "k")
                await feed.publish(dl.Event("t", {"k": 1, "x": 1, "secret": 1}))
                s = await alice.subscribe("SELECT * FROM t WHERE x < 9", rows=True)
                assert len(await s.snapshot(5)) == 1
                await feed.publish(dl.Event("t", {"k": 1, "x": 1, "secret": 2}))
                await feed.publish(dl.Event("t", {"k": 1, "x": 2, "secret": 2}))
                assert (await s.next(5)).values == {"k": 1, "x": 2}
                found = await s.counters()
                assert (found["matched"], found["suppressed"], found["sent"]) == (2, 1, 2)

    run(test)


def test_what_waits_and_may_be_seen_is_counted_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = ACCESS.replace(
        '"op"]\nmay = ["operate"]',
        '"feed"]\nmay = ["publish", "declare"]\non = ["*"]\nattributes = ["*"]',
    )
    granted = hidden.replace('attributes = ["k", "x"]', 'attributes = ["*"]', 1)
    assert granted != hidden

    async def test() -> None:
        authority = Authority(tmp_path / "keys")
        file = tmp_path / "access.toml"
        file.write_text(granted)
        said = {"access": str(file), "tokens": authority.tokens()}
        async with served(**said) as server:
            alice = client_of(server, authority.token("alice"))
            async with client_of(server, authority.token("feed")) as feed, alice:
                await feed.declare("t", "k")
                await alice.durables.keep("d", "SELECT * FROM t WHERE k < 9", rows=True)
                # A snapshot without rows; then every other change is of what may not be seen later.
                for n in range(400):
                    await feed.publish(dl.Event("t", {"k": 1, "x": n // 2, "secret": n}))
            file.write_text(hidden)
            server.reload(configured(**said))
            alice = client_of(server, authority.token("alice"))
            async with client_of(server, authority.token("feed")) as feed, alice:
                before = (await alice.durables.get("d")).kept
                monkeypatch.setattr(turns, "SECONDS", 1e-9)
                task = asyncio.create_task(alice.durables.get("d"))
                for _ in range(2):
                    await feed.confirm()
                assert not task.done()
                found = await task
                assert found.kept == before == 201
                (party,) = server.durables.of("alice")
                assert server.edge.parties[party].kept == 401

    run(test)


def test_who_shows_nothing_does_not_see_what_others_ask_for_who_show_nothing(
    tmp_path: Path,
) -> None:
    access = """
[[grants]]
who = ["anyone"]
may = ["subscribe"]
on = ["q"]
attributes = ["*"]
"""

    async def test() -> None:
        async with closed(Authority(tmp_path), access) as server:
            async with client_of(server) as one, client_of(server) as another:
                await one.subscribe("SELECT x FROM q WHERE x > :least", {"least": 7})
                await another.subscribe("SELECT k FROM q")
                (mine,) = (await another._status(True, others=True))["mine"]
                assert mine["text"] == "SELECT k FROM q"

    run(test)
