"""Do all ways find what the definition finds, whatever moves, comes and goes?"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from driftline import Event, parse
from driftline.errors import ParameterError
from driftline.matching.choice import make_matcher
from driftline.matching.columns import Columns
from driftline.model.scope import Scope
from driftline.moving.evolving import adaptive, family, matcher, versioned
from driftline.moving.evolving.as_of import AsOf
from driftline.moving.evolving.matcher import Evolving
from driftline.moving.evolving.started import told
from driftline.moving.evolving.ways import WAYS

SECOND = 1_000_000

# Small integers meet their bounds exactly, where rounding would decide.
TEXTS = (
    "x >= :a - 1 + :b * elapsed() AND x <= :a + 1 + :b * elapsed()",
    "x >= (-3 + elapsed()) * env('v') AND x <= (3 + elapsed()) * env('v') AND y < :a",
    "x < :a * elapsed() * elapsed() - :b * elapsed() AND kind = 'k'",
    "x = :a + elapsed()",
    "x <> :a * elapsed()",
    "x - :a < elapsed() / :b",
    "sqrt(abs((x - :a) * (x - :a))) <= :b * elapsed() + env('v')",
    "x > elapsed() OR y < :a OR y > env('v') * :b",
    "x > :a AND y > env('v')",
    "x > :a * env('v') AND hour(now()) >= 0",
    "x < CASE WHEN minute(now()) > 0 THEN :a ELSE elapsed() END",
    "NOT (x BETWEEN :a - elapsed() AND :b + elapsed())",
    "x < -(:a * elapsed()) + max(:b, elapsed(), 2)",
    "x + y < :a + elapsed() * 0.1 AND :b > 0",
    "x < 0 * (:a / :b) + elapsed()",
    "kind = env('mode') AND x < :a + 0 * elapsed()",
    "x IN (:a, env('v')) AND y >= 0",
    "x < elapsed() * 3 AND y < elapsed() * elapsed() * elapsed() * elapsed() * elapsed() * :a",
    "x < elapsed() * 1e300 * :a",
    "x < :a + env('v')",
    "x < :a * :b * :b + elapsed() AND y >= 0",
)
VALUES: tuple[object, ...] = (0, 1, 2, 3, -1, 0.5, 2.0, 10**12, 1e300, 2**53 + 1, -(2**62), 1e-200)


@pytest.fixture(params=[0, 16])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """With kernels from the first row, and with the definition for a few."""
    monkeypatch.setattr(matcher, "FEW", request.param)
    monkeypatch.setattr(adaptive, "_LOOKS", 3)
    monkeypatch.setattr(versioned, "_PATIENCE", 2)
    return int(request.param)


class World:
    """What stands, by the definition."""

    def __init__(self, draw: random.Random, way: str) -> None:
        self.draw = draw
        self.held: dict[str, tuple] = {}
        self.env: dict[str, object] = {"v": 1, "mode": "k"}
        self.at = draw.randrange(3) * SECOND
        self.evolving = Evolving(make_matcher(draw.choice(("scan", "index"))), way, SECOND)

    def params(self) -> dict[str, object]:
        some = VALUES[:7] if self.draw.random() < 0.8 else VALUES
        return {name: self.draw.choice(some) for name in "ab"}

    def step(self) -> None:
        draw = self.draw
        chance = draw.random()
        if chance < 0.25 or not self.held:
            self.add()
        elif chance < 0.35:
            id = draw.choice(list(self.held))
            filters, params, start = self.held[id]
            if params:
                moved = {**params, **self.params()}
                self.held[id] = filters, moved, start
                self.evolving.change(id, moved, start)
        elif chance < 0.42:
            id = draw.choice(list(self.held))
            del self.held[id]
            self.evolving.discard(id)
        elif chance < 0.5:
            name = draw.choice(("v", "mode"))
            values = {"v": (0, 1, 2, 0.5, None, "text", True), "mode": ("k", "j", None)}
            self.env[name] = draw.choice(values[name])
        else:
            self.event()

    def add(self) -> None:
        draw = self.draw
        id = f"s{draw.randrange(40)}"
        source = draw.choice(("", "", "FROM q "))
        filters = parse(f"SELECT * {source}WHERE {draw.choice(TEXTS)}").filters()
        params, start = self.params(), draw.randrange(4) * SECOND // 2
        if draw.random() < 0.3:
            # As it comes from another broker: everything is bound.
            filters = tuple(told(one.bound(params), start) for one in filters)
            params, start = {}, 0
        self.held.pop(id, None)
        self.held[id] = filters, params, start
        self.evolving.add(id, filters, params, start)

    def event(self) -> None:
        draw = self.draw
        # Mostly onwards, sometimes from before.
        self.at = max(0, self.at + draw.choice((0, 1, 250_000, SECOND // 2, SECOND, -SECOND // 2)))
        values: dict[str, object] = {
            "x": draw.choice((0, 1, 2, 3, 4, 0.5, -1, 1e300, 2**53 + 1, float("nan"))),
            "y": draw.choice((0, 1, 2, 0.25, "text")),
            "kind": draw.choice(("k", "j")),
        }
        if draw.random() < 0.1:
            del values[draw.choice(list(values))]
        event = Event(draw.choice(("q", "r")), values).stamped(self.at)
        env = {name: value for name, value in self.env.items() if value is not None}
        expected = [id for id, one in self.held.items() if self.holds(one, event, env)]
        assert self.evolving.match(event, env) == expected, event
        assert self.evolving.any(event, env) is bool(expected)
        later = self.at + draw.randrange(SECOND)
        expected = [id for id, one in self.held.items() if self.holds(one, event, env, later)]
        assert self.evolving.match(event, env, later) == expected

    @staticmethod
    def holds(one: tuple, event: Event, env: dict, at: int | None = None) -> bool:
        filters, params, start = one
        at = event.stamp if at is None else at
        scope = Scope(event, params, env, at, max(0.0, (at - start) / 1e6))
        return any(part.matches(scope) for part in filters)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(12))
def test_every_way_finds_what_the_definition_finds(way: str, seed: int, few: int) -> None:
    world = World(random.Random(seed), way)
    for at in range(250):
        world.step()
        if at % 10 == 0:
            world.evolving._check()
    world.evolving._check()
    for id in list(world.held):
        world.evolving.discard(id)
    world.evolving._check()
    assert not world.evolving.ways()


def test_a_parameter_without_a_value_is_refused_and_nothing_changes() -> None:
    evolving = Evolving(make_matcher("scan"), "lazy", SECOND)
    filters = parse("SELECT * WHERE x < elapsed() OR x < :a + elapsed() AND y > :b").filters()
    event = Event("q", {"x": 0.5, "y": 1}).stamped(0)
    evolving.add("1", filters, {"a": 1, "b": 0, "unused": 3})
    for bounds in ({}, {"a": 1}, {"a": 1, "b": None}, {"a": 1, "b": float("nan")}):
        for change in (
            lambda bounds=bounds: evolving.add("1", filters, bounds),
            lambda bounds=bounds: evolving.add("2", filters, bounds),
            lambda bounds=bounds: evolving.change("1", bounds),
        ):
            with pytest.raises(ParameterError):
                change()
            evolving._check()
            assert evolving.match(event, {}) == ["1"]


# What the definition need not be asked


def many(where: str, way: str = "lazy") -> Evolving:
    evolving = Evolving(make_matcher("scan"), way, SECOND)
    filters = parse(f"SELECT * WHERE {where}").filters()
    for at in range(100):
        evolving.add(str(at), filters, {"a": at})
    return evolving


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that the definition is asked for."""
    rows: list[int] = []
    holds = family.Family.holds

    def counted(self: family.Family, row: int, moment: family.Moment) -> bool:
        rows.append(row)
        return holds(self, row, moment)

    monkeypatch.setattr(family.Family, "holds", counted)
    return rows


