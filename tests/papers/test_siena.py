"""Do the examples of SIENA come out as its authors wrote them?

A. Carzaniga, D. S. Rosenblum, A. L. Wolf: Design and Evaluation of a Wide-Area Event Notification
Service, ACM TOCS 19(3), 2001. Notifications of the paper have no type, so subscriptions here have
no FROM; its `any` is IS NOT NULL; its integers and floats are different types and ours compare.
"""

from __future__ import annotations

import pytest

from driftline import Event, advertisement, covers, intersects, parse
from driftline.language.cloudevents import event_from
from driftline.model.pattern import Pattern, SequenceMatcher
from driftline.model.scope import Scope

DATE = {"@time": "2001-08-01T02:40:03Z"}


def notification(**attributes: object) -> Event:
    return event_from({"type": "notification", "data": attributes})


def where(condition: str) -> str:
    return f"SELECT * WHERE {condition}"


def takes(general: str, specific: str) -> bool:
    return covers(parse(where(general)), parse(where(specific)))


def says(general: str, specific: str) -> bool:
    return covers(advertisement(where(general)), advertisement(where(specific)))


# -- 3.1 and 3.2: notifications and filters


@pytest.mark.parametrize(
    ("attributes", "condition", "matches"),
    [
        ({"what": "alarm", "date": DATE}, "what = 'alarm'", True),
        ({"what": "alarm", "date": DATE}, "what = 'alarm' AND level > 3", False),
        ({"what": "alarm", "level": 10}, "what = 'alarm' AND level > 3 AND level < 7", False),
        ({"what": "alarm", "level": 5}, "what = 'alarm' AND level > 3 AND level < 7", True),
    ],
    ids=["first", "second", "third", "fourth"],
)
def test_the_examples_of_table_ii(
    attributes: dict[str, object], condition: str, matches: bool
) -> None:
    assert parse(where(condition)).matches(notification(**attributes)) is matches


@pytest.mark.parametrize(
    ("condition", "value", "matches"),
    [
        ("x LIKE 'NY%'", "NYSE", True),
        ("x LIKE 'NY%'", "XNYS", False),
        ("x LIKE '%SE'", "NYSE", True),
        ("x LIKE '%SE'", "NYSEX", False),
        ("x LIKE '%YS%'", "NYSE", True),
        ("x LIKE '%YS%'", "NASDAQ", False),
        ("x IS NOT NULL", "NYSE", True),
        ("x IS NOT NULL", 5, True),
    ],
)
def test_prefix_suffix_substring_and_any_of_section_3_2(
    condition: str, value: object, matches: bool
) -> None:
    assert parse(where(condition)).matches(notification(x=value)) is matches


def test_a_constraint_of_another_type_is_not_matched_as_section_3_2_says() -> None:
    assert not parse(where("level = '5'")).matches(notification(level=5))


# -- 3.3: patterns


def test_figure_4_is_an_increase_of_one_stock_followed_by_one_of_another() -> None:
    pattern = parse(
        "SELECT * WHERE symbol = 'MSFT' AND change > 0"
        " THEN SELECT * WHERE symbol = 'NSCP' AND change > 0"
    )
    assert isinstance(pattern, Pattern)
    matcher = SequenceMatcher(pattern)
    first = Event("quote", {"symbol": "MSFT", "change": 3}, time=1)
    fall = Event("quote", {"symbol": "NSCP", "change": -1}, time=2)
    second = Event("quote", {"symbol": "NSCP", "change": 2}, time=3)
    told = [matcher.take(Scope(event)) for event in (first, fall, second)]
    assert told == [None, None, (first, second)]


def test_the_worked_sequence_of_section_3_3() -> None:
    # Name, matched at, generated at; the paper writes B1/4 as B with 1 above and 4 below.
    sequence = [
        ("B", 1, 4),
        ("A", 2, 3),
        ("A", 3, 1),
        ("B", 4, 2),
        ("A", 5, 5),
        ("B", 6, 6),
        ("A", 7, 7),
        ("B", 8, 8),
    ]
    pattern = parse("SELECT * WHERE name = 'A' THEN SELECT * WHERE name = 'B'")
    assert isinstance(pattern, Pattern)
    matcher = SequenceMatcher(pattern)
    found = []
    for name, matched, generated in sequence:
        event = Event("n", {"name": name}, time=generated, entered=matched)
        told = matcher.take(Scope(event))
        matcher._check()
        if told is not None:
            found.append([f"{one.attributes['name']}{one.entered}/{one.time}" for one in told])
    assert found == [["A2/3", "B6/6"], ["A7/7", "B8/8"]]


def test_a_notification_generated_at_the_same_time_does_not_follow_section_3_3() -> None:
    pattern = parse("SELECT * WHERE name = 'A' THEN SELECT * WHERE name = 'B'")
    assert isinstance(pattern, Pattern)
    matcher = SequenceMatcher(pattern)
    told = [matcher.take(Scope(Event("n", {"name": name}, time=5))) for name in "AB"]
    assert told == [None, None]


# -- 3.4: advertisements


