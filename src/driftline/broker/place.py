"""What of an address can be shown to everybody? Where it leads, and nothing of the rest.

The path of a webhook, and what stands behind its question mark, may be all that its receiver asks
for: who knows them can write there. So whatever is not shown to the owner alone, a log, a refusal,
says the place.

Which way it may err: where it is not sure what the host is, it shows none.
"""

from __future__ import annotations

import re

HIDDEN = "***"
_END = re.compile(r"[/?#\\]")


def place_of(address: str) -> str:
    """An address on the web without its path and what is behind it; any other as it is.

    >>> place_of("https://hooks.example.org:8443/in/alice?key=7")
    'https://hooks.example.org:8443/***'
    >>> place_of("https://alice:secret@hooks.example.org/in"), place_of("https://hooks.example.org")
    ('https://***', 'https://hooks.example.org')
    >>> place_of("mailto:alice@example.org")
    'mailto:alice@example.org'
    """
    scheme, is_web, rest = address.partition("://")
    if not is_web:
        return address
    if "@" in rest:
        return f"{scheme}://{HIDDEN}"
    host, *more = _END.split(rest, maxsplit=1)
    return f"{scheme}://{host}/{HIDDEN}" if more and more[0] else address
