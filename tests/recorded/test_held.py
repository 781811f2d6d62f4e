"""Is a thing of arrays in a file what it was left as, or not there at all?"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from driftline.recorded import held
from driftline.recorded.held import Place, read_held, write_held

LARGE = 50_000


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "cache" / "thing"


def left(path: Path, thing: object, stamp: bytes = b"1") -> None:
    place = Place(path)
    assert place.open()
    place.take(b"whatever was there")
    place.leave(thing, stamp)


def taken(path: Path, stamp: bytes = b"1") -> object:
    place = Place(path)
    assert place.open()
    thing = place.take(stamp)
    place.close()
    return thing


def test_what_is_changed_in_an_array_is_changed_in_the_file(path):
    left(path, {"words": np.arange(LARGE), "name": "first"})
    place = Place(path)
    assert place.open()
    thing = place.take(b"1")
    thing["words"][7] = -1
    thing["grown"] = np.ones(100)
    place.leave(thing, b"2")
    size = path.stat().st_size
    assert size < 2 * 8 * LARGE, "the large array was not written a second time"
    found = taken(path, b"2")
    assert found["words"][7] == -1
    assert found["words"][8:].tolist() == list(range(8, LARGE))
    assert found["grown"].sum() == 100
    assert found["name"] == "first"


def test_a_file_that_is_mostly_waste_is_written_anew(path):
    left(path, [np.zeros(LARGE)])
    for stamp in range(1, 12):
        place = Place(path)
        assert place.open()
        (array,) = place.take(f"{stamp}".encode())
        place.leave([array + 1], f"{stamp + 1}".encode())
        assert path.stat().st_size < 4 * 8 * LARGE
    (array,) = taken(path, b"12")
    assert (array == 11).all()


def test_nothing_is_taken_with_another_stamp_and_then_never(path):
    left(path, "thing", b"1")
    assert taken(path, b"2") is None
    assert taken(path, b"1") is None, "it may have been changed by whoever took it"


def test_what_was_taken_and_not_left_is_gone(path):
    left(path, np.arange(3))
    assert taken(path) is not None
    assert taken(path) is None


@pytest.mark.parametrize("guard", ["_boot", "_code"])
def test_what_another_boot_or_another_version_of_the_code_has_left_is_not_taken(
    path, monkeypatch, guard
):
    left(path, "thing")
    monkeypatch.setattr(held, guard, lambda: b"another")
    assert taken(path) is None
    left(path, "thing of ours")
    assert taken(path) == "thing of ours"


def damage_pickle(content: bytearray) -> bytearray:
    return content.replace(b"a text that is there", b"\xff" * 20)


@pytest.mark.parametrize(
    "damaged",
    [
        lambda content: content[:0],
        lambda content: content[:50],
        lambda content: content[:-1],
        lambda content: b"another program" + content[15:],
        lambda content: content[:-30] + b"\0" * 30,
        damage_pickle,
    ],
    ids=["empty", "no header", "cut", "another magic word", "no end", "no text"],
)
def test_a_damaged_file_is_no_thing(path, tmp_path, damaged):
    snapshot = tmp_path / "snapshot"
    write_held(snapshot, ["a text that is there", np.arange(9)], b"1")
    left(path, ["a text that is there", np.arange(9)])
    for file in (path, snapshot):
        file.write_bytes(damaged(bytearray(file.read_bytes())))
    assert taken(path) is None
    assert read_held(snapshot, b"1") is None


def test_only_one_has_it_at_a_time(path):
    left(path, "thing")
    first, second = Place(path), Place(path)
    assert first.open()
    assert not second.open()
    first.close()
    assert second.open()
    second.close()


def test_who_waited_with_a_file_that_was_replaced_does_not_have_it(path, monkeypatch):
    """Between opening a file and locking it, its owner put another in its place."""
    left(path, "thing")
    lock = held.fcntl.flock

    def replaced_meanwhile(handle, how):
        shutil.copy(path, path.with_name("copy"))
        os.replace(path.with_name("copy"), path)
        lock(handle, how)

    with monkeypatch.context() as patch:
        patch.setattr(held.fcntl, "flock", replaced_meanwhile)
        assert not Place(path).open()
    assert taken(path) == "thing"


def test_a_full_disk_leaves_no_thing_and_no_half_of_one(path, monkeypatch):
    left(path, np.arange(LARGE))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        place = Place(path)
        assert place.open()
        place.take(b"1")
        place.leave(np.arange(LARGE), b"2")
        left(path, np.arange(LARGE), b"2")
        with pytest.raises(OSError, match="No space left"):
            write_held(path.with_name("snapshot"), "thing", b"2")
    assert taken(path, b"2") is None
    assert os.listdir(path.parent) == [path.name]


def test_a_place_that_cannot_be_is_not_had(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert not Place(tmp_path / "file" / "thing").open()


def test_a_written_thing_is_read_in_memory_of_its_own(tmp_path):
    file = tmp_path / "below" / "snapshot"
    write_held(file, [np.arange(5), "text"], b"chain")
    first = read_held(file, b"chain")
    first[0][0] = 99
    assert read_held(file, b"chain")[0].tolist() == [0, 1, 2, 3, 4]
    assert read_held(file, b"another chain") is None
    assert read_held(tmp_path / "none", b"chain") is None
