"""Are bounds wide enough, errors bounded, and starts read back?"""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from driftline import Event, parse
from driftline.matching.scan import Scan
from driftline.moving.evolving.arrays import ATTRIBUTE, ELAPSED, evaluate, exactly, supported
from driftline.moving.evolving.matcher import Evolving
from driftline.moving.evolving.motion import DEGREE_MAX, motion_of
from driftline.moving.evolving.plan import plan_of
from driftline.moving.evolving.started import heard, told

SECOND = 1_000_000


@pytest.mark.parametrize("degree", range(1, DEGREE_MAX + 1))
def test_versions_miss_nothing_while_they_are_kept(degree: int) -> None:
    """Ten thousand motions: wherever the bound is within the window, the version takes it in."""
    from driftline.kernels.motion import widen

    random_numbers = np.random.default_rng(degree)
    rows, width = 2_500, degree + 1
    coefficients = np.concatenate(
        [random_numbers.normal(size=(rows, width)) for _ in range(2)], axis=1
    )
    starts = random_numbers.integers(0, 10 * SECOND, rows)
    sides, margin = np.array([1.0, -1.0]), np.zeros(2)
    bounds = np.zeros((rows, 2))
    since, until = 5 * SECOND, 7 * SECOND
    every = np.arange(rows)
    widen(coefficients, starts, every, degree, since, until, sides, margin, bounds)
    for at in np.linspace(since, until, 41):
        t = np.maximum(at - starts, 0) / 1e6
        low, high = (
            sum(coefficients[:, side * width + k] * t**k for k in range(width)) for side in (0, 1)
        )
        slack = 1e-9 * (1 + np.abs(low) + np.abs(high))
        assert (bounds[:, 0] <= low + slack).all()
        assert (bounds[:, 1] >= high - slack).all()
    if degree == 1:  # A line is widest at an end: no wider than it must be.
        ends = [np.maximum(at - starts, 0) / 1e6 for at in (since, until)]
        lows = [coefficients[:, 0] + coefficients[:, 1] * t for t in ends]
        assert np.allclose(bounds[:, 0], np.minimum(*lows))


EXPRESSIONS = (
    ":a * :b + x / :c",
    "(:a - :b) * (:a - :b) - x",
    "sqrt(abs(:a - :b)) + elapsed() * :c",
    "max(:a, :b, x) - min(:c, elapsed())",
    "-(:a * :a * :b) / 3 + 0.1",
)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_the_true_value_is_within_the_error(text: str) -> None:
    """The definition's value, computed with exact integers and floats in its own order."""
    from driftline.model.scope import Scope
    from driftline.model.truth import Unknown

    (condition,) = parse(f"SELECT * WHERE {text} < 12345").filters()[0].conditions
    node = condition.children()[0]
    assert supported(node)
    draw = random.Random(text)
    values = (0, 1, 3, -7, 0.1, 1e-3, 123456789, 987654321.123, 10**14, -1e12, 1 / 3)
    for _ in range(300):
        given = {name: draw.choice(values) for name in ("a", "b", "c", "x", "t")}
        params = {name: given[name] for name in "abc"}
        event, elapsed = Event("q", {"x": given["x"]}), abs(float(given["t"]))
        expected = node.evaluate(Scope(event, params, {}, 0, elapsed))
        known = {name: exactly([value]) for name, value in params.items()}
        known |= {ATTRIBUTE + "x": exactly(given["x"]), ELAPSED: exactly([elapsed])}
        value, error = (np.ravel(one)[0] for one in evaluate(node, known))
        if isinstance(expected, Unknown):
            assert not np.isfinite(error)
        elif np.isfinite(error):
            assert abs(Fraction(expected) - Fraction(float(value))) <= Fraction(float(error))


def test_integers_that_overflow_are_unknown_to_arrays_too() -> None:
    evolving = Evolving(Scan(), "lazy")
    filters = parse("SELECT * WHERE x < :a * :a + elapsed()").filters()
    for at in range(20):
        evolving.add(str(at), filters, {"a": 10**12 if at % 2 else 10.0**12})
    found = evolving.match(Event("q", {"x": 0}).stamped(0), {})
    # 10^24 is no integer of 64 bits; as a float it is a number like any other.
    assert found == [str(at) for at in range(0, 20, 2)]


def test_motions() -> None:
    def coefficients(text: str) -> list[str] | None:
        (bound,) = parse(f"SELECT * WHERE x < {text}").filters()[0].constraints
        found = motion_of(bound.operand)
        return None if found is None else [str(one) for one in found]

    assert coefficients("3") == ["3"]
    assert coefficients("elapsed()") == ["0", "1"]
    assert coefficients("(:a + elapsed()) * (elapsed() - :b)") == [
        "-(:a * :b)",
        ":a - :b",
        "1",
    ] or coefficients("(:a + elapsed()) * (elapsed() - :b)") == [":a * -:b", ":a + -:b", "1"]
    assert coefficients("-(elapsed() / :a)") == ["0", "-(1 / :a)"]
    assert coefficients("0 * env('v') + elapsed()") == ["0 * env('v')", "1"]
    assert coefficients("1 / elapsed()") is None
    assert coefficients("sqrt(elapsed())") is None
    assert coefficients("elapsed() * elapsed() * elapsed() * elapsed() * elapsed()") is None


