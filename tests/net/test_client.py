"""What a program that is connected to a broker can ask, and is told."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from pathlib import Path

import pytest

import driftline as dl
from driftline.broker.access import Anyone
from driftline.broker.links import Role
from driftline.errors import (
    DriftlineError,
    InvalidValue,
    LimitReached,
    NotAllowed,
    ReasonLeftOff,
    SubscriptionEnded,
    TableError,
    Unreachable,
)
from driftline.model.notification import Notification, NotificationKind
from driftline.net.config import Peer
from driftline.net.limits import Limits
from tests.net.cutting import Cutting
from tests.net.serving import broker, client, run, until


def quote(price: float, **more: object) -> dl.Event:
    return dl.Event("quote", {"price": price, **more})


def test_it_subscribes_moves_its_bound_and_is_told():
    async def main() -> None:
        async with broker() as server, client(server) as c:
            wanted = "SELECT price FROM quote WHERE price < :limit"
            async with c.subscribe(wanted, {"limit": 10}) as s:
                await c.publish(quote(9.5))
                first = await s.next(5)
                assert (first.values, first.epoch, first.kind) == ({"price": 9.5}, 0, "event")
                assert first.event.attributes == {"price": 9.5}
                assert await s.set(limit=9) == 1
                await c.publish(quote(9.5))
                await c.publish(quote(8.5))
                assert (await s.next(5)).values == {"price": 8.5}
                assert s.pending() == []
                with pytest.raises(dl.ParameterError):
                    await s.set(limits=3)
                assert s.params == {"limit": 9}
            assert not s.active
            with pytest.raises(SubscriptionEnded):
                await s.set(limit=3)
            await c.publish(quote(1))
            assert sum(1 for _ in server.edge) == 0

    run(main)


def test_what_is_refused_says_why_and_changes_nothing():
    async def main() -> None:
        async with broker(limits=Limits(subscriptions=2, parameters=2)) as server:
            async with client(server) as c:
                with pytest.raises(dl.LanguageError):
                    c.subscribe("DROP TABLE quote")
                with pytest.raises(dl.ParameterError):
                    c.subscribe("SELECT * FROM quote WHERE price < :limit")
                with pytest.raises(dl.NotSupported):
                    await c.subscribe("SELECT * FROM `$x`".replace("`", '"'))
                three = "SELECT * FROM q WHERE a = :a AND b = :b AND c = :c"
                with pytest.raises(dl.InvalidValue):
                    await c.subscribe(three, {"a": 1, "b": 2, "c": 3})
                with pytest.raises(dl.InvalidValue):
                    await c.subscribe("SELECT * FROM q", policy={"overflow": "sometimes"})
                for _ in range(2):
                    await c.subscribe("SELECT * FROM q")
                with pytest.raises(LimitReached):
                    await c.subscribe("SELECT * FROM q")
                with pytest.raises(dl.InvalidValue):
                    await c.publish("no event")  # type: ignore[arg-type]
                with pytest.raises(dl.InvalidValue):
                    await c.publish(dl.Event("$system", {}))
                await c.declare("stock", "id")
                with pytest.raises(dl.TableError):
                    await c.publish(dl.Event("stock", {"price": 1}))
                assert sum(1 for _ in server.edge) == 2

    run(main)


class Careful(Anyone):
    """Nobody may publish secrets, or ask for them."""

    def publish(self, party: str, type: str, attributes: object) -> None:
        if type == "secret":
            raise NotAllowed(party, "publish secrets")

    def subscribe(self, party: str, statement: object) -> None:
        if "secret" in str(statement):
            raise NotAllowed(party, "ask for secrets")


def test_who_may_not_is_refused_and_stays_connected():
    async def main() -> None:
        async with broker() as server, client(server) as c:
            server.broker.access = Careful()
            async with c.subscribe("SELECT * FROM q") as s:
                with pytest.raises(NotAllowed):
                    await c.publish(dl.Event("secret", {"x": 1}))
                with pytest.raises(NotAllowed):
                    await c.subscribe("SELECT * FROM secret")
                mixed = [dl.Event("secret", {"x": 1}), dl.Event("q", {"x": 2})]
                with pytest.raises(NotAllowed):
                    await c.publish_many(mixed)
                assert (await s.next(5)).values == {"x": 2}
                assert s.pending() == []

    run(main)


def test_parameters_have_a_limit_of_bytes_for_all_of_a_connection_and_of_an_identity(tmp_path):
    text = "SELECT * FROM q WHERE firm = :firm"
    limits = Limits(parameter_bytes=5_000)

    def firm(letters: int) -> dict[str, str]:
        return {"firm": "x" * letters}

    async def main() -> None:
        journal = str(tmp_path / "journal")
        async with broker(limits=limits, journal=journal) as server, client(server) as c:
            one = await c.subscribe(text, firm(2_000))
            two = await c.subscribe(text, firm(2_000))
            with pytest.raises(LimitReached, match="5000 bytes of parameters"):
                await c.subscribe(text, firm(2_000))
            with pytest.raises(LimitReached):
                await two.set(**firm(3_000))
            assert two.params == firm(2_000)
            await one.set(**firm(1_000))
            await two.set(**firm(3_000))
            await two.cancel()
            await c.subscribe(text, firm(3_500))
            # Those that are durable have as much for themselves, whichever connection says so.
            async with client(server) as other:
                await c.durables.keep("a", text, firm(4_000))
                with pytest.raises(LimitReached):
                    await other.durables.keep("b", text, firm(1_000))
                with pytest.raises(LimitReached):
                    await other.subscribe(text, firm(1_000), durable="b")
                with pytest.raises(LimitReached):
                    await other.durables.keep("a", text, firm(5_000))
                with pytest.raises(LimitReached):
                    await other.set("a", firm(5_000))
                assert [one.name for one in await c.durables.all()] == ["a"]
                assert await other.set("a", firm(3_000)) == 1
                server.broker._check()
        async with broker(limits=limits, journal=journal) as server, client(server) as c:
            # It is known again what there is.
            with pytest.raises(LimitReached):
                await c.durables.keep("b", text, firm(2_000))
            await c.durables.drop("a")
            await c.durables.keep("b", text, firm(2_000))
            server.broker._check()

    run(main)


def test_what_is_kept_has_a_limit_of_bytes_and_what_is_missing_is_told():
    async def main() -> None:
        async with broker(limits=Limits(kept_bytes=5_000)) as server, client(server) as c:
            await c.durables.keep("d", "SELECT * FROM q")
            for n in range(5):
                await c.publish(dl.Event("q", {"n": n, "text": "x" * 2_000}))
            assert (await c.durables.get("d")).kept == 2
            async with c.subscribe("SELECT * FROM q", durable="d") as s:
                told = [await s.next(5) for _ in range(3)]
                assert told[0].kind == "gap"
                assert [one.values["n"] for one in told[1:]] == [3, 4]
                assert (await s.counters())["dropped"] == 3

    run(main)


@pytest.mark.parametrize("once", [False, True])
def test_each_of_very_many_that_are_refused_is_refused(once):
    async def main() -> None:
        async with broker() as server, client(server) as c:
            await c.declare("t", "k")
            # Rows of a table without their key, and events in between.
            some = [
                dl.Event("t" if n % 5 else "q", {"n": n}, id=f"{n}", source="here")
                for n in range(1000)
            ]
            found = await c.publish_each(some, once=once)
            refused = [at for at, one in enumerate(found) if one is not None]
            assert refused == [n for n in range(1000) if n % 5]
            assert {type(one) for one in found} == {type(None), TableError}
            assert server.counters.refused == 800
            assert server.counters.published == 200

    run(main)


def test_the_reasons_of_those_that_are_refused_for_different_ones_are_left_off():
    class Wary(Anyone):
        def publish(self, party: str, type: str, attributes: object) -> None:
            if type.startswith("t"):
                raise NotAllowed(party, f"publish {type}")

    async def main() -> None:
        async with broker() as server, client(server) as c:
            server.broker.access = Wary()
            some = [dl.Event(f"t{n}", {"n": n}) for n in range(300)]
            found = await c.publish_each([*some, dl.Event("q", {"n": 1})])
            assert found[-1] is None
            assert [str(one).rpartition(" ")[2] for one in found[:100]] == [
                f"t{n}" for n in range(100)
            ]
            assert {type(one) for one in found[100:-1]} == {ReasonLeftOff}
            assert {one.error for one in found[100:-1]} == {"NotAllowed"}

    run(main)


def test_of_more_than_go_out_at_once_those_behind_one_that_is_refused_are_published():
    async def main() -> None:
        async with broker() as server, client(server) as c:
            await c.declare("t", "k")
            rows = [dl.Event("t", {"n": 0}), *(dl.Event("q", {"n": n}) for n in range(10_500))]
            with pytest.raises(TableError):
                await c.publish_many(rows)
            assert server.counters.published == 10_500

    run(main)


def wide(count: int) -> dl.Event:
    return dl.Event("q", {"n": count, **dict.fromkeys((f"a{at}" for at in range(count - 1)), 1)})


def test_what_cannot_be_said_at_all_holds_up_none_of_the_others():
    async def main() -> None:
        async with broker() as server, client(server) as c:
            async with c.subscribe("SELECT n FROM q") as s:
                # More attributes than a form may have, and more than any event.
                some = [dl.Event("q", {"n": 1}), wide(5_000), wide(70_000), dl.Event("q", {"n": 3})]
                *sound, refused, last = await c.publish_each(some)
                assert [*sound, last] == [None] * 3
                assert isinstance(refused, InvalidValue)
                assert [(await s.next(5)).values["n"] for _ in range(3)] == [1, 5_000, 3]

    run(main)


def test_names_that_are_too_long_to_be_said_are_refused_by_themselves():
    long = "n" * 70_000

    async def main() -> None:
        async with broker() as server, client(server) as c:
            async with c.subscribe("SELECT n FROM q") as s:
                wrong = [dl.Event("q", {long: 1}), dl.Event(long, {"n": 2})]
                some = [dl.Event("q", {"n": 1}), *wrong, dl.Event("q", {"n": 3})]
                problems = await c.publish_each(some)
                assert [isinstance(one, InvalidValue) for one in problems] == [0, 1, 1, 0]
                for ask in (
                    lambda: c.subscribe(f"SELECT * FROM q WHERE n > :{long[:20_000]}", {}),
                    lambda: c.set("d", {long: 1}),
                    lambda: c.declare("t", "k", {long: 1}),
                    lambda: c.durables.discard("d", [long]),
                    lambda: c.durables.discard("d", ["1"] * 20_000),
                ):
                    with pytest.raises(DriftlineError) as refused:
                        await ask()
                    assert not isinstance(refused.value, Unreachable)
                # Nobody had to come again for it.
                assert c._talk._connections == 1
                assert [(await s.next(5)).values["n"] for _ in range(2)] == [1, 3]

    run(main)


def test_what_a_broker_takes_in_one_piece_is_kept_to():
    async def main() -> None:
        limits = Limits(frame_bytes=4_096)
        async with broker(limits=limits) as server, client(server) as c:
            async with c.subscribe("SELECT n FROM q WHERE x != :x", {"x": ""}) as s:
                some = [dl.Event("q", {"n": n, "x": "x" * 50}) for n in range(500)]
                some[250:250] = [dl.Event("q", {"n": -1, "x": "x" * 5_000})]
                problems = await c.publish_each(some)
                assert [at for at, one in enumerate(problems) if one is not None] == [250]
                assert isinstance(problems[250], InvalidValue)
                assert [(await s.next(5)).values["n"] for _ in range(500)] == [*range(500)]
                with pytest.raises(InvalidValue, match="request"):
                    await s.set(x="x" * 5_000)
                with pytest.raises(InvalidValue, match="request"):
                    await s.explain(some[250])
                assert s.params == {"x": ""}
                assert await s.set(x="x" * 50) == 1
                await c.publish(some[0])
                await c.publish(dl.Event("q", {"n": 7, "x": "y"}))
                assert (await s.next(5)).values == {"n": 7}

    run(main)


def test_all_kinds_of_values_come_back():
    values = {
        "text": "über",
        "int": -(2**63),
        "float": 1e308,
        "bool": True,
        "bytes": b"\0\xff",
        "time": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    }

    async def main() -> None:
        async with broker() as server, client(server) as c:
            async with c.subscribe("SELECT * FROM t WHERE time > :t", {"t": values["time"]}) as s:
                await s.set(t=datetime(2020, 1, 1, tzinfo=UTC))
                event = dl.Event("t", values, id="i", source="s", time=7)
                await c.publish(event)
                told = await s.next(5)
                assert told.values == values
                assert told.event == event.stamped(told.event.entered)

    run(main)


def test_tables_views_and_rows():
    async def main() -> None:
        async with broker() as server, client(server) as c:
            await c.declare("stock", "id", {"price": "0.01"})
            await c.publish_many([dl.Event("stock", {"id": n, "price": n}) for n in range(5)])
            async with c.subscribe("SELECT MIN(price) FROM stock") as least:
                first = await least.next(5)
                assert (first.kind, first.values, first.last) == (
                    "snapshot",
                    {"MIN(price)": 0},
                    True,
                )
                await c.delete("stock", 0)
                assert (await least.next(5)).values == {"MIN(price)": 1}
            rows = c.subscribe(
                "SELECT id FROM stock WHERE price < :p",
                {"p": 3},
                rows=True,
                on_change="reevaluate",
            )
            async with rows as s:
                snapshot = [await s.next(5) for _ in range(2)]
                assert sorted(n.values["id"] for n in snapshot) == [1, 2]
                assert [n.last for n in snapshot] == [False, True]
                await s.set(p=2)
                left = await s.next(5)
                assert (left.kind, left.key) == ("leave", 2)

    run(main)


def test_a_durable_snapshot_that_comes_in_many_pieces_is_whole():
    """All of it has one number, and no part of it is taken for one that came before."""

    async def main() -> None:
        async with broker() as server, client(server) as c:
            await c.declare("stock", "id")
            rows = [dl.Event("stock", {"id": n, "text": "x" * 100}) for n in range(20_000)]
            await c.publish_many(rows)
            text = "SELECT * FROM stock"
            s = await c.subscribe(text, rows=True, durable="all")
            await s.detach()
            s = await c.subscribe(text, rows=True, durable="all")
            # Not all of it is here yet: what is, is kept for later.
            for _ in range(3):
                with contextlib.suppress(TimeoutError):
                    assert len(await s.snapshot(0)) == 20_000
                    break
            else:
                assert [n.key for n in await s.snapshot(30)] == list(range(20_000))
            await c.publish(dl.Event("stock", {"id": 5, "text": "y"}))
            assert (await s.next(5)).kind == "change"
            assert s.pending() == []
            await s.detach()
            # It was dealt with: nothing is told again.
            s = await c.subscribe(text, rows=True, durable="all")
            assert s.resumed
            with pytest.raises(TimeoutError):
                await s.next(0.3)

    run(main)


@pytest.mark.parametrize("durable", ["", "rows"])
def test_the_end_of_a_snapshot_is_seen_though_there_is_nothing_in_it(durable: str):
    async def main() -> None:
        async with broker() as server, client(server) as c:
            await c.declare("stock", "id")
            text = "SELECT * FROM stock WHERE price > :p"
            async with c.subscribe(text, {"p": 9}, rows=True, durable=durable) as s:
                assert await s.snapshot(5) == []
                # It is told nothing that a program would take for a row.
                await c.publish_many([dl.Event("stock", {"id": n, "price": n}) for n in range(12)])
                entered = [await s.next(5) for _ in range(2)]
                assert [(n.kind, n.key) for n in entered] == [("enter", 10), ("enter", 11)]
            async with c.subscribe("SELECT DISTINCT price FROM stock WHERE price > 20") as s:
                assert await s.snapshot(5) == []
            async with c.subscribe(text, {"p": 9}, rows=True) as s:
                assert [(n.key, n.last) for n in await s.snapshot(5)] == [(10, False), (11, True)]
            async with c.subscribe("SELECT MAX(price) FROM stock WHERE price > 20") as s:
                (only,) = await s.snapshot(5)
                assert only.values == {"MAX(price)": None}
            async with c.subscribe("SELECT * FROM stock") as s:
                with pytest.raises(TimeoutError):
                    await s.snapshot(0.1)
                await c.publish(dl.Event("stock", {"id": 1, "price": 1}))
                assert await s.snapshot(5) == []
                assert (await s.next(5)).kind == "event"

    run(main)


def test_patterns_and_environment():
    async def main() -> None:
        async with broker() as server, client(server) as c:
            await c.observe("factor", 2)
            async with c.subscribe("SELECT * FROM q WHERE x > :x * env('factor')", {"x": 1}) as s:
                await c.publish_many([dl.Event("q", {"x": x}) for x in (1, 2, 3)])
                assert (await s.next(5)).values == {"x": 3}
            both = "SELECT * FROM q WHERE x = 1 THEN SELECT * FROM q WHERE x = 2"
            async with c.subscribe(both) as s:
                for x in (1, 3, 2):
                    await c.publish(dl.Event("q", {"x": x}))
                told = await s.next(5)
                assert told.kind == "pattern"
                assert [one.attributes["x"] for one in told.events] == [1, 2]

    run(main)


def test_publishers_see_whether_anybody_is_interested():
    async def main() -> None:
        async with broker() as server, client(server) as c:
            ad = await c.advertise("SELECT * FROM quote WHERE price IS NOT NULL")
            assert ad.interested is False
            assert await c.interested("SELECT * FROM quote WHERE price IS NOT NULL") is False
            async with c.subscribe("SELECT * FROM quote WHERE price < 3"):
                assert await asyncio.wait_for(anext(ad), 5) is True
                assert await c.interested("SELECT * FROM quote WHERE price IS NOT NULL") is True
            assert await asyncio.wait_for(anext(ad), 5) is False
            await ad.withdraw()

    run(main)


def test_explain_says_why():
    async def main() -> None:
        async with broker() as server, client(server) as c:
            async with c.subscribe("SELECT * FROM quote WHERE price < :p", {"p": 3}) as s:
                why = await s.explain(quote(5))
                assert why.outcome is False
                engine = dl.Engine()
                here = engine.subscribe("SELECT * FROM quote WHERE price < :p", {"p": 3})
                assert why == here.explain(quote(5))

    run(main)


def test_a_durable_subscription_goes_on_while_nobody_is_connected(tmp_path: Path):
    journal = str(tmp_path / "b.journal")

    async def main() -> None:
        async with broker(journal=journal) as server, client(server) as c:
            async with c.subscribe("SELECT * FROM q WHERE x > :x", {"x": 0}, durable="d") as s:
                assert not s.resumed
                await c.publish_many([dl.Event("q", {"x": x}) for x in range(5)])
                assert [(await s.next(5)).values["x"] for _ in range(2)] == [1, 2]
            # The second was dealt with, too: nothing was raised.
            await c.publish(dl.Event("q", {"x": 5}))
        async with broker(journal=journal) as server, client(server) as c:
            async with c.subscribe("SELECT * FROM q WHERE x > :x", {"x": 0}, durable="d") as s:
                assert s.resumed
                told = [await s.next(5) for _ in range(3)]
                assert [n.values["x"] for n in told] == [3, 4, 5]
                numbers = [n.number for n in told]
                assert numbers == sorted(numbers)
                await c.publish(dl.Event("q", {"x": 6}))
                assert (await s.next(5)).values == {"x": 6}
                await s.cancel()
        async with broker(journal=journal) as server:
            assert sum(1 for _ in server.edge) == 0
            assert not server.edge.parties

    run(main)


def test_what_was_not_acknowledged_by_hand_comes_again(tmp_path: Path):
    async def main() -> None:
        async with broker(journal=str(tmp_path / "j")) as server:
            for expected in ([0, 1, 2], [2]):
                async with client(server) as c:
                    s = await c.subscribe("SELECT * FROM q", durable="d", ack="manual")
                    if not s.resumed:
                        await c.publish_many([dl.Event("q", {"x": x}) for x in range(3)])
                    told = [await s.next(5) for _ in expected]
                    assert [n.values["x"] for n in told] == expected
                    if len(told) > 1:
                        await s.ack(told[1])

    run(main)


def test_a_part_that_is_acknowledged_lets_go_of_no_other(tmp_path: Path):
    async def main() -> None:
        text = "SELECT * FROM stock"
        async with broker(journal=str(tmp_path / "j")) as server:
            async with client(server) as c:
                await c.declare("stock", "id")
                await c.publish_many([dl.Event("stock", {"id": n}) for n in range(3)])
                s = await c.subscribe(text, durable="d", rows=True, ack="manual")
                for _ in range(2):
                    told = await s.next(5)
                    assert told.more
                    await s.ack(told)
                await c.confirm()
            async with client(server) as c:
                s = await c.subscribe(text, durable="d", rows=True, ack="manual")
                parts = [await s.next(5) for _ in range(3)]
                assert sorted(one.key for one in parts) == [0, 1, 2]
                assert [one.more for one in parts] == [True, True, False]
                await s.ack(parts[-1])
                await c.confirm()
            async with client(server) as c:
                s = await c.subscribe(text, durable="d", rows=True, ack="manual")
                with pytest.raises(TimeoutError):
                    await s.next(0.3)

    run(main)


def test_parts_come_whole_to_whoever_acknowledges_each(tmp_path: Path):
    """Those that have come later than others of their number were acknowledged, too."""

    async def main() -> None:
        async with broker() as server, client(server) as c:
            s = await c.subscribe("SELECT * FROM q", durable="d", ack="manual")
            kind = NotificationKind.EVENT
            for n in range(3):
                s._put(Notification(kind, {"n": n}, number=7, more=n < 2))
                told = await s.next(5)
                assert told.values == {"n": n}
                await s.ack(told)
            s._put(Notification(kind, {"n": 2}, number=7))
            assert not s.pending()

    run(main)


def test_a_durable_snapshot_whose_connection_is_lost_in_the_middle_has_nothing_twice():
    async def main() -> None:
        async with broker() as server, client(server) as c:
            await c.declare("stock", "id")
            wide = [dl.Event("stock", {"id": n, "x": f"{n}" * 200_000}) for n in range(10)]
            await c.publish_many(wide)
            with Cutting(server.address.port) as line:
                async with dl.connect(f"driftline://127.0.0.1:{line.port}") as other:
                    text = "SELECT * FROM stock"
                    s = other.subscribe(text, rows=True, durable="d")
                    await c.durables.keep("d", text, rows=True)
                    await c.durables.suspend("d")
                    await s
                    line.cut_after(1_000_000)
                    await c.durables.resume("d")
                    rows = await s.snapshot(10)
                    assert line.cut.is_set()
                    assert sorted(told.key for told in rows) == [*range(10)]
                    assert s.begun_again == 1

    run(main)


@pytest.mark.parametrize("renew", [True, False])
def test_one_that_was_ended_and_made_again_while_the_connection_was_lost_is_a_gap(renew: bool):
    async def main() -> None:
        async with broker() as server, client(server) as c:
            with Cutting(server.address.port) as line:
                async with dl.connect(f"driftline://127.0.0.1:{line.port}") as other:
                    text = "SELECT * FROM q"
                    s = await other.subscribe(text, durable="d", renew=renew)
                    await c.publish(dl.Event("q", {"x": 1}))
                    assert (await s.next(5)).values == {"x": 1}
                    line.is_open = False
                    line.cut_after(1)
                    asked = asyncio.create_task(other.status())
                    await asyncio.to_thread(line.cut.wait, 5)
                    await until(lambda: server.durables.attached == 0)
                    await c.publish(dl.Event("q", {"x": 2}))
                    await c.durables.drop("d")
                    await c.durables.keep("d", text)
                    await c.publish(dl.Event("q", {"x": 3}))
                    line.is_open = True
                    await asked
                    assert (await s.next(5)).kind == "gap"
                    assert (await s.next(5)).values == {"x": 3}

    run(main)


def test_a_durable_subscription_is_one_connections_at_a_time(tmp_path: Path):
    async def main() -> None:
        async with broker(journal=str(tmp_path / "j")) as server:
            async with client(server) as one, client(server) as two:
                first = await one.subscribe("SELECT * FROM q", durable="d")
                second = await two.subscribe("SELECT * FROM q", durable="d")
                with pytest.raises(Unreachable):
                    await first.next(5)
                await one.publish(dl.Event("q", {"x": 1}))
                assert (await second.next(5)).values == {"x": 1}

    run(main)


def test_a_lost_connection_is_made_again_and_everything_is_said_anew():
    async def main() -> None:
        async with broker() as server:
            port = server.address.port
            async with client(server) as c:
                s = await c.subscribe("SELECT * FROM q WHERE x < :x", {"x": 5})
                await s.set(x=3)
                await server.drain(1.0)
                moving = asyncio.create_task(s.set(x=2))
                late = asyncio.create_task(c.publish(dl.Event("q", {"x": 1})))
                await asyncio.sleep(0.1)
                assert not late.done()
                async with broker(port=port):
                    await asyncio.wait_for(moving, 10)
                    await asyncio.wait_for(late, 10)
                    gap = await s.next(5)
                    assert gap.kind == "gap"
                    await c.publish_many([dl.Event("q", {"x": x}) for x in (2, 0)])
                    found = [await s.next(5)]
                    while found[-1].values["x"] != 0:
                        found.append(await s.next(5))
                    assert 2 not in [n.values["x"] for n in found]
                    assert found[-1].epoch == 2

    run(main)


def test_nobody_there_is_said_in_time():
    async def main() -> None:
        with pytest.raises(Unreachable):
            async with dl.connect("driftline://127.0.0.1:1", within=0.3):
                pass
        with pytest.raises(dl.InvalidValue):
            dl.connect("http://somewhere")

    run(main)


def test_two_brokers_that_are_peers():
    async def main() -> None:
        async with broker("a", peers=(Peer("b", Role.PEER),)) as a:
            async with broker("b", peers=(Peer("a", Role.PEER, a.address),)) as b:
                await until(lambda: a.links["b"].is_up and b.links["a"].is_up)
                async with client(a) as publisher, client(b) as subscriber:
                    wanted = "SELECT * FROM q WHERE x < :x"
                    async with subscriber.subscribe(wanted, {"x": 5}) as s:
                        assert await publisher.interested("SELECT * FROM q WHERE x IS NOT NULL")
                        await publisher.publish_many(
                            [dl.Event("q", {"x": x % 10}) for x in range(100)]
                        )
                        told = [await s.next(5) for _ in range(50)]
                        assert {n.values["x"] for n in told} == set(range(5))
                        await s.set(x=1)
                        await publisher.publish_many([dl.Event("q", {"x": x}) for x in range(5)])
                        assert (await s.next(5)).values == {"x": 0}
                    # Links can come and go while they run.
                    await publisher.unpeer("b")
                    assert (
                        await publisher.interested("SELECT * FROM q WHERE x IS NOT NULL") is False
                    )
                    await publisher.peer("b", str(b.address))

    run(main)


def test_set_names_who_did_not_answer():
    async def main() -> None:
        async with broker("a", peers=(Peer("gone", Role.PEER),)) as a, client(a) as c:
            s = c.subscribe("SELECT * FROM q WHERE x < :x", {"x": 5}, within=0.2)
            with pytest.raises(dl.NotEffective, match="gone"):
                await s
            with pytest.raises(dl.NotEffective, match="gone"):
                await s.set(x=1)
            # Here it counts.
            await c.publish_many([dl.Event("q", {"x": x}) for x in (3, 0)])
            assert (await s.next(5)).values == {"x": 0}

    run(main)


def test_without_async(tmp_path: Path):
    with dl.connect(journal=str(tmp_path / "j")) as c:
        with c.subscribe("SELECT x FROM q WHERE x < :x", {"x": 5}) as s:
            c.publish(dl.Event("q", {"x": 1}))
            assert s.next(5).values == {"x": 1}
            assert s.set(x=1) == 1
            assert c.publish_many([dl.Event("q", {"x": x}) for x in (3, 0)]) == 2
            assert s.next(5).values == {"x": 0}
            assert s.explain(dl.Event("q", {"x": 3})).outcome is False
            with pytest.raises(TimeoutError):
                s.next(0.05)
        with c.subscribe("SELECT * FROM q", durable="d") as s:
            c.publish(dl.Event("q", {"x": 7}))
            for n in s:
                assert n.values == {"x": 7}
                break
        assert c.status()["broker"] == "embedded"


def test_everything_else_without_async():
    with dl.connect() as c:
        with c.advertise("SELECT * FROM q WHERE x > 0") as ad:
            assert not ad.interested
            with c.subscribe("SELECT x FROM q WHERE x > :x", {"x": 1}) as s:
                assert ad.next(5)
                assert ad.interested
                assert s.add("x < :most", most=9) == 1
                assert s.replace("x > :x", "x >= :x") == 2
                assert s.remove("x < :most") == 3
                assert str(s.statement) == "SELECT x FROM q WHERE x >= :x"
                assert s.rebase() == 4
                c.publish(dl.Event("q", {"x": 1}))
                assert s.next(5).values == {"x": 1}
            assert not s.active
            assert not ad.next(5)
            with pytest.raises(TimeoutError):
                ad.next(0.05)
        c.declare("stock", "id")
        with c.subscribe("SELECT * FROM stock", rows=True) as s:
            assert s.snapshot(5) == []
        s = c.subscribe("SELECT * FROM q", durable="d")
        s.detach()
        assert not s.active
        assert list(s) == []
        assert c.subscribe("SELECT * FROM q", durable="d").params == {}


def test_a_slow_program_is_told_of_what_it_missed():
    async def main() -> None:
        async with broker() as server, client(server) as c, client(server) as p:
            policy = {"overflow": "drop_oldest", "limit": 10}
            async with c.subscribe("SELECT * FROM q", policy=policy) as s:
                c._talk.channel.hold(True)
                big = "x" * 50_000
                for n in range(300):
                    await p.publish(dl.Event("q", {"n": n, "big": big}))
                guest = next(one for one in server.guests.values() if one.handles)
                assert guest.connection.stuffed
                assert guest.behind.pending <= 10
                c._talk.channel.hold(False)
                told = [await s.next(5)]
                while told[-1].values.get("n") != 299:
                    told.append(await s.next(5))
                gaps = [n for n in told if n.kind == "gap"]
                events = [n for n in told if n.kind == "event"]
                assert sum(n.lost for n in gaps) + len(events) == 300
                assert gaps

    run(main)


def test_the_latest_of_each_key_once_in_an_interval():
    async def main() -> None:
        async with broker() as server, client(server) as c:
            policy = {"overflow": "conflate", "key": "k", "min_interval": 0.2}
            async with c.subscribe("SELECT * FROM q", policy=policy) as s:
                await c.publish_many([dl.Event("q", {"k": n % 3, "n": n}) for n in range(100)])
                told = [await s.next(5) for _ in range(4)]
                assert [n.values["n"] for n in told] == [0, 97, 98, 99]
                await asyncio.sleep(0.3)
                assert s.pending() == []

    run(main)


def test_who_blocks_loses_nothing():
    async def main() -> None:
        async with broker() as server, client(server) as c, client(server) as p:
            policy = {"overflow": "block", "limit": 10}
            async with c.subscribe("SELECT * FROM q", policy=policy) as s:
                c._talk.channel.hold(True)
                big = "x" * 50_000
                sending = [
                    asyncio.ensure_future(p.send(dl.Event("q", {"n": n, "big": big})))
                    for n in range(200)
                ]
                await until(lambda: bool(server.holding.blocking))
                assert not all(one.done() for one in sending)
                c._talk.channel.hold(False)
                told = [await s.next(10) for _ in range(200)]
                assert [n.values["n"] for n in told] == list(range(200))
                assert all(n.kind == "event" for n in told)
                await asyncio.gather(*sending)
                assert not server.holding.blocking

    run(main)
