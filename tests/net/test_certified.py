"""Is it said clearly what is wrong with a certificate, before somebody is turned away by it?"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest

from driftline.errors import FileRefused
from driftline.net import authority as signing
from driftline.net.authority import renew_broker, sign_broker, sign_party
from driftline.net.config import config_of
from driftline.net.configured import check, doubts
from tests.net.here import configured, served
from tests.net.secured import Authority
from tests.net.test_tls import _shown


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "keys")


def dated(monkeypatch, begins: int, ends: int) -> None:
    """What is signed from now on counts from so many days on, until so many."""
    monkeypatch.setattr(signing, "_LATE", timedelta(days=-begins))
    monkeypatch.setattr(signing, "DAYS", ends)


def config(tls, **said):
    return config_of({"name": "a", "listen": "127.0.0.1:0", "tls": tls, **said})


@pytest.mark.parametrize(
    ("begins", "ends", "why"),
    [(-10, -1, "certificate has expired"), (1, 10, "certificate is not yet valid")],
)
def test_one_that_does_not_count_now_is_refused(authority, monkeypatch, begins, ends, why):
    dated(monkeypatch, begins, ends)
    tls = authority.tls("a")
    with pytest.raises(FileRefused, match=f"broker-a.pem: nobody will believe.* {why}"):
        check(config(tls))


def test_one_that_expires_soon_is_doubted(authority, monkeypatch):
    dated(monkeypatch, -1, 3)
    (found,) = (one for one in doubts(config(authority.tls("a")), {}) if "expires on" in one)
    assert "broker-a.pem" in found


def test_a_key_that_is_anothers_is_named(authority):
    tls = {**authority.tls("a"), "key": authority.tls("b")["key"]}
    with pytest.raises(FileRefused, match=r"broker-b.key: it is not the key of .*broker-a.pem"):
        check(config(tls))


def test_a_key_that_others_can_read_is_refused(authority):
    tls = authority.tls("a")
    Path(tls["key"]).chmod(0o640)
    with pytest.raises(FileRefused, match=r"broker-a.key: others can read this secret: chmod 600"):
        check(config(tls))


@pytest.mark.parametrize("name", ["certificate", "key", "authority"])
@pytest.mark.parametrize(
    "spoilt", ["missing", "empty", "cut", "noise", "a folder", "letters", "half a second one"]
)
def test_what_is_damaged_is_named(authority, name, spoilt):
    tls = authority.tls("a")
    path = Path(tls[name])
    whole = path.read_bytes()
    if spoilt in ("missing", "a folder"):
        path.unlink()
        if spoilt == "a folder":
            path.mkdir(0o700)
    else:
        half = whole[: len(whole) // 2]
        noise = b"-----BEGIN X-----\n" + b"\0\xff" * 50
        lettered = whole.replace(b"\n", b"\n!", 2)
        path.write_bytes(
            {
                "empty": b"",
                "cut": half,
                "noise": noise,
                "letters": lettered,
                "half a second one": whole + half,
            }[spoilt]
        )
    if (name, spoilt) == ("key", "half a second one"):
        return  # Only the first key in a file is ever read.
    with pytest.raises(FileRefused) as refused:
        check(config(tls))
    assert refused.value.path == str(path)
    assert "_ssl.c" not in str(refused.value)


def test_a_key_with_a_password_is_refused_and_nobody_is_asked_for_it(authority):
    from cryptography.hazmat.primitives import serialization as written

    tls = authority.tls("a")
    path = Path(tls["key"])
    key = written.load_pem_private_key(path.read_bytes(), None)
    how = written.BestAvailableEncryption(b"secret")
    path.write_bytes(
        key.private_bytes(written.Encoding.PEM, written.PrivateFormat.PKCS8, how)  # type: ignore
    )
    with pytest.raises(FileRefused, match="wanted a key without a password"):
        check(config(tls))


def test_a_host_that_it_does_not_name_is_doubted(authority):
    files = sign_broker(authority.folder, "a", ["london.example.org"])
    tls = dict(zip(("certificate", "key"), map(str, files), strict=True))
    found = " ".join(doubts(config(tls), {}))
    assert "whoever connects to 127.0.0.1:0 will not believe" in found
    assert "not valid for '127.0.0.1'" in found
    found = " ".join(doubts(config(tls, listen="london.example.org:7400"), {}))
    assert "whoever connects" not in found
    # Whoever listens everywhere says not by which names.
    assert "whoever" not in " ".join(doubts(config(tls, listen="0.0.0.0:7400"), {}))


def test_one_that_other_brokers_will_not_believe_is_doubted(authority, tmp_path):
    peers = [{"name": "b"}]
    mine = authority.tls("a")
    assert not [one for one in doubts(config(mine, peers=peers), {}) if "brokers" in one]
    found = " ".join(doubts(config(authority.tls("x"), peers=peers), {}))
    assert "it does not name a" in found
    other = Authority(tmp_path / "other")
    foreign = {**mine, "authority": other.tls("a")["authority"]}
    found = " ".join(doubts(config(foreign, peers=peers), {}))
    assert "unable to get local issuer certificate" in found


def test_a_partys_is_no_brokers(authority):
    files = sign_party(authority.folder, "alice")
    tls = dict(zip(("certificate", "key"), map(str, files), strict=True))
    with pytest.raises(FileRefused, match=r"nobody will believe.*purpose"):
        check(config(tls))


def test_a_renewed_one_is_shown_by_a_broker_that_reads_anew_and_one_that_expired_is_not(
    authority, monkeypatch
):
    tls = authority.tls("b")
    key = Path(tls["key"]).read_bytes()

    async def test() -> None:
        async with served(tls=tls) as server:
            first = await _shown(server, authority)
            with monkeypatch.context() as then:
                dated(then, -10, -1)
                renew_broker(authority.folder, "b")
            with pytest.raises(FileRefused, match="expired"):
                server.reload(configured(tls=tls))
            assert await _shown(server, authority) == first
            renew_broker(authority.folder, "b")
            server.reload(configured(tls=tls))
            # It names the same hosts, or it would not be believed.
            assert await _shown(server, authority) != first
            assert Path(tls["key"]).read_bytes() == key

    asyncio.run(asyncio.wait_for(test(), 60))


def test_the_command_line_renews_and_says_what_it_doubts(driftline, authority, tmp_path):
    authority.tls("b")
    before = (authority.folder / "broker-b.pem").read_bytes()
    assert driftline("secure", "broker", authority.folder, "b").code == 4
    ran = driftline("secure", "broker", authority.folder, "b", "--renew", "--json")
    assert (ran.code, json.loads(ran.out)["key"]) == (0, str(authority.folder / "broker-b.key"))
    assert (authority.folder / "broker-b.pem").read_bytes() != before
    assert driftline("secure", "party", authority.folder, "alice", "--renew").code == 4
    file = tmp_path / "b.toml"
    file.write_text(
        'name = "b"\nlisten = "localhost.example.org:0"\n'
        '[tls]\ncertificate = "keys/broker-b.pem"\nkey = "keys/broker-b.key"\n'
    )
    ran = driftline("config", "check", file)
    assert (ran.code, "doubt: whoever connects to localhost.ex" in ran.err) == (0, True)


@pytest.mark.parametrize("name", ["", "a\nb", "\udcff", "anyone", "x" * 300])
def test_a_name_that_nobody_can_go_by_is_refused(driftline, authority, name):
    for command in ("party", "token"):
        ran = driftline("secure", command, authority.folder, name)
        assert (ran.code, "party: wanted 1 to 200 letters" in ran.err) == (4, True)


@pytest.mark.parametrize("name", ["/", "..", "\N{FIRE}" * 16])
def test_a_name_with_odd_letters_is_a_file_all_the_same(driftline, authority, name):
    made = driftline("secure", "party", authority.folder, name, "--json").data
    assert Path(made["key"]).parent == authority.folder
    assert Path(made["certificate"]).is_file()


@pytest.mark.parametrize("file", ["ca.key", "ca.pem"])
def test_an_authority_that_is_damaged_is_named(driftline, authority, file):
    path = authority.folder / file
    path.write_bytes(path.read_bytes()[:60])
    ran = driftline("secure", "party", authority.folder, "alice")
    assert (ran.code, f"{file}: no " in ran.err) == (4, True)