@pytest.mark.parametrize(
    ("attributes", "covered"),
    [
        ({"what": "alarm"}, True),
        ({"what": "alarm", "date": DATE}, False),
        ({"what": "login", "username": "carzanig"}, True),
        ({"what": "logout", "username": "carzanig"}, False),
    ],
    ids=["first", "second", "third", "fourth"],
)
def test_the_examples_of_table_iii(attributes: dict[str, object], covered: bool) -> None:
    advertised = advertisement(where("what = 'alarm' OR what = 'login' OR username IS NOT NULL"))
    assert advertised.covers(notification(**attributes)) is covered


def test_constraints_on_one_attribute_are_a_disjunction_even_if_joined_by_and() -> None:
    advertised = advertisement(where("what = 'alarm' AND what = 'login'"))  # section 3.4
    assert advertised.covers(notification(what="login"))


def test_an_advertisement_is_the_dual_of_a_subscription_in_section_3_4() -> None:
    condition = "what = 'alarm' AND level > 3"
    less, more = notification(what="alarm"), notification(what="alarm", level=5, host="a")
    advertised, wanted = advertisement(where(condition)), parse(where(condition))
    assert advertised.covers(less)
    assert not wanted.matches(less)
    assert not advertised.covers(more)
    assert wanted.matches(more)


# -- 3.6: the relations derived from these

BROADER = [
    ("level > 3", "level > 3 AND level < 7"),
    ("level > 3", "level > 5"),
    ("level >= 3", "level > 3"),
    ("level > 3", "level = 5"),
    ("level < 7", "level <= 6"),
    ("level != 3", "level > 3"),
    ("level != 3", "level = 4"),
    ("level IS NOT NULL", "level = 4"),
    ("what = 'alarm'", "what = 'alarm' AND level > 3"),
    ("what LIKE 'al%'", "what = 'alarm'"),
    ("what LIKE 'al%'", "what LIKE 'alar%'"),
    ("what LIKE '%rm'", "what LIKE '%arm'"),
    ("what LIKE '%ar%'", "what LIKE '%larm%'"),
    ("what LIKE '%la%'", "what LIKE 'alarm%'"),
    ("what >= 'al'", "what LIKE 'al%'"),
    ("level BETWEEN 1 AND 9", "level BETWEEN 2 AND 8"),
    ("level IN (1, 2, 3)", "level IN (3, 1)"),
    ("level > 3 OR what = 'alarm'", "what = 'alarm' AND level = 0"),
    ("date < TIMESTAMP '2001-08-02T00:00:00Z'", "date < TIMESTAMP '2001-08-01T02:40:03Z'"),
    ("level > 3", "level > 3.5"),
    ("TRUE", "what = 'alarm'"),
]


@pytest.mark.parametrize(("general", "specific"), BROADER)
def test_a_filter_covers_a_narrower_one(general: str, specific: str) -> None:
    assert takes(general, specific)  # section 3.6, subscription covers subscription


@pytest.mark.parametrize(("general", "specific"), BROADER)
def test_a_filter_does_not_cover_a_broader_one(general: str, specific: str) -> None:
    assert not takes(specific, general)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("level > 3", "price > 3"),
        ("level > 3", "level = '5'"),
        ("level > 3 AND level < 7", "level > 5 AND level < 9"),
        ("what = 'alarm'", "what = 'login'"),
        ("what LIKE 'al%'", "what LIKE '%al'"),
        ("what LIKE 'al%'", "what LIKE '%al%rm'"),
        ("level != 3", "level != 4"),
    ],
)
def test_neither_of_two_filters_covers_the_other(one: str, other: str) -> None:
    assert not takes(one, other)
    assert not takes(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("what = 'alarm' AND level > 3", "level > 3 AND what = 'alarm'"),
        ("level BETWEEN 3 AND 7", "level >= 3 AND level <= 7"),
        ("level > 3 AND level > 5", "level > 5"),
        ("level = 3", "level IN (3)"),
        ("level >= 3 AND level <= 3", "level = 3"),
        ("what LIKE 'alarm'", "what = 'alarm'"),
        ("NOT level > 3", "level <= 3"),
        ("level = 3", "level = 3.0"),
        ("level != 3", "level < 3 OR level > 3"),
    ],
)
def test_filters_are_equal_if_each_covers_the_other(one: str, other: str) -> None:
    assert takes(one, other)  # section 3.6: f1 = f2 iff f1 covers f2 and f2 covers f1
    assert takes(other, one)


SAID_MORE = [
    ("what = 'alarm' OR what = 'login'", "what = 'alarm'"),
    ("what IS NOT NULL", "what = 'alarm' OR what = 'login'"),
    ("what = 'alarm' AND level IS NOT NULL", "what = 'alarm'"),
    ("level > 3", "level > 5"),
    ("level > 3 OR level < 0", "level BETWEEN 5 AND 7"),
    ("what LIKE 'al%'", "what = 'alarm' OR what LIKE 'alas%'"),
]


@pytest.mark.parametrize(("general", "specific"), SAID_MORE)
def test_an_advertisement_covers_a_narrower_one(general: str, specific: str) -> None:
    assert says(general, specific)  # section 3.6, advertisement covers advertisement


