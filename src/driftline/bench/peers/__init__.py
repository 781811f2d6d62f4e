"""WHAT WOULD ONE USE INSTEAD? Engines that can answer "which pairs of event and filter?" in bulk.

`shape` brings filters to joins, `duck`, `frames` and `scan` answer them with DuckDB, Polars and
NumPy. Each engine is asked in every formulation we know to be good, and the fastest counts:

as written   one join per prepared statement, tables in order of arrival
sorted       one hash join per shape, on the equality or on the set of attributes that is asked
             about, with the filters sorted by that key and their first bound
per key      the filters and events of each key joined by ranges alone, key after key

None of them builds an index of its own by hand: a grid over the values, joined on its cells, is a
matcher, and no longer the engine's answer. Times are CPU times of all threads, and every engine is
held to one. Polars reads its number of threads when it is imported: POLARS_MAX_THREADS is set to 1
unless it has a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

import pyarrow as pa

from driftline.bench.peers.shape import Pairs
from driftline.workload.prepared import Group


class Peer(Protocol):
    """An engine that holds the filters, and is given events before it is asked."""

    def take(self, events: pa.RecordBatch) -> None:
        """Hold these events, in the engine's own columns; the time for that does not count."""

    def formulations(self) -> Mapping[str, Callable[[], Pairs]]:
        """The ways to ask; each gives all pairs, without repetition, in any order."""


# The module and the class of each, and the package that must be there.
_PEERS = {
    "duckdb": ("duck", "DuckDb", "duckdb"),
    "polars": ("frames", "Polars", "polars"),
    "numpy": ("scan", "NumPy", "numpy"),
}
PEERS = tuple(_PEERS)


def peer(name: str, groups: Iterable[Group]) -> Peer | None:
    """The engine with these filters, None if it is not installed."""
    module, kind, package = _PEERS[name]
    if find_spec(package) is None:
        return None
    found = import_module(f"{__name__}.{module}")
    made: Peer = getattr(found, kind)(list(groups))
    return made
