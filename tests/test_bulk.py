"""Rows matched at once are answered as they are one by one, problems included."""

from __future__ import annotations

import math
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from driftline import Event, parse
from driftline.bulk import IDS, clean_columns, in_texts, match_batch, match_events
from driftline.language.columns import Layout, events_of, layout_of
from driftline.matching.lazy import Lazy
from driftline.matching.roster import Roster
from driftline.matching.scan import Scan
from driftline.matching.shared import Shared
from driftline.model.standing import Standing
from driftline.model.value import Kind, microseconds_of
from driftline.testing.filters import THEMES
from driftline.testing.strategies import environments, standings
from tests.matching.makers import each_matcher

ZONED = pa.timestamp("us", tz="UTC")
TEXTS = tuple(one for theme in THEMES[Kind.STRING] for one in theme)
STAMPS = tuple(
    microseconds_of(one)
    for theme in THEMES[Kind.TIME]
    for one in theme
    if isinstance(one, datetime)
)


def unchecked(rows: list[bytes | None]) -> pa.Array:
    """Strings as a careless producer sends them."""
    binary = pa.array(rows, pa.binary())
    return pa.Array.from_buffers(
        pa.string(), len(rows), binary.buffers(), binary.null_count, binary.offset
    )


@st.composite
def cells(draw: DrawFn, pool: tuple, length: int) -> list:
    kept = st.none() | st.sampled_from(pool) if draw(st.booleans()) else st.sampled_from(pool)
    return draw(st.lists(kept, min_size=length, max_size=length))


@st.composite
def strings(draw: DrawFn, length: int, pool: tuple = TEXTS, dirty: bool = False) -> pa.Array:
    rows = draw(cells(pool, length))
    shape = draw(st.sampled_from(("plain", "large", "dictionary", "unchecked")))
    if shape == "unchecked":
        raw = [None if row is None else row.encode() for row in rows]
        if dirty and raw:
            raw[draw(st.integers(0, length - 1))] = b"a\xff"
        return unchecked(raw)
    if shape == "dictionary":
        return pa.array(rows, pa.string()).dictionary_encode()
    return pa.array(rows, pa.large_string() if shape == "large" else pa.string())


@st.composite
def numbers(draw: DrawFn, length: int, dirty: bool) -> pa.Array:
    kind = draw(st.sampled_from((pa.int64(), pa.int8(), pa.uint64(), pa.float64(), pa.float32())))
    pool: tuple = (0, 1, 2, 3, 5, 127)
    if kind == pa.int64():
        pool += (2**53, 2**53 + 1, 2**63 - 1, -(2**63), -1)
    elif kind == pa.uint64():
        pool += (2**53 + 1, 2**63 - 1) + (2**63, 2**64 - 1) * dirty
    elif kind in (pa.float64(), pa.float32()):
        pool += (-0.0, 0.5, 2.5, math.nan, math.inf, -math.inf, float(2**53))
    return pa.array(draw(cells(pool, length)), kind)


@st.composite
def times(draw: DrawFn, length: int, dirty: bool) -> pa.Array:
    unit = draw(st.sampled_from(("us", "us", "s", "ms", "ns")))
    near = {"us": STAMPS, "s": (0, 1, -1), "ms": (0, 1, -1), "ns": (0, 1_000, -1_000)}[unit]
    wild = {"us": (2**62,), "s": (2**40, -(2**62)), "ms": (2**60,), "ns": (1, -1)}[unit]
    counts = draw(cells(near + wild * dirty, length))
    zone = draw(st.sampled_from(("UTC", "Asia/Tokyo")))
    return pa.array(counts, pa.int64()).cast(pa.timestamp(unit, tz=zone))


@st.composite
def batches(draw: DrawFn) -> tuple[pa.RecordBatch, Layout]:
    """Columns that the subscriptions below speak of; every other batch has something amiss."""
    length, dirty = draw(st.integers(0, 5)), draw(st.booleans())
    names = ("quote", "stock", "quotes") + ("",) * dirty
    makers = {
        "x": numbers(length, dirty),
        "y": numbers(length, dirty),
        "s": strings(length, dirty=dirty),
        "on": cells((True, False), length).map(lambda rows: pa.array(rows, pa.bool_())),
        "t": times(length, dirty),
        "b": cells((b"", b"a", b"ab", b"\xff"), length).map(lambda rows: pa.array(rows, "binary")),
        "none": st.just(pa.nulls(length)),
        "ce_type": strings(length, names, dirty),
        "ce_id": strings(length, ("a", "ab", "é") + ("",) * dirty, dirty),
        "ce_source": strings(length, ("a",) + ("",) * dirty, dirty),
        "ce_time": times(length, dirty),
        "ce_entered": times(length, dirty),
        "ce_subject": strings(length),
        "ce_data": cells(('{"z": 1}', '{"x": 1}', "{") if dirty else (None,), length).map(
            lambda rows: pa.array(rows, pa.string())
        ),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(makers)), unique=True, min_size=1))
    arrays = {name: draw(makers[name]) for name in chosen}
    whole = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
    start = draw(st.integers(0, length))
    batch = whole.slice(start, draw(st.integers(0, length)))
    default = draw(st.sampled_from((None, "quote", "quote"))) if "ce_type" in chosen else "quote"
    return batch, layout_of(batch.schema, default)


