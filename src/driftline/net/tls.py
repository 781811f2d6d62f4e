"""Which certificates does a broker show, and whom does it believe?

With an authority it asks everybody who connects for a certificate: clients may show one, brokers
must. Whoever shows one that the authority has not signed is turned away at once.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from driftline.errors import FileRefused


@dataclass(frozen=True, slots=True)
class Tls:
    """The files that TLS needs; without an authority the system's are trusted."""

    certificate: Path
    key: Path
    authority: Path | None = None

    def server(self) -> ssl.SSLContext:
        """For those who connect here: another each time, for one only ever trusts more."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        _load(context, self.certificate, self.key)
        if self.authority is not None:
            _trust(context, self.authority)
            context.verify_mode = ssl.CERT_OPTIONAL
            # Whoever comes back shows its certificate again. Only sessions of TLS 1.2 go on without
            # that, for two hours at most, and no other context knows those of this one.
            context.options |= ssl.OP_NO_TICKET
            context.num_tickets = 0
        return context

    def client(self) -> ssl.SSLContext:
        """For brokers that are dialled from here."""
        # With an authority only those whom it has signed, and not whom the system trusts besides.
        context = trusting(self.authority)
        _load(context, self.certificate, self.key)
        return context


def trusting(authority: Path | None) -> ssl.SSLContext:
    """Trust in servers whom this authority has signed; None: in whom the system trusts."""
    if authority is None:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _trust(context, authority)
    return context


def _load(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as problem:
        raise FileRefused(
            str(certificate), None, f"no certificate with its key: {problem}"
        ) from None


def _trust(context: ssl.SSLContext, authority: Path) -> None:
    try:
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as problem:
        raise FileRefused(str(authority), None, f"no certificate: {problem}") from None