@pytest.mark.parametrize(("general", "specific"), SAID_MORE)
def test_an_advertisement_does_not_cover_a_broader_one(general: str, specific: str) -> None:
    assert not says(specific, general)


def test_fewer_attributes_make_a_filter_broader_and_an_advertisement_narrower() -> None:
    less, more = "what = 'alarm'", "what = 'alarm' AND level > 3"  # sections 3.4 and 3.6
    assert takes(less, more)
    assert not says(less, more)
    assert says(more, less)


def test_advertisements_are_equal_if_each_covers_the_other() -> None:
    one = "what = 'alarm' OR what = 'login' OR level > 3"  # section 3.6
    other = "level > 3 AND what IN ('login', 'alarm')"
    assert says(one, other)
    assert says(other, one)


@pytest.mark.parametrize(
    ("advertised", "wanted", "relevant"),
    [
        ("what = 'alarm' OR level > 3", "what = 'alarm' AND level > 5", True),
        ("what = 'alarm' OR level > 3", "what = 'alarm'", True),
        ("what = 'alarm' OR level > 3", "what = 'login'", False),
        ("what = 'alarm' OR level > 3", "level < 3", False),
        ("what = 'alarm' OR level > 3", "level < 4", True),
        ("what = 'alarm' OR level > 3", "host = 'a'", False),
        ("what = 'alarm'", "what = 'alarm' AND level > 3", False),
        ("what LIKE 'al%'", "what = 'alarm'", True),
        ("what LIKE 'al%'", "what = 'login'", False),
        ("what IS NOT NULL", "what = 'anything'", True),
        ("level BETWEEN 1 AND 5", "level > 5", False),
        ("level BETWEEN 1 AND 5", "level >= 5", True),
    ],
)
def test_an_advertisement_is_relevant_to_a_subscription_that_it_can_satisfy(
    advertised: str, wanted: str, relevant: bool
) -> None:
    # Section 3.6, advertisement intersects subscription.
    assert intersects(advertisement(where(advertised)), parse(where(wanted))) is relevant


# -- 3.7: what an unsubscription cancels is what it covers


def test_unsubscribing_from_less_than_was_subscribed_has_no_effect() -> None:
    assert not takes("price > 200", "price > 100")  # section 3.7: [price > 100] stays


def test_unsubscribing_from_the_more_generic_cancels_the_more_specific_too() -> None:
    subscribed = ["change > 10", "change > 0"]  # section 3.7
    assert [one for one in subscribed if takes("change > 0", one)] == subscribed


def test_unsubscribing_from_the_more_specific_leaves_the_more_generic() -> None:
    subscribed = ["change > 10", "change > 0"]
    assert [one for one in subscribed if takes("change > 10", one)] == ["change > 10"]


@pytest.mark.parametrize(
    ("cancelled", "subscribed", "cancels"),
    [
        (("change > 0", "change > 0"), ("change > 10", "change > 5"), True),
        (("change > 0", "change > 0"), ("change > 0", "change > 0"), True),
        (("change > 0", "change > 7"), ("change > 10", "change > 5"), False),
        (("change > 5", "change > 0"), ("change > 0", "change > 5"), False),
        (("change > 0", "change > 0"), ("change > 1", "change > 1", "change > 1"), False),
        (("change > 0", "change > 0", "change > 0"), ("change > 1", "change > 1"), False),
    ],
)
def test_unsubscribing_from_a_pattern_goes_position_by_position(
    cancelled: tuple[str, ...], subscribed: tuple[str, ...], cancels: bool
) -> None:
    general, specific = (
        parse(" THEN ".join(where(step) for step in steps)) for steps in (cancelled, subscribed)
    )
    assert covers(general, specific) is cancels  # section 3.7


def test_a_simple_unsubscription_cancels_no_pattern() -> None:
    pattern = parse(f"{where('change > 1')} THEN {where('change > 1')}")  # section 3.7
    assert not covers(parse(where("change > 0")), pattern)


def test_unadvertising_less_than_was_advertised_has_no_effect() -> None:
    assert not says("price > 200", "price > 100")  # section 3.7


def test_unadvertising_the_more_generic_cancels_the_more_specific_too() -> None:
    advertised = ["change > 10", "change > 0"]
    assert [one for one in advertised if says("change > 0", one)] == advertised


# -- 3.8: timing


def test_the_stamp_of_publication_tells_the_order_whatever_the_delay() -> None:
    pattern = parse("SELECT * WHERE name = 'A' THEN SELECT * WHERE name = 'B'")  # section 3.8
    assert isinstance(pattern, Pattern)
    matcher = SequenceMatcher(pattern)
    late = Event("n", {"name": "A"}, time=10, entered=20)
    overtaken = Event("n", {"name": "B"}, time=5, entered=21)
    following = Event("n", {"name": "B"}, time=11, entered=22)
    told = [matcher.take(Scope(event)) for event in (late, overtaken, following)]
    assert told == [None, None, (late, following)]
