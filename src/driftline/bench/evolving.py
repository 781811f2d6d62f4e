"""What does it cost to find subscriptions that move with time and the environment?

The questions of [EVOLVE VI.C], Figures 8 to 10: how does each way of finding them depend on how
many there are, on how often events come, on how long a version is kept, on how often the
environment changes, and on how many of the subscriptions evolve at all? See `workload.evolving`
for the game and the market. Beside our ways stands what one would write in Python: every
subscription is evaluated at every event.

All ways must find the same for each event; for some events it is what Python finds.

- *µs*: CPU time of one event, once the first events have passed (see `evolving_ways`).
- *as of*: the paper's own meaning, how long it takes and how often it is wrong (Figure 7).
- *traffic*: what brokers tell one another (Figure 6; see `evolving_traffic`).
- *network*: how often a network of brokers is wrong (see `evolving_consistency`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from driftline.bench import evolving_consistency as consistency
from driftline.bench import evolving_traffic as traffic
from driftline.bench.evolving_ways import WAYS, Measured, Setting, as_of, best
from driftline.bench.report import Claim, Report, at_least, at_most
from driftline.workload.evolving import SECOND, SEED, Scene

EVENTS = 400
"""So many are measured, or as many as come in an interval."""
LARGE = 100_000
PAPER = 500
"""As many characters as the paper's game has."""

BASE = Setting("subscriptions", "10,000", Scene())
"""What the others vary: a game of 10,000, 100 events a second, 1 s, no changes, all evolve."""
FEW = Setting("subscriptions", "500", Scene(subscriptions=PAPER))
MANY = Setting("subscriptions", "50,000", Scene(subscriptions=50_000))
BUSY = Setting("events/s", "10,000", Scene(rate=10_000))
BRIEF = Setting("interval", "0.1 s", Scene(), SECOND // 10)
WEATHER = Setting("changes/s", "10", Scene(changes=10))
HALF = Setting("evolving", "50 % of 20,000 at 5,000/s", Scene("game", 20_000, 5_000, share=50))

SETTINGS = (
    Setting("subscriptions", "100", Scene(subscriptions=100)),
    FEW,
    Setting("subscriptions", "2,000", Scene(subscriptions=2_000)),
    BASE,
    MANY,
    Setting("subscriptions", "100,000", Scene(subscriptions=LARGE)),
    Setting("events/s", "10", Scene(rate=10)),
    Setting("events/s", "1,000", Scene(rate=1_000)),
    BUSY,
    BRIEF,
    Setting("interval", "5 s", Scene(), 5 * SECOND),
    Setting("changes/s", "1", Scene(changes=1)),
    WEATHER,
    Setting("changes/s", "100", Scene(changes=100)),
    Setting("evolving", "0 %", Scene(share=0)),
    Setting("evolving", "50 %", Scene(share=50)),
    HALF,
    Setting("market", "10,000", Scene("market")),
)
ADAPTIVE = (FEW, MANY, BUSY, BRIEF, WEATHER, HALF)
"""Those of the claim that the adaptive way is about as good as the best for each."""
REPEATS = 3


def run(full: bool, say: Callable[[str], None]) -> Report:
    """Measure each setting; `full` takes longer scenes, and 10,000 events for the largest."""
    events = 5 * EVENTS if full else EVENTS
    say("compile")
    best(Setting("", "", Scene(subscriptions=100)), 10, 1)
    found: dict[Setting, Measured] = {}
    for setting in SETTINGS:
        say(setting.name)
        large = full and setting.scene.subscriptions == LARGE
        repeats = REPEATS if setting in ADAPTIVE else 1
        found[setting] = best(setting, 25 * EVENTS if large else events, repeats)
    say("as of")
    paper = as_of(Scene(subscriptions=PAPER), SECOND, events)
    sent = traffic.measured(full, say)
    networks = {}
    for mode in consistency.MODES:
        say(f"network, {mode}")
        networks[mode] = consistency.measured(mode, events)
    pays = _break_even(found)
    rows = [
        *(_row(setting, one) for setting, one in found.items()),
        ("versioned pays", f"from {pays:,.0f} events to a version on" if pays else "", *[""] * 6),
        _paper_row(paper),
        *(("traffic", f"{rate}/s", *[""] * 5, traffic.told(one)) for rate, one in sent.items()),
        *(("network", mode, *[""] * 5, f"wrong: {_wrong(one)}") for mode, one in networks.items()),
    ]
    figures: dict[str, object] = {
        "seed": SEED,
        "events": events,
        "processing": {setting.name: asdict(one) for setting, one in found.items()},
        "break_even_events": pays,
        "as_of": paper,
        "traffic": {str(rate): one for rate, one in sent.items()},
        "network": networks,
    }
    columns = ("varies", "at", "python µs", *(f"{way} µs" for way in WAYS), "")
    return Report("evolving", figures, columns, rows, _claims(found, sent, networks))


def _row(setting: Setting, one: Measured) -> tuple[object, ...]:
    times = (f"{us:,.0f}" for us in (one.python_us, *one.us.values()))
    more = f", {one.above_best:.2f} x the best" if setting in ADAPTIVE else ""
    return (setting.varies, setting.at, *times, f"{one.chosen}{more}")


def _paper_row(paper: dict[str, float]) -> tuple[object, ...]:
    wrong = ", ".join(
        f"{name} +{paper[f'{name}_more_percent']:.1f} -{paper[f'{name}_less_percent']:.1f} %"
        for name in ("cached", "versioned")
    )
    times = (f"{paper[f'{name}_us']:,.0f}" for name in ("cached", "versioned"))
    return ("as of", f"{PAPER}", "", "", *times, "", f"wrong: {wrong}")


def _break_even(found: dict[Setting, Measured]) -> float | None:
    """How many events must share a version for the index to pay, at 10,000 subscriptions.

    What versions cost is shared among the events: each way takes `a + b / events`.
    """
    # The difference of the two is then a line in `1 / events`, known at two points.
    rare, often = (1 / one.events(1) for one in (BASE, BUSY))
    at_rare, at_often = (
        found[one].us["versioned"] - found[one].us["cached"] for one in (BASE, BUSY)
    )
    if not at_often < 0 < at_rare:
        return None
    return 1 / (often + (rare - often) * -at_often / (at_rare - at_often))


def _wrong(one: dict[str, float]) -> str:
    return f"+{one['more_percent']:.1f} -{one['less_percent']:.1f} %"


def _claims(
    found: dict[Setting, Measured],
    sent: dict[int, dict[str, float]],
    networks: dict[str, dict[str, float]],
) -> list[Claim]:
    large = next(one for setting, one in found.items() if setting.scene.subscriptions == LARGE)
    grown = [
        one.us["versioned"] / one.us["cached"]
        for setting, one in found.items()
        if setting.varies == "subscriptions" and setting.scene.subscriptions >= PAPER
    ]
    highest = max(sent)
    wrong = max(
        one["more_percent"] + one["less_percent"]
        for mode, one in networks.items()
        if mode.startswith("stamped")
    )
    return [
        at_least("lazy_kernel", 100, large.python_us / large.us["lazy"], "x python"),
        at_least("cached_vs_versioned", 1, min(grown), "x"),
        at_most("adaptive", 1.15, max(found[one].above_best for one in ADAPTIVE), "x the best"),
        at_least("fewer_messages", 96.8, sent[highest]["evolving_messages_less_percent"], "%"),
        at_most("same_everywhere", 0, wrong, "% wrong with stamps"),
    ]
