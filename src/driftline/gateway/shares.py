"""How much of what everybody shares may one of them take?

Whoever has proven who they are is one, from wherever they come; of all others each address is.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from driftline.broker.identity import ANYONE
from driftline.errors import LimitReached

_NETWORK_BITS = 64
"""Of an address of IPv6: who has one has the whole network."""


def taker(identity: str, host: str) -> str:
    """Whoever has this identity, or comes from here.

    >>> taker("alice", "192.0.2.1")
    'alice'
    >>> taker("anyone", "192.0.2.1"), taker("anyone", "2001:db8::1:2:3:4")
    ('anyone from 192.0.2.1', 'anyone from 2001:db8::')
    """
    if identity != ANYONE:
        return identity
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return f"{ANYONE} from {host}"
    if address.version == 6:
        address = ipaddress.IPv6Address(int(address) >> _NETWORK_BITS << _NETWORK_BITS)
    return f"{ANYONE} from {address}"


class Places:
    """Places of which everybody has so many."""

    def __init__(self, what: str, most: int) -> None:
        self._what = what
        self._most = most
        self._taken: Counter[str] = Counter()

    @contextmanager
    def taken(self, who: str) -> Iterator[None]:
        """One of them; `LimitReached` if there is none."""
        if self._taken[who] >= self._most:
            raise LimitReached(self._what, self._most)
        self._taken[who] += 1
        try:
            yield
        finally:
            _less(self._taken, who, 1)

    @property
    def all(self) -> int:
        """How many are taken."""
        return self._taken.total()


class Room:
    """Bytes of which nobody takes more than are left to others.

    So one takes half at most, two a third each, and there is always as much for the next: nobody
    need be known beforehand, and nothing is taken away again.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()
        self.all = 0
        """How many are taken."""

    def take(self, who: str, more: int) -> bool:
        """Is there room for so many more? They are taken then."""
        if self._taken[who] + more > self._most - self.all - more:
            return False
        self._taken[who] += more
        self.all += more
        return True

    def give(self, who: str, less: int) -> None:
        """They are taken no more."""
        _less(self._taken, who, less)
        self.all -= less


def _less(taken: Counter[str], who: str, less: int) -> None:
    taken[who] -= less
    if not taken[who]:
        # Whoever came once is not remembered.
        del taken[who]
