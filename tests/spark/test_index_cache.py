"""The workers of a machine share one index file. These tests need no session, but for the last."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from driftline.language.records import Record
from driftline.language.sql import parse
from driftline.matching.choice import FEW
from driftline.matching.columns import Columns
from driftline.matching.shared import Shared
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.spark import index_cache
from driftline.spark.index_cache import KEPT_MAX, shared_for
from driftline.spark.match import mark
from driftline.spark.subscriptions import Packed, matcher_for, pack
from tests.spark.worlds import expected

EVENTS = [Event("quote", {"x": x, "y": x % 3}) for x in range(20)]

LIMIT = parse("SELECT * FROM quote WHERE x < :high AND y != env('never')")
PLAIN = parse("SELECT * FROM quote WHERE x < :high")


def version(number: int, count: int = 5 * FEW) -> list[Record]:
    """Of each version, a few differ from the one before."""
    return [
        Record(
            f"s{at}",
            Standing.of(
                LIMIT if at % 5 == 0 else PLAIN, {"high": 15 if at % 37 == number % 37 else 9}
            ),
        )
        for at in range(number, number + count)
    ]


def told(shared: Shared) -> list[list[str]]:
    found = shared.match_batch(Columns.of_events(EVENTS), {"never": 7})
    return [found.ids(at) for at in range(len(EVENTS))]


def answers(records: list[Record]) -> list[list[str]]:
    return expected(EVENTS, records, {"never": 7})


def opened(packed: Packed) -> Shared:
    return shared_for(packed.fingerprint, packed.payload)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Not by DRIFTLINE_CACHE_DIR, which would have all kernels compiled into it."""
    monkeypatch.setattr(index_cache, "directory", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many subscriptions were built from nothing, each time."""
    sizes: list[int] = []
    of = Shared.of.__func__

    def counted(cls, roster):
        sizes.append(len(roster))
        return of(cls, roster)

    monkeypatch.setattr(Shared, "of", classmethod(counted))
    return sizes


def files(place: Path) -> list[str]:
    return sorted(file.name for file in place.iterdir() if not file.name.startswith(".lock"))


def test_a_version_is_built_once_and_then_opened(place, built) -> None:
    packed = pack(version(0))
    for _ in range(3):
        assert told(opened(packed)) == answers(version(0))
    assert built == [len(version(0))]
    assert len(files(place)) == 1
    assert place.stat().st_mode & 0o777 == 0o700


def test_another_environment_is_the_same_version(place, built) -> None:
    far, near = pack(version(0), {"never": 7}), pack(version(0), {"never": 0})
    assert far.fingerprint == near.fingerprint
    matchers = {id(matcher_for(one)[0]) for one in (far, near)}
    assert len(matchers) == 1
    assert [dict(matcher_for(one)[1]) for one in (far, near)] == [{"never": 7}, {"never": 0}]


def test_a_newer_version_takes_in_what_has_changed_and_answers_as_if_built_anew(
    place, built
) -> None:
    for number in range(4):
        shared = opened(pack(version(number)))
        assert shared.generation == number
        shared._check()
        assert told(shared) == answers(version(number))
    assert len(built) == 1


def test_a_version_begins_with_any_that_is_near_not_only_the_last(place, built) -> None:
    opened(pack(version(0)))
    opened(pack(version(1000)))
    assert opened(pack(version(1))).generation == 1
    assert len(built) == 2


def test_few_subscriptions_need_no_file(place) -> None:
    matcher_for(pack(version(0, FEW)))
    assert not place.exists()


def test_old_versions_are_removed_and_stay_with_those_who_have_them_open(place) -> None:
    first = opened(pack(version(0)))
    for number in range(1, KEPT_MAX + 3):
        opened(pack(version(1000 * number)))
    assert len(files(place)) == KEPT_MAX
    assert not any(name.startswith(pack(version(0)).fingerprint) for name in files(place))
    assert told(first) == answers(version(0))


def test_the_versions_in_use_are_kept(place, built) -> None:
    packed = pack(version(0))
    for number in range(1, KEPT_MAX + 3):
        opened(packed)
        opened(pack(version(1000 * number)))
    opened(packed)
    assert len(built) == KEPT_MAX + 3


def test_a_damaged_file_is_built_again(place, built) -> None:
    packed = pack(version(0))
    opened(packed)
    (file,) = [place / name for name in files(place)]
    whole = file.read_bytes()
    file.write_bytes(whole[:-70_000])
    assert told(opened(packed)) == answers(version(0))
    assert file.read_bytes() == whole
    assert len(built) == 2


def test_builders_at_the_same_time_build_once(place, built) -> None:
    packed = pack(version(0))
    found: list[list[list[str]]] = []
    threads = [
        threading.Thread(target=lambda: found.append(told(opened(packed)))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [answers(version(0))] * 6
    assert len(built) == 1


def test_a_builder_that_dies_leaves_no_half_file_and_holds_up_nobody(place, built) -> None:
    packed = pack(version(0))
    child = os.fork()
    if child == 0:
        # In the middle of its writing: the lock is held, and the bytes have no name yet.
        os.fsync = lambda handle: os._exit(9)
        opened(packed)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 9
    (left,) = files(place)
    assert left.endswith(".new")
    assert told(opened(packed)) == answers(version(0))
    (whole,) = files(place)
    assert whole.endswith(".index")
    assert len(built) == 1


@pytest.mark.parametrize("trouble", ["a file", "a link", "open to all"])
def test_a_directory_that_is_not_ours_alone_is_not_used(place, built, caplog, trouble) -> None:
    if trouble == "a file":
        place.write_bytes(b"")
    elif trouble == "a link":
        place.symlink_to(place.parent)
    else:
        place.mkdir()
        place.chmod(0o777)
    packed = pack(version(0))
    assert told(opened(packed)) == answers(version(0))
    assert "an index of its own" in caplog.text
    assert not list(place.parent.glob("**/*.index"))


def test_a_disk_that_is_full_is_no_reason_to_stop(place, built, caplog, monkeypatch) -> None:
    def full(handle: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    assert told(opened(pack(version(0)))) == answers(version(0))
    assert "no space left" in caplog.text
    assert files(place) == []


def test_the_directory_is_the_users_own_or_where_it_is_said(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("DRIFTLINE_CACHE_DIR", raising=False)
    assert str(os.getuid()) in index_cache.directory().name
    monkeypatch.setenv("DRIFTLINE_CACHE_DIR", str(tmp_path))
    assert index_cache.directory().is_relative_to(tmp_path)


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux what is mapped")
def test_the_workers_of_a_machine_map_the_same_file(spark) -> None:
    packed = pack(version(0))

    def mapped(batches):
        matcher, _ = matcher_for(packed)
        assert matcher is not None
        for batch in batches:
            maps = Path("/proc/self/maps").read_text()
            lines = re.findall(rf"(\d+) +(\S+{packed.fingerprint}\S+)", maps)
            inodes = ",".join(sorted({inode for inode, _ in lines}))
            yield pa.RecordBatch.from_pydict(
                {"pid": [os.getpid()] * len(batch), "inodes": [inodes] * len(batch)}
            )

    rows = spark.range(40).repartition(4).mapInArrow(mapped, "pid long, inodes string").collect()
    assert len({row["inodes"] for row in rows}) == 1
    assert re.fullmatch(r"\d+", rows[0]["inodes"])


@pytest.mark.spark
def test_version_after_version_is_matched_as_the_definition_says(spark) -> None:
    columns = ["ce_type", "x", "y"]
    frame = spark.createDataFrame(
        [(event.type, event.attributes["x"], event.attributes["y"]) for event in EVENTS], columns
    )
    for number in range(3):
        rows = frame.transform(mark(pack(version(number), {"never": 7}))).collect()
        found = {row["x"]: row["subscriptions"] or [] for row in rows}
        assert [found[x] for x in range(len(EVENTS))] == answers(version(number))
