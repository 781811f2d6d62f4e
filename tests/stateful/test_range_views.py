"""MIN and MAX views as filters over messages: told iff the definition's value changes, once."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline import Event, parse
from driftline.matching.index import Index
from driftline.model.scope import Scope
from driftline.model.value import comparable
from driftline.stateful.news import value_key
from driftline.stateful.range_min.reformulate import RangeMessages
from driftline.stateful.range_min.subscription import AGAIN, NEW_MIN, range_view
from driftline.stateful.range_sum.reference import answer
from tests.stateful.home import Home, steps

BOUNDS = (
    "x BETWEEN :lo AND :hi",
    "x > :lo AND x <= :hi",
    "x >= :lo AND x < :hi",
    ":lo < x AND x < :hi",
    "x >= :lo",
    "x < :hi",
    "x > 2 * :lo - 1",
    "TRUE",
)


@given(
    st.sampled_from(("MIN", "MAX")),
    st.sampled_from(BOUNDS),
    st.sampled_from(("", " AND s = 'a'", ' AND "on" = TRUE AND s = :name', " AND money = 1")),
    st.sampled_from((-1, 0, 0.5, 1, 2.0**53, 2**53 + 1, 2**62)),
    st.sampled_from((0, 1, 1.5, 3, -0.0, 2**53, 2**62)),
    steps(),
    steps(),
)
def test_told_iff_the_value_changes(function, bounds, beside, lo, hi, first, program) -> None:
    params = {"lo": lo, "hi": hi, "name": "a"}
    view = parse(f"SELECT {function}(y) FROM stock WHERE {bounds}{beside}")
    parts = range_view(view, params)
    if parts is None:
        assert "2 * :lo" in bounds, "which overflows"
        return
    home = Home()
    for step in first:
        home.apply(step)
    messages = RangeMessages(parts.shape, home.table.items())
    asked = parts.interest
    assert parse(str(asked)) == asked
    name = f"{function}(y)"
    told = answer(view, params, home.rows(), {})[name]
    assert value_key(messages.value(view, parts, params)) == value_key(told)
    for step in program:
        said = messages.take(home.apply(step))
        mine = [
            one
            for one in said
            if asked.truth(Scope(Event.of_admitted(messages.type, one, 0), params)) is True
        ]
        now = answer(view, params, home.rows(), {})[name]
        assert value_key(messages.value(view, parts, params)) == value_key(now)
        if not any(AGAIN in one for one in mine):
            assert len(mine) <= 1
            for one in mine:
                assert value_key(one.get(NEW_MIN)) == value_key(now)
                assert value_key(one.get(NEW_MIN)) != value_key(told)
        assert mine or value_key(now) == value_key(told)
        told = now
        messages._check()


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("SELECT MIN(y) FROM t WHERE x > 0 AND z > 0", {}),
        ("SELECT MIN(y) FROM t WHERE x > 0 OR x < -5", {}),
        ("SELECT MIN(y) FROM t WHERE x > 0 AND x > 1", {}),
        ("SELECT MIN(y) FROM t WHERE x > 0 AND x = 1", {}),
        ("SELECT MIN(y) FROM t WHERE x BETWEEN :a AND 5", {"a": "text"}),
        ("SELECT MIN(y) FROM t WHERE x > :a", {"a": math.inf}),
        ("SELECT MIN(y) FROM t WHERE x != 3", {}),
        ("SELECT MIN(y), MAX(y) FROM t", {}),
        ("SELECT COUNT(*) FROM t", {}),
        ("SELECT DISTINCT y FROM t", {}),
    ],
)
def test_what_is_no_range_view_is_left_to_others(text, params) -> None:
    assert range_view(parse(text), params) is None


def test_a_bound_that_no_float_holds_is_rounded_inwards() -> None:
    view = parse("SELECT MIN(y) FROM t WHERE x > :a AND x < :b")
    parts = range_view(view, {"a": 0, "b": 1})
    assert parts.range({"a": 0, "b": 1}) == (5e-324, math.nextafter(1, 0))
    low, high = parts.range({"a": 2**53 + 1, "b": 2**54 - 1})
    assert (low, high) == (2**53 + 2, 2**54 - 2)


def test_thousands_of_views_are_found_by_the_matcher_and_told_once() -> None:
    """Each change of a table with many ties, and every view that it concerns."""
    draw = random.Random(3)
    view = parse("SELECT MIN(y) FROM stock WHERE x BETWEEN :lo AND :hi")
    ranges = {str(at): sorted((draw.randrange(40), draw.randrange(40))) for at in range(400)}
    index, home = Index(), Home()
    messages, told = None, {}
    for id, (lo, hi) in ranges.items():
        parts = range_view(view, {"lo": lo, "hi": hi})
        index.add(id, parts.interest.filters(), {"lo": lo, "hi": hi})
        told[id] = None
    messages = RangeMessages(parts.shape)
    rows: dict[object, tuple[int, int]] = {}
    for _ in range(3000):
        key = draw.randrange(60)
        row = None if draw.random() < 0.2 else (draw.randrange(40), draw.randrange(8))
        rows.pop(key, None)
        if row is not None:
            rows[key] = row
        event = None if row is None else Event("stock", {"x": row[0], "y": row[1]}, time=0)
        heard: dict[str, object] = {}
        for said in messages.take(home.apply((key, event))):
            for id in index.match(Event.of_admitted(messages.type, said, 0)):
                assert id not in heard, "told twice"
                heard[id] = said.get(NEW_MIN)
        for id, (lo, hi) in ranges.items():
            now = min((y for x, y in rows.values() if lo <= x <= hi), default=None)
            assert heard.get(id, told[id]) == now
            assert id not in heard or now != told[id]
            told[id] = now
    assert len({comparable(value) for value in told.values() if value is not None}) > 1
