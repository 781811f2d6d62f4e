"""Random programs: what moved and crossed is told as a naive engine tells it.

Items are kept as scans and as structures, and labels are long, and so few that they run out.
"""

import random

import pytest

import driftline as dl
from driftline.errors import TableError
from tests.engine.naive_moved import NaiveEngine

PROGRAMS = 12
STEPS = 120

SYMBOLS = ["A", "B", "C"]
SECTORS = ["tech", "food"]
STEPS_OF_PRICES = [0, 1, -1, 2, -2, 0.5, -0.25, 7]
COLUMNS = ["price", "*", "symbol, price", "price * 2 AS twice, sector"]
SOURCES = ["stock"] * 8 + ["money"] * 4 + ["late", "news", None]
CONDITIONS = [
    *["", "", "", "symbol = 'A'", "symbol = 'A'", "symbol = 'B'", "'A' = symbol"],
    *["sector = 'tech'", "sector = 'tech' AND symbol = 'A'", "symbol = 'A' AND sector = 'tech'"],
    *["sector = :s", "symbol = 'A' AND sector = :s", "volume > :v", "sector = env('e')"],
    "price > 97",
]
CHANGES = (
    ["moved(price, by => 2)", "moved(price, by => 2)", "moved(price, by => 3)"]
    + ["moved(price, by => :r)"] * 3
    + ["moved(price, by => 2, strict => TRUE)", "moved(price, by => 2, shared => TRUE)"]
    + ["moved(price, by => :r, shared => TRUE)"]
    + ["moved(price, percent => 3)", "moved(price, percent => :r)"]
    + ["moved(price, factor => 1.04)", "moved(price, factor => 1 + :r / 100)"]
    + ["moved(price, may => 1, must => 4)", "moved(price, may => 2, must => 4)"]
    + ["moved(price, may => :r, must => :r + 3)", "moved(price, may => 1, must => :r + 2)"]
    + ["moved(price, may => 1, must => 4, shared => TRUE)"]
    + ["crossed(price, above => 102)", "crossed(price, above => 102, clear => 98)"]
    + ["crossed(price, below => :c)", "crossed(price, below => 98, clear => :c + 3)"]
)
CROWDS = [
    (["symbol = 'A'", ""], ["moved(price, by => 4)", "moved(price, by => :r)"]),
    (["symbol = 'A'"], ["moved(price, by => 4)"]),
    (
        ["sector = 'tech'", "sector = 'tech' AND symbol = 'A'"],
        ["moved(price, by => 3)", "moved(price, by => 3, shared => TRUE)"],
    ),
    (
        ["sector = 'tech'", "sector = 'tech' AND symbol = 'A'"],
        ["moved(price, may => 1, must => 4)", "moved(price, may => 1, must => :r + 9)"],
    ),
    (["", "symbol = 'A'"], ["crossed(price, above => :c + 4, clear => :c)"]),
]
"""Where many ask for nearly the same of few rows."""
ODD = [None, "text", True, float("nan"), float("inf"), 2**53 + 1, -(2**60), 1e300, 0, -5, 100.005]


