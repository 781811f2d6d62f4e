"""What is said instead of unsubscribing and subscribing again? [PARAM §5, Figure 6]

When what a neighbour is told changes, a filter that is taken back and one that is told in its place
may have the same shape. Then the neighbour keeps its entry, under the key it knows, and is told the
values that differ: an *update*. Everything else is said as before, in the same message.

    >>> from driftline.language.sql import parse
    >>> cheap, cheaper = (parse(f"SELECT * WHERE price < {p}").filters()[0] for p in (10, 9))
    >>> spoken = Spoken()
    >>> spoken.say({"1": cheap}, {}).added == {"1": cheap}
    True
    >>> spoken.say({"2": cheaper}, {"1": cheap})
    Said(added={}, removed=(), updates={'1': {0: 9}})
    >>> spoken.say({}, {"2": cheaper})
    Said(added={}, removed=('1',), updates={})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from driftline.model.filter import Filter
from driftline.model.value import Value, identity
from driftline.moving.parametric.slots import closed, opened

Moved: TypeAlias = Mapping[int, Value]
"""New values by their slots."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a neighbour is told, by the keys that it knows."""

    added: dict[str, Filter]
    removed: tuple[str, ...]
    updates: dict[str, Moved]


class Spoken:
    """The keys that a neighbour knows our filters by.

    A filter goes by its own id, unless it took the place of another: then it goes by what that went
    by. Such keys are taken, also when the filter whose id it is comes back.
    """

    __slots__ = ("_keys", "_moves", "_renamed", "_taken")

    def __init__(self, moves: Callable[[Filter], bool] | None = None) -> None:
        """Only what `moves` is said by the values that differ; None: all of them."""
        self._moves = moves
        self._keys: dict[str, str] = {}
        self._taken: set[str] = set()
        self._renamed = 0

    def say(self, added: Mapping[str, Filter], removed: Mapping[str, Filter]) -> Said:
        """A change of what is told, as it is said."""
        leaving: dict[Filter, list[str]] = {}
        if added:
            for id, one in removed.items():
                if self._moves is None or self._moves(one):
                    leaving.setdefault(opened(one)[0], []).append(id)
        fresh: dict[str, Filter] = {}
        updates: dict[str, Moved] = {}
        gone = dict(removed)
        for id, one in added.items():
            shape, values = opened(one) if leaving else (one, ())
            left = leaving.get(shape)
            if not left:
                fresh[self._key(id)] = one
                continue
            before = left.pop(0)
            key = self._forget(before)
            self._keep(id, key)
            updates[key] = differing(opened(gone.pop(before))[1], values)
        return Said(fresh, tuple(self._forget(id) for id in gone), updates)

    def rename(
        self, added: dict[str, Filter], removed: dict[str, Filter], moved: Mapping[Filter, Filter]
    ) -> None:
        """These became others where the neighbour is, too: nothing need be said of them."""
        ids = {one: id for id, one in added.items()}
        for id, one in list(removed.items()):
            after = ids.pop(moved[one], None) if one in moved else None
            if after is not None:
                self._keep(after, self._forget(id))
                del added[after], removed[id]

    def all(self, told: Mapping[str, Filter]) -> dict[str, Filter]:
        """All that is told, by the keys that it goes by."""
        return {self._keys.get(id, id): one for id, one in told.items()}

    def _key(self, id: str) -> str:
        """The key of a filter that is told anew."""
        if id not in self._taken:
            return id
        self._renamed += 1
        return self._keep(id, f"{id}'{self._renamed}")

    def _keep(self, id: str, key: str) -> str:
        if key != id:
            self._keys[id] = key
            self._taken.add(key)
        return key

    def _forget(self, id: str) -> str:
        key = self._keys.pop(id, id)
        self._taken.discard(key)
        return key


def differing(before: tuple[Value, ...], after: tuple[Value, ...]) -> Moved:
    """The values that are others, by their slots."""
    pairs = enumerate(zip(before, after, strict=True))
    return {slot: new for slot, (old, new) in pairs if identity(old) != identity(new)}


def updated(one: Filter, moved: Moved) -> Filter | None:
    """A filter with other values in some of its slots; None if it has no such slots."""
    shape, values = opened(one)
    if not all(0 <= slot < len(values) for slot in moved):
        return None
    return closed(shape, tuple(moved.get(slot, value) for slot, value in enumerate(values)))
