"""Subscriptions are checked on the driver and kept in the workers; these tests need no session."""

from __future__ import annotations

import pickle

import pytest

from driftline.errors import FileRefused, InvalidValue, NotSupported
from driftline.files import read_subscriptions
from driftline.language.records import Record
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.spark import subscriptions
from driftline.spark.subscriptions import KEPT_MAX, matcher_for, pack
from driftline.workload.files import write_records
from tests.spark.worlds import records


@pytest.mark.parametrize(
    "text",
    [
        "SELECT MIN(per) FROM stock WHERE risk BETWEEN 20 AND 60",
        "SELECT price FROM stock WHERE moved(price, by => 2)",
        "SELECT price FROM stock WHERE crossed(price, above => 100, clear => 95)",
        "SELECT * FROM a WHERE x > 0 THEN SELECT * FROM b WHERE x > 0",
    ],
)
def test_what_needs_a_memory_is_refused_on_the_driver(text, tmp_path):
    with pytest.raises(NotSupported, match="sees each event alone"):
        pack([Record("s", Standing.of(parse(text)))])
    file = tmp_path / "subscriptions.jsonl"
    file.write_text('{"text": "SELECT *"}\n{"text": "' + text + '"}\n')
    with pytest.raises(FileRefused, match="line 2"):
        pack(file)


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"text": "SELEC"}', '{"text": "SELECT * WHERE x < :p"}']
)
def test_a_bad_line_is_named(line, tmp_path):
    file = tmp_path / "subscriptions.jsonl"
    file.write_text(f'{{"text": "SELECT *"}}\n\n{line}\n')
    with pytest.raises(FileRefused, match=r"subscriptions\.jsonl, line 3: "):
        read_subscriptions(file)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileRefused, match="nowhere"):
        pack(tmp_path / "nowhere")


def test_an_id_given_twice_is_refused_because_one_of_them_would_be_lost():
    with pytest.raises(InvalidValue, match="'s0' again"):
        pack([*records("SELECT *"), *records("SELECT *")])


def test_a_file_means_what_was_written(tmp_path):
    written = records("SELECT * FROM t WHERE x < :p", "SELECT * WHERE elapsed() > 3", p=2**53 + 1)
    write_records(written, str(tmp_path / "s.jsonl"))
    assert list(read_subscriptions(tmp_path / "s.jsonl")) == written
    assert pack(tmp_path / "s.jsonl").count == 2


def test_a_worker_builds_a_matcher_once(monkeypatch):
    monkeypatch.setattr(subscriptions, "_kept", type(subscriptions._kept)())
    packed = pack(records("SELECT * WHERE x > 1"))
    travelled = pickle.loads(pickle.dumps(packed))
    assert matcher_for(travelled)[0] is matcher_for(packed)[0]


def test_matchers_of_different_subscriptions_parameters_or_environments_are_kept_apart(monkeypatch):
    monkeypatch.setattr(subscriptions, "_kept", type(subscriptions._kept)())
    event = Event("t", {"x": 5})

    def found(text: str, p: int = 0, **env: object) -> list[str]:
        matcher, admitted = matcher_for(pack(records(text, p=p), env))
        return matcher.match(event, admitted)

    assert found("SELECT * WHERE x > :p", p=1) == ["s0"]
    assert found("SELECT * WHERE x > :p", p=9) == []
    assert found("SELECT * WHERE x > env('low')", low=1) == ["s0"]
    assert found("SELECT * WHERE x > env('low')", low=9) == []
    assert found("SELECT * WHERE x > :p", p=1) == ["s0"]


def test_a_worker_does_not_keep_matchers_without_end(monkeypatch):
    monkeypatch.setattr(subscriptions, "_kept", type(subscriptions._kept)())
    for bound in range(3 * KEPT_MAX):
        matcher_for(pack(records(f"SELECT * WHERE x > {bound}")))
    assert len(subscriptions._kept) == KEPT_MAX
