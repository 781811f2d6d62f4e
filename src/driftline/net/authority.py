"""How do people who only want to try it come by certificates and tokens?

A folder is an authority of one's own: it signs the certificates of brokers and parties, and tokens.
It is for trying and for small places. Where there is an authority already, use that: nothing of
Driftline's depends on this one.

    ca.pem, ca.key                  who is believed, and with what it signs
    tokens.pub, tokens.key          the same for tokens
    broker-NAME.pem, .key           a broker's certificate and key
    party-NAME.pem, .key            a party's, for those who use certificates instead of tokens
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from driftline.broker.identity import ANYONE
from driftline.errors import FileRefused, InvalidValue, NotAuthenticated
from driftline.model.value import show
from driftline.net.certificates import broker_uri, party_uri
from driftline.net.config import check_name
from driftline.net.secrets import read_secret, write_private
from driftline.net.tokens import IDENTITY_MAX, check_identity

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

DAYS = 825
TOKEN_SECONDS = 8 * 3600.0
_ALGORITHM = "EdDSA"
_LATE = datetime.timedelta(minutes=5)
"""Clocks differ: what is signed now counts a little earlier."""
_HOST = re.compile(r"[A-Za-z0-9*.-]+")


def create(folder: Path) -> list[Path]:
    """Make an authority in a folder that has none; what was written."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    with _refusing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "ca.key").exists():
            raise FileRefused(str(folder), None, "there is an authority already")
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _signed(key, key, None, "Driftline authority", [], is_dialled=False)
    signer = ed25519.Ed25519PrivateKey.generate()
    write_private(folder / "ca.key", _private(key))
    _write(folder / "ca.pem", _pem(certificate))
    write_private(folder / "tokens.key", _private(signer))
    _write(folder / "tokens.pub", _public(signer.public_key()))
    return [folder / name for name in ("ca.pem", "ca.key", "tokens.pub", "tokens.key")]


def sign_broker(folder: Path, name: str, hosts: Sequence[str]) -> tuple[Path, Path]:
    """A certificate for a broker that is reached by these hosts, and its key: their files."""
    check_name(name, "broker")
    return _issue(folder, f"broker-{quote(name, safe='')}", name, broker_uri(name), hosts)


def sign_party(folder: Path, identity: str) -> tuple[Path, Path]:
    """A certificate for a party, and its key: their files."""
    _check_party(identity)
    return _issue(folder, f"party-{quote(identity, safe='')}", identity, party_uri(identity), None)


def renew_broker(folder: Path, name: str, hosts: Sequence[str] | None = None) -> tuple[Path, Path]:
    """Another certificate for a broker's key, for the hosts of the one before if none are given."""
    check_name(name, "broker")
    file = f"broker-{quote(name, safe='')}"
    known = _hosts_of(folder / f"{file}.pem") if hosts is None else hosts
    return _issue(folder, file, name, broker_uri(name), known, again=True)


def renew_party(folder: Path, identity: str) -> tuple[Path, Path]:
    """Another certificate for a party's key."""
    _check_party(identity)
    file = f"party-{quote(identity, safe='')}"
    return _issue(folder, file, identity, party_uri(identity), None, again=True)


def sign_token(
    folder: Path, identity: str, now: float, seconds: float = TOKEN_SECONDS, audience: str = ""
) -> str:
    """A token for a party, which counts for so long from now on (seconds since 1970)."""
    import jwt
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    _check_party(identity)
    if not 0 < seconds <= 10 * 365 * 86_400:
        raise InvalidValue("seconds", "more than 0, at most ten years", show(seconds))
    key = _key_in(folder / "tokens.key", Ed25519PrivateKey)
    claims = {
        "sub": identity,
        "aud": audience or "driftline",
        "iat": int(now),
        "exp": int(now + seconds),
    }
    return jwt.encode(claims, key, algorithm=_ALGORITHM)


def _check_party(identity: str) -> None:
    try:
        check_identity(identity)
    except NotAuthenticated:
        wanted = f"1 to {IDENTITY_MAX} letters that can be printed, and not {ANYONE}"
        raise InvalidValue("party", wanted, show(identity)) from None


