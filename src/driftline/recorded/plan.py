"""Where is everything in a pipeline, why there, and what would have to be set for more?

Said of the book as it stands. Nothing here decides: `places` does, and this puts it in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from driftline.broker.stating import stated
from driftline.errors import InvalidValue
from driftline.model.pattern import Pattern
from driftline.model.standing import Standing
from driftline.model.subscription import Moved, Subscription
from driftline.model.value import Value
from driftline.model.view import View, ViewKind
from driftline.recorded.book import Book
from driftline.recorded.changes import Subscribe
from driftline.recorded.config import PipelineConfig
from driftline.recorded.pages import Pages
from driftline.recorded.places import Kept, Place, Places

FILTER = "filter"
_FOLLOWERS = ("moved", "crossed")


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A table: how it is kept, and where."""

    name: str
    key: str
    kept: str
    shards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Remembered:
    """Subscriptions of one kind that are remembered in one place, and a few of their ids."""

    kind: str
    shards: tuple[int, ...]
    count: int
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """All of a pipeline."""

    shards: int
    filters: int
    tables: tuple[TablePlan, ...]
    remembered: tuple[Remembered, ...]
    advice: tuple[str, ...]

    @property
    def kinds(self) -> dict[str, int]:
        """How many subscriptions there are of each kind."""
        found = Counter({FILTER: self.filters} if self.filters else {})
        for one in self.remembered:
            found[one.kind] += one.count
        return dict(found)


@dataclass(frozen=True, slots=True)
class Located:
    """One subscription: how it stands, since when, and where it is."""

    id: str
    kind: str
    text: str
    params: Mapping[str, Value]
    epoch: int
    asked: int
    """The number under which it was asked for."""
    since: int
    """The number from which on it stands so."""
    shards: tuple[int, ...]
    types: tuple[str, ...] | None
    """The types of events it must be shown, apart from rows of tables; None: any."""
    why: str


def plan_of(config: PipelineConfig, book: Book, shown: int = 3) -> Plan:
    """How a pipeline is laid out, with so many ids of each kind."""
    places = config.places
    ids: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for id, held in book.remembered.items():
        ids.setdefault((kind_of(held.asked), held.place.shards), []).append(id)
    remembered = tuple(
        Remembered(kind, shards, len(some), tuple(some[:shown]))
        for (kind, shards), some in sorted(ids.items())
    )
    tables = tuple(_table(places, kept) for kept in places.tables.values())
    advice = tuple(_advice(places, book, remembered))
    return Plan(places.shards, len(book.filters), tables, remembered, advice)


def _table(places: Places, kept: Kept) -> TablePlan:
    name, key = kept.declaration.name, kept.declaration.key
    if kept.spread:
        return TablePlan(name, key, "spread by its key", places.everywhere)
    group = f"whole, in the group {kept.group}" if kept.group else "whole"
    return TablePlan(name, key, group, (places.of_group(kept.group),))


def kind_of(asked: Subscribe) -> str:
    """What a subscription is, in a word or two."""
    if asked.is_plain:
        return FILTER
    statement = asked.statement
    if isinstance(statement, Pattern):
        return "pattern"
    if isinstance(statement, View):
        return "view"
    if statement.change is None:
        return "live rows"
    return "moved" if isinstance(statement.change, Moved) else "crossed"


def _advice(places: Places, book: Book, remembered: tuple[Remembered, ...]) -> Iterator[str]:
    if book.filters:
        yield "filters need no memory: more cores, or a cluster, match more (--cores, --master)"
    whole: dict[str, set[str]] = {}
    for held in book.remembered.values():
        for table in _tables_of(held.standing):
            if table in places.tables and not places.tables[table].spread:
                whole.setdefault(table, set()).add(kind_of(held.asked))
    for table, kinds in whole.items():
        if kinds <= set(_FOLLOWERS):
            yield (
                f"{table} is only followed row by row: with tables.{table}.spread = true every "
                "shard keeps a share of its rows"
            )
    groups = {kept.group for kept in places.tables.values() if not kept.spread}
    if len(whole) > 1 and len(groups) == 1:
        yield (
            f"{', '.join(whole)} are on one shard: tables that no join puts together may have "
            "groups of their own (tables.….group)"
        )
    if remembered:
        yield (
            f"what is remembered is on {places.shards} shards: another number (run.shards) needs "
            "`driftline pipeline replay --into DIR`"
        )


def _tables_of(standing: Standing) -> tuple[str, ...]:
    statement = stated(standing.statement)
    if isinstance(statement, View):
        return statement.tables
    return (statement.source or "",) if isinstance(statement, Subscription) else ()


def locate(config: PipelineConfig, book: Book, id: str) -> Located:
    """Where a subscription is and how it stands; InvalidValue if there is none with this id."""
    if id in book.filters:
        standing, kind, place = book.filters[id], FILTER, Place((), None)
        why = "it needs no memory: whoever reads an event matches it"
    elif id in book.remembered:
        held = book.remembered[id]
        standing, kind, place = held.standing, kind_of(held.asked), held.place
        why = _why(config.places, standing)
    else:
        raise InvalidValue("id", "that of a subscription", repr(id))
    asked, since = _numbers(Pages(config.checkpoint / "book"), book.end, id)
    return Located(
        id,
        kind,
        str(standing.statement),
        standing.params,
        standing.epoch,
        asked,
        since,
        place.shards,
        None if place.types is None else tuple(sorted(place.types)),
        why,
    )


def _why(places: Places, standing: Standing) -> str:
    statement = stated(standing.statement)
    if isinstance(statement, Pattern):
        return "a pattern is where its id says, and is shown all events that it may want"
    if isinstance(statement, View) and statement.of is ViewKind.MOVED:
        source = statement.source
        if source not in places.tables:
            return f"{source or 'any event'} is no table: it is where its id says"
        if places.tables[source].spread:
            return f"{source} is spread by its key: each shard follows its own rows"
    tables = _tables_of(standing)
    return f"it is where all rows of {' and '.join(tables)} are"


def _numbers(pages: Pages, end: int, id: str) -> tuple[int, int]:
    """When it was asked for, and when it last changed: the book itself keeps only how it stands."""
    asked = since = 0
    for page in pages.between(0, end):
        for seq, one, standing in page.filters:
            if one == id and standing is not None:
                asked, since = (seq, seq) if standing.epoch == 0 else (asked, seq)
        for seq, _, _, change in page.shown:
            if getattr(change, "id", None) == id:
                asked, since = (seq, seq) if isinstance(change, Subscribe) else (asked, seq)
    return asked, since
