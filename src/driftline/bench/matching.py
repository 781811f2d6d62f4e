"""Which of a million subscriptions does an event satisfy, how fast, and at what cost?

Beside ours, in the same run: DuckDB, Polars and a NumPy scan, joining the same events with the same
filters. All are handed typed columns, all find the same pairs before any time is told, and all
times are CPU times. Each engine is asked in several ways: `ratio_best_peer`, which we make claims
about, is to the faster engine when each prepared statement is one join, as one would write it;
`ratio_tuned_peer` is to the faster engine in the fastest way that we found. Events come in batches
of 10,000, which is what Spark hands over at a time. That is part of the question: with far larger
batches a range join per symbol, which sorts the events, gains on everything else (`--batch 300000`
shows it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.bench.memory import churn as churned
from driftline.bench.ours import Ours
from driftline.bench.peers import PEERS, peer
from driftline.bench.peers.shape import Pairs
from driftline.bench.report import Claim, Report, at_least, at_most, best_cpu_seconds
from driftline.workload.matching import SEED, WORKLOADS, Workload
from driftline.workload.prepared import Group

BATCH = 10_000
SMALL, LARGE = 100_000, 1_000_000
DEFAULT = ("W1", "W2", "W3")

# How much is matched: about so many matches in all, and at most so many batches.
_MATCHES, _BATCHES = 5_000_000, 25
# The same for the peers, which are slower; and how long a run may take to be worth repeating.
_PEER_MATCHES, _REPEAT_S = 400_000, 2.0

# Events per second that we stand for, by workload and size.
_RATES = {
    ("W1", SMALL): 60_000,
    ("W1", LARGE): 12_000,
    ("W2", SMALL): 3_000_000,
    ("W2", LARGE): 400_000,
    ("W3", SMALL): 2_000_000,
    ("W3", LARGE): 250_000,
    ("W5", LARGE): 50_000,
}
# How many times the faster of DuckDB and Polars, asked as one would write it.
_RATIOS = {"W1": 60, "W2": 40, "W3": 60}
_SIZE_NAMES = {SMALL: "100k", LARGE: "1m"}

_Figures = dict[str, Any]


def run(
    full: bool,
    say: Callable[[str], None],
    sizes: Sequence[int] | None = None,
    workloads: Sequence[str] | None = None,
    churn: bool = False,
    batch: int = BATCH,
) -> Report:
    """Measure three workloads at 100,000; `full` all at both sizes, and what ten rounds leave."""
    from driftline.kernels import warm_up

    say("compiling the kernels")
    warm_up()
    names = workloads or (tuple(WORKLOADS) if full else DEFAULT)
    counts = sizes or ((SMALL, LARGE) if full else (SMALL,))
    # First, while the process holds nothing else.
    rounds = churned(LARGE, say) if churn or full else None
    found: dict[str, dict[str, _Figures]] = {name: {} for name in names}
    for name in names:
        for count in counts:
            telling = partial(_telling, say, f"{name}, {count:,} filters")
            found[name][str(count)] = _measured(WORKLOADS[name], count, batch, telling)
    figures: dict[str, object] = {"seed": SEED, "batch": batch, "workloads": found, "churn": rounds}
    return Report("matching", figures, _COLUMNS, list(_rows(found)), list(_claims(found, rounds)))


def _telling(say: Callable[[str], None], where: str, what: str) -> None:
    say(f"{where}: {what}")


def _measured(workload: Workload, count: int, batch: int, say: Callable[[str], None]) -> _Figures:
    say("drawing")
    groups = workload.groups(count)
    expected = max(1.0, workload.matches_share * count)
    events = workload.events(int(min(_MATCHES / expected, _BATCHES * batch)))
    # A peer that gains from larger batches gets them, however long it takes.
    share = max(1.0, batch / BATCH)
    asked = int(min(_PEER_MATCHES * share / expected, batch, events.num_rows))
    ours = Ours(groups, say)
    say("matching")
    pairs = ours.match(workload, events, batch, asked)
    say("single calls")
    ours.change_singly()
    figures: _Figures = {"driftline": ours.figures}
    del ours
    codes = pairs.codes()
    for name in PEERS:
        say(name)
        figures[name] = _peer_figures(name, groups, events.slice(0, asked), codes)
        if figures[name] is None:
            say(f"{name} is not installed, and left out")
    rate = figures["driftline"]["events_per_s"]
    figures["ratio_best_peer"] = _ratio(rate, _peer_rates(figures, "as written"))
    figures["ratio_tuned_peer"] = _ratio(rate, _peer_rates(figures, "events_per_s"))
    figures["matches_per_event"] = figures["driftline"].pop("matches_per_event")
    return figures


def _peer_figures(
    name: str, groups: Iterable[Group], events: pa.RecordBatch, codes: NDArray[np.int64]
) -> _Figures | None:
    """Events per second in each formulation and in the best; None if it is not installed."""
    engine = peer(name, groups)
    if engine is None:
        return None
    engine.take(events)
    rates = {
        formulation: events.num_rows / _checked_seconds(f"{name}, {formulation}", ask, codes)
        for formulation, ask in engine.formulations().items()
    }
    best = max(rates, key=lambda formulation: rates[formulation])
    return {
        "events_per_s": rates[best],
        "formulation": best,
        "formulations": rates,
        "events": events.num_rows,
    }


def _checked_seconds(who: str, ask: Callable[[], Pairs], codes: NDArray[np.int64]) -> float:
    """The CPU seconds of an answer that is the same as ours."""
    answer: list[Pairs] = []
    first = best_cpu_seconds(lambda: answer.append(ask()), repeats=1)
    theirs = answer[0].codes()
    if not np.array_equal(theirs, codes):
        missed, extra = np.setdiff1d(theirs, codes), np.setdiff1d(codes, theirs)
        raise AssertionError(
            f"{who} finds {len(missed)} pairs that we do not, we {len(extra)} that it does not"
        )
    return first if first > _REPEAT_S else min(first, best_cpu_seconds(ask))


def _peer_rates(figures: _Figures, formulation: str) -> list[float]:
    """What DuckDB and Polars reach, at their best or in one formulation."""
    engines = [figures[name] for name in ("duckdb", "polars") if figures[name] is not None]
    return [engine.get(formulation) or engine["formulations"][formulation] for engine in engines]


def _ratio(rate: float, peers: list[float]) -> float | None:
    return rate / max(peers) if peers else None


_COLUMNS = (
    "workload",
    "filters",
    "matches",
    "driftline events/s",
    "DuckDB",
    "Polars",
    "NumPy",
    "ratio",
    "to tuned",
    "one event µs",
    "add µs",
    "change µs",
    "discard µs",
    "bytes",
)


def _rows(found: dict[str, dict[str, _Figures]]) -> Iterator[tuple[object, ...]]:
    for name, sizes in found.items():
        for count, figures in sizes.items():
            ours = figures["driftline"]
            ratios = (figures["ratio_best_peer"], figures["ratio_tuned_peer"])
            yield (
                name,
                f"{int(count):,}",
                f"{figures['matches_per_event']:.1f}",
                f"{ours['events_per_s']:,.0f}",
                *("-" if one is None else f"{one['events_per_s']:,.0f}" for one in _peers(figures)),
                *("-" if ratio is None else f"{ratio:.1f}" for ratio in ratios),
                f"{ours['single_event_us_p50']:.1f}",
                *(f"{ours[f'{change}_us']:.2f}" for change in ("add", "change", "discard")),
                f"{ours['bytes_per_sub']:.0f}",
            )


def _peers(figures: _Figures) -> list[_Figures | None]:
    return [figures[name] for name in PEERS]


def _claims(found: dict[str, dict[str, _Figures]], rounds: _Figures | None) -> Iterator[Claim]:
    def at(name: str, count: int) -> _Figures | None:
        return found.get(name, {}).get(str(count))

    for (name, count), least in _RATES.items():
        figures = at(name, count)
        rate = None if figures is None else figures["driftline"]["events_per_s"]
        yield at_least(f"{name.lower()}_{_SIZE_NAMES[count]}", least, rate, "events/s")
    for name, least in _RATIOS.items():
        figures = at(name, SMALL)
        ratio = None if figures is None else figures["ratio_best_peer"]
        yield at_least(f"{name.lower()}_ratio", least, ratio)
    ours = {size: [each["driftline"] for each in _of_size(found, size)] for size in (SMALL, LARGE)}
    kinds = ("add", "change", "discard")
    calls = [one[f"{kind}_call_us"]["p50"] for one in ours[LARGE] for kind in kinds]
    batches = [one[f"{kind}_us"] for one in ours[SMALL] + ours[LARGE] for kind in kinds]
    yield at_most("change_call", 5, max(calls, default=None), "µs")
    yield at_most("change_batch", 1.5, max(batches, default=None), "µs")
    w2 = at("W2", SMALL)
    single = None if w2 is None else w2["driftline"]["single_event_us_p50"]
    yield at_most("single_event", 5, single, "µs")
    yield at_most("churn_memory", 1.1, None if rounds is None else rounds["ratio"])


def _of_size(found: dict[str, dict[str, _Figures]], count: int) -> list[_Figures]:
    return [sizes[str(count)] for sizes in found.values() if str(count) in sizes]
