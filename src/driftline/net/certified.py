"""Will a broker's certificate be believed by those who connect, and by other brokers?

Nobody is asked: the broker shakes hands with itself, in memory, so that what is said is what those
would find who use the same TLS. That a key belongs to its certificate is checked where it is read.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from driftline.errors import FileRefused
from driftline.net.certificates import belongs_to_another, expiry_of
from driftline.net.config import Config
from driftline.net.tls import Tls, trusting

SOON = 30 * 86_400.0
"""So many seconds before it expires a certificate should be renewed."""


def check_certificate(tls: Tls) -> dict[str, Any]:
    """What a broker's certificate says; `FileRefused` if nobody can believe it now."""
    client = trusting(tls.certificate)
    # Whoever has signed it: that it is no longer or not yet valid is so for everybody.
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.check_hostname = False
    try:
        return _shown(tls.server(), client)
    except ssl.SSLError as problem:
        why = f"nobody will believe this certificate: {_why(problem)}"
        raise FileRefused(str(tls.certificate), None, why) from None


def certificate_doubts(config: Config) -> Iterator[str]:
    """Who may not believe a broker's certificate, and why; it can be believed at all."""
    tls = config.tls
    if tls is None:
        return
    certificate = check_certificate(tls)
    until = expiry_of(certificate)
    if until is not None and until - time.time() < SOON:
        day = datetime.fromtimestamp(until, UTC).date()
        yield f"{tls.certificate} expires on {day}: then nobody will believe it"
    for at in (config.listen, None if config.http is None else config.http.address):
        if at is not None and at == at.reached and (why := _not_named(tls, at.host)):
            yield f"whoever connects to {at} will not believe {tls.certificate}: {why}"
    if config.peers and belongs_to_another(certificate, config.name):
        yield f"other brokers will not believe {tls.certificate}: it does not name {config.name}"
    if config.peers and tls.authority is not None:
        yield from _unsigned(tls)


def _not_named(tls: Tls, host: str) -> str:
    client = trusting(tls.certificate)
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        _shown(tls.server(), client, host)
    except ssl.SSLError as problem:
        return _why(problem)
    return ""


def _unsigned(tls: Tls) -> Iterator[str]:
    """Is it believed on both ends of a link, by those who believe the same authority?"""
    server = tls.server()
    server.verify_mode = ssl.CERT_REQUIRED
    client = tls.client()
    client.check_hostname = False
    try:
        _shown(server, client)
    except ssl.SSLError as problem:
        yield f"brokers that believe {tls.authority} will not believe {tls.certificate}: " + _why(
            problem
        )


def _shown(
    server: ssl.SSLContext, client: ssl.SSLContext, host: str | None = None
) -> dict[str, Any]:
    """What the server shows the client; `ssl.SSLError` if one does not believe the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    dialling = client.wrap_bio(to_client, to_server, server_hostname=host)
    dialled = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [dialling, dialled]
    while waiting:
        one = waiting.pop(0)
        try:
            one.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(one)
    return dialling.getpeercert() or {}


def _why(problem: ssl.SSLError) -> str:
    said = getattr(problem, "verify_message", "") or problem.reason or str(problem)
    return str(said).rstrip(".")