def by_definition(standing: dict[str, Standing], batch, layout, env):
    """What `match_batch` must answer, from events made one by one."""
    ids, problems = [], []
    for row in events_of(batch, layout):
        problem = row if isinstance(row, str) else None
        found = [] if problem else [id for id, one in standing.items() if one.matches(row, env)]
        ids.append(found or None)
        problems.append(problem)
    return ids, problems


@each_matcher
@settings(max_examples=60)
@given(st.lists(standings(), max_size=8), batches(), environments())
def test_any_batch_is_answered_as_its_rows_are(make, given_standings, given_batch, env) -> None:
    batch, layout = given_batch
    standing = {str(at): one for at, one in enumerate(given_standings)}
    lazy = Lazy(make())
    for id, one in standing.items():
        lazy.add(id, one)
    told = match_batch(lazy, batch, layout, env)
    ids, problems = by_definition(standing, batch, layout, env)
    assert (told.ids.to_pylist(), told.problems.to_pylist()) == (ids, problems)
    assert told.ids.type == IDS
    assert told.problems.type == pa.string()
    told.ids.validate(full=True)
    note("row by row" if clean_columns(batch, layout) is None else "as columns")
    if any(problems):
        assert clean_columns(batch, layout) is None, "a problem that was not seen"


@given(batches())
def test_the_columns_of_a_clean_batch_are_the_events_of_its_rows(given_batch) -> None:
    batch, layout = given_batch
    columns = clean_columns(batch, layout)
    if columns is not None:
        events = [columns.event(at) for at in range(len(columns))]
        assert events == events_of(batch, layout)


CLEAN = {
    "ce_type": pa.array(["quote", "quote", "stock"]),
    "ce_id": pa.array(["1", None, "3"]),
    "ce_time": pa.array([0, None, 5], pa.int64()).cast(ZONED),
    "x": pa.array([1, None, 3]),
    "big": pa.array([2**63 - 1, 0, 1], pa.uint64()),
    "s": pa.array(["a", "é", None]).dictionary_encode(),
    "f": pa.array([math.nan, -0.0, None]),
    "nano": pa.array([1_000, None, -2_000], pa.int64()).cast(pa.timestamp("ns", tz="UTC")),
    "ce_data": pa.nulls(3, pa.string()),
    "none": pa.nulls(3),
}


def layout(columns: dict[str, pa.Array], default: str | None = None) -> tuple:
    batch = pa.RecordBatch.from_pydict(columns)
    return batch, layout_of(batch.schema, default)


def test_a_clean_batch_makes_no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = Lazy(Scan())
    lazy.add("1", Standing.of(parse("SELECT * FROM quote WHERE x IS NULL OR s = 'a'")))
    monkeypatch.setattr("driftline.bulk.events_of", None)
    told = match_batch(lazy, *layout(CLEAN), {})
    assert told.ids.to_pylist() == [["1"], ["1"], None]
    assert told.problems.to_pylist() == [None] * 3


