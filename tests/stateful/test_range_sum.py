"""Aggregates are told if and exactly when a selected value changed, with the right old and new."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import NotSupported
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.truth import Unknown
from driftline.model.value import kind_of
from driftline.model.view import View
from driftline.stateful.news import WHEN_DIFFERENT, Values, value_key
from driftline.stateful.range_sum.extremes import Extremes
from driftline.stateful.range_sum.fold import Aggregates
from driftline.stateful.range_sum.ordered import Ordered
from driftline.stateful.range_sum.reference import answer
from driftline.stateful.range_sum.tally import Tally
from driftline.stateful.range_sum.totals import Totals, totals_of
from driftline.stateful.rows.change import changed
from driftline.stateful.rows.interest import interest_of_view
from tests.stateful.home import (
    Home,
    conditions,
    delivered,
    money,
    numbers,
    parameters,
    steps,
    taken,
)

TICKS = {"money": Decimal("0.01")}
SELECTED = (
    "COUNT(*)",
    "COUNT(y)",
    "SUM(y)",
    "AVG(y)",
    "SUM(money)",
    "AVG(money)",
    "SUM(x)",
    "SUM(s)",
    "MIN(y)",
    "MAX(y)",
    "MIN(s)",
    "MAX(x)",
    "COUNT(ce_id)",
)
# One range, an equality, two ranges, none; then anything.
CONDITIONS = (
    "x BETWEEN :lo AND :hi",
    "s = :name AND x > :lo",
    "x BETWEEN :lo AND :hi AND y BETWEEN :lo AND :hi",
    "TRUE",
    "money < :hi OR x IS NULL",
)


@st.composite
def views(draw) -> View:
    columns = draw(st.lists(st.sampled_from(SELECTED), min_size=1, max_size=3, unique=True))
    text = f"SELECT {', '.join(columns)} FROM stock WHERE "
    view = parse(text + draw(st.sampled_from(CONDITIONS)))
    if draw(st.booleans()):
        return view
    return View(view.columns, view.source, draw(conditions()))


def bounds():
    return st.tuples(parameters(), st.integers(-1, 2), st.integers(0, 3)).map(
        lambda found: {**found[0], "lo": found[1], "hi": found[2], "name": "a"}
    )


def same_values(a: Values, b: Values) -> bool:
    return {n: value_key(v) for n, v in a.items()} == {n: value_key(v) for n, v in b.items()}


@given(views(), bounds(), bounds(), steps(), steps(), st.integers(0, 14), st.booleans())
def test_told_iff_a_selected_value_changed(view, params, moved, first, program, moves_at, survives):
    asked = interest_of_view(view)
    home = Home()
    for step in first:
        home.apply(step)
    fold = Aggregates(view, params, totals_of(view, params, home.rows(), TICKS))
    told = answer(view, params, home.rows(), TICKS)
    assert same_values(fold.snapshot()[0].values, told)
    for at, step in enumerate(program):
        if at == moves_at:
            params = moved
            wanted = answer(view, params, home.rows(), TICKS)
            later = Aggregates(view, params, totals_of(view, params, home.rows(), TICKS))
            (news,) = later.succeed(fold) or [None]
            fold = later
            told = check(news, told, wanted)
        if survives:
            fold = Aggregates.load(view, params, fold.dump())
        change = delivered(asked, params, home.apply(step))
        news = None if change is None else taken(fold, change)
        told = check(news, told, answer(view, params, home.rows(), TICKS))
        fold._check()


def check(news, told: Values, wanted: Values) -> Values:
    """Told if and only if it must be, from what was told before to what is so now."""
    assert (news is not None) == (not same_values(told, wanted)), (news, told, wanted)
    if news is None:
        return told
    assert news.kind == "change"
    assert same_values(news.old, told)
    assert same_values(news.values, wanted)
    for name, value in wanted.items():
        if name.startswith(("SUM", "AVG")):
            assert type(news.values[name]) is type(value)
    return wanted


@given(views(), bounds(), steps(), st.integers(2, 4))
def test_parts_of_a_table_add_up_and_travel(view, params, program, parts):
    home = Home()
    for step in program:
        home.apply(step)
    whole = Totals(view, TICKS)
    for part in range(parts):
        totals = totals_of(view, params, home.rows()[part::parts], TICKS)
        whole.merge(Totals.load(view, totals.dump()))
    whole._check()
    assert same_values(whole.values(), answer(view, params, home.rows(), TICKS))


@given(st.lists(numbers(), min_size=1), st.lists(numbers()), st.randoms())
def test_what_is_taken_off_leaves_no_trace(kept, passing, order: random.Random):
    """In any order: the sum of what stayed is what it would be without what came and went."""
    plain, busy = Tally(), Tally()
    for value in kept:
        plain.add(value, 1)
    todo = [(value, 1) for value in (*kept, *passing)]
    order.shuffle(todo)
    gone = [(value, -1) for value in passing]
    order.shuffle(gone)
    for value, times in (*todo, *gone):
        busy.add(value, times)
    busy._check()
    assert repr(busy.sum()) == repr(plain.sum())
    assert repr(busy.average()) == repr(plain.average())
    assert Fraction(busy.total, 1 << busy.scale) == Fraction(plain.total, 1 << plain.scale)


@given(st.lists(numbers() | st.just("no number"), min_size=1), st.integers(0, 20))
def test_a_sum_of_two_parts_is_the_sum_of_all(values, cut):
    whole, left, right = Tally(), Tally(), Tally()
    for at, value in enumerate(values):
        whole.add(value, 1)
        (left if at < cut else right).add(value, 1)
    left.merge(right)
    left._check()
    assert (repr(left.sum()), left.count) == (repr(whole.sum()), whole.count)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1))
def test_floats_add_up_as_fsum_says(values):
    tally = Tally()
    for value in values:
        tally.add(value, 1)
    assert tally.sum() == math.fsum(values)


@given(st.lists(money(), min_size=1))
def test_money_adds_up_as_decimals_do(values):
    tally = Tally(Fraction("0.01"))
    for value in values:
        tally.add(value, 1)
    total = sum(Decimal(repr(value)) for value in values)
    if abs(total * 100) < 2**63:
        whole = all(type(value) is int for value in values)
        assert tally.sum() == (int(total) if whole else float(total))
    else:
        assert isinstance(tally.sum(), Unknown)


@given(st.lists(st.tuples(numbers() | st.sampled_from(("a", "b", True)), st.booleans())))
def test_extremes_are_those_of_the_sorted_values(program):
    extremes, held = Extremes(), []
    for value, comes in program:
        if comes:
            held.append(value)
            extremes.add(value, 1)
        elif held:
            extremes.add(held.pop(), -1)
        extremes._check()
        kinds = {kind_of(value) for value in held}
        if len(kinds) == 1:
            assert (extremes.least(), extremes.greatest()) == (min(held), max(held))
        else:
            assert isinstance(extremes.least(), Unknown)
            assert isinstance(extremes.greatest(), Unknown)


def test_ten_thousand_values_lie_in_order(seed, monkeypatch) -> None:
    monkeypatch.setattr("driftline.stateful.range_sum.ordered._BLOCK_MAX", 8)
    draw, ordered, held = random.Random(seed), Ordered(), set()
    for at in range(10_000):
        value = draw.randrange(600)
        if value in held:
            ordered.remove(value)
        else:
            ordered.put(value)
        held ^= {value}
        assert not held or (ordered.least(), ordered.greatest()) == (min(held), max(held))
        if at % 100 == 0:
            ordered._check()
            assert list(ordered) == sorted(held)
    for value in sorted(held, key=lambda value: value % 7):
        ordered.remove(value)
        ordered._check()
    assert not ordered


def follow(text: str, ticks=TICKS) -> tuple[Aggregates, Home]:
    view = parse(text)
    return Aggregates(view, {}, totals_of(view, {}, [], ticks)), Home()


def row(**attributes: object) -> Event:
    return Event("stock", attributes, time=0)


def test_an_empty_range_is_null_and_counts_zero() -> None:
    fold, home = follow("SELECT COUNT(*), COUNT(y), SUM(y), AVG(y), MIN(y) FROM stock WHERE x > 0")
    empty = {"COUNT(*)": 0, "COUNT(y)": 0, "SUM(y)": None, "AVG(y)": None, "MIN(y)": None}
    assert fold.snapshot()[0] == ("snapshot", empty, None, ())
    came = taken(fold, home.apply((1, row(x=1, y=4))))
    full = {"COUNT(*)": 1, "COUNT(y)": 1, "SUM(y)": 4, "AVG(y)": 4.0, "MIN(y)": 4}
    assert came == ("change", full, empty, ())
    assert taken(fold, home.apply((1, None))) == ("change", empty, full, ())


def test_null_is_not_counted_and_no_zero() -> None:
    fold, home = follow("SELECT COUNT(*) AS n, COUNT(y) AS c, SUM(y) AS s, AVG(y) AS a FROM stock")
    taken(fold, home.apply((1, row(y=4))))
    news = taken(fold, home.apply((2, row())))
    assert news.values == {"n": 2, "c": 1, "s": 4, "a": 4.0}


def test_a_sum_beyond_64_bits_is_null_and_comes_back() -> None:
    fold, home = follow("SELECT SUM(y) AS s, AVG(y) AS a FROM stock")
    taken(fold, home.apply((1, row(y=2**63 - 1))))
    news = taken(fold, home.apply((2, row(y=1))))
    assert news.values == {"s": None, "a": None}
    news = taken(fold, home.apply((1, row(y=2**63 - 2))))
    assert news.values == {"s": 2**63 - 1, "a": 2.0**62}


def test_a_sum_in_ticks_is_exact() -> None:
    fold, home = follow("SELECT SUM(money) AS s, AVG(money) AS a FROM stock")
    for key, amount in enumerate((0.1, 0.2, 0.3)):
        taken(fold, home.apply((key, row(money=amount))))
    assert fold.told.values == {"s": 0.6, "a": 0.2}
    assert 0.1 + 0.2 + 0.3 != 0.6


def test_a_value_in_ticks_is_the_decimal_that_was_written() -> None:
    """Not the float nearest to it, which is .25 here: the next float is .375."""
    fold, home = follow("SELECT SUM(money) FROM stock")
    taken(fold, home.apply((1, row(money=900719925474099.2))))
    news = taken(fold, home.apply((2, row(money=-900719925474099))))
    assert news.values == {"SUM(money)": 0.2}
    assert Fraction(900719925474099.2) % 1 == Fraction("0.25")


def test_a_sum_of_no_numbers_is_null_while_they_are_there() -> None:
    fold, home = follow("SELECT SUM(y) FROM stock")
    taken(fold, home.apply((1, row(y=1))))
    assert taken(fold, home.apply((2, row(y="one")))).values == {"SUM(y)": None}
    assert taken(fold, home.apply((2, row(y=True)))) is None
    assert taken(fold, home.apply((2, None))).values == {"SUM(y)": 1}


def test_a_sum_of_the_same_value_in_another_type_is_no_news() -> None:
    fold, home = follow("SELECT SUM(y), MIN(y) FROM stock")
    taken(fold, home.apply((1, row(y=1))))
    assert taken(fold, home.apply((1, row(y=1.0)))) is None


def test_having_decides_and_sees_what_is_not_told() -> None:
    """The gate is asked for every change of the rows in range; what it lets pass is told."""

    class Every:
        def __init__(self) -> None:
            self.seen: list[tuple[Values, Values]] = []

        def tells(self, told: Values, now: Values) -> bool:
            self.seen.append((dict(told), dict(now)))
            return len(self.seen) % 2 == 0

    view, gate, home = parse("SELECT COUNT(*) AS n FROM stock WHERE x > 0"), Every(), Home()
    fold = Aggregates(view, {}, totals_of(view, {}, []), gate)
    told = [taken(fold, home.apply((key, row(x=x)))) for key, x in enumerate((1, 0, 1, 1, 1))]
    assert told == [None, None, ("change", {"n": 2}, {"n": 0}, ()), None, told[4]]
    assert told[4].old == {"n": 2}
    assert gate.seen == [
        ({"n": 0}, {"n": 1}),
        ({"n": 0}, {"n": 2}),
        ({"n": 2}, {"n": 3}),
        ({"n": 2}, {"n": 4}),
    ]


def test_what_was_told_survives_though_it_is_no_longer_so() -> None:
    class Never:
        def tells(self, told: Values, now: Values) -> bool:
            return False

    class Always:
        def tells(self, told: Values, now: Values) -> bool:
            return True

    view, home = parse("SELECT COUNT(*) AS n, MIN(x) AS m FROM stock"), Home()
    fold = Aggregates(view, {}, totals_of(view, {}, []), Never())
    assert taken(fold, home.apply((1, row(x=3)))) is None
    fold = Aggregates.load(view, {}, fold.dump(), gate=Always())
    news = taken(fold, home.apply((2, row(x=2))))
    assert news == ("change", {"n": 2, "m": 2}, {"n": 0, "m": None}, ())


def test_what_is_told_belongs_to_the_subscriber() -> None:
    fold, home = follow("SELECT COUNT(*) AS n FROM stock")
    fold.snapshot()[0].values["n"] = 7
    news = taken(fold, home.apply((1, row())))
    news.values["n"] = 8
    assert taken(fold, home.apply((2, row()))) == ("change", {"n": 2}, {"n": 1}, ())


def test_what_moves_by_itself_is_refused() -> None:
    view = parse("SELECT COUNT(*) FROM stock WHERE t > now()")
    with pytest.raises(NotSupported, match="follows changes of rows"):
        interest_of_view(view)
    with pytest.raises(NotSupported, match="follows changes of rows"):
        Aggregates(view, {}, totals_of(view, {}, []))


def test_a_row_that_was_and_is_outside_changes_nothing() -> None:
    fold, _ = follow("SELECT COUNT(*) FROM stock WHERE x > 0")
    assert taken(fold, changed("stock", 1, row(x=0), row(x=-1))) is None
    assert WHEN_DIFFERENT.tells({"a": 1}, {"a": True})
    assert not WHEN_DIFFERENT.tells({"a": 1}, {"a": 1.0})
    assert WHEN_DIFFERENT.tells({"a": 0}, {"a": None})
