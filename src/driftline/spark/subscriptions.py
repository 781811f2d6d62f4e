"""How do subscriptions reach the workers, and how are they kept there?

They are read and checked once, on the driver, and travel pickled inside the function that Spark
sends with each task. Neither a path nor a broadcast variable of our own:

- A path must be visible to every worker, and the file might change between the check and the
  reading, so that two workers would answer by different subscriptions.
- Parsing ten thousand texts takes seconds, unpickling their models much less.
- PySpark itself turns a function above one megabyte into a broadcast, which lives exactly as long
  as the plan that needs it. One made here would need somebody to end it.

A worker builds its matcher at the first task and keeps it under a fingerprint of everything that
went into it. A Python worker outlives a query and serves others, so a cache that asked less (the
name of a query, say) would answer with somebody else's subscriptions.
"""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from driftline.errors import InvalidValue, NotSupported
from driftline.files import read_subscriptions
from driftline.language.records import Record
from driftline.matching.hashed import Hashed
from driftline.matching.matcher import Matcher
from driftline.model.subscription import Subscription
from driftline.model.value import Value, admit

Subscriptions: TypeAlias = str | PathLike[str] | Iterable[Record]

# How many matchers a worker keeps. One query needs one; a few serve a shell in which queries are
# tried by turns, and the bound keeps a long-lived worker from filling up.
KEPT_MAX = 4


@dataclass(frozen=True, slots=True)
class Packed:
    """Checked subscriptions and the environment, ready to travel."""

    fingerprint: str
    payload: bytes
    count: int


def pack(subscriptions: Subscriptions, env: Mapping[str, object] | None = None) -> Packed:
    """Load and check the subscriptions; refuse what cannot be matched event by event."""
    if isinstance(subscriptions, str | PathLike):
        records = read_subscriptions(Path(subscriptions))
    else:
        records = tuple(subscriptions)
    seen: set[str] = set()
    for record in records:
        _check(record)
        if record.id in seen:
            raise InvalidValue("subscriptions", "each id once", f"{record.id!r} again")
        seen.add(record.id)
    environment = {name: admit(value, f"env({name!r})") for name, value in (env or {}).items()}
    content = pickle.dumps(
        ([(record.id, record.standing) for record in records], environment), protocol=5
    )
    return Packed(
        hashlib.sha256(content).hexdigest(), zlib.compress(content, level=1), len(records)
    )


def _check(record: Record) -> None:
    statement = record.standing.statement
    if not isinstance(statement, Subscription) or statement.change is not None:
        raise NotSupported(
            f"subscription {record.id!r}, {statement}",
            "the match stage sees each event alone; it takes plain filters only",
        )


_kept: OrderedDict[str, tuple[Matcher, Mapping[str, Value]]] = OrderedDict()


def matcher_for(packed: Packed) -> tuple[Matcher, Mapping[str, Value]]:
    """The matcher and environment of this process for these subscriptions, built if it has none."""
    found = _kept.get(packed.fingerprint)
    if found is None:
        standing, env = pickle.loads(zlib.decompress(packed.payload))
        matcher = Hashed()
        for id, one in standing:
            matcher.add(id, one)
        found = _kept[packed.fingerprint] = (matcher, env)
        while len(_kept) > KEPT_MAX:
            _kept.popitem(last=False)
    _kept.move_to_end(packed.fingerprint)
    return found
