"""Is somebody who reads again told all that waits, in order, and in rounds?"""

from __future__ import annotations

import asyncio

import driftline as dl
from driftline.broker.policy import Policy
from driftline.net import behind
from tests.net.here import address, eventually, served

EVENTS, BIG = 4000, "x" * 500
POLICY = {"overflow": "drop_oldest", "limit": EVENTS, "limit_bytes": 1 << 24}


def test_who_reads_again_is_told_everything_in_order_a_round_in_each_turn(monkeypatch):
    rounds: list[int] = []
    send = behind.Behind._send

    def counted(self, some):
        rounds.append(sum(one.item.size for one in some))
        send(self, some)

    monkeypatch.setattr(behind.Behind, "_send", counted)

    async def main() -> None:
        async with (
            served() as server,
            dl.connect(address(server)) as c,
            dl.connect(address(server)) as p,
            c.subscribe("SELECT * FROM q WHERE n >= 0", policy=POLICY) as s,
            c.subscribe("SELECT * FROM q WHERE n < 2000", policy=POLICY) as low,
        ):
            (guest,) = (one for one in server.guests.values() if one.handles)
            guest.connection.stuffed = True
            await p.publish_each([dl.Event("q", {"n": n, "big": BIG}) for n in range(EVENTS)])
            assert guest.behind.pending == EVENTS + 2000
            assert not rounds
            guest.connection.resume_writing()
            told = [(await s.next(10)).values["n"] for _ in range(EVENTS)]
            assert told == [*range(EVENTS)]
            told = [(await low.next(10)).values["n"] for _ in range(2000)]
            assert told == [*range(2000)]
            assert guest.behind.pending == 0

    asyncio.run(asyncio.wait_for(main(), 60))
    assert len(rounds) > 20
    assert max(rounds) <= behind._ROUND


def test_notices_that_wait_together_go_in_one_frame(monkeypatch):
    async def main() -> None:
        async with (
            served() as server,
            dl.connect(address(server)) as c,
            dl.connect(address(server)) as p,
            c.subscribe("SELECT * FROM q", policy={"limit": 10}) as s,
        ):
            (guest,) = (one for one in server.guests.values() if one.handles)
            await p.publish(dl.Event("q", {"n": -1}))
            assert (await s.next(5)).values == {"n": -1}
            guest.connection.stuffed = True
            await p.publish_each([dl.Event("q", {"n": n}) for n in range(20)])
            sent: list[bytes] = []
            real = guest.connection.send
            monkeypatch.setattr(
                guest.connection, "send", lambda data, **how: (sent.append(data), real(data, **how))
            )
            guest.connection.resume_writing()
            # What was lost, and then all that is left.
            assert len(sent) == 2
            kinds = [n.kind for n in [await s.next(5) for _ in range(11)]]
            assert kinds == ["gap", *["event"] * 10]

    asyncio.run(asyncio.wait_for(main(), 30))


def test_policies_count_as_long_as_their_subscriptions_are_there():
    async def main() -> None:
        async with served() as server, dl.connect(address(server)) as c:
            usual = await c.subscribe("SELECT * FROM q")
            (guest,) = server.guests.values()
            assert guest.behind.is_empty
            assert guest.behind.policies == 0
            async with c.subscribe("SELECT * FROM q", policy={"min_interval": 1.0}):
                assert guest.behind.policies == 1
                # Somebody wants to be told less often: nothing goes straight out.
                assert not guest.behind.is_empty
                keyed = {"overflow": "conflate", "key": "k"}
                async with c.subscribe("SELECT * FROM q", policy=keyed):
                    assert guest.behind.policies == 2
                    assert guest.behind._keyed == 1
            await eventually(lambda: guest.behind.is_empty)
            assert guest.behind.policies == guest.behind._keyed == guest.behind._intervals == 0
            await usual.cancel()
            await eventually(lambda: not guest.handles)

    asyncio.run(asyncio.wait_for(main(), 30))


def test_the_usual_policy_is_none_that_is_remembered():
    assert Policy.of_options({}) == behind._USUAL
