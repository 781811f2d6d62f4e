"""Whom does a broker believe, and for how long?"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import load_pem_private_key

import driftline as dl
from driftline.client import channel, proof
from driftline.errors import (
    FileRefused,
    InvalidValue,
    LimitReached,
    NotAllowed,
    NotAuthenticated,
    Unreachable,
)
from driftline.net.config import config_of, read_config
from driftline.net.tokens import TOKEN_BYTES_MAX, Tokens, Verifier
from tests.net.here import configured, eventually
from tests.net.secured import Authority, client_of, closed

EVERYTHING = """
[[grants]]
who = ["*"]
may = ["publish", "subscribe", "set"]
on = ["*"]
attributes = ["*"]
"""


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority") / "keys")


@pytest.fixture(scope="module")
def verifier(authority):
    return Verifier(Tokens(authority.folder / "tokens.pub"))


def signed(key: object, algorithm: str = "EdDSA", **claims: object) -> str:
    said = {"sub": "alice", "aud": "driftline", "exp": time.time() + 60, **claims}
    said = {name: value for name, value in said.items() if value is not None}
    return jwt.encode(said, key, algorithm=algorithm)


def unsigned(header: dict[str, object], **claims: object) -> str:
    def part(said: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")

    said = {"sub": "alice", "aud": "driftline", "exp": time.time() + 60, **claims}
    return f"{part(header)}.{part(said)}."


def test_a_token_says_whose_it_is_and_until_when(authority, verifier):
    found = verifier.proven(authority.token("https://id.example.org/7", 100))
    assert found.identity == "https://id.example.org/7"
    assert 100 <= found.until - time.time() <= 106


def test_what_does_not_count(authority, verifier):
    key = load_pem_private_key((authority.folder / "tokens.key").read_bytes(), None)
    public = (authority.folder / "tokens.pub").read_bytes()
    other = ed25519.Ed25519PrivateKey.generate()
    good = signed(key)
    verifier.proven(good)
    wrong = {
        "expired": signed(key, exp=time.time() - 60),
        "somebody else": signed(key, aud="another"),
        "does not count yet": signed(key, nbf=time.time() + 600),
        "must say sub": signed(key, sub=None),
        "must say sub, aud": signed(key, aud=None),
        "must say sub, aud and exp": signed(key, exp=None),
        "not signed by whom": signed(other),
        "another way": unsigned({"alg": "none"}),
        "no token": "x.y.z",
        "came another": signed(key, sub="a\nb"),
        "of 1 to 200": signed(key, sub="x" * 201),
        "nobody goes by": signed(key, sub="anyone"),
        f"at most {TOKEN_BYTES_MAX}": good + "x" * TOKEN_BYTES_MAX,
    }
    for why, token in wrong.items():
        with pytest.raises(NotAuthenticated, match=why):
            verifier.proven(token)
    # The public key is no secret: it must not be taken for one, whatever a token says of itself.
    head = {"alg": "HS256", "typ": "JWT"}
    forged = unsigned(head).rstrip(".")
    mac = hmac.new(public, forged.encode(), hashlib.sha256).digest()
    forged += "." + base64.urlsafe_b64encode(mac).decode().rstrip("=")
    with pytest.raises(NotAuthenticated, match="another way"):
        verifier.proven(forged)
    payload = good.split(".")[1]
    changed = good.replace(payload, signed(key, sub="root").split(".")[1])
    with pytest.raises(NotAuthenticated, match="not signed"):
        verifier.proven(changed)


def test_keys_are_what_the_settings_say(authority, tmp_path):
    with pytest.raises(InvalidValue, match="one of EdDSA"):
        Tokens(tmp_path / "k", "none")
    with pytest.raises(FileRefused, match="No such file"):
        Verifier(Tokens(tmp_path / "missing"))
    (tmp_path / "rubbish").write_text("rubbish")
    with pytest.raises(FileRefused, match="no public key"):
        Verifier(Tokens(tmp_path / "rubbish"))
    with pytest.raises(FileRefused, match="no public key for RS256"):
        Verifier(Tokens(authority.folder / "tokens.pub", "RS256"))
    secret = tmp_path / "secret"
    secret.write_bytes(b"x" * 40 + b"\n")
    with pytest.raises(FileRefused, match="others can read"):
        Verifier(Tokens(secret, "HS256"))
    secret.chmod(0o600)
    token = signed(b"x" * 40, "HS256")
    assert Verifier(Tokens(secret, "HS256")).proven(token).identity == "alice"
    secret.write_bytes(b"short")
    with pytest.raises(FileRefused, match="at least 32 bytes"):
        Verifier(Tokens(secret, "HS256"))


def test_who_shows_no_token_or_a_wrong_one_is_turned_away_at_once(authority, caplog):
    async def test():
        async with closed(authority, EVERYTHING) as server:
            for token, why in (("", "a token is needed"), ("rubbish", "no token that can be read")):
                with pytest.raises(NotAuthenticated, match=why):
                    async with client_of(server, token):
                        pass
            assert server.counters.unproven == 2
            assert not server.guests
            token = authority.token("alice")
            async with client_of(server, token) as c, c.subscribe("SELECT * FROM q") as s:
                await c.publish(dl.Event("q", {"x": 1}))
                assert (await s.next(5)).values == {"x": 1}
                (guest,) = server.guests.values()
                assert guest.identity == "alice"
            assert token not in caplog.text

    caplog.set_level(logging.DEBUG)
    run(test)


def test_a_connection_ends_when_its_token_does_and_goes_on_with_a_new_one(authority):
    async def test():
        async with closed(authority, EVERYTHING, tokens=_short(authority)) as server:
            asked = []

            def fresh() -> str:
                asked.append(1)
                return authority.token("alice", 1.2)

            async with client_of(server, fresh) as c, c.subscribe("SELECT * FROM q") as s:
                deadline = time.monotonic() + 10
                while len(asked) < 2:
                    assert time.monotonic() < deadline
                    await asyncio.sleep(0.05)
                await c.publish(dl.Event("q", {"x": 1}))
                while (told := await s.next(5)).kind != "event":
                    pass
                assert told.values == {"x": 1}
            async with client_of(server, authority.token("bob", 1.2)) as c:
                await asyncio.sleep(1.3)
                with pytest.raises(NotAuthenticated, match="expired"):
                    await c.publish(dl.Event("q", {"x": 1}))

    run(test)


def _short(authority: Authority) -> dict[str, object]:
    return {**authority.tokens(), "leeway": 0.0}


def test_a_party_sees_sets_and_cancels_only_its_own(authority):
    text = "SELECT * FROM q WHERE x < :limit"

    async def test():
        async with closed(authority, EVERYTHING) as server:
            token_a, token_b = authority.token("alice"), authority.token("bob")
            async with client_of(server, token_a) as alice, client_of(server, token_b) as bob:
                mine = await alice.subscribe(text, {"limit": 10}, durable="alerts")
                with pytest.raises(InvalidValue, match="the name of a durable subscription"):
                    await bob.set("alerts", {"limit": 99})
                with pytest.raises(InvalidValue):
                    await bob.explain("alerts", dl.Event("q", {"x": 1}))
                other = await bob.subscribe(text, {"limit": 5}, durable="alerts")
                await other.cancel()
                await bob.publish(dl.Event("q", {"x": 7}))
                assert (await mine.next(5)).values == {"x": 7}
                assert mine.params == {"limit": 10}
                with pytest.raises(NotAllowed, match="operate"):
                    await bob.status()
                seen = await alice.status(subscriptions=True)
                assert seen.keys() == {"mine"}
                assert len(seen["mine"]) == 1
                assert (await bob.status(subscriptions=True)) == {"mine": []}

    run(test)


def test_limits_are_each_identitys_own(authority):
    async def test():
        async with closed(authority, EVERYTHING, limits={"durable": 2}) as server:
            async with client_of(server, authority.token("alice")) as alice:
                for name in "ab":
                    await (await alice.subscribe("SELECT * FROM q", durable=name)).detach()
                with pytest.raises(LimitReached):
                    await alice.subscribe("SELECT * FROM q", durable="c")
                async with client_of(server, authority.token("bob")) as bob:
                    await bob.subscribe("SELECT * FROM q", durable="c")
                await (await alice.subscribe("SELECT * FROM q", durable="a")).cancel()
                await alice.subscribe("SELECT * FROM q", durable="c")

    run(test)


def test_lists_that_are_read_anew_count_at_once(authority):
    async def test():
        async with closed(authority, EVERYTHING) as server:
            async with client_of(server, authority.token("alice")) as alice:
                s = await alice.subscribe("SELECT * FROM q")
                file = server.config.access
                file.write_text(EVERYTHING.replace('"*"]\nmay', '"bob"]\nmay'))
                said = {"access": str(file), "tokens": authority.tokens()}
                server.reload(configured(**said))
                with pytest.raises(NotAllowed):
                    async for _ in s:
                        pass
                with pytest.raises(NotAllowed, match="alice may not publish q"):
                    await alice.publish(dl.Event("q", {"x": 1}))
                file.write_text("grants = 1")
                with pytest.raises(FileRefused):
                    server.reload(configured(**said))
                async with client_of(server, authority.token("bob")) as bob:
                    await bob.publish(dl.Event("q", {"x": 1}))

    run(test)


async def cut(server, client):
    """Lose a connection, and wait until the client knows."""
    for guest in [*server.guests.values()]:
        guest.connection.abort("the test breaks it")
    await eventually(lambda: not client.is_connected)


@pytest.mark.parametrize("how", ["away", "empty"])
def test_a_token_that_is_not_there_for_a_moment_is_read_again(
    authority, tmp_path, monkeypatch, caplog, how
):
    """As when a secret is rotated: its file is renamed, or written anew."""
    monkeypatch.setattr(channel, "TOKEN_AWAY", 0.1, raising=False)
    file = tmp_path / "token"
    file.write_text(authority.token("alice"))
    monkeypatch.setenv("DRIFTLINE_TOKEN_FILE", str(file))

    async def test():
        async with (
            closed(authority, EVERYTHING) as server,
            client_of(server, proof.token) as alice,
        ):
            s = await alice.subscribe("SELECT * FROM q")
            file.unlink() if how == "away" else file.write_text("")
            await cut(server, alice)
            await eventually(lambda: str(file) in caplog.text)
            assert not server.guests
            file.write_text(authority.token("alice"))
            await eventually(lambda: alice.is_connected)
            assert (await s.next(10)).kind == "gap"
            await alice.publish(dl.Event("q", {"x": 1}))
            assert (await s.next(10)).values == {"x": 1}

    run(test)
    assert caplog.text.count("no token") == 1, "it is said once"


def test_a_token_that_cannot_be_had_is_the_reason_when_no_other_connection_is_wanted(authority):
    def fetch():
        raise RuntimeError("the service that gives tokens is down")

    async def test():
        async with closed(authority, EVERYTHING) as server:
            client = client_of(server, fetch, reconnect=False)
            with pytest.raises(Unreachable, match="the service that gives tokens is down"):
                await client.open()

    run(test)


def test_a_token_that_is_away_when_another_has_expired_is_waited_for(authority, tmp_path):
    """The broker ends the connection, and asks for another token, which is not there yet."""
    file = tmp_path / "token"
    file.write_text(authority.token("alice", seconds=1.5))

    def read():
        return file.read_text()

    async def test():
        async with closed(authority, EVERYTHING) as server, client_of(server, read) as alice:
            file.unlink()
            await eventually(lambda: not alice.is_connected)
            file.write_text(authority.token("alice"))
            await eventually(lambda: alice.is_connected)

    run(test)


def test_what_would_be_read_on_the_way_is_refused(authority):
    tokens = authority.tokens()
    with pytest.raises(InvalidValue, match="anybody on the way can read tokens"):
        config_of({"listen": "0.0.0.0:7400", "tokens": tokens})
    with pytest.raises(InvalidValue, match="must prove who they are too"):
        config_of({"tokens": tokens, "peers": [{"name": "b"}]})
    with pytest.raises(InvalidValue, match="no password"):
        read_config(None, {"journal": "postgresql://me:secret@host/db"}, {})
    assert config_of({"tokens": tokens}).is_closed
