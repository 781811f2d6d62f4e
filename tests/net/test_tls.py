"""Do brokers believe only brokers, and clients only whom they trust?"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

import driftline as dl
from driftline.errors import FileRefused, NotAuthenticated, Unreachable
from driftline.net import authority as signing
from driftline.net.authority import sign_party
from driftline.net.config import config_of
from driftline.net.server import Server
from tests.net.here import configured, eventually, served
from tests.net.secured import Authority, client_of, closed
from tests.net.test_tokens import EVERYTHING


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority") / "keys")


@pytest.fixture(scope="module")
def tls(authority):
    return {name: authority.tls(name) for name in "abx"}


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """Another authority, and what it has signed for b."""
    other = Authority(tmp_path_factory.mktemp("stranger") / "keys")
    return {**other.tls("b"), "trusts": other.trust()}


def test_brokers_and_clients_speak_over_tls(authority, tls):
    async def test():
        async with served(name="a", tls=tls["a"], peers=[{"name": "b"}]) as a:
            to_a = {"name": "a", "address": str(a.address)}
            async with (
                served(name="b", tls=tls["b"], peers=[to_a]) as b,
                client_of(a, tls=authority.trust()) as at_a,
                client_of(b, tls=authority.trust()) as at_b,
                at_a.subscribe("SELECT * FROM q", within=20) as s,
            ):
                await at_b.publish(dl.Event("q", {"x": 1}))
                assert (await s.next(20)).values == {"x": 1}
            with pytest.raises(Unreachable, match=r"certificate verify failed.*by --authority"):
                async with dl.connect(f"driftlines://{a.address}", within=1):
                    pass
            with pytest.raises(Unreachable, match="perhaps it has TLS: driftlines://"):
                async with dl.connect(f"driftline://{a.address}", within=1):
                    pass
        async with served(name="c") as c:
            with pytest.raises(Unreachable, match="perhaps it has no TLS: driftline://"):
                async with dl.connect(f"driftlines://{c.address}", within=1):
                    pass

    run(test)


@pytest.mark.parametrize(
    "shown", ["nothing", "another broker's", "another authority's", "a party's"]
)
def test_a_broker_that_does_not_prove_who_it_is_gets_no_link(
    authority, tls, stranger, shown, tmp_path
):
    """One that says it is b, and knows what b knows, but for its key."""

    async def test():
        tokens = authority.tokens()
        async with served(name="a", tls=tls["a"], tokens=tokens, peers=[{"name": "b"}]) as a:
            if shown == "nothing":
                context = ssl.create_default_context(cafile=tls["a"]["authority"])
            elif shown == "a party's":
                certificate, key = sign_party(authority.folder, "b")
                context = ssl.create_default_context(cafile=tls["a"]["authority"])
                context.load_cert_chain(certificate, key)
            else:
                files = tls["x"] if shown == "another broker's" else stranger
                context = ssl.create_default_context(cafile=tls["a"]["authority"])
                context.load_cert_chain(files["certificate"], files["key"])
            from driftline.wire import asking
            from driftline.wire.stream import Frames, Kind, frame

            heard = b""
            try:
                reader, writer = await asyncio.open_connection(
                    a.address.host, a.address.port, ssl=context
                )
                said = asking.Link("b", "peer", 1, False, True)
                writer.write(frame(Kind.LINK, asking.encode(said)))
                heard = await asyncio.wait_for(reader.read(), 10)
                writer.close()
            except (ssl.SSLError, OSError):
                assert shown == "another authority's"
            frames = list(Frames().feed(heard))
            if shown != "another authority's":
                ((kind, payload),) = frames
                assert kind is Kind.GOODBYE
                assert "and proves it" in asking.decode_goodbye(payload).why
            assert not a.links["b"].is_up

    run(test)


def test_a_certificate_of_another_kind_is_believed_if_the_settings_say_so(authority, tls):
    """Who has an authority of their own names hosts, as everybody does."""

    async def test():
        b = {"name": "b", "certificate": "localhost"}
        async with served(name="a", tls=tls["a"], peers=[b]) as a:
            to_a = {"name": "a", "address": str(a.address), "certificate": "localhost"}
            async with served(name="b", tls=tls["x"], peers=[to_a]) as b_server:
                # That of x names localhost too, which counts nothing: it says whose it is.
                await eventually(lambda: b_server.links["a"].problem)
                assert not a.links["b"].is_up
        async with served(name="a", tls=of_a_host(authority), peers=[b]) as a:
            to_a = {"name": "a", "address": str(a.address), "certificate": "localhost"}
            async with served(name="b", tls=of_a_host(authority), peers=[to_a]) as b_server:
                await eventually(lambda: a.links["b"].is_up and b_server.links["a"].is_up)

    run(test)


def of_a_host(authority):
    """The settings of a broker whose certificate names a host and nothing of ours."""
    folder = authority.folder
    by = load_pem_private_key((folder / "ca.key").read_bytes(), None)
    ca = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    made = signing._signed(key, by, ca, "localhost", names, is_dialled=True)
    files = {"certificate": folder / "host.pem", "key": folder / "host.key"}
    files["certificate"].write_bytes(signing._pem(made))
    files["key"].write_bytes(signing._private(key))
    files["key"].chmod(0o600)
    return {
        **{name: str(file) for name, file in files.items()},
        "authority": str(folder / "ca.pem"),
    }


def test_a_party_may_show_a_certificate_instead_of_a_token(authority, tls, stranger):
    certificate, key = sign_party(authority.folder, "alice")

    async def test():
        async with closed(authority, EVERYTHING, tls=tls["a"]) as server:
            shows = authority.trust()
            shows.load_cert_chain(certificate, key)
            async with client_of(server, tls=shows) as c:
                await c.publish(dl.Event("q", {"x": 1}))
                (guest,) = server.guests.values()
                assert guest.identity == "alice"
            with pytest.raises(NotAuthenticated, match="a token is needed"):
                async with client_of(server, tls=authority.trust()):
                    pass
            # A broker's certificate is no party's.
            as_broker = authority.trust()
            as_broker.load_cert_chain(tls["x"]["certificate"], tls["x"]["key"])
            with pytest.raises(NotAuthenticated, match="a token is needed"):
                async with client_of(server, tls=as_broker):
                    pass
            unknown = authority.trust()
            unknown.load_cert_chain(stranger["certificate"], stranger["key"])
            with pytest.raises(Unreachable):
                async with client_of(server, tls=unknown, reconnect=False):
                    pass

    run(test)


def test_certificates_that_are_read_anew_are_shown_to_those_who_come_then(authority, tls, tmp_path):
    async def test():
        files = {name: tmp_path / name for name in ("certificate", "key")}

        def put(name: str) -> dict[str, str]:
            for one, path in files.items():
                path.write_bytes(Path(tls[name][one]).read_bytes())
                path.chmod(0o600)
            return {one: str(path) for one, path in files.items()}

        async with served(tls=put("a")) as server:
            before = await _shown(server, authority)
            server.reload(configured(tls=put("b")))
            assert await _shown(server, authority) != before

    run(test)


async def _shown(server: Server, authority: Authority) -> bytes:
    _, writer = await asyncio.open_connection(
        server.address.host, server.address.port, ssl=authority.trust()
    )
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return shown


def test_a_key_that_is_not_the_certificates_is_refused_and_the_journal_let_go(tls, tmp_path):
    async def test():
        wrong = {"certificate": tls["a"]["certificate"], "key": tls["b"]["key"]}
        journal = str(tmp_path / "journal")
        said = {"name": "a", "listen": "127.0.0.1:0", "journal": journal}
        with pytest.raises(FileRefused, match="it is not the key of"):
            await Server(config_of({**said, "tls": wrong})).start()
        server = Server(config_of(said))
        await server.start()
        await server.drain()

    run(test)