@pytest.mark.parametrize(
    ("where", "values", "found"),
    [
        ("hour(now()) >= 0 AND x > -:a * elapsed() - 1", {"x": 0.5}, 100),
        ("hour(now()) >= 0", {}, 100),
        ("hour(now()) >= 1 AND x IN (:a, env('v'))", {"x": 1}, 0),
        ("env('on')", {}, 100),
        ("x - :a < elapsed()", {}, 0),
        ("x - :a < elapsed()", {"x": "text"}, 0),
        ("x * x < :a + elapsed()", {"x": True}, 0),
    ],
)
def test_what_is_the_same_for_all_rows_is_asked_once(
    where: str, values: dict, found: int, asked: list[int]
) -> None:
    event = Event("q", values).stamped(SECOND)
    assert len(many(where).match(event, {"on": True, "v": 1})) == found
    assert not asked


def test_a_stamp_from_the_far_future_does_not_spoil_versions_for_long() -> None:
    evolving = many("x < :a + elapsed()", "versioned")
    (way,) = evolving._ways.values()
    assert isinstance(way, versioned.Versioned)
    event = Event("q", {"x": 50.5})
    for at in (SECOND, 10**9 * SECOND, *range(SECOND, SECOND + 2 * versioned._PATIENCE)):
        evolving.match(event.stamped(at), {})
    assert way._since <= SECOND < way._until
    assert len(evolving.match(event.stamped(SECOND + 200), {})) == 50


@pytest.mark.parametrize("as_of", [False, True])
def test_a_batch_finds_what_its_events_find_one_by_one(as_of: bool) -> None:
    make = AsOf if as_of else Evolving
    found_by = make(make_matcher("index"), "cached", SECOND)
    for number in range(40):
        moving = f"SELECT * FROM seen WHERE x < {number} + elapsed() * env('v')"
        still = f"SELECT * FROM other WHERE x > {number}"
        found_by.add(f"m{number}", parse(moving).filters())
        found_by.add(f"s{number}", parse(still).filters())
    for type, evolves in (("seen", True), ("other", False)):
        events = [Event(type, {"x": x}).stamped(7 * SECOND) for x in range(60)]
        found = found_by.match_batch(Columns.of_events(events), {"v": 2})
        each = [found_by.match(event, {"v": 2}) for event in events]
        assert [sorted(found.ids(at)) for at in range(60)] == [sorted(ids) for ids in each]
        assert any(id.startswith("m") for ids in each for id in ids) is evolves
