"""A value enters with its first row and leaves with its last."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import NotSupported
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.value import same
from driftline.model.view import View
from driftline.stateful.distinct.fold import Distinct
from driftline.stateful.distinct.reference import answer
from driftline.stateful.news import News, Values, value_key
from driftline.stateful.rows.interest import interest_of_view
from tests.stateful.home import Home, conditions, delivered, parameters, steps, taken

SELECTED = ("x", "s", '"on"', "x > 1", "coalesce(s, 'none')", "x + :p", "ce_id")
CONDITIONS = ("TRUE", "x BETWEEN :p AND 3", "s IS NOT NULL", "y > 0 OR :select")


@st.composite
def views(draw) -> View:
    columns = draw(st.lists(st.sampled_from(SELECTED), min_size=1, max_size=2, unique=True))
    where = draw(st.sampled_from(CONDITIONS))
    view = parse(f"SELECT DISTINCT {', '.join(columns)} FROM stock WHERE {where}")
    if draw(st.integers(0, 2)):
        return view
    return View(view.columns, view.source, draw(conditions()), distinct=True)


def key(values: Values) -> tuple[object, ...]:
    return tuple(map(value_key, values.values()))


def keys(found: list[Values]) -> set[tuple[object, ...]]:
    return {key(values) for values in found}


@given(views(), parameters(), parameters(), steps(), steps(), st.integers(0, 14), st.booleans())
def test_told_iff_a_value_came_or_went(view, params, moved, first, program, moves_at, survives):
    asked = interest_of_view(view)
    home = Home()
    for step in first:
        home.apply(step)
    fold = Distinct(view, params, home.rows())
    before = keys(answer(view, params, home.rows()))
    shown = {key(news.values): news.values for news in fold.snapshot()}
    assert len(fold.snapshot()) == len(before)
    for at, step in enumerate(program):
        if at == moves_at:
            params = moved
            after = keys(answer(view, params, home.rows()))
            later = Distinct(view, params, home.rows())
            told, fold = later.succeed(fold), later
            assert {key(n.values) for n in told if n.kind == "enter"} == after - before
            assert {key(n.old) for n in told if n.kind == "leave"} == before - after
            assert len(told) == len(before ^ after)
            update(shown, told)
            before = after
        if survives:
            fold = Distinct.load(view, params, fold.dump())
        change = delivered(asked, params, home.apply(step))
        news = None if change is None else taken(fold, change)
        after = keys(answer(view, params, home.rows()))
        came, gone = after - before, before - after
        kind = {(1, 1): "change", (1, 0): "enter", (0, 1): "leave"}.get((len(came), len(gone)))
        assert (None if news is None else news.kind) == kind
        assert came == (keys([news.values]) if news and news.values else set())
        assert gone == (keys([news.old]) if news and news.old else set())
        update(shown, [news] if news else [])
        fold._check()
        before = after
        assert shown.keys() == before


def update(shown: dict[tuple[object, ...], Values], told) -> None:
    """A subscriber's own set: what leaves is what it was told of, to the letter."""
    for news in told:
        if news.old is not None:
            known = shown.pop(key(news.old))
            assert all(same(known[name], value) for name, value in news.old.items())
        if news.kind != "leave":
            shown[key(news.values)] = dict(news.values)


def test_the_first_brings_it_and_the_last_takes_it() -> None:
    view, home = parse("SELECT DISTINCT sector FROM stock WHERE risk BETWEEN 20 AND 60"), Home()
    fold = Distinct(view, {})

    def told(symbol: str, risk: int | None, sector: str | None = None) -> object:
        row = Event("stock", {"risk": risk, "sector": sector}, time=0)
        return taken(fold, home.apply((symbol, None if risk is None else row)))

    assert told("a", 30, "tech") == ("enter", {"sector": "tech"}, None, ())
    assert told("b", 40, "tech") is None
    assert told("a", 70, "tech") is None
    assert told("b", 40, "bank") == ("change", {"sector": "bank"}, {"sector": "tech"}, ())
    assert told("a", 20) == ("enter", {"sector": None}, None, ())
    assert told("b", None) == ("leave", {}, {"sector": "bank"}, ())
    assert [news.values for news in fold.snapshot()] == [{"sector": None}]


def test_equal_values_of_two_types_are_one() -> None:
    fold, home = Distinct(parse("SELECT DISTINCT x FROM stock"), {}), Home()
    told = [
        taken(fold, home.apply((key, Event("stock", {"x": x}, time=0))))
        for key, x in enumerate((1, 1.0, True))
    ]
    assert [news and news.values for news in told] == [{"x": 1}, None, {"x": True}]


def test_counts_survive() -> None:
    view, home = parse("SELECT DISTINCT x FROM stock"), Home()
    one = Event("stock", {"x": 1}, time=0)
    fold = Distinct(view, {}, [home.apply((key, one)).new for key in (1, 2)])
    fold = Distinct.load(view, {}, fold.dump())
    assert taken(fold, home.apply((1, None))) is None
    assert taken(fold, home.apply((2, None))) == ("leave", {}, {"x": 1}, ())


def test_a_value_that_stays_while_a_parameter_moves_is_known_as_it_was_told() -> None:
    view, home = parse("SELECT DISTINCT x FROM stock WHERE y >= :p"), Home()
    for key, x, y in ((1, 1, 0), (2, 1.0, 5), (3, 2, 0), (4, 3, -5)):
        home.apply((key, Event("stock", {"x": x, "y": y}, time=0)))
    fold = Distinct(view, {"p": 0}, home.rows())
    later = Distinct(view, {"p": 5}, home.rows())
    told, fold = later.succeed(fold), later
    assert repr(told) == repr([News(NotificationKind.LEAVE, {}, {"x": 2})])
    assert repr([news.values for news in fold.snapshot()]) == "[{'x': 1}]"
    assert repr(taken(fold, home.apply((2, None))).old) == "{'x': 1}"


def test_what_moves_by_itself_is_refused() -> None:
    with pytest.raises(NotSupported, match="follows changes of rows"):
        Distinct(parse("SELECT DISTINCT x + elapsed() FROM stock"), {})
