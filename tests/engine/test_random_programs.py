"""Random programs: the engine tells exactly what a naive engine, written from the words, tells.

The naive engine keeps every event of its life, tries every subscription on each, and works out row
sets and patterns from the whole history each time. It shares only `Subscription.truth` and `select`
with the engine under test.
"""

import random

import pytest

import driftline as dl
from driftline.errors import ParameterError, TableError
from driftline.model.scope import Scope

PROGRAMS = 150
STEPS = 100

PLAIN = [
    ("SELECT * FROM stock WHERE price < :p", ["p"]),
    ("SELECT price FROM stock WHERE symbol = 'A' AND price BETWEEN :lo AND :hi", ["lo", "hi"]),
    ("SELECT symbol, price + :p AS moved FROM stock WHERE symbol IN ('A', :s)", ["p", "s"]),
    ("SELECT * WHERE price > 3 - elapsed() OR symbol LIKE 'B%'", []),
    ("SELECT * WHERE price < 4 * env('e')", []),
    ("SELECT price FROM stock WHERE price < 4 * env('e')", []),
    ("SELECT * FROM news WHERE NOT price = 2", []),
    ("SELECT * WHERE minute(now()) = 0 AND price IS NOT NULL", []),
]
PATTERNS = [
    ("SELECT * FROM stock WHERE price > :p THEN SELECT price FROM news", ["p"]),
    ("SELECT * FROM stock THEN SELECT * FROM stock WHERE price < 3 WITHIN 3", []),
    ("SELECT * THEN SELECT * FROM news THEN SELECT * WHERE price > 2 WITHIN 5", []),
]
SYMBOLS = ["A", "B", "BB", None]


class NaiveSubscription:
    def __init__(self, text, params, start, rows, reevaluates):
        self.statement, self.params, self.start, self.rows = dl.parse(text), params, start, rows
        self.reevaluates = reevaluates
        self.epoch, self.told, self.seen, self.reported = 0, {}, [], 0

    def scope(self, event, env, now):
        return Scope(event, self.params, env, now, max(0.0, (now - self.start) / 1e6))


class NaiveEngine:
    def __init__(self):
        self.subscriptions, self.table, self.env = {}, {}, {}

    def subscribe(self, name, text, params, now, rows, reevaluates):
        one = NaiveSubscription(text, params, now, rows, reevaluates)
        self.subscriptions[name] = one
        if not rows:
            return []
        found = []
        for key, row in self.table.items():
            scope = one.scope(row, self.env, now)
            if one.statement.truth(scope) is True:
                one.told[key] = one.statement.select(scope)
                found.append(("snapshot", key, one.told[key], None, 0))
        return found

    def row(self, one, key, event, now):
        scope = None if event is None else one.scope(event, self.env, now)
        matches = scope is not None and one.statement.truth(scope) is True
        old = one.told.get(key)
        if matches:
            new = one.told[key] = one.statement.select(scope)
            if old is None:
                return [("enter", key, new, None, one.epoch)]
            return [] if new == old else [("change", key, new, old, one.epoch)]
        if old is None:
            return []
        del one.told[key]
        return [("leave", key, {}, old, one.epoch)]

    def reevaluate(self, one, now):
        if not one.reevaluates:
            return []
        return [told for key, row in self.table.items() for told in self.row(one, key, row, now)]

    def pattern(self, one, event, now):
        """Match the whole history again, from the first event on."""
        steps, within = one.statement.steps, one.statement.within
        scope = one.scope(event, self.env, now)
        one.seen.append((event, [step.truth(scope) is True for step in steps]))
        complete, found = [], []
        for seen, fits in one.seen:
            if found and any(fits) and within and seen.time - found[0].time > within * 1_000_000:
                found = []
            if fits[len(found)] and (not found or found[-1].time < seen.time):
                found.append(seen)
            if len(found) == len(steps):
                complete.append([e.attributes["n"] for e in found])
                found = []
        new = complete[one.reported :]
        one.reported = len(complete)
        return [("pattern", None, steps[-1].select(scope), sequence, one.epoch) for sequence in new]

    def publish(self, event, now):
        told = {}
        for name, one in self.subscriptions.items():
            if one.rows:
                told[name] = []
                if event.type == "stock":
                    told[name] = self.row(one, event.attributes["symbol"], event, now)
            elif hasattr(one.statement, "steps"):
                told[name] = self.pattern(one, event, now)
            else:
                scope = one.scope(event, self.env, now)
                hit = one.statement.truth(scope) is True
                values = one.statement.select(scope)
                told[name] = [("event", None, values, None, one.epoch)] * hit
        if event.type == "stock":
            self.table[event.attributes["symbol"]] = event
        return told


