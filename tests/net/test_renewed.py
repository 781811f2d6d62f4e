"""Does a configuration that is read anew count as a whole, or not at all?"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import driftline as dl
from driftline.errors import DriftlineError, FileRefused, InvalidValue, NotAllowed
from tests.net.here import configured, eventually, served
from tests.net.secured import Authority, client_of
from tests.net.test_tokens import EVERYTHING


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority") / "keys")


@pytest.fixture(scope="module")
def tls(authority):
    return authority.tls("b")


@pytest.fixture
def said(authority, tls, tmp_path):
    """What a broker is told that is closed, speaks TLS and HTTP and sends webhooks."""
    (tmp_path / "access.toml").write_text(EVERYTHING)
    secret = tmp_path / "webhooks.secret"
    secret.touch(0o600)
    secret.write_text("s" * 32)
    return {
        "tls": tls,
        "tokens": authority.tokens(),
        "access": str(tmp_path / "access.toml"),
        "http": {"listen": "127.0.0.1:0"},
        "webhooks": {"allow": ["http://127.0.0.1/"], "secret_file": str(secret)},
        "limits": {"rate": 100},
        "peers": [{"name": "c"}],
    }


CHANGES = [
    ("tls", {"tls": None}),
    ("name", {"name": "d"}),
    ("listen", {"listen": "127.0.0.1:1"}),
    ("journal", {"journal": "other.journal"}),
    ("health", {"health": "127.0.0.1:0"}),
    ("advertised", {"advertised": True}),
    ("http", {"http": None}),
    ("http.streams", {"http": {"listen": "127.0.0.1:0", "streams": 7}}),
    ("limits.rate", {"limits": {"rate": 7}}),
    ("logs.level", {"logs": {"level": "debug"}}),
    ("peers", {"peers": []}),
    ("tokens, access", {"tokens": None, "access": None, "peers": []}),
]


@pytest.mark.parametrize(("setting", "change"), CHANGES)
def test_what_cannot_change_while_a_broker_runs_is_named_and_nothing_changes(
    authority, said, setting, change
):
    async def test() -> None:
        async with served(**said) as server:
            before = server.config
            # What could change is in the same configuration, and must not either.
            nothing = Path(said["access"]).with_name("nothing.toml")
            nothing.write_text("")
            after = {**said, "access": str(nothing), **change}
            after = {name: one for name, one in after.items() if one is not None}
            if "tls" not in after:
                after["peers"] = []
                del after["tokens"], after["access"]
            with pytest.raises(InvalidValue) as refused:
                server.reload(configured(**after))
            assert setting in refused.value.where
            assert "cannot change while it runs" in str(refused.value)
            assert server.config is before
            trust, token = authority.trust(), authority.token("alice")
            async with client_of(server, token, tls=trust) as alice:
                await alice.publish(dl.Event("q", {"x": 1}))

    asyncio.run(asyncio.wait_for(test(), 60))


def test_tls_that_appears_is_refused_too(authority, said):
    async def test() -> None:
        open_said = {name: said[name] for name in ("http", "limits")}
        async with served(**open_said) as server:
            for name, more in (("tls", {"tls": said["tls"]}), ("webhooks", said)):
                with pytest.raises(InvalidValue, match=name):
                    server.reload(configured(**{**open_said, name: more[name]}))
            with pytest.raises(InvalidValue, match="tokens"):
                server.reload(configured(**open_said, tokens=said["tokens"]))
            async with client_of(server) as somebody:
                await somebody.publish(dl.Event("q", {"x": 1}))

    asyncio.run(asyncio.wait_for(test(), 60))


@pytest.mark.parametrize("spoilt", ["tls.certificate", "tls.authority", "webhooks.secret_file"])
def test_a_file_that_cannot_be_read_leaves_everything_as_it_was(authority, said, tmp_path, spoilt):
    async def test() -> None:
        async with served(**said) as server:
            (tmp_path / "bad").write_text("no such thing")
            (tmp_path / "nothing.toml").write_text("")
            table, name = spoilt.split(".")
            bad = {**said[table], name: str(tmp_path / "bad")}
            after = {**said, "access": str(tmp_path / "nothing.toml"), table: bad}
            with pytest.raises((FileRefused, DriftlineError)):
                server.reload(configured(**after))
            trust, token = authority.trust(), authority.token("alice")
            async with client_of(server, token, tls=trust) as alice:
                await alice.publish(dl.Event("q", {"x": 1}))
            server.reload(configured(**{**said, "access": str(tmp_path / "nothing.toml")}))
            async with client_of(server, token, tls=trust) as alice:
                with pytest.raises(NotAllowed):
                    await alice.publish(dl.Event("q", {"x": 1}))

    asyncio.run(asyncio.wait_for(test(), 60))


def test_a_link_is_dialled_with_what_was_read_whatever_the_files_have_become(authority, tmp_path):
    """Certificates are written before a broker is told to read them, and may be wrong."""

    async def test() -> None:
        tls = authority.tls("x")
        async with served(name="a", tls=authority.tls("a"), peers=[{"name": "x"}]) as a:
            to_a = {"name": "a", "address": str(a.address)}
            async with served(name="x", tls=tls, peers=[to_a]) as x:
                await eventually(lambda: x.links["a"].is_up)
                Path(tls["certificate"]).write_text("half of a certificate")
                with pytest.raises(FileRefused):
                    x.reload(x.config)
                before = x.links["a"]._wire
                a.links["x"].again("it breaks")
                await eventually(lambda: x.links["a"]._wire not in (None, before))

    asyncio.run(asyncio.wait_for(test(), 60))
