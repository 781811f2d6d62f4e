"""What would ten thousand people want to be told about these prices?

The mix is a guess, kept plain: most alerts name a stock and a price that is unusual for it, because
an alert that rings every day is switched off; the rest exercise what the language can say. Levels
are drawn from the prices and volumes that occurred, near the ends of their range, so that an event
satisfies some tens of ten thousand subscriptions on a quiet day and some hundreds on a wild one.

    share  kind        example
     26 %  band        symbol = 'IBM' AND price BETWEEN 101.2 AND 104.4
     20 %  below       symbol = 'IBM' AND price < 76.5
     15 %  above       symbol = 'IBM' AND price > 195
     10 %  follows     symbol = 'IBM' AND price < :limit
      8 %  busy        symbol = 'IBM' AND volume > 21000000
      6 %  swing       symbol = 'IBM' AND high - low > 0.06 * open
      4 %  basket      symbol IN ('AAPL', 'GOOG') AND price > 640
      4 %  either      symbol = 'IBM' AND price < 76 OR symbol = 'MSFT' AND price > 40
      4 %  evolves     symbol = 'IBM' AND price > :base + :daily * (elapsed() / 86400)
      2 %  season      symbol = 'IBM' AND hour(now()) = 20 AND price < 75
      1 %  prefix      symbol LIKE 'I%' AND price < 70

A subscription that names its stock is one look-up away; a prefix is looked at for every event,
which is why there are few.

Not every stock has as many followers: of those with prices Facebook, the news of the day when they
end, has most, and IBM, which hardly moves, has fewest. Two in five follow stocks of which these
prices say nothing. Most subscriptions of any real system have nothing to do with the event at hand,
and not to look at them is what a matcher is for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from driftline.language.builder import Term, attr, call, elapsed, now, param, select
from driftline.language.records import Record
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.value import Value
from driftline.workload.prices import EVENT_TYPE

PARTIES = 2_000

# How unusual a level is at most: the share of a stock's days beyond it. Squaring a uniform draw
# makes most levels rarer still.
_SHARE_MAX = 0.06

# How many of a stock's days fall in a band around one of its prices.
_BAND_MIN, _BAND_MAX = 0.03, 0.13

# How many of a hundred follow each stock.
_FOLLOWERS = {"FB": 18, "GOOG": 15, "AAPL": 12, "MSFT": 8, "IBM": 7}
_ELSEWHERE = 40

# Stocks without prices here. Their levels are drawn as if they moved like one that has prices.
_SILENT = ("AMZN", "CSCO", "DELL", "EBAY", "GE", "HPQ", "INTC", "JNJ", "KO", "ORCL")

_DAY_S = 86_400

Params = dict[str, Value]
_Drawn = tuple[Term, Params]


@dataclass(frozen=True, slots=True)
class _History:
    """What one stock did: its prices and volumes, sorted."""

    symbol: str
    prices: list[float]
    volumes: list[int]


class _Draw:
    """One seeded stream of decisions over the stocks' histories."""

    def __init__(self, random: Random, histories: Sequence[_History], days: float) -> None:
        self.random = random
        self.histories = histories
        # A stock that is new to this table has as many followers as the least of it.
        self.followers = [_FOLLOWERS.get(stock.symbol, 7) for stock in histories]
        self.days = days

    def stock(self) -> _History:
        (stock,) = self.random.choices(self.histories, self.followers)
        if self.random.random() * 100 < _ELSEWHERE:
            return replace(stock, symbol=self.random.choice(_SILENT))
        return stock

    def share(self) -> float:
        return _SHARE_MAX * self.random.random() ** 2

    def low(self, stock: _History) -> float:
        """A price that the stock was rarely below."""
        return _rounded(stock.prices[int(self.share() * len(stock.prices))])

    def high(self, stock: _History) -> float:
        """A price that the stock was rarely above."""
        return _rounded(stock.prices[-1 - int(self.share() * len(stock.prices))])

    def below(self) -> _Drawn:
        stock = self.stock()
        return _of(stock) & (attr.price < self.low(stock)), {}

    def above(self) -> _Drawn:
        stock = self.stock()
        return _of(stock) & (attr.price > self.high(stock)), {}

    def band(self) -> _Drawn:
        """A narrow band around a price that occurred: about one day in twelve falls in it."""
        stock = self.stock()
        middle = self.random.randrange(len(stock.prices))
        share = self.random.uniform(_BAND_MIN, _BAND_MAX)
        reach = max(1, int(len(stock.prices) * share / 2))
        low = stock.prices[max(0, middle - reach)]
        high = stock.prices[min(len(stock.prices) - 1, middle + reach)]
        return _of(stock) & attr.price.between(_rounded(low), _rounded(high)), {}

    def follows(self) -> _Drawn:
        stock = self.stock()
        if self.random.random() < 0.5:
            return _of(stock) & (attr.price < param.limit), {"limit": self.low(stock)}
        return _of(stock) & (attr.price > param.limit), {"limit": self.high(stock)}

    def busy(self) -> _Drawn:
        stock = self.stock()
        volume = stock.volumes[-1 - int(self.share() * len(stock.volumes))]
        return _of(stock) & (attr.volume > round(volume, -3)), {}

    def swing(self) -> _Drawn:
        """A wild day: from high to low by some hundredths of the opening price."""
        part = self.random.choice((0.05, 0.06, 0.07, 0.08, 0.1))
        return _of(self.stock()) & (attr.high - attr.low > part * attr.open), {}

    def basket(self) -> _Drawn:
        """Any of up to three, beyond what the dearest of them rarely was."""
        stocks = [self.stock() for _ in range(self.random.choice((2, 3)))]
        symbols = sorted({stock.symbol for stock in stocks})
        return attr.symbol.is_in(*symbols) & (attr.price > max(map(self.high, stocks))), {}

    def either(self) -> _Drawn:
        return self.below()[0] | self.above()[0], {}

    def evolves(self) -> _Drawn:
        """A level that rises a little every day, from half the highest price to beyond it."""
        stock = self.stock()
        base = _rounded(self.high(stock) / 2)
        daily = base * self.random.uniform(1.0, 1.6) / self.days
        level = param.base + param.daily * (elapsed() / _DAY_S)
        return _of(stock) & (attr.price > level), {"base": base, "daily": daily}

    def season(self) -> _Drawn:
        """Only in summer, when New York closes at 20 o'clock UTC, or only in winter."""
        stock = self.stock()
        hour = self.random.choice((20, 21))
        return _of(stock) & (call("hour", now()) == hour) & (attr.price < self.low(stock)), {}

    def prefix(self) -> _Drawn:
        stock = self.stock()
        start = attr.symbol.like(f"{stock.symbol[0]}%")
        return start & (attr.price < self.low(stock)), {}


