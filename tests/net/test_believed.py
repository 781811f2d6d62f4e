"""Who is believed, and for how long?"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

import driftline as dl
from driftline.client.address import BrokerAddress
from driftline.client.client import Client
from driftline.errors import NotAuthenticated, Unreachable
from driftline.net.authority import sign_broker, sign_party
from driftline.net.certificates import broker_uri, names_broker, party_uri
from driftline.net.server import Server
from driftline.net.tls import trusting
from driftline.net.tokens import Tokens, Verifier
from driftline.wire import asking
from driftline.wire.stream import Frames, Kind, frame
from tests.net.here import configured, eventually, http, served
from tests.net.secured import Authority, client_of, closed
from tests.net.test_tokens import EVERYTHING


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 30))


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "keys")


@pytest.fixture
def another(tmp_path):
    """Another authority."""
    return Authority(tmp_path / "other keys")


def showing(trust: Authority, files: tuple[Path, Path]) -> ssl.SSLContext:
    """Trust in those whom an authority has signed, and a certificate to show."""
    context = trust.trust()
    context.load_cert_chain(*files)
    return context


def closed_to(authority: Authority, **said: Any) -> dict[str, Any]:
    """The settings of a broker where everybody must say who they are."""
    file = authority.folder / "access.toml"
    file.write_text(EVERYTHING)
    return {"name": "a", "listen": "127.0.0.1:0", "access": str(file), **said}


async def dialled(server: Server, tls: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    at = server.address
    return await asyncio.open_connection(at.host, at.port, ssl=tls)


def linked(server: Server, name: str) -> bytes:
    """What a broker of this name says first."""
    mine = server.broker.settings
    said = asking.Link(name, "peer", 1, mine.advertised, mine.stamped)
    return frame(Kind.LINK, asking.encode(said))


async def the_end(reader: asyncio.StreamReader) -> bytes:
    """What is said until the connection ends."""
    heard = b""
    try:
        while data := await asyncio.wait_for(reader.read(1 << 16), 10):
            heard += data
    except (ConnectionError, ssl.SSLError):
        pass
    return heard


# What a certificate is for


def certificate(*names: tuple[str, str], common: str = "") -> dict[str, Any]:
    """A certificate, as the ssl module shows it."""
    subject = ((("commonName", common),),) if common else ()
    return {"subject": subject, "subjectAltName": names}


LONDON = "london.example.org"


@pytest.mark.parametrize(
    ("shown", "otherwise", "named"),
    [
        (certificate(("URI", broker_uri("london"))), "", True),
        (certificate(("URI", broker_uri("paris")), ("URI", broker_uri("london"))), "", True),
        (certificate(("URI", broker_uri("paris"))), "", False),
        # One that says what it is for counts by that alone.
        (certificate(("URI", broker_uri("london")), common="paris"), LONDON, True),
        (certificate(("URI", broker_uri("paris")), ("DNS", LONDON)), LONDON, False),
        (certificate(("URI", party_uri(LONDON)), common=LONDON), LONDON, False),
        (certificate(("URI", party_uri("alice")), ("DNS", LONDON)), LONDON, False),
        (certificate(("URI", "driftline:else"), ("DNS", LONDON)), LONDON, False),
        # One of another kind by the name that it is known to have.
        (certificate(("DNS", LONDON)), LONDON, True),
        (certificate(common=LONDON), LONDON, True),
        (certificate(("URI", "spiffe://example.org/x"), ("DNS", LONDON)), LONDON, True),
        (certificate(("DNS", "paris.example.org"), common="paris"), LONDON, False),
        (certificate(("DNS", LONDON), common=LONDON), "", False),
        (certificate(("DNS", "london"), common="london"), "", False),
        ({}, LONDON, False),
        (None, LONDON, False),
    ],
)
def test_a_certificate_that_says_what_it_is_for_counts_by_that_alone(shown, otherwise, named):
    assert names_broker(shown, "london", otherwise) is named


@pytest.mark.parametrize("trust", ["the client's", "the command line's"])
def test_nobody_takes_a_party_for_a_server(authority, trust):
    """Whose identity is the name of a machine must not be told what is meant for that machine."""

    async def test():
        trusts = (
            authority.trust() if trust == "the client's" else trusting(authority.folder / "ca.pem")
        )
        heard: list[bytes] = []

        async def impostor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await reader.read(1000))
            writer.close()

        broker = sign_broker(authority.folder, "b", ["localhost"])
        for files, is_server in (
            (sign_party(authority.folder, "localhost"), False),
            (broker, True),
        ):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*files)
            listening = await asyncio.start_server(impostor, "127.0.0.1", 0, ssl=context)
            async with listening:
                port = listening.sockets[0].getsockname()[1]
                where = BrokerAddress("localhost", port, True)
                with pytest.raises(Unreachable) as found:
                    await Client(
                        where,
                        token=authority.token("alice"),
                        tls=trusts,
                        reconnect=False,
                        within=1.0,
                    ).open()
            assert ("certificate verify failed" in str(found.value)) is not is_server
            assert bool(heard) is is_server

    run(test)


def test_a_partys_certificate_lets_no_broker_in_by_its_common_name(authority):
    async def test():
        peers = [{"name": "london", "certificate": LONDON}]
        async with served(**closed_to(authority, tls=authority.tls("a"), peers=peers)) as server:
            party = sign_party(authority.folder, LONDON)
            reader, writer = await dialled(server, showing(authority, party))
            writer.write(linked(server, "london"))
            ((kind, payload),) = Frames().feed(await the_end(reader))
            assert kind is Kind.GOODBYE
            assert "and proves it" in asking.decode_goodbye(payload).why
            writer.close()
            assert not server.links["london"].is_up
            # A broker's is: it says so itself.
            broker = sign_broker(authority.folder, "london", [])
            _, writer = await dialled(server, showing(authority, broker))
            writer.write(linked(server, "london"))
            await eventually(lambda: server.links["london"].is_up)
            writer.close()

    run(test)


def test_a_stranger_does_not_learn_which_brokers_there_are(authority):
    async def test():
        said = closed_to(authority, tls=authority.tls("a"), peers=[{"name": "london"}])
        async with served(**said) as server:
            nobody = authority.trust()
            other = showing(authority, sign_broker(authority.folder, "other", []))
            for tls in (nobody, other):
                answers = []
                for name in ("london", "berlin"):
                    reader, writer = await dialled(server, tls)
                    writer.write(linked(server, name))
                    ((kind, payload),) = Frames().feed(await the_end(reader))
                    why = asking.decode_goodbye(payload).why
                    assert name in why
                    answers.append((kind, why.replace(name, "NAME")))
                    writer.close()
                assert answers[0] == answers[1]

    run(test)


# Certificates that are read anew


def test_with_another_authority_whoever_was_believed_by_the_first_is_not_any_more(
    authority, another
):
    async def test():
        said = closed_to(authority, tls=authority.tls("a"), peers=[{"name": "london"}])
        # Whoever says nothing ends for that only long after this.
        said["limits"] = {"greeting": 60}
        async with served(**said) as server:
            link = server.links["london"]
            party = sign_party(authority.folder, "alice")
            broker = sign_broker(authority.folder, "london", ["127.0.0.1"])
            # One who is through with TLS and says nothing yet, and one who is not.
            strange, strange_writer = await dialled(server, showing(authority, party))
            early, early_writer = await dialled(server, None)
            reader, writer = await dialled(server, showing(authority, broker))
            writer.write(linked(server, "london"))
            await eventually(lambda: link.is_up and len(server.strangers) == 1)
            server.reload(configured(**{**said, "tls": another.tls("a")}))
            for one in (reader, strange, early):
                await the_end(one)
            await eventually(lambda: not link.is_up)
            for one in (writer, strange_writer, early_writer):
                one.close()
            # The old one does not let it in again.
            try:
                reader, writer = await dialled(server, showing(another, broker))
                writer.write(linked(server, "london"))
                await the_end(reader)
                writer.close()
            except (ConnectionError, ssl.SSLError):
                pass
            assert not link.is_up
            assert not server.guests
            broker = sign_broker(another.folder, "london", ["127.0.0.1"])
            _, writer = await dialled(server, showing(another, broker))
            writer.write(linked(server, "london"))
            await eventually(lambda: link.is_up)
            writer.close()

    run(test)


@pytest.mark.parametrize("reloaded", ["the one that is dialled", "the one that dials"])
def test_links_are_made_anew_when_certificates_are_read_anew(authority, reloaded):
    async def test():
        said = {"name": "a", "tls": authority.tls("a"), "peers": [{"name": "b"}]}
        async with served(**said) as a:
            to_a = {"name": "a", "address": str(a.address)}
            others = {"name": "b", "tls": authority.tls("b"), "peers": [to_a]}
            async with served(**others) as b:
                await eventually(lambda: a.links["b"].is_up and b.links["a"].is_up)
                before = a.links["b"]._wire, b.links["a"]._wire
                if reloaded == "the one that is dialled":
                    a.reload(configured(**said))
                else:
                    b.reload(configured(**others))
                for link, wire in zip((a.links["b"], b.links["a"]), before, strict=True):
                    await eventually(lambda link=link, wire=wire: link._wire not in (None, wire))

    run(test)


@pytest.mark.parametrize("added", [True, False])
def test_an_authority_that_is_added_or_removed_counts_from_then_on(authority, added):
    async def test():
        with_one = authority.tls("a")
        without = {name: file for name, file in with_one.items() if name != "authority"}
        first, second = (without, with_one) if added else (with_one, without)
        said = closed_to(authority, tokens=authority.tokens())
        shows = showing(authority, sign_party(authority.folder, "alice"))

        async def is_believed(server: Server) -> bool:
            try:
                async with client_of(server, tls=shows) as alice:
                    await alice.publish(dl.Event("q", {"x": 1}))
                    (guest,) = server.guests.values()
                    assert guest.identity == "alice"
            except NotAuthenticated:
                return False
            await eventually(lambda: not server.guests)
            return True

        async with served(**said, tls=first) as server:
            assert await is_believed(server) is not added
            server.reload(configured(**{**said, "tls": second}))
            assert await is_believed(server) is added
            # A token is enough as ever, and no certificate.
            async with client_of(server, authority.token("bob"), tls=authority.trust()) as bob:
                await bob.publish(dl.Event("q", {"x": 1}))

    run(test)


# For how long


def test_a_certificate_that_expires_meanwhile_does_not_count_on_an_open_connection(
    authority, monkeypatch
):
    async def test():
        said = closed_to(authority, tls=authority.tls("a"), http={"listen": "127.0.0.1:0"})
        async with served(**said) as server:
            shows = showing(authority, sign_party(authority.folder, "alice"))
            one = httpx.Limits(max_connections=1)
            async with httpx.AsyncClient(base_url=http(server), verify=shows, limits=one) as web:
                event = {"type": "q", "x": 1}
                assert (await web.post("/v1/events", json=event)).status_code == 200
                (connection,) = web._transport._pool.connections
                # Many years later.
                later = SimpleNamespace(time=lambda: time.time() + 100 * 365 * 86400)
                monkeypatch.setattr("driftline.net.certificates.time", later)
                answer = await web.post("/v1/events", json=event)
                assert answer.status_code == 401
                assert answer.json()["type"].endswith("not-authenticated")
                assert "expired" in answer.json()["detail"]
                assert web._transport._pool.connections == [connection]
                monkeypatch.undo()
                assert (await web.post("/v1/events", json=event)).status_code == 200

    run(test)


@pytest.mark.parametrize("exp", [10**400, -(10**400)], ids=["after", "before"])
def test_a_token_for_longer_than_can_be_counted_is_none(authority, exp):
    key = load_pem_private_key((authority.folder / "tokens.key").read_bytes(), None)
    token = jwt.encode({"sub": "alice", "aud": "driftline", "exp": exp}, key, algorithm="EdDSA")
    with pytest.raises(NotAuthenticated):
        Verifier(Tokens(authority.folder / "tokens.pub")).proven(token)

    async def test():
        async with closed(authority, EVERYTHING, http={"listen": "127.0.0.1:0"}) as server:
            with pytest.raises(NotAuthenticated):
                async with client_of(server, token):
                    pass
            headers = {"Authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(base_url=http(server), headers=headers) as web:
                assert (await web.get("/v1/subscriptions")).status_code == 401

    run(test)