def drained(handle):
    return [
        (
            n.kind,
            n.key,
            n.values,
            [e.attributes["n"] for e in n.events] if n.kind == "pattern" else n.old,
            n.epoch,
        )
        for n in handle.pending()
    ]


def run_program(seed, matcher):
    try:
        return program(seed, matcher)
    except BaseException as error:
        error.add_note(f"replay with program({seed}, …)")
        raise


def program(seed, matcher):
    draw = random.Random(seed)
    clock, naive = dl.ManualClock(), NaiveEngine()
    engine = dl.Engine(clock=clock, matcher=matcher)
    engine.table("stock", key="symbol")
    handles = {}
    told = 0

    def params(names):
        return {n: draw.choice(["A", "B"]) if n == "s" else draw.randint(0, 6) for n in names}

    for step in range(STEPS):
        action = draw.choice(
            ["publish"] * 12 + ["subscribe"] * 4 + ["set"] * 3 + ["cancel", "env", "delete"]
        )
        expected = {}
        if action == "publish":
            clock.advance(us=draw.randint(0, 2_000_000))
            attributes = {"symbol": draw.choice(SYMBOLS), "price": draw.randint(0, 6), "n": step}
            if draw.random() < 0.2:
                del attributes["price"]
            late = clock.now() - draw.choice([0, 0, 1_000_000])
            event = dl.Event(draw.choice(["stock", "news"]), attributes, time=max(0, late))
            if event.type == "stock" and "symbol" not in event.attributes:
                with pytest.raises(TableError):
                    engine.publish(event)
            else:
                expected = naive.publish(event.stamped(clock.now()), clock.now())
                assert engine.publish(event) == sum(map(len, expected.values()))
        elif action == "subscribe":
            text, names = draw.choice(PLAIN + PATTERNS)
            rows = "FROM stock" in text and "THEN" not in text and draw.random() < 0.5
            chosen = params(names)
            on_change = draw.choice(["silent", "reevaluate"]) if rows else "silent"
            handles[step] = engine.subscribe(text, chosen, rows=rows, on_change=on_change)
            loud = on_change == "reevaluate"
            expected[step] = naive.subscribe(step, text, chosen, clock.now(), rows, loud)
        elif handles and action == "set":
            name = draw.choice(list(handles))
            chosen = params(handles[name].params)
            if draw.random() < 0.3:
                with pytest.raises(ParameterError):
                    handles[name].set(**chosen, unknown=1)
            else:
                handles[name].set(**chosen)
                one = naive.subscriptions[name]
                one.params, one.epoch = chosen, one.epoch + 1
                expected[name] = naive.reevaluate(one, clock.now())
        elif handles and action == "cancel":
            name = draw.choice(list(handles))
            handles.pop(name).cancel()
            del naive.subscriptions[name]
        elif action == "env":
            value = draw.choice([None, 0, 0.5, 1])
            engine.set_env("e", value)
            naive.env = {} if value is None else {"e": value}
            for name, one in naive.subscriptions.items():
                if "env(" in str(one.statement):
                    expected[name] = naive.reevaluate(one, clock.now())
        elif action == "delete" and naive.table:
            key = draw.choice(list(naive.table))
            assert engine.delete("stock", key)
            del naive.table[key]
            for name, one in naive.subscriptions.items():
                expected[name] = naive.row(one, key, None, clock.now()) if one.rows else []
        engine._check()
        for name, handle in handles.items():
            got = drained(handle)
            assert got == expected.get(name, []), f"seed {seed}, step {step}: {action}"
            told += len(got)
    return told


def test_the_engine_tells_what_the_naive_engine_tells():
    assert sum(run_program(seed, "auto") for seed in range(PROGRAMS)) > 20 * PROGRAMS


@pytest.mark.parametrize("matcher", ["index", "poset", "scan"])
def test_so_does_the_engine_on_other_matchers(matcher):
    for seed in range(PROGRAMS, PROGRAMS + 20):
        run_program(seed, matcher)
