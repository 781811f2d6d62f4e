"""How does a receiver know that a webhook is from its broker, is whole, and is new?

As Standard Webhooks has it (https://www.standardwebhooks.com): three headers say what it goes by,
when it was sent, and HMAC-SHA256 signatures of both with the body. A receiver needs this and the
secret that `driftline durable secret NAME` shows:

    from driftline.handlers.signing import verify

    id = verify(request.headers, body, secret)      # raises NotAuthenticated
    if id not in seen: ...                          # what comes again has the same

    >>> secret = secret_text(derived(b"m" * 32, "alice/alerts", 0))
    >>> headers = signed("7", b"{}", [secret], now=1_700_000_000)
    >>> verify(headers, b"{}", secret, now=1_700_000_100)
    '7'
    >>> verify(headers, b"[]", secret, now=1_700_000_100)
    Traceback (most recent call last):
    driftline.errors.NotAuthenticated: who you are was not proven: the webhook is not signed ...
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Iterable, Mapping

from driftline.errors import InvalidValue, NotAuthenticated

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
TOLERANCE = 300.0
"""Seconds that a webhook may be old, and clocks may differ."""
_PREFIX = "whsec_"
_SIGNATURES_MOST = 16


def derived(master: bytes, party: str, generation: int) -> bytes:
    """The key of one durable subscription: from it nobody finds the master, or another's key."""
    # What lies between is in no name of a party, so that no two of them give the same text.
    context = f"driftline webhook\0{party}\0{generation}".encode()
    return hmac.new(master, context, hashlib.sha256).digest()


def secret_text(key: bytes) -> str:
    """A key as it is shown."""
    return _PREFIX + base64.b64encode(key).decode()


def signed(id: str, body: bytes, secrets: Iterable[str], now: float) -> dict[str, str]:
    """The headers of a webhook; with several secrets it can be verified with any of them."""
    timestamp = str(int(now))
    signatures = [_signature(_key(one), id, timestamp, body) for one in secrets]
    return {ID: id, TIMESTAMP: timestamp, SIGNATURE: " ".join(signatures)}


def verify(
    headers: Mapping[str, str],
    body: bytes,
    secret: str,
    tolerance: float = TOLERANCE,
    now: float | None = None,
) -> str:
    """What a webhook goes by, the same each time it comes; `NotAuthenticated` if it is not genuine.

    Names of headers are compared whatever their case. It takes as long for a wrong signature as for
    a right one. That it is genuine does not say that it has not come before: remember the ids for
    as long as the broker may try, which is `give_up`.
    """
    found = {name.lower(): value for name, value in headers.items()}
    try:
        id, timestamp, signatures = found[ID], found[TIMESTAMP], found[SIGNATURE]
    except KeyError as missing:
        raise NotAuthenticated(f"a webhook has a header {missing.args[0]}") from None
    if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > 12:
        raise NotAuthenticated("a webhook says when it was sent, in seconds since 1970")
    if abs((time.time() if now is None else now) - int(timestamp)) > tolerance:
        raise NotAuthenticated("the webhook is too old, or a clock is wrong")
    wanted = _signature(_key(secret), id, timestamp, body).encode()
    each = signatures.split(" ")[:_SIGNATURES_MOST]
    # All of them are looked at, whichever is right.
    found_right = [hmac.compare_digest(wanted, one.encode()) for one in each]
    if not any(found_right):
        raise NotAuthenticated("the webhook is not signed with this secret")
    return id


def _signature(key: bytes, id: str, timestamp: str, body: bytes) -> str:
    content = f"{id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        # What it is instead may be somebody's secret.
        raise InvalidValue("secret", "the secret of a webhook, whsec_…", "something else") from None
