"""Where everything is, in words: what is said is what `places` decides."""

from __future__ import annotations

import pytest

from driftline.errors import InvalidValue
from driftline.recorded.book import Book
from driftline.recorded.changes import change_from
from driftline.recorded.config import (
    EventsConfig,
    OutConfig,
    PipelineConfig,
    RunConfig,
    TableConfig,
)
from driftline.recorded.pages import Pages
from driftline.recorded.plan import locate, plan_of

ROWS = [
    {"id": "cheap", "text": "SELECT * FROM quote WHERE price < :p", "params": {"p": 1}},
    {"id": "least", "text": "SELECT MIN(price) FROM quote"},
    {"id": "live", "text": "SELECT * FROM quote WHERE price < 5", "rows": True},
    {
        "id": "drift",
        "text": "SELECT worth FROM fund WHERE moved(worth, by => :r)",
        "params": {"r": 2},
    },
    {"id": "level", "text": "SELECT worth FROM fund WHERE crossed(worth, above => 9)"},
    {"id": "loose", "text": "SELECT x WHERE moved(x, by => 2)"},
    {"id": "pair", "text": "SELECT * FROM sale THEN SELECT * FROM return"},
    {"op": "set", "id": "cheap", "params": {"p": 2}},
    {"op": "set", "id": "cheap", "params": {"p": 3}},
]


def pipeline(tmp_path, **tables):
    return PipelineConfig(
        EventsConfig("events"), OutConfig(str(tmp_path)), tables=tables, run=RunConfig(shards=8)
    )


def written(config, *files):
    """The book of files of changes, and its pages."""
    book = Book(config.places)
    for number, rows in enumerate(files):
        page = book.write(number * 100, 0, [change_from(row, "?") for row in rows])
        Pages(config.checkpoint / "book").write(page)
        assert not page.refused
    return book


@pytest.fixture
def config(tmp_path):
    return pipeline(tmp_path, quote=TableConfig("symbol"), fund=TableConfig("isin", spread=True))


def test_each_subscription_is_where_its_place_says(config):
    book = written(config, ROWS)
    kinds = {id: (locate(config, book, id).kind, locate(config, book, id).shards) for id in IDS}
    whole, everywhere = (config.places.of_group(""),), tuple(range(8))
    assert kinds["cheap"] == ("filter", ())
    assert kinds["least"] == ("view", whole)
    assert kinds["live"] == ("live rows", whole)
    assert kinds["drift"] == ("moved", everywhere)
    assert kinds["level"] == ("crossed", everywhere)
    assert kinds["loose"] == ("moved", book.remembered["loose"].place.shards)
    assert kinds["pair"] == ("pattern", book.remembered["pair"].place.shards)
    plan = plan_of(config, book)
    assert plan.kinds == {
        "filter": 1, "crossed": 1, "live rows": 1, "moved": 2, "pattern": 1, "view": 1
    }  # fmt: skip
    assert [(one.name, one.shards) for one in plan.tables] == [
        ("quote", whole),
        ("fund", everywhere),
    ]


IDS = [str(row["id"]) for row in ROWS[:7]]


def test_it_says_since_when_a_subscription_stands_so(config):
    more = [
        {"op": "set", "id": "cheap", "params": {"p": 4}},
        {"op": "cancel", "id": "least"},
        {"id": "least", "text": "SELECT MAX(price) FROM quote"},
        {"op": "set", "id": "drift", "params": {"r": 3}},
    ]
    book = written(config, ROWS, more)
    cheap, least, drift = (locate(config, book, id) for id in ("cheap", "least", "drift"))
    assert (cheap.asked, cheap.since, cheap.epoch, cheap.params) == (0, 100, 3, {"p": 4})
    assert (least.asked, least.since, least.text) == (102, 102, "SELECT MAX(price) FROM quote")
    assert (drift.asked, drift.since) == (3, 103)
    again = [{"op": "cancel", "id": "cheap"}, {"id": "cheap", "text": "SELECT * FROM quote"}]
    cheap = locate(config, written(config, ROWS, more, again), "cheap")
    assert (cheap.asked, cheap.since, cheap.epoch) == (201, 201, 0)
    with pytest.raises(InvalidValue, match="'nobody'"):
        locate(config, book, "nobody")


def test_it_advises_what_would_help_and_nothing_else(tmp_path):
    spread = pipeline(tmp_path, fund=TableConfig("isin", spread=True))
    whole = pipeline(tmp_path, fund=TableConfig("isin"), quote=TableConfig("symbol"))
    followers = ROWS[3:5]
    assert not any("spread" in one for one in plan_of(spread, written(spread, followers)).advice)
    advice = plan_of(whole, written(whole, followers)).advice
    assert any("tables.fund.spread = true" in one for one in advice)
    assert not any("groups" in one for one in advice)
    both = plan_of(whole, written(whole, ROWS[1:5])).advice
    assert any("quote, fund are on one shard" in one for one in both)
    views = [*followers, {"id": "v", "text": "SELECT MAX(worth) FROM fund"}]
    assert not any("spread" in one for one in plan_of(whole, written(whole, views)).advice)
    assert plan_of(whole, Book(whole.places)).advice == ()
