"""Do the certificates that the handbook makes join brokers, and clients that trust them?"""

import asyncio
import re
import ssl
import subprocess
from pathlib import Path

import pytest

import driftline as dl
from driftline.broker.links import Role
from driftline.errors import FileRefused, Unreachable
from driftline.net.config import Address, Config, Peer, Tls
from driftline.net.server import Server

HANDBOOK = Path(__file__).parents[2] / "docs" / "howto" / "brokers.md"
ANY = Address("127.0.0.1", 0)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    section = HANDBOOK.read_text().partition("## TLS")[2]
    commands = re.findall(r"(?m)^    ((?:openssl|printf) .*)$", section)
    assert len(commands) == 4
    for one in commands:
        subprocess.run(one, shell=True, check=True, cwd=folder, capture_output=True)
    return folder


def tls(folder):
    return Tls(folder / "broker.pem", folder / "broker.key", folder / "ca.pem")


def test_brokers_and_clients_speak_over_tls(certificates):
    async def run():
        to_b = Peer("b", Role.PEER)
        a = Server(Config("a", ANY, tls=tls(certificates), peers=(to_b,)))
        await a.start()
        to_a = Peer("a", Role.PEER, a.address)
        b = Server(Config("b", ANY, tls=tls(certificates), peers=(to_a,)))
        await b.start()
        trusting = ssl.create_default_context(cafile=certificates / "ca.pem")
        async with (
            dl.connect(f"driftlines://{a.address}", tls=trusting) as at_a,
            dl.connect(f"driftlines://{b.address}", tls=trusting) as at_b,
            at_a.subscribe("SELECT * FROM q", within=20) as s,
        ):
            await at_b.publish(dl.Event("q", {"x": 1}))
            assert (await s.next(20)).values == {"x": 1}
        with pytest.raises(Unreachable, match="certificate verify failed"):
            async with dl.connect(f"driftlines://{a.address}", within=1):
                pass
        with pytest.raises(Unreachable):
            async with dl.connect(f"driftline://{a.address}", within=1):
                pass
        await b.drain()
        await a.drain()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_key_that_is_not_the_certificates_is_refused_and_the_journal_let_go(
    certificates, tmp_path
):
    async def run():
        wrong = Tls(certificates / "broker.pem", certificates / "ca.key")
        journal = str(tmp_path / "journal")
        with pytest.raises(FileRefused, match="no certificate with its key"):
            await Server(Config("a", ANY, journal, tls=wrong)).start()
        server = Server(Config("a", ANY, journal))
        await server.start()
        await server.drain()

    asyncio.run(asyncio.wait_for(run(), 60))