def _issue(
    folder: Path,
    file: str,
    name: str,
    uri: str,
    hosts: Sequence[str] | None,
    *,
    again: bool = False,
) -> tuple[Path, Path]:
    """A certificate and its key; without hosts nobody dials whose it is."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import (
        SECP256R1,
        EllipticCurvePrivateKey,
        generate_private_key,
    )

    key_file, certificate_file = folder / f"{file}.key", folder / f"{file}.pem"
    with _refusing(key_file):
        if not again and key_file.exists():
            whose = f"{file.partition('-')[0]} {name}"
            why = f"{whose} has a certificate already: --renew signs another for its key"
            raise FileRefused(str(key_file), None, why)
    by = _key_in(folder / "ca.key", EllipticCurvePrivateKey)
    authority = _certificate_in(folder / "ca.pem")
    names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri)]
    names += [_host(one) for one in hosts or ()]
    key = _key_in(key_file, EllipticCurvePrivateKey) if again else generate_private_key(SECP256R1())
    certificate = _signed(key, by, authority, name, names, is_dialled=hosts is not None)
    if not again:
        write_private(key_file, _private(key))
    _write(certificate_file, _pem(certificate))
    return certificate_file, key_file


def _key_in(path: Path, kind: type[Any]) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(read_secret(path), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, kind):
        raise FileRefused(str(path), None, "no key of ours (PEM), cut short or damaged")
    return key


def _certificate_in(path: Path) -> x509.Certificate:
    from cryptography import x509

    with _refusing(path):
        text = path.read_bytes()
    try:
        return x509.load_pem_x509_certificate(text)
    except ValueError:
        why = "no certificate (PEM), cut short or damaged"
        raise FileRefused(str(path), None, why) from None


def _hosts_of(path: Path) -> list[str]:
    """By which hosts is a broker reached that has this certificate?"""
    from cryptography import x509

    try:
        names = _certificate_in(path).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
    except x509.ExtensionNotFound:
        return []
    addresses = names.value.get_values_for_type(x509.IPAddress)
    return [*names.value.get_values_for_type(x509.DNSName), *map(str, addresses)]


def _write(path: Path, content: bytes) -> None:
    """Write a file that is whole whenever somebody reads it."""
    new = path.with_name(f".{path.name}.new")
    with _refusing(path):
        new.write_bytes(content)
        new.replace(path)


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Say of which file it is that the system refuses something, or that its name can be none."""
    try:
        yield
    except OSError as problem:
        raise FileRefused(str(path), None, problem.strerror or str(problem)) from None
    except ValueError as problem:
        raise FileRefused(str(path), None, str(problem)) from None


def _host(text: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        if not _HOST.fullmatch(text):
            raise InvalidValue("host", "a name or an address of a machine", show(text)) from None
        return x509.DNSName(text)


def _signed(
    key: EllipticCurvePrivateKey,
    by: EllipticCurvePrivateKey,
    authority: x509.Certificate | None,
    name: str,
    alternatives: Sequence[x509.GeneralName],
    *,
    is_dialled: bool,
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    short = name.encode()[:64].decode(errors="ignore")  # There it has no more bytes.
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, short)])
    now = datetime.datetime.now(datetime.UTC)
    is_authority = authority is None
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if authority is None else authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _LATE)
        .not_valid_after(now + datetime.timedelta(days=10 * DAYS if is_authority else DAYS))
        .add_extension(
            x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), True
        )
        .add_extension(
            x509.KeyUsage(
                digital_signature=not is_authority,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=is_authority,
                crl_sign=is_authority,
                encipher_only=False,
                decipher_only=False,
            ),
            True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key()), False)
    )
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), False)
        # A broker is dialled, and dials; a party dials only, and must not pass for who is dialled.
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if is_dialled:
            uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), False)
    return builder.sign(by, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _private(key: object) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(  # type: ignore[attr-defined, no-any-return]
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _public(key: object) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.public_bytes(  # type: ignore[attr-defined, no-any-return]
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
