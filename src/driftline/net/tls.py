"""Which certificates does a broker show, and whom does it believe?

With an authority it asks everybody who connects for a certificate: clients may show one, brokers
must. Whoever shows one that the authority has not signed is turned away at once.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from driftline.errors import FileRefused
from driftline.net.secrets import read_secret


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
    read_secret(key)  # Or it is refused: others can read it.
    read_certificate(certificate)

    def no_password() -> bytes:
        # Or it would be asked for at the terminal.
        raise FileRefused(str(key), None, "wanted a key without a password")

    try:
        context.load_cert_chain(certificate, key, no_password)
    except ssl.SSLError as problem:
        if problem.reason == "KEY_VALUES_MISMATCH":
            why = f"it is not the key of {certificate}"
        else:
            why = "no key (PEM), cut short or damaged"
        raise FileRefused(str(key), None, why) from None
    except OSError as problem:
        raise FileRefused(str(certificate), None, problem.strerror or str(problem)) from None


def _trust(context: ssl.SSLContext, authority: Path) -> None:
    context.load_verify_locations(cadata=read_certificate(authority))


def read_certificate(path: Path) -> str:
    """The certificates in a file, as PEM; `FileRefused` if there is none, or one is damaged."""
    try:
        text = path.read_bytes().decode("ascii", errors="ignore")
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        why = "no certificate (PEM), cut short or damaged"
        raise FileRefused(str(path), None, why) from None
    except OSError as problem:
        raise FileRefused(str(path), None, problem.strerror or str(problem)) from None
    if text.count("-----BEGIN ") != text.count("-----END "):
        # One that is not whole would be passed over, and so would be who has signed it.
        raise FileRefused(str(path), None, "its last certificate is cut short")
    return text
