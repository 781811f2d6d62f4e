"""Is every journal the dictionary it seems to be, in the order of its keys too?"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from driftline.broker.effects import Key
from driftline.errors import InvalidValue
from driftline.net.journal import open_journal
from driftline.net.journal.journal import Journal


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def reopened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Journal | None], Journal]:
    """Opens a journal, or the same one anew."""
    if request.param == "memory":
        return lambda before: before or open_journal("memory:", "b")
    address = str(tmp_path / "b.journal")
    if request.param == "postgres":
        address = request.getfixturevalue("database")

    def again(before: Journal | None) -> Journal:
        if before is not None:
            before.close()
        return open_journal(address, "b")

    return again


@pytest.mark.parametrize("seed", range(3))
def test_it_holds_what_a_dictionary_would_in_its_order(
    reopened: Callable[[Journal | None], Journal], seed: int
) -> None:
    draw = random.Random(seed)
    journal, wanted = reopened(None), dict[Key, object]()
    # Keys of rows are what those say who publish them: some are long, and no index gets them small.
    names = ["0", "1", "2", "é", draw.randbytes(4_000).hex(), draw.randbytes(60_000).hex()]
    for _ in range(60):
        stores: list[dict[Key, object]] = []
        for _ in range(draw.randrange(4)):
            store: dict[Key, object] = {}
            for _ in range(draw.randrange(5)):
                kind, key = draw.choice(("seen", "handler", "kept")), draw.choice(names)
                value = {"seen": 7, "handler": "h\0é", "kept": draw.randbytes(20)}[kind]
                store[kind, key] = None if draw.random() < 0.4 else value
            stores.append(store)
        for store in stores:
            for name, value in store.items():
                if value is None:
                    wanted.pop(name, None)
                else:
                    wanted[name] = value
        journal.commit(stores)
        if draw.random() < 0.1:
            journal = reopened(journal)
        if draw.random() < 0.3:
            assert [*journal.load().items()] == [*wanted.items()], f"seed {seed}"
    journal.close()


def test_incarnations_only_rise(reopened: Callable[[Journal | None], Journal]) -> None:
    journal = reopened(None)
    assert journal.incarnation() == 1
    journal = reopened(journal)
    assert [journal.incarnation(), journal.incarnation()] == [2, 3]
    assert journal.incarnation(at_least=100) == 100
    journal = reopened(journal)
    assert journal.incarnation(at_least=50) == 101
    journal.close()


def test_what_cannot_be_written_changes_nothing(
    reopened: Callable[[Journal | None], Journal],
) -> None:
    journal = reopened(None)
    with pytest.raises(InvalidValue, match="wanted one of"):
        journal.commit([{("seen", "a"): 1}, {("unheard of", "a"): 2}])
    assert journal.load() == {}
    journal.commit([{("seen", "a"): 3}])
    assert journal.load() == {("seen", "a"): 3}
    journal.close()
