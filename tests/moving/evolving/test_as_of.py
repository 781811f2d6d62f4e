"""Do the paper's engines tell what their interval semantics says? [EVOLVE IV]

The oracle is written from the definition: one subscription at a time, by going through its history.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache

import pytest

from driftline import Event, parse
from driftline.matching.choice import make_matcher
from driftline.model.scope import Scope
from driftline.model.subscription import Subscription
from driftline.moving.evolving.as_of import AsOf

SECOND = 1_000_000
# What moves with the environment alone has a test of its own.
TEXTS = (
    "x >= :a - 1 + elapsed() AND x <= :a + 1 + elapsed()",
    "x < (:a + elapsed()) * env('v')",
    "x < :a OR x > env('v') + 0 * elapsed()",
    "minute(now()) >= 0 AND x > :a",
    "x > :a",
)


@cache
def read(where: str) -> Subscription:
    found = parse(f"SELECT * WHERE {where}")
    assert isinstance(found, Subscription)
    return found


@dataclass
class Oracle:
    """One subscription and all that has happened to the environment since it began."""

    kind: str
    where: str
    params: dict
    start: int
    history: list[tuple[int, dict]] = field(default_factory=list)
    version: tuple[int, dict] | None = None

    def env_at(self, time: int) -> dict:
        """As it was when the time came; what changes at that very moment does so after it."""
        return [env for at, env in self.history if at < time or at == self.start][-1]

    def judged_at(self, now: int) -> tuple[int, dict]:
        """When was the version made that is at hand now, and in which environment?"""
        if self.kind == "cached":
            if self.version is None or now >= self.version[0] + SECOND:
                self.version = now, self.history[-1][1]
            return self.version
        made = self.start + max(0, now - self.start) // SECOND * SECOND
        return made, self.env_at(made)

    def tells(self, event: Event, now: int) -> bool:
        made, env = self.judged_at(now)
        elapsed = max(0.0, (made - self.start) / 1e6)
        return read(self.where).truth(Scope(event, self.params, env, made, elapsed)) is True


@pytest.mark.parametrize("kind", ["versioned", "cached"])
@pytest.mark.parametrize("seed", range(30))
def test_what_is_told_is_as_of_the_version(kind: str, seed: int) -> None:
    draw = random.Random(seed)
    as_of = AsOf(make_matcher("auto"), kind, SECOND)
    oracles: dict[str, Oracle] = {}
    now, env = 0, {"v": 1}
    for step in range(150):
        now += draw.choice((1, 100_000, 300_000, 500_000, SECOND))
        chance = draw.random()
        if chance < 0.2:
            id = f"s{step}"
            one = Oracle(kind, draw.choice(TEXTS), {"a": draw.randrange(4)}, now, [(now, env)])
            oracles[id] = one
            as_of.add(id, read(one.where).filters(), one.params, now)
        elif chance < 0.35:
            as_of.advance(now, env)
            env = {"v": draw.choice((0, 1, 2, 0.5))}
            for one in oracles.values():
                one.history.append((now, env))
        elif chance < 0.4 and oracles:
            del oracles[id := draw.choice(list(oracles))]
            as_of.discard(id)
        else:
            event = Event("q", {"x": draw.choice((0, 1, 2, 3, 4, 2.5))}).stamped(now)
            expected = [id for id, one in oracles.items() if one.tells(event, now)]
            assert as_of.match(event, env) == expected
            if kind == "versioned":
                assert as_of.any(event, env) is bool(expected)
        as_of._check()


def test_what_moves_with_the_environment_alone_is_made_anew_when_it_changes() -> None:
    """But not sooner than an interval after the last time."""
    as_of = AsOf(make_matcher("scan"), "versioned", SECOND)
    as_of.add("s", parse("SELECT * WHERE x < env('v')").filters(), {}, 0)

    def bound(now: int, env: dict) -> int:
        found = [x for x in range(10) if as_of.match(Event("q", {"x": x}).stamped(now), env)]
        return len(found)

    assert bound(0, {"v": 3}) == 3
    assert bound(SECOND // 2, {"v": 5}) == 3
    assert bound(SECOND, {"v": 5}) == 5
    assert bound(20 * SECOND, {"v": 5}) == 5
    assert bound(20 * SECOND + 1, {"v": 6}) == 6
    assert bound(21 * SECOND, {"v": 7}) == 6
    assert bound(22 * SECOND, {}) == 0


def test_other_parameters_count_from_the_next_event() -> None:
    as_of = AsOf(make_matcher("scan"), "versioned", SECOND)
    as_of.add("s", parse("SELECT * WHERE x < :a + elapsed()").filters(), {"a": 1}, 0)
    event = Event("q", {"x": 2}).stamped(1_500_000)
    assert as_of.match(event, {}) == []
    as_of.change("s", {"a": 2}, 0)
    assert as_of.match(event, {}) == ["s"]


@pytest.mark.parametrize("kind", ["versioned", "cached"])
def test_a_start_that_is_written_out_is_its_own(kind: str) -> None:
    """It does not count for the other alternatives, and a change leaves it."""
    five = "max(now() - TIMESTAMP '1970-01-01T00:00:05Z', 0.0)"
    as_of = AsOf(make_matcher("scan"), kind, SECOND)
    as_of.add("both", parse(f"SELECT * WHERE x < elapsed() OR y < {five}").filters(), {}, 0)
    as_of.add("one", parse(f"SELECT * WHERE y < :a + {five}").filters(), {"a": 1}, 0)
    as_of.change("one", {"a": 0}, 0)
    event = Event("q", {"x": 4, "y": 2})
    assert as_of.match(event.stamped(6 * SECOND), {}) == ["both"]
    assert as_of.match(Event("q", {"x": 9, "y": 2}).stamped(7 * SECOND), {}) == []
    assert as_of.match(event.stamped(8 * SECOND), {}) == ["both", "one"]


def test_what_is_not_there_cannot_be_moved() -> None:
    from driftline.moving.evolving.matcher import Evolving

    for matcher in (Evolving(make_matcher("scan")), AsOf(make_matcher("scan"), "cached", SECOND)):
        with pytest.raises(KeyError):
            matcher.change("nobody", {})
