"""Whose is a party? An identity's: its connections are parties, as are its durable subscriptions.

What a party is called says whose it is, so nobody can ask for what is another's by any name.

    >>> guest_of("alice", "laptop"), durable_of("alice", "alerts")
    ('alice~laptop', 'alice/alerts')
    >>> identity_of(durable_of("https://id.example.org/7", "alerts"))
    'https://id.example.org/7'
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote, unquote

from driftline.errors import InvalidValue
from driftline.model.value import show

ANYONE = "anyone"
"""Whoever does not say who it is."""

_SAFE = "@:.|+"
_MARK = re.compile("[~/]")


def guest_of(identity: str, client: str) -> str:
    """The party that a connection of an identity is; the client has a name of its own choice."""
    return f"{_quoted(identity)}~{client}"


def durable_of(identity: str, name: str) -> str:
    """The party that a durable subscription of an identity is."""
    if not name.isprintable() or "#" in name:
        raise InvalidValue("durable", "a name that can be printed, without #", show(name))
    return f"{_quoted(identity)}/{name}"


def durable_name(party: str) -> str | None:
    """What its identity calls a durable subscription; None: the party is a connection."""
    found = _MARK.search(party)
    return party[found.end() :] if found is not None and found[0] == "/" else None


def identity_of(party: str) -> str:
    """Whose a party is."""
    return unquote(_MARK.split(party, maxsplit=1)[0])


def owner_of(party: str) -> str:
    """By whom a party is counted, where all that are the same person's are one: its identity, or
    itself where nobody says who they are.

    >>> owner_of("alice~laptop"), owner_of("anyone~laptop")
    ('alice', 'anyone~laptop')
    """
    identity = identity_of(party)
    return party if identity == ANYONE else identity


def mark_of(broker: str, party: str, born: int = 0) -> str:
    """A short name for a durable subscription that no other has.

    With the number that it was born at it is none that another broker of this name has, or this
    one after it lost its journal, or that was ended and made again.
    """
    text = f"{broker}\0{party}" + (f"\0{born}" if born else "")
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def stable_id(mark: str, id: str) -> str:
    """What a receiver knows something by that comes again. It is fit for a header."""
    return f"{mark}-{id}"


def _quoted(identity: str) -> str:
    # Neither of the two marks may be in it.
    return quote(identity, safe=_SAFE).replace("~", "%7E")