@pytest.mark.parametrize(
    "where",
    [
        "x < elapsed() AND y > 3 - elapsed() * 2",
        "x < env('v')",
        "sqrt(x) < elapsed() + 1 OR x IN (1, 2)",
        "x < max(elapsed(), 3) AND elapsed() > 4",
    ],
)
def test_a_start_is_told_and_read_back(where: str) -> None:
    for one in parse(f"SELECT * FROM q WHERE {where}").filters():
        said = told(one, 5_500_000)
        assert "elapsed" not in str(said)
        expected = (one, 5_500_000) if "elapsed" in str(one) else (one, None)
        assert heard(said) == expected
        assert plan_of(said).whole == said


def test_two_starts_in_one_filter_are_left_as_they_are() -> None:
    (a,) = parse("SELECT * WHERE x < elapsed()").filters()
    (b,) = parse("SELECT * WHERE y < elapsed()").filters()
    from dataclasses import replace

    both = replace(told(a, 1), constraints=(*told(a, 1).constraints, *told(b, 2).constraints))
    assert heard(both) == (both, None)
    evolving = Evolving(Scan(), "lazy")
    evolving.add("1", (both,))
    assert evolving.match(Event("q", {"x": 1, "y": 1}).stamped(3 * SECOND), {}) == ["1"]
    assert evolving.match(Event("q", {"x": 1, "y": 1}).stamped(SECOND), {}) == []


def test_a_start_of_its_own_beside_one_written_out_counts() -> None:
    """A subscriber may write what brokers write to each other."""
    (one,) = parse(
        "SELECT * WHERE x < elapsed() AND y < max(now() - TIMESTAMP '1970-01-01T00:00:05Z', 0.0)"
    ).filters()
    assert heard(one) == (one, None)
    evolving = Evolving(Scan(), "lazy")
    evolving.add("1", (one,), start=SECOND)
    event = Event("q", {"x": 1.5, "y": -1})
    assert evolving.match(event.stamped(3 * SECOND), {}) == ["1"]
    assert evolving.match(event.stamped(2 * SECOND), {}) == []
    assert heard(told(one, SECOND)) == (told(one, SECOND), None)


@pytest.mark.parametrize("way", ["lazy", "cached", "versioned"])
@pytest.mark.parametrize(
    ("bound", "params"),
    [
        ("(elapsed() + :a) - :b", {"a": 1e15, "b": 1e15}),
        ("(elapsed() + :a) - :b", {"a": 10**15, "b": 10**15}),
        ("((elapsed() + :a) * :b - :a * :b) / :b", {"a": 10**12, "b": 7.0}),
        ("(:a - elapsed() + elapsed() * 2) - (:a - :b)", {"a": -(10**15), "b": 0.5}),
    ],
)
def test_what_cancels_out_is_rounded_as_the_definition_rounds_it(
    bound: str, params: dict, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large number that is added and taken away again leaves its rounding behind."""
    from driftline.model.scope import Scope
    from driftline.moving.evolving import matcher

    monkeypatch.setattr(matcher, "FEW", 0)
    (one,) = parse(f"SELECT * WHERE x < {bound}").filters()
    evolving = Evolving(Scan(), way)
    evolving.add("1", (one,), params)
    differs = 0
    for at in range(0, SECOND, 10_001):
        for x in (at / 1e6, at / 1e6 + 0.03, at / 1e6 - 0.03, at / 1e6 + 0.5):
            event = Event("q", {"x": x}).stamped(at)
            expected = one.matches(Scope(event, params, {}, at, at / 1e6))
            assert (evolving.match(event, {}) == ["1"]) is expected
            differs += expected is not (x < at / 1e6)
    assert differs  # Otherwise this shows nothing.


def test_what_is_very_large_is_left_to_the_definition() -> None:
    """A neighbour may send forty thousand terms; to take them apart would take half a minute."""
    from driftline.model.constraint import Constraint, Operator
    from driftline.model.expression import Arithmetic, Elapsed, Expression
    from driftline.model.filter import Filter

    terms: list[Expression] = [Elapsed()] * 1024
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=True)
        terms = [Arithmetic("+", left, right) for left, right in pairs]
    plan = plan_of(Filter(None, (Constraint("x", Operator.LT, terms[0]),)))
    assert plan.rest
    assert not plan.bounds
    assert not plan.comparisons
    evolving = Evolving(Scan(), "lazy")
    evolving.add("1", (plan.whole,))
    assert evolving.match(Event("q", {"x": 1023}).stamped(SECOND), {}) == ["1"]
    assert evolving.match(Event("q", {"x": 1024}).stamped(SECOND), {}) == []
