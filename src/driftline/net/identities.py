"""Who has connected? By a token, or by a certificate; those who show neither are nobody's.

A broker that takes no tokens and has no lists of access is open: everybody is anyone, and may do
everything. Otherwise it is *closed*: who does not prove who they are is turned away, unless
something is granted to anyone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driftline.broker.access import Access, Anyone, Granted
from driftline.broker.grants import Grants
from driftline.broker.identity import ANYONE
from driftline.errors import NotAuthenticated
from driftline.net.access_file import read_grants
from driftline.net.certificates import expiry_of, has_expired, party_of
from driftline.net.config import Config
from driftline.net.tokens import Proven, Verifier, check_identity

_NEEDED = "a token is needed, or a certificate that names a party"


class Identities:
    """Those whom one broker knows, and what they may do."""

    def __init__(self, config: Config) -> None:
        self._verifier = None if config.tokens is None else Verifier(config.tokens)
        self._grants: Grants | None = None
        if config.access is not None:
            self._grants = read_grants(config.access)
        self.is_closed = config.is_closed

    @property
    def access(self) -> Access:
        """What they may do."""
        return Anyone() if self._grants is None else Granted(self._grants)

    def proven(self, token: str, certificate: Mapping[str, Any] | None) -> Proven:
        """Whose a connection is; `NotAuthenticated` if it may not be nobody's."""
        if not self.is_closed:
            return Proven(ANYONE)
        if token:
            if self._verifier is None:
                raise NotAuthenticated("no tokens are taken here, but certificates")
            return self._verifier.proven(token)
        named = party_of(certificate)
        if named is not None:
            if has_expired(certificate):
                raise NotAuthenticated("the certificate has expired")
            return Proven(check_identity(named), expiry_of(certificate))
        if self._grants is None or not self._grants.mentions(ANYONE):
            raise NotAuthenticated(_NEEDED)
        return Proven(ANYONE)
