"""A change of a row is one message, and says all there is to say of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import InvalidValue, NotSupported
from driftline.language.sql import parse, parse_condition
from driftline.matching.index import Index
from driftline.matching.scan import Scan
from driftline.model.event import Event
from driftline.model.rows import LiveRows
from driftline.model.scope import Scope
from driftline.model.standing import Standing
from driftline.model.subscription import Column, Subscription
from driftline.model.view import View
from driftline.stateful.news import News
from driftline.stateful.rows.change import (
    Change,
    change_of,
    changed,
    flag_of,
    is_derived,
    message_of,
    names_of,
)
from driftline.stateful.rows.fold import RowSet
from driftline.stateful.rows.interest import flags_of, interest
from driftline.testing import strategies
from tests.stateful.home import Home, conditions, delivered, parameters, steps, taken


def stock(**attributes: object) -> Event:
    return Event("stock", attributes, time=5)


def test_the_message_has_both_sides_and_what_changed() -> None:
    change = changed("stock", "IBM", stock(symbol="IBM", price=9), stock(symbol="IBM", price=10))
    message = message_of(change, 5, {"CHANGED price": {"price"}, "CHANGED symbol": {"symbol"}})
    shown = {name: v for name, v in message.attributes.items() if "ce_" not in name}
    assert message.type == "$rows:stock"
    assert is_derived(message.type)
    assert message.stamp == 5
    assert shown == {
        "KEY": "IBM",
        "OLD": True,
        "OLD_symbol": "IBM",
        "OLD_price": 9,
        "NEW": True,
        "NEW_symbol": "IBM",
        "NEW_price": 10,
        "CHANGED price": True,
    }


def test_a_row_that_comes_or_goes_has_one_side() -> None:
    flags = {"CHANGED price": {"price"}}
    came = message_of(changed("stock", 1, None, stock(key=1, price=9)), 0, flags)
    gone = message_of(changed("stock", 1, stock(key=1, price=9), None), 7)
    assert "OLD" not in came.attributes
    assert came.attributes["CHANGED price"] is True
    assert "NEW" not in gone.attributes
    assert gone.stamp == 7


def test_whatever_attributes_are_called_they_do_not_collide() -> None:
    names = ("OLD", "NEW", "KEY", "KEY_2", "CHANGED ", "OLD_price", "NEW_price", "OLD_ce_time")
    old = stock(**{name: at for at, name in enumerate(names)}, price=1)
    new = stock(**{name: -at for at, name in enumerate(names)}, price=2)
    for change in (changed("stock", 1, old, new), changed("stock", 1, None, new)):
        assert change_of(message_of(change, 0)) == change


def test_what_is_no_change_of_a_row_is_refused() -> None:
    with pytest.raises(InvalidValue, match="a change of a row"):
        change_of(stock(KEY=1))


@pytest.mark.parametrize("text", ["t > now()", "x < elapsed()", "x < env('e')"])
def test_what_moves_by_itself_is_refused(text: str) -> None:
    with pytest.raises(NotSupported, match="follows changes of rows"):
        interest("$rows:stock", parse_condition(text))


def test_a_missing_row_is_not_a_row_of_nulls() -> None:
    asked = interest("$rows:stock", parse_condition("price IS NULL"))
    assert not asked.matches(message_of(changed("stock", 1, None, stock(price=1)), 0))
    assert asked.matches(message_of(changed("stock", 1, None, stock()), 0))


def test_a_range_becomes_two_filters_that_an_index_can_hold() -> None:
    asked = interest("$rows:stock", parse_condition("price BETWEEN :lo AND :hi"))
    filters = asked.filters()
    assert len(filters) == 2
    assert all(not one.conditions for one in filters)


def test_only_what_is_read_is_noticed() -> None:
    (x, y) = (parse_condition(name) for name in "xy")
    asked = interest("$rows:stock", parse_condition("x > 0"), [y])
    assert flags_of(asked) == {"CHANGED x, y": {"x", "y"}}
    old = stock(x=1, y=1, z=1)
    for new, noticed in (
        (stock(x=1, y=1, z=2), False),
        (stock(x=1, y=2, z=1), True),
        (stock(x=2, y=1, z=1), True),
        (None, True),
    ):
        assert (delivered(asked, {}, changed("stock", 1, old, new)) is not None) is noticed
    assert len(asked.filters()) == 2
    assert all(not one.conditions for one in asked.filters())
    assert interest("$rows:stock", x).where != interest("$rows:stock", x, []).where


def test_rows_that_come_and_go_are_noticed_by_who_reads_nothing() -> None:
    asked = interest("$rows:stock", parse_condition("TRUE"), [])
    assert delivered(asked, {}, changed("stock", 1, None, stock(x=1)))
    assert delivered(asked, {}, changed("stock", 1, stock(x=1), None))
    assert not delivered(asked, {}, changed("stock", 1, stock(x=1), stock(x=2)))


@given(st.sets(st.text(min_size=1)))
def test_a_flag_says_which_names_it_stands_for(names) -> None:
    assert names_of(flag_of(names)) == names


def test_another_type_of_an_equal_value_is_a_change() -> None:
    """Rows are told as they are: TRUE is not 1, and 1.0 is written otherwise."""
    subscription = parse("SELECT x FROM stock")
    asked = interest("$rows:stock", subscription.where, [parse_condition("x")])
    for old, new in ((1, 1.0), (1, True), (0.0, -0.0)):
        home = Home()
        first = home.apply((1, stock(x=old)))
        fold = row_set(subscription, {}, home)
        change = delivered(asked, {}, changed("stock", 1, first.new, stock(x=new)))
        assert repr(taken(fold, change)[1:3]) == repr(({"x": new}, {"x": old}))


def test_select_all_sees_a_column_come_and_go() -> None:
    subscription = parse("SELECT * FROM stock")
    fold = row_set(subscription, {}, Home())
    assert taken(fold, changed("stock", 1, None, stock(x=1))).kind == "enter"
    change = changed("stock", 1, stock(x=1), stock(x=1, y=2))
    assert taken(fold, change)[1:3] == ({"x": 1, "y": 2}, {"x": 1})


@given(conditions(), parameters(), steps())
def test_a_message_is_forwarded_where_the_condition_is_true_of_a_side(where, params, program):
    asked = interest("$rows:stock", where)
    assert parse(str(asked)) == asked
    home = Home()
    for step in program:
        change = home.apply(step)
        sides = [row for row in (change.old, change.new) if row is not None]
        wanted = any(where.evaluate(Scope(row, params)) is True for row in sides)
        assert (delivered(asked, params, change) is not None) is wanted


@given(st.lists(st.tuples(conditions(), parameters()), min_size=1, max_size=4), steps())
def test_matchers_find_the_messages(asked, program):
    matchers = (Scan(), Index())
    for at, (where, params) in enumerate(asked):
        filters = interest("$rows:stock", where).filters(params)
        for matcher in matchers:
            matcher.add(str(at), filters)
    home = Home()
    for step in program:
        message = message_of(home.apply(step), 0)
        found, indexed = (matcher.match(message) for matcher in matchers)
        assert found == indexed


_columns = st.lists(
    st.builds(Column, strategies.attributes()), max_size=3, unique_by=lambda column: column.name
)


@given(
    conditions(), _columns, parameters(), parameters(), steps(), st.integers(0, 14), st.booleans()
)
def test_rows_enter_change_and_leave_as_the_model_says(
    where, columns, params, moved, program, moves_at, survives
):
    """The definition sees every row; the fold sees what the network let through."""
    subscription = Subscription(tuple(columns), "stock", where)
    read = None if not columns else [column.expression for column in columns]
    asked = interest("$rows:stock", where, read)
    live, home = LiveRows(subscription), Home()
    fold = row_set(subscription, params, home)
    for at, step in enumerate(program):
        if at == moves_at:
            params = moved
            later = row_set(subscription, params, home)
            told, fold = later.succeed(fold), later
            wanted = [
                (kind, values, old, (key,))
                for key, row in home.table.items()
                if (news := live.take((key,), Scope(row, params))) is not None
                for kind, values, old in [news]
            ]
            assert sorted(map(repr, told)) == sorted(repr(News(*one)) for one in wanted)
        if survives:
            loaded = RowSet(subscription, standing(subscription, params))
            loaded.load(fold.dump())
            assert repr(list(loaded.live.told())) == repr(list(fold.live.told()))
            fold = loaded
        change = home.apply(step)
        scope = None if change.new is None else Scope(change.new, params)
        wanted = live.take((step[0],), scope)
        came = delivered(asked, params, change)
        news = None if came is None else taken(fold, came)
        assert repr(wanted) == repr(None if news is None else tuple(news[:3]))
        assert news is None or news.keys == (step[0],)
        fold.live._check((key,) for key, _ in home.table.items())


def standing(rows: Subscription, params) -> Standing:
    return Standing(View.of_rows(rows), params)


def row_set(rows: Subscription, params, home: Home) -> RowSet:
    fold = RowSet(rows, standing(rows, params))
    fold.fill((((key,), row) for key, row in home.table.items()), {}, 0)
    return fold


def test_nothing_at_all_tells_nothing() -> None:
    rows = Subscription(source="stock")
    assert taken(row_set(rows, {}, Home()), Change("$rows:stock", (1,), None, None)) is None
