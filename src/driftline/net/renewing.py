"""What may another configuration change while a broker runs? Whom it believes, and who may do what.

Everything else counts when a broker begins: it is bound to an address, a journal, threads. A
configuration that changes such a thing too is refused as a whole, so that the files always say what
is in force, or a line in the log that they do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from driftline.errors import InvalidValue
from driftline.net.config import TABLES, Config

_RENEWED = frozenset(["tls", "tokens", "access", "webhooks", "email"])


def check_renewable(before: Config, after: Config) -> None:
    """Raise if a broker would have to begin anew for this, and name the settings."""
    if names := [*_fixed(before, after)]:
        wanted = "what this broker began with, as it cannot change while it runs"
        raise InvalidValue(", ".join(names), wanted, "something else")


def _fixed(before: Config, after: Config) -> Iterator[str]:
    for one in fields(Config):
        was, now = getattr(before, one.name), getattr(after, one.name)
        if was == now or one.name in _RENEWED:
            continue
        if one.name not in TABLES or None in (was, now):
            yield one.name
            continue
        for inner in fields(was):
            if getattr(was, inner.name) != getattr(now, inner.name):
                yield f"{one.name}.{inner.name}"
    if (before.tls is None) != (after.tls is None):
        yield "tls"  # Everybody would have to speak otherwise at the same address.
    if before.is_closed != after.is_closed:
        # How long publishers wait is decided by it, among others.
        yield from (one for one in ("tokens", "access") if _appears(one, before, after))
    if before.webhooks is None and before.email is None:
        yield from (one for one in ("webhooks", "email") if _appears(one, before, after))


def _appears(name: str, before: Config, after: Config) -> bool:
    """Does it appear, or disappear?"""
    return (getattr(before, name) is None) != (getattr(after, name) is None)
