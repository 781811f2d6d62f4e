"""Is a broker that begins anew from a real file the one that never crashed?

The simulator's runs, with all of their faults and checkers, where each store is a commit to a file
of its broker, and each life begins with what is read from that file when it is opened again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from driftline.broker.effects import Effect, Key, Store
from driftline.net.journal.sqlite import SqliteJournal
from driftline.sim import overlay
from driftline.sim.scenario import Plan, Scenario


class Filed(MutableMapping[Key, object]):
    """A journal in a file, which is opened anew whenever it is read."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._journal = SqliteJournal(self._path, "b")
        self._read: dict[Key, object] = {}
        self.commits = 0

    def commit(self, values: Mapping[Key, object]) -> None:
        self._journal.commit([values])
        self.commits += 1

    def __iter__(self) -> Iterator[Key]:
        self._journal.close()
        self._journal = SqliteJournal(self._path, "b")
        self._read = self._journal.load()
        return iter(self._read)

    def __getitem__(self, key: Key) -> object:
        return self._read[key]

    def __setitem__(self, key: Key, value: object) -> None:
        raise NotImplementedError("all of a store is kept at once")

    def __delitem__(self, key: Key) -> None:
        raise NotImplementedError("all of a store is kept at once")

    def __len__(self) -> int:
        return len([*self])

    def clear(self) -> None:
        self.commit(dict.fromkeys(self))

    def close(self) -> None:
        self._journal.close()


@pytest.fixture
def journals(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Filed]]:
    folder = Path(mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    made: list[Filed] = []
    place: Any = overlay._Place
    one = overlay.Overlay._one

    def placed(*given: Any, **named: Any) -> Any:
        made.append(Filed(folder / f"{len(made)}.journal"))
        return place(*given, journal=made[-1], **named)

    def performed(self: overlay.Overlay, at: Any, effect: Effect) -> None:
        if isinstance(effect, Store):
            at.journal.commit(effect.values)
        else:
            one(self, at, effect)

    monkeypatch.setattr(overlay, "_Place", placed)
    monkeypatch.setattr(overlay.Overlay, "_one", performed)
    yield made
    for journal in made:
        journal.close()
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("topology", "seed"), [("acyclic", 4), ("general", 5), ("hierarchical", 6), ("mixed", 7)]
)
def test_a_simulated_run_on_real_files(journals: list[Filed], topology: str, seed: int) -> None:
    faults = "crashes=0.01,trouble=0.2,loss=0.02"
    scenario = Scenario(Plan(topology, seed, steps=20, brokers=4, tables=True, faults=faults))
    scenario.run()
    lives = [place.incarnation for place in scenario.overlay._places.values()]
    assert max(lives) > 1
    assert sum(journal.commits for journal in journals) > 300
