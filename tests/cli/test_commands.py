"""`check`, `explain`, `bench` and how commands fail: data on one stream, the rest on the other."""

import io
import json
import sys

import pytest

TEXT = "select * from quote where price<:limit and elapsed() < 60 and env('open')"


def test_check_prints_the_canonical_form_and_what_it_depends_on(driftline):
    ran = driftline("check", TEXT)
    assert ran.code == 0
    assert "SELECT * FROM quote WHERE price < :limit AND elapsed() < 60 AND env('open')" in ran.out
    assert ":limit (any)" in ran.out
    assert "its parameters, the environment, time" in ran.out
    assert ran.err == ""


def test_check_gives_the_same_as_json(driftline):
    assert driftline("check", TEXT, "--json").data == {
        "canonical": "SELECT * FROM quote WHERE price < :limit AND elapsed() < 60 AND env('open')",
        "shape": "filter",
        "sources": ["quote"],
        "attributes": ["price"],
        "parameters": {"limit": "any"},
        "environment": ["open"],
        "now": False,
        "elapsed": True,
        "messages": None,
        "remembers": None,
        "warnings": [],
    }


@pytest.mark.parametrize(
    ("text", "by", "remembers"),
    [
        ("SELECT * FROM s WHERE k = 1 AND moved(x, by => :r)", "$moved:s", "of each row"),
        ("SELECT * FROM s WHERE crossed(x, above => 9)", "$rows:s", "of each row"),
        ("SELECT * FROM s WHERE k = :k AND moved(x, by => 2)", "$rows:s", "of each row"),
        ("SELECT * WHERE moved(x, by => 2)", None, "what was last told"),
    ],
)
def test_check_says_how_what_moved_is_kept_up_to_date(driftline, text, by, remembers):
    data = driftline("check", text, "--json").data
    assert data["messages"] is None if by is None else by in data["messages"]
    assert remembers in data["remembers"]
    assert data["remembers"] in driftline("check", text).out


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("SELECT * WHERE x > 5 AND x < 3", "no event can ever satisfy"),
        ("SELECT * WHERE x > 5 AND x < 3 OR y = 1", "one alternative can never hold"),
        ("SELECT * WHERE x = NULL", "use IS NULL"),
        ("SELECT * WHERE x = 1 AND x = 'a'", "no event can ever satisfy"),
        ("SELECT * WHERE :on AND :on > 3", "no value will do"),
        ("SELECT Price, price FROM q", "case-sensitive"),
        ("SELECT * WHERE x LIKE 'abc'", "no wildcard"),
        ("SELECT * WHERE x = x", "with itself"),
        ("SELECT * FROM a WHERE 1 = 2 THEN SELECT * FROM b", "no event can ever satisfy 1 = 2"),
    ],
)
def test_check_warns_of_what_nobody_writes_on_purpose(driftline, text, warning):
    ran = driftline("check", text)
    assert ran.code == 0
    assert warning in ran.err
    assert warning in " ".join(driftline("check", text, "--json").data["warnings"])


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("SELECT MIN(p) FROM s WHERE r BETWEEN 1 AND 2 HAVING moved(MIN(p), by => :r)", "view"),
        ("SELECT DISTINCT p FROM s", "distinct view"),
        ("SELECT a.x, b.y FROM a JOIN b ON a.k = b.k", "join"),
        ("SELECT p FROM s WHERE moved(p, by => :r)", "filter on changes"),
        ("SELECT * FROM a THEN SELECT * FROM b THEN SELECT * FROM c", "pattern of 3 filters"),
    ],
)
def test_check_names_the_shape_of_everything_the_language_has(driftline, text, shape):
    data = driftline("check", text, "--json").data
    assert data["shape"] == shape
    assert set(data["parameters"].values()) <= {"number"}


def test_check_reads_an_advertisement_as_it_is_understood(driftline):
    text = "SELECT * FROM q WHERE a = 1 OR a = 2 AND b IS NOT NULL"
    canonical = "SELECT * FROM q WHERE (a = 1 OR a = 2) AND b IS NOT NULL"
    assert canonical in driftline("check", text, "--advertisement").out
    data = driftline("check", text, "--advertisement", "--json").data
    assert data == {"canonical": canonical, "shape": "advertisement"}


def test_a_refused_text_ends_with_3_and_one_line_on_standard_error(driftline):
    ran = driftline("check", "SELECT * FROM quote\nWHERE price ~ 3")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("driftline: wanted ")
    assert "line 2" in ran.err


