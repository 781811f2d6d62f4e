"""How do subscriptions reach the workers, and how are they kept there?

They are read and checked once, on the driver, and travel pickled inside the function that Spark
sends with each task. Neither a path nor a broadcast variable of our own:

- A path must be visible to every worker, and the file might change between the check and the
  reading, so that two workers would answer by different subscriptions.
- Parsing ten thousand texts takes seconds, unpickling their models much less.
- PySpark itself turns a function above one megabyte into a broadcast, which lives exactly as long
  as the plan that needs it. One made here would need somebody to end it.

In the worker they become an index file, which the workers of a machine share (see `index_cache`); a
handful is matched without. A worker keeps what it has opened under the fingerprint of the
subscriptions: a Python worker outlives a query and serves others, so a cache that asked less (the
name of a query, say) would answer with somebody else's subscriptions. The environment is part of
the question and not of what is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from driftline.errors import InvalidValue, NotSupported
from driftline.files import read_subscriptions
from driftline.language.records import Record
from driftline.matching.choice import FEW, make_matcher
from driftline.matching.lazy import Lazy
from driftline.matching.matcher import StandingMatcher
from driftline.matching.roster import Roster
from driftline.model.subscription import Subscription
from driftline.model.value import Value, admit

Subscriptions: TypeAlias = str | PathLike[str] | Iterable[Record]

# How many matchers a worker keeps. One query needs one; a few serve a shell in which queries are
# tried by turns, and the bound keeps a long-lived worker from filling up.
KEPT_MAX = 4


@dataclass(frozen=True, slots=True)
class Packed:
    """Checked subscriptions and the environment, ready to travel.

    The fingerprint is that of the subscriptions. It names a version of the index, which another
    environment does not change.
    """

    fingerprint: str
    payload: bytes
    count: int
    env: Mapping[str, Value]


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
    roster = Roster.of((record.id, record.standing) for record in records)
    return Packed(roster.fingerprint, roster.packed(), len(roster), environment)


def _check(record: Record) -> None:
    statement = record.standing.statement
    if not isinstance(statement, Subscription) or statement.change is not None:
        raise NotSupported(
            f"subscription {record.id!r}, {statement}",
            "the match stage sees each event alone; it takes plain filters only",
        )


_kept: OrderedDict[str, StandingMatcher] = OrderedDict()


def matcher_for(packed: Packed) -> tuple[StandingMatcher, Mapping[str, Value]]:
    """The matcher of this process for these subscriptions, and the environment to ask it with."""
    found = _kept.get(packed.fingerprint)
    if found is None:
        found = _kept[packed.fingerprint] = _matcher(packed)
        while len(_kept) > KEPT_MAX:
            _kept.popitem(last=False)
    _kept.move_to_end(packed.fingerprint)
    return found, packed.env


def _matcher(packed: Packed) -> StandingMatcher:
    if packed.count > FEW:
        # Imported when one is wanted: it brings compiled code with it.
        from driftline.spark.index_cache import shared_for

        return shared_for(packed.fingerprint, packed.payload)
    roster = Roster.unpacked(packed.payload)
    standing = roster.reader()
    matcher = Lazy(make_matcher("auto"))
    for place, id in enumerate(roster.ids):
        matcher.add(id, standing[place])
    return matcher
