"""Is the index exact in a crowd, with and without the compiler, and does it give memory back?"""

from __future__ import annotations

import os
import random
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from driftline import Event, parse
from driftline.errors import InvalidValue, ParameterError
from driftline.kernels import layout
from driftline.matching.columns import Columns
from driftline.matching.index import Index
from driftline.matching.scan import Scan
from tests.matching.crowd import Crowd


def filters(condition: str):
    return parse(f"SELECT * FROM q WHERE {condition}").filters()


@pytest.mark.parametrize("drift", [0, 2000])
def test_a_crowd_is_found_as_scan_finds_it(drift: int) -> None:
    Crowd(seed=7, drift=drift).run(6_000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 14])
def test_a_large_crowd_is_found_as_scan_finds_it(seed: int) -> None:
    Crowd(seed, drift=2000 * (seed % 2)).run(30_000)


def without_compiler(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_crowd_is_found_without_the_compiler_too() -> None:
    without_compiler("-m", "tests.matching.crowd", "3", "2500")


def test_the_lowest_integer_is_no_plain_number() -> None:
    """It has no absolute value, and two integers near it are one float."""
    index = Index()
    lowest = np.array([-(2**63), -(2**63) + 1])
    index.add_batch(["lowest", "next"], filters("x = :v"), {"v": lowest})
    assert index.match(Event("q", {"x": -(2**63)})) == ["lowest"]
    assert index.match(Event("q", {"x": -(2**63) + 1})) == ["next"]


def test_any_program_finds_what_scan_finds_without_the_compiler_too() -> None:
    without_compiler(
        "-c",
        "from hypothesis import settings\n"
        "from driftline.matching.index import Index\n"
        "from driftline.testing.checks import check_matcher\n"
        "check_matcher(Index, settings(max_examples=30, stateful_step_count=40, deadline=None))",
    )


def test_small_parts_of_divided_families_are_exact_without_the_compiler_too() -> None:
    without_compiler(
        "-c",
        "from driftline.kernels import tiles\n"
        "tiles.DIVIDED_AT = tiles._SAMPLED = 16\n"
        "from tests.matching.crowd import Crowd\n"
        "from tests.matching.test_index import divided\n"
        "crowd = Crowd(seed=5, drift=500)\n"
        "ask, seen = crowd._ask, []\n"
        "crowd._ask = lambda shift: (seen.append(divided(crowd.index)), ask(shift))\n"
        "crowd.run(5000)\n"
        "assert max(seen) > 1",
    )


def divided(index: Index) -> int:
    """How many families are divided into parts."""
    m = index._memory.words.tolist()
    count = 0
    for shard in range(layout.SHARDS_AT, layout.SHARDS_AT + 2 * layout.SHARDS, 2):
        for slot in range(m[shard], m[shard] + 2 * (m[shard + 1] >> 32), 2):
            record = m[slot + 1]
            if record and m[record + layout.TAG] == layout.IS_FAMILY:
                count += m[record + layout.F_BY] > 0
    return count


def test_a_large_family_is_divided_and_stays_exact() -> None:
    """Little gaps in a square, found by rectangles, while they are added, moved and discarded."""
    draw = np.random.default_rng(5)
    index = Index()
    wanted = filters("a < :x AND b > :x AND c < :y AND d > :y")
    points = draw.integers(0, 1000, (12_000, 2))
    ids = [f"s{at}" for at in range(len(points))]
    alive = np.ones(len(points), bool)
    index.add_batch(ids, wanted, {"x": points[:, 0], "y": points[:, 1]})
    assert divided(index) > 0
    for _ in range(3):
        index._check()
        corners = draw.integers(0, 900, (50, 2))
        batch = Columns.of_arrays(
            "q",
            {
                "a": corners[:, 0],
                "b": corners[:, 0] + 100,
                "c": corners[:, 1],
                "d": corners[:, 1] + 100,
            },
        )
        found = index.match_batch(batch)
        for at, (left, low) in enumerate(corners.tolist()):
            x, y = points.T
            inside = alive & (left < x) & (x < left + 100) & (low < y) & (y < low + 100)
            want = [f"s{number}" for number in np.nonzero(inside)[0]]
            assert sorted(found.ids(at)) == sorted(want)
            assert index.match(batch.event(at)) == want
        moved = draw.choice(np.nonzero(alive)[0], 3_000, replace=False)
        points[moved] = draw.integers(0, 1000, (len(moved), 2))
        index.change_batch(
            [ids[at] for at in moved], {"x": points[moved, 0], "y": points[moved, 1]}
        )
        gone = draw.choice(np.nonzero(alive)[0], 2_000, replace=False)
        alive[gone] = False
        index.discard_batch([ids[at] for at in gone])
    index.discard_batch([ids[at] for at in np.nonzero(alive)[0]])
    index._check()


def test_texts_with_one_hash_are_told_apart() -> None:
    """Every text has the same hash here, so that only the guards of clusters can tell."""
    without_compiler(
        "-c",
        "from driftline.kernels import keys, match, programs\n"
        "for module in (keys, match, programs):\n"
        "    module.text_hash = lambda texts, start, length: 5\n"
        "from driftline import Event, parse\n"
        "from driftline.matching.index import Index\n"
        "index = Index()\n"
        "for text in ('a long text', 'another text'):\n"
        "    index.add(text, parse(f\"SELECT * FROM q WHERE s = '{text}'\").filters())\n"
        "    index.add(text * 2, parse(f\"SELECT * FROM q WHERE s = '{text * 2}'\").filters())\n"
        "index._check()\n"
        "assert index.match(Event('q', {'s': 'another text'})) == ['another text']\n"
        "index.discard('another text')\n"
        "assert index.match(Event('q', {'s': 'another text'})) == []\n"
        "assert index.match(Event('q', {'s': 'a long text'})) == ['a long text']\n",
    )


@pytest.mark.parametrize("condition", ["x BETWEEN :a AND :b", "s = :s AND x > :a OR y < :b"])
def test_a_batch_of_changes_is_a_loop_of_changes(condition: str) -> None:
    draw = np.random.default_rng(5)
    names = [name for name in "abs" if f":{name}" in condition]
    ids = [f"id{at}" for at in range(400)]

    def column(name: str):
        if name == "s":
            return pa.array([f"s{at}" for at in draw.integers(0, 9, 400)])
        return draw.integers(0, 1000, 400)

    batch, loop = Index(), Index()
    said = filters(condition)
    first, second = ({name: column(name) for name in names} for _ in range(2))

    def row(bounds, at: int):
        return {
            name: values[at].as_py() if name == "s" else int(values[at])
            for name, values in bounds.items()
        }

    batch.add_batch(ids, said, first)
    batch.change_batch(ids[::2], {name: values[::2] for name, values in second.items()})
    batch.discard_batch([*ids[::5], "nobody"])
    for at, id in enumerate(ids):
        loop.add(id, said, row(first, at))
    for at in range(0, 400, 2):
        loop.change(ids[at], row(second, at))
    for id in ids[::5]:
        loop.discard(id)
    batch._check()
    assert len(batch) == len(loop)
    for _ in range(50):
        event = Event("q", {"x": int(draw.integers(0, 1000)), "y": 5, "s": "s3"})
        assert batch.match(event) == loop.match(event)


def test_a_batch_with_values_that_letters_do_not_hold_takes_them_one_by_one() -> None:
    index, scan = Index(), Scan()
    said = filters("s = :s AND x < :a")
    bounds = {"s": ["short", "longer than seven", "é" * 4], "a": [1, 2**60, 7]}
    index.add_batch(["1", "2", "3"], said, bounds)
    for at, id in enumerate(("1", "2", "3")):
        scan.add(id, said, {name: values[at] for name, values in bounds.items()})
    for text in bounds["s"]:
        for x in (0, 6, 2**60, 2**60 - 1):
            event = Event("q", {"s": text, "x": x})
            assert index.match(event) == scan.match(event)


def test_a_batch_with_columns_of_different_lengths_is_refused() -> None:
    index = Index()
    with pytest.raises(InvalidValue, match="wanted 2 values, came 3"):
        index.add_batch(["1", "2"], filters("x < :a"), {"a": np.arange(3)})
    assert len(index) == 0


def test_a_refused_batch_changes_nothing() -> None:
    index = Index()
    index.add("1", filters("x < :a"), {"a": 5})
    with pytest.raises(ParameterError):
        index.change_batch(["1"], {"b": np.array([7])})
    assert index.match(Event("q", {"x": 4})) == ["1"]


def test_memory_does_not_grow_with_churn() -> None:
    index = Index()
    said = filters("s = :s AND x BETWEEN :a AND :b AND y < :c")
    draw = np.random.default_rng(3)
    ids = [f"id{at}" for at in range(20_000)]

    def bounds() -> dict[str, object]:
        low = draw.integers(0, 1_000_000, len(ids))
        texts = pa.array([f"s{at}" for at in draw.integers(0, 300, len(ids))])
        return {"s": texts, "a": low, "b": low + 5_000, "c": draw.integers(0, 1000, len(ids))}

    # One that stays, so that the memory is not simply given back at the end of a round.
    index.add("stays", filters("x = 1"))
    sizes = []
    for _ in range(5):
        index.add_batch(ids, said, bounds())
        index.change_batch(ids, bounds())
        sizes.append(index.nbytes)
        index.discard_batch(ids)
    index._check()
    assert sizes[-1] <= 1.05 * sizes[0]
    used = int(index._memory.words[layout.TAIL] - index._memory.words[layout.FREED])
    empty = Index()
    empty.add("stays", filters("x = 1"))
    # What an empty index has, and the tables of numbers and axes, which do not shrink.
    assert used < 3 * int(empty._memory.words[layout.TAIL]) + layout.ENTRY_WORDS * len(ids)
    index.discard("stays")
    assert index.nbytes < 20_000


def test_attributes_come_and_go() -> None:
    """Names that nobody asks about any more leave nothing behind."""
    index = Index()
    index.add("stays", filters("x0 > 0"))
    for at in range(2_000):
        index.add("other", filters(f"x{at} BETWEEN 1 AND 5 AND y{at} LIKE '%a long suffix'"))
    assert len(index._axes) < 500
    assert index.match(Event("q", {"x0": 3})) == ["stays"]
    assert index.match(Event("q", {"x1999": 3, "y1999": "it has a long suffix"})) == ["other"]
    assert index.match(Event("q", {"x1998": 3, "y1998": "it has a long suffix"})) == []
    index._check()


def test_an_event_may_be_larger_than_any_before() -> None:
    index = Index()
    index.add("1", filters("x299 = 299 AND s LIKE '%end'"))
    attributes: dict[str, object] = {f"x{at}": at for at in range(300)}
    for at in range(300):
        index.add(f"a{at}", filters(f"x{at} >= 0"))
    event = Event("q", {**attributes, "s": "long " * 5_000 + "end"})
    assert len(index.match(event)) == 301
    batch = index.match_batch(Columns.of_events([event, Event("q", {"x7": 1})]))
    assert [len(batch.ids(0)), batch.ids(1)] == [301, ["a7"]]


def test_an_id_with_hundreds_of_alternatives_is_found_once() -> None:
    index = Index()
    values = ", ".join(str(at) for at in range(500))
    index.add("many", filters(f"x IN ({values}) OR y > 0"))
    index._check()
    assert index.match(Event("q", {"x": 7, "y": 1})) == ["many"]
    index.discard("many")
    index._check()


def test_random_boxes_of_any_number_of_axes_are_found() -> None:
    draw = random.Random(9)
    index, scan = Index(), Scan()
    for at in range(3_000):
        axes = draw.sample(range(12), draw.randint(1, 11))
        parts = []
        for axis in axes:
            low = draw.randint(-50, 50)
            parts.append(f"a{axis} BETWEEN {low} AND {low + draw.choice([1, 20, 60])}")
        said = filters(" AND ".join(parts))
        index.add(str(at), said)
        scan.add(str(at), said)
    index._check()
    events = [
        Event("q", {f"a{axis}": draw.randint(-60, 60) for axis in range(12) if draw.random() < 0.9})
        for _ in range(60)
    ]
    batch = index.match_batch(Columns.of_events(events))
    for at, event in enumerate(events):
        wanted = scan.match(event)
        assert index.match(event) == wanted
        assert sorted(batch.ids(at)) == sorted(wanted)


NUMBERS = [0, -0.0, 5e-324, -5e-324, 1, 1.5, -1, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
NUMBERS += [float(2**53), 1e308, float("inf"), -float("inf")]
STRINGS = [
    "",
    "\0",
    "a",
    "a\0",
    "abcdefg",
    "abcdefg\0",
    "abcdefgh",
    "abcdefgi",
    "é",
    "日本",
    "\U0010ffff",
]
SIGNS = ["<", "<=", ">", ">=", "=", "!="]


@pytest.mark.parametrize("values", [NUMBERS, STRINGS, [one.encode() for one in STRINGS]])
def test_every_comparison_of_every_edge_is_exact(values: list[object]) -> None:
    index, scan = Index(), Scan()
    for sign in SIGNS:
        said = filters(f"x {sign} :v")
        for at, bound in enumerate(values):
            index.add(f"{sign}{at}", said, {"v": bound})
            scan.add(f"{sign}{at}", said, {"v": bound})
    events = [Event("q", {"x": value}) for value in [*values, float("nan"), True]]
    batch = index.match_batch(Columns.of_events(events))
    for at, event in enumerate(events):
        wanted = scan.match(event)
        assert index.match(event) == wanted, event
        assert sorted(batch.ids(at)) == sorted(wanted), event


@pytest.mark.parametrize("pattern", ["{}%", "%{}", "%{}%"])
def test_every_pattern_of_every_edge_is_exact(pattern: str) -> None:
    index, scan = Index(), Scan()
    for at, text in enumerate(STRINGS):
        said = filters(f"x LIKE '{pattern.format(text)}'")
        index.add(str(at), said)
        scan.add(str(at), said)
    for text in [*STRINGS, "xabcdefgh", "abcdefghi", "aé日本a"]:
        event = Event("q", {"x": text})
        assert index.match(event) == scan.match(event), text


def test_thousands_in_one_cell_can_leave_in_any_order() -> None:
    """More than a chunk holds, some with more to verify than others."""
    draw = random.Random(2)
    index, scan = Index(), Scan()
    ids = [str(at) for at in range(2_600)]
    for id in ids:
        said = filters("x BETWEEN 1 AND 2" + (f" AND y != {int(id) % 5}" if int(id) % 3 else ""))
        index.add(id, said)
        scan.add(id, said)
    event = Event("q", {"x": 1.5, "y": 3})
    while ids:
        for _ in range(300):
            if ids:
                at = draw.randrange(len(ids))
                ids[at], ids[-1] = ids[-1], ids[at]
                index.discard(ids[-1])
                scan.discard(ids.pop())
        index._check()
        assert index.match(event) == scan.match(event)


@pytest.mark.parametrize("added_before", [0, 2**20, 2**36])
@pytest.mark.parametrize("count", [20, 200, 5_000])
def test_any_number_of_answers_come_in_the_order_of_adding(count: int, added_before: int) -> None:
    draw, index = random.Random(count), Index()
    index._memory.words[layout.SEQUENCE] = added_before
    ids = [str(at) for at in range(2 * count)]
    index.add_batch(ids, filters("x > :a"), {"a": np.arange(2 * count) % 7})
    for id in draw.sample(ids, count):
        index.discard(id)
        ids.remove(id)
    again = [f"again {at}" for at in range(count)]
    index.add_batch(again, filters("x > :a"), {"a": np.arange(count) % 5})
    assert index.match(Event("q", {"x": 9})) == ids + again


def test_every_event_has_a_type() -> None:
    index = Index()
    index.add("any", parse("SELECT * WHERE ce_type IS NOT NULL").filters())
    index.add("none", parse("SELECT * WHERE ce_type IS NULL").filters())
    for event in (Event("q", {"x": 1}), Event("q"), Event("another")):
        assert index.match(event) == ["any"]
