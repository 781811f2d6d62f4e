"""Is nothing lost when a broker is killed between a webhook and what is said of it?"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import driftline as dl
from tests.handlers.receiver import OK, Receiver, after, status
from tests.net.processes import Brokers

TEXT = "SELECT * FROM quote"
COUNT = 8


def run(test: Any) -> Any:
    return asyncio.run(asyncio.wait_for(test, 60))


def events(*xs: int) -> list[dl.Event]:
    return [dl.Event("quote", {"x": x}) for x in xs]


async def until(client: Any, **wanted: int) -> None:
    while True:
        one = await client.durables.get("all")
        if all(getattr(one, name) == value for name, value in wanted.items()):
            return
        await asyncio.sleep(0.02)


def test_each_arrives_what_comes_again_is_known_by_its_id_and_letters_survive(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("m" * 32)
    secret.chmod(0o600)
    with Receiver(otherwise=after(0.02, OK)) as receiver, Brokers(tmp_path) as brokers:
        hooks = {
            "allow": [f"{receiver.url}/"],
            "secret_file": str(secret),
            "first": 0.02,
            "longest": 0.1,
        }
        broker = brokers.start("b", webhooks=hooks)
        killed = threading.Event()

        def kill(post):
            # The receiver has it, and the broker will never hear so.
            if post.values["x"] == 3 and not killed.is_set():
                broker.kill()
                killed.set()

        receiver.on_post = kill

        async def in_between():
            async with dl.connect(broker.address) as client:
                await client.durables.keep("all", TEXT)
                await client.durables.redirect("all", f"{receiver.url}/in")
                await client.durables.suspend("all")
                await client.publish_many(events(*range(COUNT)))
                secret = await client.durables.secret("all")
                await client.durables.resume("all")
            assert await asyncio.to_thread(killed.wait, 20)
            await asyncio.to_thread(broker.restart)
            async with dl.connect(broker.address) as client:
                await until(client, kept=0, dead=0)
                assert await client.durables.secret("all") == secret

        run(in_between())
        by_id: dict[str, set[int]] = {}
        for post in receiver.posts:
            by_id.setdefault(post.id, set()).add(post.values["x"])
        assert [*by_id.values()] == [{x} for x in range(COUNT)]
        came = [post.values["x"] for post in receiver.posts]
        # What was taken before the one at which it was killed may not have been stored as such.
        again = came[4]
        assert came == [0, 1, 2, 3, *range(again, COUNT)]
        assert again <= 3

        receiver.posts.clear()
        receiver.otherwise = status(400)

        async def buried():
            async with dl.connect(broker.address) as client:
                await client.publish_many(events(20, 21, 22))
                await until(client, dead=3)
                letters = await client.durables.dead("all")
                await client.durables.suspend("all")
                assert await client.durables.redeliver("all", [letters[1].id]) == 1
                return await client.durables.dead("all")

        letters = run(buried())
        broker.kill()
        receiver.otherwise = OK
        broker.restart()

        async def again():
            async with dl.connect(broker.address) as client:
                assert await client.durables.dead("all") == letters
                await client.durables.resume("all")
                await until(client, dead=2, kept=0)

        run(again())
        assert [post.values["x"] for post in receiver.posts] == [20, 21, 22, 21]
        assert receiver.posts[3].id == receiver.posts[1].id
    assert "mmmmmmmm" not in broker.errors
    assert "whsec_" not in broker.errors
