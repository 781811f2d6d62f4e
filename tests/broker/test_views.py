"""What do views of local parties take from a snapshot, and from what came before and after it?"""

from __future__ import annotations

from itertools import count

import pytest

from driftline import Event, parse
from driftline.broker.broker import Broker
from driftline.broker.views import Views
from driftline.model.standing import Standing
from driftline.stateful.fold import Message
from driftline.stateful.home import LIFE, SEQUENCE
from driftline.stateful.news import News
from driftline.stateful.range_min.fold import Extreme

LEAST = Standing.of(parse("SELECT MIN(y) FROM t"))


class Followed:
    """One view, asked for; what it is told."""

    def __init__(self) -> None:
        self.views = Views(count(1).__next__, marked=True)
        self.views.begin("v", LEAST)
        self.question = self.views.question("v")

    def says(self, life: int, sequence: int, least: int) -> list[int]:
        event = Event("$min:t.y/", {LIFE: life, SEQUENCE: sequence, "NEW_MIN": least})
        return values(self.views.take("v", Message(event, {})))

    def snapshot(self, life: int, sequence: int, least: int) -> list[int]:
        fold = Extreme("MIN(y)", least)
        number = self.views.question("v").number
        return values(self.views.heard("v", number, {LIFE: life, SEQUENCE: sequence}, fold))


def values(news: list[News] | tuple[News, ...]) -> list[int]:
    return [one.values["MIN(y)"] for one in news if one.values]  # type: ignore[misc]


@pytest.fixture
def view() -> Followed:
    return Followed()


def test_what_a_snapshot_has_in_it_is_dropped_and_the_rest_applied(view) -> None:
    assert view.says(1, 4, 9) == view.says(1, 5, 8) == view.says(1, 6, 7) == []
    assert view.snapshot(1, 5, 8) == [8, 7]
    assert view.says(1, 7, 6) == [6]


def test_several_messages_of_one_change_count_each(view) -> None:
    view.snapshot(1, 5, 8)
    assert view.says(1, 6, 7) == [7]
    assert view.says(1, 6, 6) == [6]


def test_another_life_of_the_home_is_joined_anew_with_a_gap(view) -> None:
    view.snapshot(1, 5, 8)
    assert view.says(2, 1, 3) == []
    assert view.views.unjoined() == ["v"]
    assert view.says(2, 2, 2) == []
    news = view.views.heard(
        "v", view.views.question("v").number, {LIFE: 2, SEQUENCE: 1}, Extreme("MIN(y)", 3)
    )
    assert [one.kind.value for one in news] == ["gap", "snapshot", "change"]
    assert view.says(1, 99, 1) == []


def test_an_answer_to_what_was_asked_before_a_move_is_not_taken(view) -> None:
    before = view.question.number
    view.views.move("v", LEAST)
    assert view.views.heard("v", before, {LIFE: 1, SEQUENCE: 1}, Extreme("MIN(y)", 3)) == []


def test_no_question_of_an_earlier_life_has_the_number_of_one_of_this() -> None:
    numbers = []
    for life in (1, 2):
        views = Broker("b", life).edge.views
        views.begin("v", LEAST)
        numbers.append(views.question("v").number)
    assert numbers[0] < numbers[1]
