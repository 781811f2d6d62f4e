"""Which matcher does a name give, and when does auto turn to the index?"""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import settings

import driftline as dl
from driftline.cli.match import Matchers
from driftline.errors import InvalidValue
from driftline.matching.choice import FEW, MATCHERS, Auto, make_matcher
from driftline.matching.index import Index
from driftline.matching.poset import Poset
from driftline.matching.scan import Scan
from driftline.testing.checks import check_matcher


def filters(condition: str):
    return dl.parse(f"SELECT * WHERE {condition}").filters()


def test_each_name_gives_its_matcher_and_the_command_line_has_the_same() -> None:
    assert [type(make_matcher(name)) for name in MATCHERS] == [Auto, Index, Poset, Scan]
    assert tuple(Matchers) == MATCHERS


def test_a_matcher_of_ones_own_is_taken_as_it_is() -> None:
    mine = Scan()
    assert make_matcher(mine) is mine


@pytest.mark.parametrize("wanted", ["hashed", "", "Auto", None, 3, Scan])
def test_anything_else_is_refused_naming_what_there_is(wanted) -> None:
    with pytest.raises(InvalidValue, match="auto, index, poset, scan") as refused:
        dl.Engine(matcher=wanted)
    assert isinstance(refused.value, dl.DriftlineError)


@pytest.mark.parametrize("matcher", [*MATCHERS, "mine"])
def test_the_engine_runs_on_any(matcher) -> None:
    engine = dl.Engine(clock=dl.ManualClock(), matcher=Scan() if matcher == "mine" else matcher)
    handles = [
        engine.subscribe("SELECT * FROM quote WHERE price < :limit", {"limit": limit})
        for limit in range(50)
    ]
    assert engine.publish(dl.Event("quote", {"price": 24.5})) == 25
    handles[0].set(limit=30)
    handles[49].cancel()
    assert engine.publish(dl.Event("quote", {"price": 24.5})) == 25
    engine._check()


def test_auto_becomes_an_index_beyond_a_few_and_stays_one() -> None:
    auto = Auto()
    for id in range(FEW):
        auto.add(str(id), filters(f"x > {id}"))
        auto._check()
    auto.add("0", filters("x > :low"), {"low": 0})  # replaced, so still as many
    assert isinstance(auto._matcher, Scan)
    before = auto.match(dl.Event("e", {"x": 9.5}))
    auto.add("one more", filters("x > 100"))
    assert isinstance(auto._matcher, Index)
    assert auto.match(dl.Event("e", {"x": 9.5})) == before == [*map(str, range(1, 10)), "0"]
    auto.change("0", {"low": 50})
    assert auto.match(dl.Event("e", {"x": 9.5})) == [*map(str, range(1, 10))]
    for id in range(FEW):
        auto.discard(str(id))
    auto._check()
    assert isinstance(auto._matcher, Index)
    assert auto.match(dl.Event("e", {"x": 101})) == ["one more"]


def test_auto_answers_as_scan_does_across_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driftline.matching.choice.FEW", 3)
    check_matcher(Auto, settings(max_examples=30, stateful_step_count=40))


def test_a_few_subscriptions_load_no_compiled_code() -> None:
    program = f"""
import sys
import driftline as dl
engine = dl.Engine()
for limit in range({FEW}):
    engine.subscribe("SELECT * WHERE x < :limit", {{"limit": limit}})
engine.publish(dl.Event("e", {{"x": 1}}))
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