@pytest.fixture
def event_file(tmp_path):
    path = tmp_path / "event.json"
    path.write_text(
        '{"type": "quote", "data": {"price": 12, "at": {"@time": "2026-01-31T09:30Z"}}}'
    )
    return path


def test_explain_says_which_condition_decided(driftline, event_file):
    words = ("explain", "SELECT * FROM quote WHERE price < :p", "--event", event_file)
    ran = driftline(*words, "--params", '{"p": 10}')
    assert ran.code == 0
    assert "does not match" in ran.out
    assert "price < :p   [price is 12, :p is 10] *" in ran.out
    assert "The event matches." in driftline(*words, "--params", '{"p": 13}').out


def test_explain_gives_the_tree_as_json(driftline, event_file):
    text = "SELECT * WHERE price < 20 AND at < env('now') AND elapsed() = 2.5"
    more = ("--env", '{"now": {"@time": "2026-01-31T09:31:00Z"}}', "--elapsed", 2.5, "--json")
    data = driftline("explain", text, "--event", event_file, *more).data
    assert data["matches"] is True
    parts = data["explanation"]["parts"]
    assert [part["outcome"] for part in parts] == ["true"] * 3
    assert parts[1]["seen"]["at"] == {"@time": "2026-01-31T09:30:00Z"}


def test_explain_and_match_agree_on_an_event_without_a_stamp(driftline, event_file):
    words = ("explain", "SELECT * WHERE elapsed() < 5", "--event", event_file, "--json")
    found = driftline(*words).data
    assert found["matches"] is False
    assert found["explanation"]["outcome"] == "unknown"
    assert driftline(*words, "--elapsed", 4).data["matches"] is True


def test_explain_reads_standard_input(driftline, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b'{"type": "q", "data": {"x": 1}}'))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert "The event matches." in driftline("explain", "SELECT * WHERE x = 1", "--event", "-").out


@pytest.mark.parametrize(
    ("event", "options", "problem"),
    [
        (None, [], "No such file"),
        ("[1]", [], "a JSON object"),
        ("{", [], "truncated"),
        ('{"type": "q", "data": {"x": []}}', [], "attribute x"),
        ('{"a":' * 5000, [], "event.json"),
        ('{"type": "q"}', ["--params", "{"], "--params"),
        ('{"type": "q"}', ["--params", "[]"], "--params"),
        ('{"type": "q"}', ["--params", "[" * 50_000], "--params"),
        ('{"type": "q"}', ["--params", '{"p": "\udcff"}'], "--params"),
        ('{"type": "q"}', ["--params", '{"p": [1]}'], "--params p"),
        ('{"type": "q"}', ["--params", '{"other": 1}'], "missing :p"),
    ],
)
def test_bad_data_ends_with_4_and_says_what_is_wrong(driftline, tmp_path, event, options, problem):
    path = tmp_path / "event.json"
    if event is not None:
        path.write_text(event)
    if "--params" not in options:
        options = ["--params", '{"p": 1}']
    ran = driftline("explain", "SELECT * WHERE x < :p", "--event", path, *options)
    assert (ran.code, ran.out) == (4, "")
    assert problem in ran.err


def test_a_wrong_command_line_ends_with_2(driftline):
    for words in (["check"], ["nothing"], ["check", "a", "b"], ["bench", "nothing"]):
        assert driftline(*words).code == 2


def test_help_teaches_and_version_tells(driftline):
    ran = driftline("--help")
    assert ran.code == 0
    for command in ("check", "explain", "match", "pipeline", "demo", "bench"):
        assert command in ran.out
        assert "--json" in driftline(command, *(["run"] * (command == "pipeline")), "--help").out
    assert driftline("--version").out.strip() == "0.1.0"


def test_bench_lists_its_benchmarks_and_their_questions(driftline):
    assert "language" in driftline("bench").out
    assert "language" in driftline("bench", "--json").data["benchmarks"]


def test_a_benchmark_reports_figures_machine_versions_and_claims(driftline):
    data = driftline("bench", "language", "--json").data
    assert {"machine", "versions", "claims", "parse_us", "matching"} <= data.keys()
    for claim in data["claims"]:
        assert {"name", "target", "measured", "holds"} <= claim.keys()
    assert json.dumps(data)