_MIX: tuple[tuple[int, Callable[[_Draw], _Drawn]], ...] = (
    (26, _Draw.band),
    (20, _Draw.below),
    (15, _Draw.above),
    (10, _Draw.follows),
    (8, _Draw.busy),
    (6, _Draw.swing),
    (4, _Draw.basket),
    (4, _Draw.either),
    (4, _Draw.evolves),
    (2, _Draw.season),
    (1, _Draw.prefix),
)


def subscriptions(quotes: Sequence[Event], count: int = 10_000, seed: int = 1) -> list[Record]:
    """So many subscriptions about these quotes, by `PARTIES` parties; the same for the same seed.

    Clocks of evolving ones start with the first quote.
    """
    histories = _histories(quotes)
    times = [event.time for event in quotes if event.time is not None]
    start = min(times)
    random = Random(seed)
    draw = _Draw(random, histories, max(1.0, (max(times) - start) / (_DAY_S * 1e6)))
    kinds = [kind for _, kind in _MIX]
    weights = [weight for weight, _ in _MIX]
    records = []
    for number in range(count):
        (kind,) = random.choices(kinds, weights)
        where, params = kind(draw)
        statement = select(source=EVENT_TYPE, where=where)
        party = f"party-{random.randrange(PARTIES):04}"
        records.append(Record(f"s{number:05}", Standing.of(statement, params, start), party))
    return records


def _histories(quotes: Sequence[Event]) -> list[_History]:
    found: dict[str, list[Event]] = {}
    for event in quotes:
        found.setdefault(str(event.attributes["symbol"]), []).append(event)
    return [
        _History(
            symbol,
            sorted(event.attributes["price"] for event in events),  # type: ignore[misc]
            sorted(event.attributes["volume"] for event in events),  # type: ignore[misc]
        )
        for symbol, events in sorted(found.items())
    ]


def _of(stock: _History) -> Term:
    return attr.symbol == stock.symbol


def _rounded(price: float) -> float:
    """Nobody asks for 101.237."""
    return round(price, 1)