class Program:
    def __init__(self, seed, many, label_bits):
        self.draw = random.Random(seed)
        self.clock, self.naive = dl.ManualClock(), NaiveEngine()
        self.engine = dl.Engine(clock=self.clock)
        home = self.engine._broker.tables.home
        home.many, home.label_bits = many, label_bits
        self.handles, self.suspended, self.told = {}, set(), 0
        self.prices = {}
        self.declare("stock", {})
        self.declare("money", {"price": "0.05"})
        self.crowded = self.draw.random() < 0.6
        self.conditions, self.changes = CONDITIONS, CHANGES
        if self.crowded:
            self.conditions, self.changes = self.draw.choice(CROWDS)
        self.sources = ["stock"] if self.crowded else SOURCES
        self.types = ["stock"] if self.crowded else ["stock"] * 6 + ["money"] * 3 + ["late", "news"]
        self.symbols = ["A"] * 9 + ["B"] if self.crowded else SYMBOLS
        self.subscriptions = 40 if self.crowded else 25

    def declare(self, table, ticks):
        self.engine.table(table, key="symbol", ticks=ticks)
        self.naive.declare(table, ticks, self.clock.now())

    def params(self, names):
        of = {"s": SECTORS, "v": [1, 5], "r": [1, 2, 2.5, 3, 6], "c": [96, 97.5, 98]}
        return {name: self.draw.choice(of[name]) for name in names}

    def event(self):
        draw, type, symbol = self.draw, self.draw.choice(self.types), self.draw.choice(self.symbols)
        price = self.prices.get((type, symbol), 100) + draw.choice(STEPS_OF_PRICES)
        if not 90 <= price <= 110:
            price = 100
        if type == "money":
            price = draw.choice([1, 100]) * round(price * 20) / 2000
        attributes = {"symbol": symbol, "price": price, "volume": draw.randrange(8)}
        attributes["sector"] = draw.choice(["tech", "tech", "food", None])
        self.prices[type, symbol] = price
        if draw.random() < 0.05:
            attributes["price"] = draw.choice(ODD)
        return dl.Event(type, attributes)

    def publish(self):
        self.clock.advance(us=self.draw.randint(0, 2))
        event = self.event()
        try:
            self.engine.publish(event)
        except TableError:
            return
        self.naive.publish(event.stamped(self.clock.now()), self.clock.now())

    def subscribe(self):
        draw, name = self.draw, len(self.handles) + self.draw.random()
        conditions = [draw.choice(self.conditions), draw.choice(self.changes)]
        source = draw.choice(self.sources)
        where = " AND ".join(filter(None, conditions))
        text = f"SELECT {draw.choice(COLUMNS)} {f'FROM {source}' if source else ''} WHERE {where}"
        statement = dl.parse(text)
        params = self.params(sorted(statement.variables().parameters))
        party = draw.choice(["one", "two"])
        self.handles[name] = self.engine.subscribe(text, params, party=party)
        self.naive.subscribe(name, statement, params, self.clock.now())

    def set(self):
        name = self.draw.choice(list(self.handles))
        params = self.params(self.handles[name].params)
        if params:
            self.handles[name].set(**params)
            self.naive.set(name, params, self.clock.now())

    def restate(self):
        name = self.draw.choice(list(self.handles))
        handle = self.handles[name]
        if "volume >= 2" in str(handle.statement):
            self.draw.choice(
                [
                    lambda: handle.remove("volume >= 2"),
                    lambda: handle.replace("volume >= 2", "volume >= 2"),
                    lambda: handle.replace("volume >= 2", "sector = 'tech'"),
                ]
            )()
        else:
            handle.add("volume >= 2")
        self.naive.restate(name, handle.statement, self.clock.now(), handle.params)

    def cancel(self):
        name = self.draw.choice(list(self.handles))
        self.handles.pop(name).cancel()
        self.naive.cancel(name)
        self.naive.expected.pop(name, None)

    def delete(self):
        table, symbol = self.draw.choice(["stock", "money"]), self.draw.choice(SYMBOLS)
        there = symbol in self.naive.rows[table]
        assert self.engine.delete(table, symbol) is there
        if there:
            self.naive.delete(table, symbol, self.clock.now())

    def suspend(self):
        party = self.draw.choice(["one", "two"])
        if party in self.suspended:
            self.engine.resume(party)
        else:
            self.engine.suspend(party)
        self.suspended ^= {party}

    def move_env(self):
        value = self.draw.choice([*SECTORS, None])
        self.engine.set_env("e", value)
        self.naive.env = {} if value is None else {"e": value}

    def step(self):
        others = [self.set] * 3 + [self.cancel, self.restate]
        do = self.draw.choice(
            [self.publish] * 14
            + [self.subscribe] * (6 if len(self.handles) < self.subscriptions else 1)
            + (others if self.handles else [])
            + [self.delete, self.suspend, self.move_env]
        )
        do()
        if self.draw.random() < 0.01:
            self.declare("late", {})
        self.engine._check()
        self.compare(do.__name__)

    def compare(self, action):
        for name, handle in self.handles.items():
            if handle.party in self.suspended:
                assert handle.pending() == []
                continue
            told = [(n.kind, n.key, n.values, n.old, n.epoch, n.last) for n in handle.pending()]
            wanted = self.naive.expected.pop(name, [])
            assert told == wanted, f"{action}: {handle.statement} was told {told}, not {wanted}"
            self.told += len(told)


def run(seed, many, label_bits):
    program = Program(seed, many, label_bits)
    for _ in range(program.draw.randrange(program.subscriptions)):
        program.publish()
        program.subscribe()
    program.compare("begin")
    for at in range(STEPS):
        try:
            program.step()
        except BaseException as error:
            error.add_note(f"replay with run({seed}, {many}, {label_bits}): step {at}")
            raise
    return program.told


@pytest.mark.parametrize("many", [64, 3])
@pytest.mark.parametrize("label_bits", [40, 5])
def test_the_engine_tells_what_the_naive_engine_tells(seed, many, label_bits):
    told = sum(run(seed + at, many, label_bits) for at in range(PROGRAMS))
    assert told > 50 * PROGRAMS
