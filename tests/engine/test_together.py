"""Are many rows at once told as one after the other?

Random programs do the same to two engines, of which one publishes the rows of a batch one by one.
"""

from __future__ import annotations

import pytest

from driftline import Engine, Event, ManualClock, together
from tests.engine.worlds import RANGES, Steps, World

STEPS = 120
LOW = "SELECT MIN(y) FROM t WHERE x < :low"


def by_itself(world: World) -> World:
    """Publishes one row after the other."""
    world.engine._together.can_take = lambda type: False  # type: ignore[method-assign]
    return world


def counting(world: World) -> list[int]:
    """How many are told at once, by each batch for which there is no other way."""
    found: list[int] = []
    take = world.engine._together.take

    def counted(type, rows, now):
        told = take(type, rows, now)
        if told is not None:
            found.append(told)
        return told

    world.engine._together.take = counted  # type: ignore[method-assign]
    return found


def changes(world: World) -> int:
    """How many changes of rows there were."""
    return world.engine._broker.tables.home.sequence


def run(seed: int, views: list[str] | None) -> int:
    steps = Steps(seed, views)
    world, other = World.new(), by_itself(World.new())
    told = counting(world)
    for at in range(STEPS):
        step = steps.next(world)
        assert world.do(step) == other.do(step), f"seed {seed}, step {at}: {step}"
        # Written out, as 1 is 1.0.
        assert repr(world.told()) == repr(other.told()), f"seed {seed}, step {at}: {step}"
        assert repr(world.engine.rows("t")) == repr(other.engine.rows("t"))
        assert changes(world) == changes(other)
        if at % 10 == 0:
            world.engine._check()
    world.engine._check()
    return sum(told)


@pytest.mark.parametrize("together_at_first", [1, 256])
def test_views_and_crowds_are_told_the_same(together_at_first: int, monkeypatch) -> None:
    monkeypatch.setattr(together, "TOGETHER", together_at_first)
    monkeypatch.setattr(together, "TOLD_TOGETHER", 8 * together_at_first)
    assert sum(run(seed, RANGES) for seed in range(8)) > 2_000


def test_so_is_everybody_else() -> None:
    assert sum(run(seed, None) for seed in range(10)) > 0


def engine_of(*views: tuple[str, dict]) -> tuple[Engine, list]:
    engine = Engine(clock=ManualClock())
    engine.table("t", key="k")
    return engine, [engine.subscribe(*view) for view in views]


def columns(*rows: tuple) -> dict[str, list]:
    return dict(zip("kxy", map(list, zip(*rows, strict=True)), strict=True))


def test_each_is_told_of_the_row_that_changed_it() -> None:
    engine, (low, high) = engine_of((LOW, {"low": 5}), (LOW, {"low": 50}))
    low.pending(), high.pending()
    assert engine.publish_many("t", columns((1, 9, 4.0), (2, 2, 7.0), (1, 1, 3.0))) == 4
    first, second = low.pending()
    assert (first.values, first.old) == ({"MIN(y)": 7.0}, {"MIN(y)": None})
    assert first.event.attributes == {"k": 2, "x": 2, "y": 7.0}
    assert (second.values, second.old) == ({"MIN(y)": 3.0}, {"MIN(y)": 7.0})
    assert second.event == engine.rows("t")[0]
    assert [one.values["MIN(y)"] for one in high.pending()] == [4.0, 3.0]


def test_a_row_that_is_refused_leaves_all_as_it_was() -> None:
    engine, (view,) = engine_of((LOW, {"low": 5}))
    engine.publish_many("t", columns((1, 1, 4.0)))
    view.pending()
    with pytest.raises(Exception, match="finite"):
        engine.publish_many("t", columns((1, 1, 3.0), (2, 1, float("inf"))))
    assert not view.pending()
    assert [row.attributes["y"] for row in engine.rows("t")] == [4.0]
    engine._check()


@pytest.mark.parametrize(
    "other",
    [
        "SELECT * FROM t",
        "SELECT *",
        "SELECT COUNT(*) FROM t",
        "SELECT * FROM t THEN SELECT * FROM t",
    ],
)
def test_whoever_else_there_is_sees_one_event_after_the_other(other: str) -> None:
    engine, (view, _) = engine_of((LOW, {"low": 5}), (other, {}))
    assert not engine._together.can_take("t")
    engine.publish_many("t", columns((1, 1, 4.0), (1, 1, 3.0)))
    assert [one.values["MIN(y)"] for one in view.pending()] == [None, 4.0, 3.0]


def test_who_is_told_through_a_function_is_told_between_two_rows() -> None:
    engine, _ = engine_of()
    seen = []

    def look(handle, told):
        seen.append((told.values["MIN(y)"], len(engine.rows("t"))))

    engine.redirect("p", look)
    engine.subscribe(LOW, {"low": 5}, party="p")
    engine.publish_many("t", columns((1, 1, 4.0), (2, 1, 3.0)))
    assert seen == [(None, 0), (4.0, 1), (3.0, 2)]


def test_messages_that_nobody_wants_are_made_no_longer() -> None:
    engine, (view,) = engine_of((LOW, {"low": 5}))
    view.cancel()
    assert engine._broker.tables.home.types("t")
    for _ in range(1_000):
        engine.publish_many("t", columns((1, 1, 4.0)))
    assert not engine._broker.tables.home.types("t")


def test_an_integer_that_is_no_float_is_told_exactly() -> None:
    engine, (view,) = engine_of((LOW, {"low": 5}))
    engine.publish_many("t", columns((1, 1, 2**53 + 1), (2, 1, 2**53)))
    engine.publish(Event("t", {"k": 2, "x": 9, "y": 0}))
    assert [one.values["MIN(y)"] for one in view.pending()] == [None, 2**53 + 1, 2**53, 2**53 + 1]


def test_it_counts_as_long_as_it_is_there() -> None:
    """Structures do not know of it."""
    engine, (view,) = engine_of((LOW, {"low": 5}))
    engine.publish(Event("t", {"k": 1, "x": 1, "y": -(2**53) - 1}))
    view.pending()
    assert engine.publish_many("t", columns((2, 1, 0.5), (3, 1, -1.0))) == 0
    assert engine.publish_many("t", columns((1, 1, 7), (2, 1, 8))) == 1
    assert [one.values["MIN(y)"] for one in view.pending()] == [-1.0]
