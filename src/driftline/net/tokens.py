"""Whose is a token? JSON Web Tokens, signed by whoever knows the people.

    [tokens]
    algorithm = "EdDSA"          # this one, whatever a token says of itself
    key = "tokens.pub"           # the public key; of HS256 the secret, in a file of its own
    audience = "driftline"       # whom it must be made out to
    issuer = "https://id.example.org"

A token must say whose it is (`sub`), for whom (`aud`) and until when (`exp`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from driftline.broker.identity import ANYONE
from driftline.errors import FileRefused, InvalidValue, NotAuthenticated
from driftline.model.value import show
from driftline.net.secrets import read_secret

ALGORITHMS = ("EdDSA", "ES256", "RS256", "PS256", "HS256")
TOKEN_BYTES_MAX = 8192
IDENTITY_MAX = 200
_SECRET_LEAST = 32


class Proven(NamedTuple):
    """Whose it is, and until when (seconds since 1970) that counts; None: as long as it lasts."""

    identity: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """Which tokens count."""

    key: Path
    algorithm: str = "EdDSA"
    audience: str = "driftline"
    issuer: str = ""
    leeway: float = 5.0
    """Seconds that clocks may differ by."""

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            wanted = f"one of {', '.join(ALGORITHMS)}"
            raise InvalidValue("tokens.algorithm", wanted, show(self.algorithm))
        if not self.audience:
            raise InvalidValue("tokens.audience", "whom tokens are for", show(self.audience))
        if not 0 <= self.leeway <= 300:
            raise InvalidValue("tokens.leeway", "seconds, from 0 to 300", show(self.leeway))


class Verifier:
    """Says whose tokens are."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._key = _key_of(tokens)

    def proven(self, token: str) -> Proven:
        """Whose a token is; `NotAuthenticated` if it does not count."""
        import jwt

        tokens = self._tokens
        if len(token) > TOKEN_BYTES_MAX:
            raise NotAuthenticated(f"a token has at most {TOKEN_BYTES_MAX} bytes")
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key,
                algorithms=[tokens.algorithm],
                audience=tokens.audience,
                issuer=tokens.issuer or None,
                leeway=tokens.leeway,
                options={"require": ["exp", "sub", "aud"]},
            )
        except (jwt.PyJWTError, ValueError, RecursionError) as problem:
            # Only what kind of fault it has: what is in it may be somebody's secret.
            raise NotAuthenticated(_fault(problem)) from None
        try:
            until = float(claims["exp"]) + tokens.leeway
        except OverflowError:
            raise NotAuthenticated("the token must say when it expires (exp)") from None
        return Proven(check_identity(claims["sub"]), until)


def check_identity(name: object) -> str:
    """A name that somebody can go by."""
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= IDENTITY_MAX:
        raise NotAuthenticated(f"wanted a name of 1 to {IDENTITY_MAX} letters, came another")
    if name == ANYONE:
        raise NotAuthenticated(f"nobody goes by the name {ANYONE}: it means those without a name")
    return name


def _fault(problem: Exception) -> str:
    import jwt

    faults = {
        jwt.ExpiredSignatureError: "the token has expired",
        jwt.InvalidAudienceError: "the token is for somebody else (aud)",
        jwt.InvalidIssuerError: "the token is somebody else's (iss)",
        jwt.ImmatureSignatureError: "the token does not count yet (nbf, iat)",
        jwt.InvalidAlgorithmError: "the token is signed in another way (alg)",
        jwt.MissingRequiredClaimError: "the token must say sub, aud and exp",
        jwt.InvalidSignatureError: "the token is not signed by whom is trusted here",
    }
    for kind, why in faults.items():
        if isinstance(problem, kind):
            return why
    return "this is no token that can be read"


def _key_of(tokens: Tokens) -> Any:
    if tokens.algorithm == "HS256":
        secret = read_secret(tokens.key)
        if len(secret) < _SECRET_LEAST:
            why = f"a secret for HS256 has at least {_SECRET_LEAST} bytes, came {len(secret)}"
            raise FileRefused(str(tokens.key), None, why)
        return secret
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    kinds: dict[str, type] = {
        "EdDSA": ed25519.Ed25519PublicKey,
        "ES256": ec.EllipticCurvePublicKey,
        "RS256": rsa.RSAPublicKey,
        "PS256": rsa.RSAPublicKey,
    }
    try:
        found = load_pem_public_key(tokens.key.read_bytes())
    except OSError as problem:
        raise FileRefused(str(tokens.key), None, problem.strerror or str(problem)) from None
    except (ValueError, UnsupportedAlgorithm):
        raise FileRefused(str(tokens.key), None, "no public key (PEM)") from None
    if not isinstance(found, kinds[tokens.algorithm]):
        why = f"no public key for {tokens.algorithm}, but {type(found).__name__}"
        raise FileRefused(str(tokens.key), None, why)
    return found