@pytest.mark.parametrize(
    "dirt",
    [
        {"ce_type": pa.array(["quote", "", "stock"])},
        {"ce_type": pa.array(["quote", None, "stock"])},
        {"ce_id": pa.array(["1", "", None])},
        {"ce_source": pa.array(["1", "", None])},
        {"ce_time": pa.array([0, 2**62, 5], pa.int64()).cast(ZONED)},
        {"t": pa.array([0, -(2**62), 5], pa.int64()).cast(pa.timestamp("s", tz="UTC"))},
        {"t": pa.array([0, 1_001, None], pa.int64()).cast(pa.timestamp("ns", tz="UTC"))},
        {"big": pa.array([2**63, 0, None], pa.uint64())},
        {"s": unchecked([b"a", b"\xff", None])},
        {"s": pa.DictionaryArray.from_arrays([0, 1, 0], unchecked([b"a", b"\xff"]))},
        {"ce_data": pa.array(["{}", None, None])},
        {"": pa.array([1, None, None])},
    ],
)
def test_what_may_be_amiss_is_seen_and_told_row_by_row(dirt) -> None:
    assert clean_columns(*layout(CLEAN)) is not None
    assert clean_columns(*layout({**CLEAN, **dirt})) is None
    lazy = Lazy(Scan())
    lazy.add("all", Standing.of(parse("SELECT *")))
    told = match_batch(lazy, *layout({**CLEAN, **dirt}), {})
    rows = events_of(*layout({**CLEAN, **dirt}))
    problems = [row if isinstance(row, str) else None for row in rows]
    assert told.problems.to_pylist() == problems
    assert told.ids.to_pylist() == [None if problem else ["all"] for problem in problems]


def test_a_null_inside_a_dictionary_is_a_missing_value() -> None:
    inside = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    lazy = Lazy(Scan())
    lazy.add("missing", Standing.of(parse("SELECT * WHERE s IS NULL")))
    told = match_batch(lazy, *layout({"s": inside}, "quote"), {})
    assert told.ids.to_pylist() == [None, ["missing"]]


def test_a_default_type_stands_in_where_there_is_none() -> None:
    lazy = Lazy(Scan())
    lazy.add("1", Standing.of(parse("SELECT * FROM quote")))
    for types in (pa.array(["stock", None]), pa.array(["stock", None]).dictionary_encode()):
        batch = layout({"ce_type": types, "x": pa.array([1, 2])}, "quote")
        assert clean_columns(*batch) is not None
        assert match_batch(lazy, *batch, {}).ids.to_pylist() == [None, ["1"]]
    assert match_batch(lazy, *layout({"none": pa.nulls(2)}, "quote"), {}).ids.to_pylist() == [
        ["1"],
        ["1"],
    ]


def test_a_batch_of_texts_is_read_row_by_row() -> None:
    lazy = Lazy(Scan())
    lazy.add("1", Standing.of(parse("SELECT * WHERE x > 1")))
    texts = pa.array(['{"type": "t", "x": 2}', "{", None, '{"type": "t", "x": 0}'])
    told = match_batch(lazy, *layout({"value": texts}), {})
    assert told.ids.to_pylist() == [["1"], None, None, None]
    assert [bool(problem) for problem in told.problems.to_pylist()] == [False, True, True, False]


def test_ids_are_in_the_order_of_adding_and_many_or_few() -> None:
    lazy = Lazy(Scan())
    ids = [str(number) for number in np.random.default_rng(3).permutation(50)]
    for id in ids:
        lazy.add(id, Standing.of(parse(f"SELECT * WHERE x >= {id}")))
    events = [Event("t", {"x": x}) for x in (49, -1, 0)]
    assert match_events(lazy, [*events, "amiss"], {}).ids.to_pylist() == [ids, None, ["0"], None]
    assert match_events(lazy, events[1:], {}).ids.to_pylist() == [None, ["0"]]
    assert match_events(lazy, [], {}).ids.to_pylist() == []


@pytest.mark.parametrize(("found", "rows"), [(99, 1), (100, 4)])
def test_ids_that_lie_in_a_file_are_texts_or_numbers_of_texts(found, rows, tmp_path) -> None:
    """Numbers, if more are found than there are: what is written is not what is held."""
    said = Standing.of(parse("SELECT * FROM quote WHERE x > :low"), {"low": 1})
    never = Standing.of(parse("SELECT * FROM quote WHERE x > 9"), {})
    ids = [f"s{number}" for number in range(found)]
    others = [(f"n{number}", never) for number in range(100 - found)]
    held = Shared.of(Roster.of([*((id, said) for id in ids), *others]))
    held.write(tmp_path / "a.index")
    held = Shared.open(tmp_path / "a.index")
    # The last satisfies nothing.
    values = [2.0] * rows + [0.0]
    batch = pa.record_batch({"ce_type": ["quote"] * (rows + 1), "x": values})
    told = match_batch(held, batch, layout_of(batch.schema, "batch"), {})
    assert pa.types.is_dictionary(told.ids.type.value_type) == (rows > 1)
    assert in_texts(told.ids).type == IDS
    assert [one and sorted(one) for one in in_texts(told.ids).to_pylist()] == [
        *[sorted(ids)] * rows,
        None,
    ]
