"""What does our index cost: per event, per change, per filter held?

Matching and changes in batches are CPU time, the best of a few runs; single calls are timed one by
one and told as their median and mean, because a mean alone hides what a rare rebuild costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.bench.memory import CALL, resident_bytes
from driftline.bench.peers.shape import Pairs
from driftline.bench.report import best_cpu_seconds
from driftline.model.filter import Filter
from driftline.workload.matching import SEED, Workload
from driftline.workload.prepared import Bounds, Group, Prepared, moved

_ROUNDS = 3
_REPEATS = 5

# How many single calls of each kind are timed.
_CALLS = 2_000

_MICRO = 1e6


@dataclass(frozen=True, slots=True)
class _Call:
    """The arguments of one `add_batch`, and the bounds that `change_batch` moves them to."""

    ids: list[str]
    filters: tuple[Filter, ...]
    bounds: Bounds
    moved: Bounds


class Ours:
    """An index with the filters of a workload, and what it cost to make."""

    def __init__(self, groups: Sequence[Group], say: Callable[[str], None]) -> None:
        self._groups = groups
        self._draw = np.random.default_rng(SEED)
        self._calls = list(_calls(groups, self._draw))
        self._count = sum(len(group.numbers) for group in groups)
        self.figures: dict[str, object] = {}
        self.index: Any = None
        self._build(say)

    def _build(self, say: Callable[[str], None]) -> None:
        from driftline.matching.index import Index

        ids = [id for call in self._calls for id in call.ids]
        leaving = [ids[at] for at in self._draw.permutation(len(ids))]
        seconds: dict[str, list[float]] = {"add": [], "change": [], "discard": []}
        for turn in range(_ROUNDS):
            say(f"adding, changing and discarding, {turn + 1} of {_ROUNDS}")
            before = resident_bytes()
            self.index = Index()
            seconds["add"].append(best_cpu_seconds(self._add, 1))
            if turn == 0:
                self._weigh(before, resident_bytes())
            seconds["change"].append(best_cpu_seconds(self._change, 1))
            if turn < _ROUNDS - 1:
                seconds["discard"].append(best_cpu_seconds(lambda: self._discard(leaving), 1))
        # The one that stays is moved back, so that it holds the workload's own filters.
        self._change(back=True)
        for name, times in seconds.items():
            self.figures[f"{name}_us"] = min(times) / self._count * _MICRO

    def _weigh(self, before: int | None, after: int | None) -> None:
        self.figures["bytes_per_sub"] = self.index.nbytes / self._count
        grown = None if before is None or after is None else (after - before) / self._count
        self.figures["resident_bytes_per_sub"] = grown

    def _add(self) -> None:
        for call in self._calls:
            self.index.add_batch(call.ids, call.filters, call.bounds)

    def _change(self, back: bool = False) -> None:
        for call in self._calls:
            self.index.change_batch(call.ids, call.bounds if back else call.moved)

    def _discard(self, ids: list[str]) -> None:
        for start in range(0, len(ids), CALL):
            self.index.discard_batch(ids[start : start + CALL])

    def match(self, workload: Workload, events: pa.RecordBatch, batch: int, asked: int) -> Pairs:
        """Time all events in batches; the pairs found for the first `asked` of them."""
        from driftline.matching.columns import Columns

        slices = [events.slice(at, batch) for at in range(0, events.num_rows, batch)]

        def columns() -> list[Any]:
            return [Columns.of_arrow(some, type=workload.type) for some in slices]

        batches = columns()
        counted = sum(len(self.index.match_batch(some).numbers) for some in batches)

        def match() -> None:
            for some in batches:
                self.index.match_batch(some)

        seconds = best_cpu_seconds(match, _REPEATS)
        self.figures["events"] = events.num_rows
        self.figures["events_per_s"] = events.num_rows / seconds
        self.figures["columns_us_per_event"] = best_cpu_seconds(columns) / events.num_rows * _MICRO
        self.figures["matches_per_event"] = counted / events.num_rows
        self._match_single(batches[0])
        return self._pairs(Columns.of_arrow(events.slice(0, asked), type=workload.type))

    def _match_single(self, columns: Any) -> None:
        events = [columns.event(at) for at in range(min(len(columns), _CALLS))]
        self.index.match(events[0])
        times = _each(self.index.match, ((event,) for event in events))
        self.figures["single_event_us_p50"] = float(np.median(times))
        self.figures["single_event_us_mean"] = float(np.mean(times))

    def _pairs(self, columns: Any) -> Pairs:
        found = self.index.match_batch(columns)
        events = np.repeat(np.arange(len(columns)), np.diff(found.offsets))
        numbers, places = np.unique(found.numbers, return_inverse=True)
        named = np.array([int(found.names[number][1:]) for number in numbers.tolist()], np.int64)
        return Pairs(events, named[places] if len(named) else places)

    def change_singly(self) -> None:
        """Time single calls at this size: add, change and discard prepared, add one by itself."""
        chosen = self._draw.integers(0, self._count, _CALLS)
        ends = np.cumsum([len(call.ids) for call in self._calls])
        added, changed, own = [], [], []
        for turn, at in enumerate(chosen.tolist()):
            which = int(np.searchsorted(ends, at, side="right"))
            call = self._calls[which]
            row = at - int(ends[which]) + len(call.ids)
            added.append((f"x{turn}", call.filters, _row(call.bounds, row)))
            changed.append((f"x{turn}", _row(call.moved, row)))
        for turn, (group, row) in enumerate(self._rows(chosen)):
            own.append((f"y{turn}", group.bound(row)))
        index = self.index
        times = {
            "add": _each(index.add, added),
            "change": _each(index.change, changed),
            "discard": _each(index.discard, ((id,) for id, *_ in added)),
            "add_own": _each(index.add, own),
        }
        for id, _ in own:
            index.discard(id)
        for name, each in times.items():
            self.figures[f"{name}_call_us"] = {
                "p50": float(np.median(each)),
                "mean": float(np.mean(each)),
            }

    def _rows(self, chosen: NDArray[np.int64]) -> Iterable[tuple[Group, int]]:
        ends = np.cumsum([len(group.numbers) for group in self._groups])
        for at in chosen.tolist():
            which = int(np.searchsorted(ends, at, side="right"))
            yield self._groups[which], at - int(ends[which]) + len(self._groups[which].numbers)


def _calls(groups: Iterable[Group], draw: np.random.Generator) -> Iterable[_Call]:
    for group in groups:
        for prepared in group.prepared():
            for start in range(0, len(prepared.numbers), CALL):
                yield _call(prepared, slice(start, start + CALL), draw)


def _call(prepared: Prepared, rows: slice, draw: np.random.Generator) -> _Call:
    ids = [f"s{number}" for number in prepared.numbers[rows].tolist()]
    bounds = {name: column[rows] for name, column in prepared.bounds.items()}
    return _Call(ids, prepared.filters, bounds, moved(bounds, draw))


def _row(bounds: Bounds, row: int) -> dict[str, Any]:
    return {
        name: column[row].item() if isinstance(column, np.ndarray) else column[row].as_py()
        for name, column in bounds.items()
    }


def _each(job: Callable[..., object], arguments: Iterable[tuple[Any, ...]]) -> list[float]:
    """The microseconds of each call."""
    now = time.perf_counter_ns
    times = []
    for given in list(arguments):
        start = now()
        job(*given)
        times.append((now() - start) / 1_000)
    return times
