"""What does a certificate name: a broker, a party, or a host?

Ours say it by an address of their own, `driftline:broker:NAME` or `driftline:party:NAME`, so nobody
can use the one for the other. Those that were made otherwise name hosts, or have a common name.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

_OURS = "driftline:"
_BROKER, _PARTY = f"{_OURS}broker:", f"{_OURS}party:"


def broker_uri(name: str) -> str:
    """How a certificate names a broker."""
    return _BROKER + quote(name, safe="")


def party_uri(identity: str) -> str:
    """How a certificate names a party."""
    return _PARTY + quote(identity, safe="")


def names_broker(certificate: Mapping[str, Any] | None, name: str, otherwise: str) -> bool:
    """Is it that of a broker: by our address of it, or by another name that it is known to have?"""
    if not certificate:
        return False
    alternatives = list(_alternatives(certificate))
    ours = [value for kind, value in alternatives if kind == "URI" and value.startswith(_OURS)]
    if ours:
        # Whatever else it names: it says what it is for.
        return broker_uri(name) in ours
    return bool(otherwise) and (
        ("DNS", otherwise) in alternatives or otherwise in _common_names(certificate)
    )


def belongs_to_another(certificate: Mapping[str, Any], name: str) -> bool:
    """Does it say that it is somebody else's? One that is not of our kind says nothing of it."""
    ours = [one for kind, one in _alternatives(certificate) if kind == "URI"]
    ours = [one for one in ours if one.startswith(_OURS)]
    return bool(ours) and broker_uri(name) not in ours


def party_of(certificate: Mapping[str, Any] | None) -> str | None:
    """The party that a certificate names, if it does."""
    if not certificate:
        return None
    named = [
        unquote(value.removeprefix(_PARTY))
        for kind, value in _alternatives(certificate)
        if kind == "URI" and value.startswith(_PARTY)
    ]
    return named[0] if len(named) == 1 else None


def expiry_of(certificate: Mapping[str, Any] | None) -> float | None:
    """Until when a certificate counts, seconds since 1970; None: it does not say."""
    until = (certificate or {}).get("notAfter")
    return float(ssl.cert_time_to_seconds(until)) if isinstance(until, str) else None


def has_expired(certificate: Mapping[str, Any] | None) -> bool:
    """Does it count no more? It did when it was shown, but a session of TLS 1.2 that goes on is by
    one that was shown before.
    """
    until = expiry_of(certificate)
    return until is not None and time.time() >= until


def _alternatives(certificate: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for one in certificate.get("subjectAltName", ()):
        if len(one) == 2 and all(isinstance(part, str) for part in one):
            yield one[0], one[1]


def _common_names(certificate: Mapping[str, Any]) -> set[str]:
    parts: Iterable[Any] = certificate.get("subject", ())
    return {value for part in parts for name, value in part if name == "commonName"}
