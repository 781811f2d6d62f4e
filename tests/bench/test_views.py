"""`driftline bench views`: its figures, and that it compares before it reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import typer

from driftline.bench import (
    BENCHMARKS,
    views,
    views_folds,
    views_join,
    views_messages,
    views_recompute,
    views_told,
    views_unicast,
    views_update,
)
from driftline.bench.views_count import Rectangles, look
from driftline.bench.views_recompute import BY_HAND, ENGINES, RECOMPUTED, Recomputing
from driftline.cli.bench import _sized
from driftline.matching.index import Index
from driftline.matching.matcher import Matches
from driftline.stateful.distinct.fold import Distinct
from driftline.stateful.range_min.a2b_tree import A2BTree
from driftline.stateful.range_min.affected import Affected
from driftline.stateful.range_min.blocks import Blocks
from driftline.stateful.range_sum.fold import Aggregates
from driftline.stateful.rows.fold import RowSet
from driftline.workload.stocks import ranges, stocks

CLAIMS = [
    *("update_100k", "update_1m", "growth", "told_1m", "affected_1m", "duckdb", "flat_messages"),
]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, size in (
        (views_update, "BATCH", 60),
        (views_update, "BATCHES", 3),
        (views_update, "SINGLE", 90),
        (views_update, "TREE", 70),
        (views_update, "SCANNED", 40),
        (views_told, "BATCHES", 2),
        (views_recompute, "UPDATES", {RECOMPUTED: 3, BY_HAND: 20}),
        (views_messages, "UPDATES", 300),
        (views_messages, "SWEPT", 200),
        (views_messages, "PAPER_TUPLES", {100: (2.1, 1), 300: (2.1, 1)}),
        (views_messages, "PAPER_SUBSCRIPTIONS", {100: (2.1, 1), 300: (2.1, 1)}),
        (views_messages, "SUBSCRIPTIONS", 300),
        (views_folds, "ROWS", 60),
        (views_folds, "SUBSCRIPTIONS", 15),
        (views_folds, "CHANGES", 80),
        (views_join, "ROWS", 20),
        (views_join, "SUBSCRIPTIONS", 15),
        (views_join, "CHANGES", 40),
        (views, "SMALL", 100),
        (views, "MEDIUM", 200),
        (views, "LARGE", 400),
    ):
        monkeypatch.setattr(module, name, size)


def test_every_question_is_reported() -> None:
    report = views.run(False, lambda text: None)
    assert report.name in BENCHMARKS
    assert [row[0] for row in report.rows] == ["100", "200", "400"]
    assert all(len(row) == len(one.columns) for one in (report, *report.more) for row in one.rows)
    figures = report.as_data()
    assert min(one["batch_us"] for one in figures["update"].values()) > 0
    assert figures["told"]["told_per_update"] > 1
    sent = figures["messages"]["by_subscriptions"]
    assert all(0 < one["kept"] < one["messages"] for one in sent)
    assert sent[-1]["unicast"] == pytest.approx(3 * sent[0]["unicast"], rel=0.3)
    assert len(figures["messages"]["swept"]) == len(views_messages.SWEEP)
    assert set(figures["others"]) == {*views_folds.KINDS, "join"}
    assert [claim.name for claim in report.claims] == CLAIMS
    assert all(claim.measured is not None for claim in report.claims)


def test_what_is_asked_at_other_sizes_is_no_claim() -> None:
    report = views.run(False, lambda text: None, tuples=[50, 80], subscriptions=70)
    figures = report.as_data()
    assert list(figures["update"]) == ["50", "80"]
    assert (figures["told"]["tuples"], figures["told"]["subscriptions"]) == (80, 70)
    instead = figures["instead"]["driftline"]
    assert (instead["tuples"], instead["subscriptions"]) == (50, 70)
    sizes = [one["subscriptions"] for one in figures["messages"]["by_subscriptions"]]
    assert sizes == [14, 28, 42, 56, 70]
    assert all(claim.measured is None for claim in report.claims)


@pytest.mark.parametrize("seed", range(20))
def test_as_many_are_counted_as_there_are(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count = int(draw.integers(1, 40))
    low = draw.integers(0, 20, count).astype(float)
    high = low + draw.integers(0, 10, count)
    inner = np.sort(draw.integers(-1, 30, (50, 2)), axis=1).astype(float)
    outer = inner + draw.integers(1, 12, (50, 2)) * (-1, 1)
    outer[:5, 0], outer[3:8, 1] = -np.inf, np.inf
    rows = np.column_stack((np.zeros(50), inner, outer))
    counts = Rectangles(low, high).of(rows)
    assert counts.tolist() == [len(look(low, high, row)) for row in rows]


# What is wrong is no result


@pytest.mark.parametrize(
    ("structure", "who"), [(A2BTree, "the A2B-tree"), (views_update.Scanned, "NumPy")]
)
def test_a_structure_that_says_something_else(
    structure: type, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = structure.change
    monkeypatch.setattr(structure, "change", lambda self, *new: change(self, *new)[:1])
    with pytest.raises(AssertionError, match=f"{who} makes other messages"):
        views_update.measured(300, full=False)


def _told() -> None:
    views_told.measured(stocks(100, 180), *ranges(200))


def test_somebody_who_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    match = Index.match_batch

    def one_less(self: Index, columns: object) -> Matches:
        found = match(self, columns)  # type: ignore[arg-type]
        offsets = np.minimum(found.offsets, len(found) - 1)
        return replace(found, offsets=offsets, numbers=found.numbers[:-1])

    _told()
    monkeypatch.setattr(Index, "match_batch", one_less)
    with pytest.raises(AssertionError, match="not as many as there are"):
        _told()


def test_another_who_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    match = Index.match_batch

    def others(self: Index, columns: object) -> Matches:
        found = match(self, columns)  # type: ignore[arg-type]
        return replace(found, numbers=(found.numbers + 1) % len(found.names))

    monkeypatch.setattr(Index, "match_batch", others)
    with pytest.raises(AssertionError, match="not those whom it concerns"):
        _told()


def _listed() -> None:
    views_unicast.measured(stocks(100, 180), *ranges(200))


def test_somebody_who_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    many = Affected.of_many

    def others(self: Affected, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        numbers, ends = many(self, rows)
        return (numbers + 1) % len(self), ends

    def one_less(self: Affected, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        numbers, ends = many(self, rows)
        return numbers[:-1], np.minimum(ends, len(numbers) - 1)

    _listed()
    for wrong, why in ((others, "not those whom it affects"), (one_less, "not as many")):
        monkeypatch.setattr(Affected, "of_many", wrong)
        with pytest.raises(AssertionError, match=why):
            _listed()


def test_a_message_that_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Affected, "wanted_many", lambda self, rows: np.ones(len(rows), np.bool_))
    with pytest.raises(AssertionError, match="not what somebody wants"):
        _listed()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("way", [RECOMPUTED, BY_HAND])
def test_minima_of_another_table(engine: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Recomputing(way, stocks(100, 500), *ranges(200))
    found = steps.measured(engine)
    assert found is None or found.views_around > 1
    monkeypatch.setattr(views_recompute, "_CHANGE", "UPDATE tuples SET y = $new WHERE id = $id + 1")
    monkeypatch.setattr(views_recompute, "_FALL", views_recompute._RISE.replace("$old", "$new"))
    if found is not None:
        with pytest.raises(AssertionError, match="other minima"):
            steps.measured(engine)


def test_views_that_changed_and_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    change = Blocks.change_many
    monkeypatch.setattr(
        Blocks, "change_many", lambda self, *all: replace(change(self, *all), rows=np.zeros((0, 5)))
    )
    with pytest.raises(AssertionError, match="not those that changed"):
        Recomputing(BY_HAND, stocks(100, 500), *ranges(200))


@pytest.mark.parametrize("kind", views_folds.KINDS)
def test_a_fold_that_does_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = views_folds.measured(kind)
    assert found.messages == 1
    assert found.told <= found.brought
    for fold in (Aggregates, Distinct):
        monkeypatch.setattr(fold, "take", lambda self, change: None)
    with pytest.raises(AssertionError, match=r"not the answer|not the values"):
        views_folds.measured(kind)


def test_pairs_that_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert views_join.measured().messages == views_join.PARTNERS
    monkeypatch.setattr(RowSet, "take", lambda self, message: None)
    with pytest.raises(AssertionError, match="not the pairs there are"):
        views_join.measured()


# The command


def test_its_sizes_can_be_chosen() -> None:
    given = {"--n": "100,2000", "--subscriptions": "50"}
    assert _sized("views", given) == {"tuples": [100, 2000], "subscriptions": 50}
    with pytest.raises(typer.BadParameter, match="--batch cannot be chosen"):
        _sized("views", {"--batch": "10"})
    with pytest.raises(typer.BadParameter, match="no number"):
        _sized("views", {"--n": "many"})
