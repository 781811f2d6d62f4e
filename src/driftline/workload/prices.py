"""What did five stocks cost, day by day, from March 2000 to March 2013?

The rows are those of the package `bokeh_sampledata`, which has them from Quandl's WIKI prices and
passes them on as public domain: AAPL, FB, GOOG, IBM and MSFT, not adjusted for splits, so prices
jump as they did on the screen. Only its data file is read; the package itself is not imported,
because that would load pandas to read a table of text.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from datetime import UTC, datetime
from datetime import time as clock_time
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import ZoneInfo

from driftline.errors import FileRefused, PipelineFailed
from driftline.model.event import Event
from driftline.model.value import microseconds_of

SYMBOLS = ("AAPL", "FB", "GOOG", "IBM", "MSFT")
EVENT_TYPE = "quote"

_PACKAGE = "bokeh_sampledata"
_FILE = Path("_data", "stocks.csv.gz")

# A day's prices are known when the exchange closes. In UTC that is 20 or 21 o'clock as the season
# goes, which is what gives a subscription with `hour(now())` something to decide.
_CLOSE = clock_time(16, tzinfo=ZoneInfo("America/New_York"))


def quotes() -> list[Event]:
    """One event of type `quote` per stock and day, by time and then by symbol.

    Attributes: `symbol`, `open`, `high`, `low`, `close`, `price` (the close again: what
    subscriptions usually speak of), `volume` (an integer) and `day` (a time, midnight UTC).
    """
    events = list(_events(_data_file()))
    events.sort(key=lambda event: (event.time, event.attributes["symbol"]))
    return events


def _data_file() -> Path:
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise PipelineFailed(
            "reading the daily stock prices",
            f"they need the package {_PACKAGE}: pip install 'driftline[data]'",
        )
    return Path(spec.origin).parent / _FILE


def _events(path: Path) -> Iterator[Event]:
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
            for number, row in enumerate(csv.DictReader(stream), start=2):
                try:
                    yield _event(row)
                except (KeyError, TypeError, ValueError) as error:
                    raise FileRefused(str(path), number, f"no daily price: {error!r}") from error
    except (OSError, EOFError) as error:
        raise FileRefused(str(path), None, str(error)) from error


def _event(row: dict[str, str]) -> Event:
    symbol, date = row["Ticker"], row["Date"]
    day = datetime.fromisoformat(date).replace(tzinfo=UTC)
    closed = datetime.combine(day.date(), _CLOSE)
    close = float(row["Close"])
    return Event(
        EVENT_TYPE,
        {
            "symbol": symbol,
            "open": float(row["Open"]),
            "high": float(row["High"]),
            "low": float(row["Low"]),
            "close": close,
            "price": close,
            "volume": int(row["Volume"]),
            "day": day,
        },
        time=microseconds_of(closed.astimezone(UTC)),
        id=f"{symbol}/{date}",
        source=_PACKAGE,
    )
