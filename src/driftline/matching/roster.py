"""How do many subscriptions travel, so that what is known already need not be read again?

Each has a digest of all that matching depends on. Who holds a version of the roster tells by the
digests which of the next one are new, and unpickles only those: of a hundred thousand statements
that takes seconds, of the few that changed nothing worth mentioning.
"""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value

DIGEST = 16
"""Bytes of a digest: so many that two subscriptions never have the same by chance."""

Terms: TypeAlias = tuple[Mapping[str, Value], int]
"""The parameters and the start. The epoch is of no concern to matching."""


@dataclass(frozen=True, slots=True)
class Roster:
    """Subscriptions in their order; statements that are alike are pickled once."""

    ids: tuple[str, ...]
    terms: tuple[Terms, ...]
    which: NDArray[np.int32]
    statements: tuple[bytes, ...]
    digests: NDArray[np.uint8]

    @classmethod
    def of(cls, standings: Iterable[tuple[str, Standing]]) -> Roster:
        """The roster of these, each id once."""
        given = tuple(standings)
        numbers: dict[bytes, int] = {}
        number_of: dict[int, int] = {}  # by identity, which spares pickling the same again
        for _, one in given:
            if id(one.statement) not in number_of:
                raw = pickle.dumps(one.statement, protocol=5)
                number_of[id(one.statement)] = numbers.setdefault(raw, len(numbers))
        which = [number_of[id(one.statement)] for _, one in given]
        terms = tuple((one.params, one.start_us) for _, one in given)
        said = [_digest(raw) for raw in numbers]
        digests = b"".join(
            _digest(said[number] + pickle.dumps(term, protocol=5))
            for number, term in zip(which, terms, strict=True)
        )
        return cls(
            tuple(id for id, _ in given),
            terms,
            np.array(which, np.int32),
            tuple(numbers),
            np.frombuffer(digests, np.uint8).reshape(-1, DIGEST),
        )

    @property
    def fingerprint(self) -> str:
        """What tells it from every roster that matches otherwise."""
        digest = hashlib.sha256(pickle.dumps(self.ids, protocol=5))
        digest.update(self.digests.data)
        return digest.hexdigest()

    def packed(self) -> bytes:
        """The roster as bytes, for `unpacked`."""
        return zlib.compress(pickle.dumps(self, protocol=5), level=1)

    @staticmethod
    def unpacked(raw: bytes) -> Roster:
        """The roster that was packed. Its statements stay bytes."""
        roster: Roster = pickle.loads(zlib.decompress(raw))
        return roster

    def reader(self) -> Reader:
        """Who can read the statements."""
        return Reader(self)

    def __len__(self) -> int:
        return len(self.ids)


class Reader:
    """Reads standing subscriptions by their place; each statement once."""

    __slots__ = ("_known", "_roster")

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._known: dict[int, Subscription] = {}

    def __getitem__(self, place: int) -> Standing:
        roster = self._roster
        number = int(roster.which[place])
        statement = self._known.get(number)
        if statement is None:
            statement = self._known[number] = pickle.loads(roster.statements[number])
        params, start_us = roster.terms[place]
        return Standing(statement, params, start_us)


def _digest(raw: bytes) -> bytes:
    return hashlib.blake2b(raw, digest_size=DIGEST).digest()
