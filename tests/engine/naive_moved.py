"""Who is told of what moved and what crossed? A slow engine, written from the language's words.

It keeps one state for each subscription and row, and goes through all of them with each event. It
shares `Subscription.truth` and `select` with the engine under test, and of two radii, where several
answers are right, the rule that says which one is given (`may_must.told`).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from driftline.model.expression import TRUE
from driftline.model.predicate import conjuncts
from driftline.model.scope import Scope
from driftline.model.subscription import Crossed, Measure
from driftline.model.variables import variables_of
from driftline.stateful.value_based.may_must import told
from driftline.stateful.value_based.rule import Rule

KEY = "symbol"
PINS = {"symbol = 'A'", "symbol = 'B'", "'A' = symbol"}


class State:
    """What one subscription was last told of one row."""

    def __init__(self):
        self.centre, self.beyond, self.told = None, False, None


class NaiveFollower:
    def __init__(self, statement, params, start, tables):
        self.statement, self.params, self.start, self.epoch = statement, params, start, 0
        self.tables = tables
        self.begin_anew()

    def begin_anew(self):
        self.states, self.counted, self.awaits_snapshot = {}, {}, False

    def scope(self, event, env, now):
        return Scope(event, self.params, env, now, max(0.0, (now - self.start) / 1e6))

    def satisfied(self, event, env, now):
        return replace(self.statement, change=None).truth(self.scope(event, env, now)) is True

    def select(self, event, env, now):
        return self.statement.select(self.scope(event, env, now))

    @property
    def change(self):
        return self.statement.change

    @property
    def of_table(self):
        return self.statement.source in self.tables

    @property
    def attribute(self):
        return self.change.value.name

    @property
    def tick(self):
        return self.tables[self.statement.source].get(self.attribute) if self.of_table else None

    def _parameter(self, expression):
        return expression.evaluate(Scope(params=self.params))

    @property
    def radius(self):
        return self._parameter(self.change.radius)

    @property
    def may(self):
        return None if self.change.may is None else self._parameter(self.change.may)

    def pin(self):
        for part in conjuncts(self.statement.where):
            if str(part) in PINS:
                return part
        return None

    def group(self):
        """Those who are looked at together; None: it is alone."""
        if isinstance(self.change, Crossed) or not self.of_table:
            return None
        used = variables_of(self.statement.where)
        if used.private or used.evolving:
            return None
        rest = {str(part) for part in conjuncts(self.statement.where)} - {str(TRUE)} - PINS
        exact = self.tick is not None and self.change.measure is Measure.BY
        strict = self.change.strict and not exact
        return (
            self.statement.source,
            self.attribute,
            self.change.measure,
            strict,
            self.change.may is None,
            frozenset(rest),
        )

    # Values.

    def number(self, event):
        """The value of an event, as it is compared; None if it has none."""
        value = event.attributes.get(self.attribute)
        if type(value) not in (int, float) or value != value or abs(value) == float("inf"):
            return None
        if isinstance(self.change, Crossed):
            return value
        if self.change.measure is Measure.FACTOR and value <= 0:
            return None
        if self.tick is not None:
            count = Fraction(repr(value)) / Fraction(self.tick)
            assert count.denominator == 1
            return float(count) if abs(count) <= 2**52 else None
        if type(value) is int and abs(value) > 2**53:
            return None
        return float(value) + 0.0

    def far(self, centre, radius, value):
        """Is a value as far as a radius from what was told?"""
        strict, measure = self.change.strict, self.change.measure
        if self.tick is not None and measure is Measure.BY:
            distance = abs(Fraction(value) - Fraction(centre))
            ticks = Fraction(repr(radius)) / Fraction(self.tick)
            return distance > ticks if strict else distance >= ticks
        return Rule(measure, strict).tells(centre, radius, value)

    def is_due(self, state, value):
        """Is it told of a value, as far as that depends on nobody else?"""
        if isinstance(self.change, Crossed):
            return self.crosses(state, value)
        return state.centre is None or self.far(state.centre, self.radius, value)

    def crosses(self, state, value):
        end, clear = self._parameter(self.change.threshold), self._parameter(self.change.clear)
        if not self.change.above:
            end, clear, value = -end, -clear, -value
        if not state.beyond and value >= end:
            state.beyond = True
            return True
        if state.beyond and value < end and value <= clear:
            state.beyond = False
        return False


class NaiveEngine:
    def __init__(self):
        self.followers, self.rows, self.tables, self.env = {}, {}, {}, {}
        self.expected = {}

    def tell(self, name, kind, key, values, old, last=False):
        notification = (kind, key, values, old, self.followers[name].epoch, last)
        self.expected.setdefault(name, []).append(notification)

    # Subscriptions.

    def subscribe(self, name, statement, params, now):
        self.followers[name] = NaiveFollower(statement, params, now, self.tables)
        self.begin(name, now)

    def begin(self, name, now):
        """The snapshot."""
        one = self.followers[name]
        one.begin_anew()
        if not one.of_table:
            return
        snapshot, satisfied = [], 0
        for key, row in self.rows[one.statement.source].items():
            if not one.satisfied(row, self.env, now):
                continue
            value = one.number(row)
            satisfied += one.group() is None or value is not None
            if value is None:
                continue
            one.counted[key] = row
            state = one.states.setdefault(key, State())
            seen = self.shared(name, key, row, value)
            if one.group() is None and not one.is_due(state, value):
                continue
            state.centre = one.number(seen)
            state.told = one.select(seen, self.env, now)
            snapshot.append((key, state.told))
        for key, values in snapshot:
            self.tell(name, "snapshot", key, values, None, last=key == snapshot[-1][0])
        one.awaits_snapshot = one.pin() is not None and not satisfied

    def shared(self, name, key, row, value):
        """The row as one who begins sees it."""
        one = self.followers[name]
        if isinstance(one.change, Crossed) or not one.change.shared or one.group() is None:
            return row
        alike = [
            other.states[key].centre
            for id, other in self.followers.items()
            if id != name
            and other.group() == one.group()
            and key in other.states
            and self.radii(other) == self.radii(one)
        ]
        if not alike:
            return row
        centre = min(alike, key=lambda other: (abs(other - value), other))
        if one.tick is not None:
            centre = float(Fraction(centre) * Fraction(one.tick))
        return row.with_attribute(one.attribute, centre)

    @staticmethod
    def radii(one):
        if one.tick is None or one.change.measure is not Measure.BY:
            return one.radius, one.may
        ticks = [Fraction(repr(r)) / Fraction(one.tick) for r in (one.radius, one.may or 0)]
        return tuple(t.__floor__() + 1 if one.change.strict else t.__ceil__() for t in ticks)

    def set(self, name, params, now):
        one = self.followers[name]
        one.params, one.epoch = params, one.epoch + 1
        if not one.of_table:
            return  # The next event is judged by them.
        if one.group() is not None:
            # What is overdue by them is told at once, in the order of the table.
            for key in self.rows[one.statement.source]:
                if key in one.counted and key in one.states:
                    self.judge(name, key, one.counted[key], now)
            return
        for key, row in self.rows[one.statement.source].items():
            if one.satisfied(row, self.env, now):
                self.judge(name, key, row, now)

    def restate(self, name, statement, now, params):
        one = self.followers[name]
        if statement == one.statement:
            self.set(name, params, now)
            return
        one.statement, one.params, one.epoch = statement, params, one.epoch + 1
        self.begin(name, now)

    def cancel(self, name):
        del self.followers[name]

    def declare(self, table, ticks, now):
        if table not in self.tables:
            self.tables[table], self.rows[table] = ticks, {}
            for name, one in self.followers.items():
                if one.statement.source == table:
                    self.begin(name, now)

    # Events.

    def judge(self, name, key, row, now, may=False):
        """A row that counts: is it told? `may`: it is if it may be."""
        one = self.followers[name]
        value = one.number(row)
        if value is None:
            return
        state = one.states.setdefault(key, State())
        if may or one.is_due(state, value):
            self.told(name, state, key, row, value, now)

    def told(self, name, state, key, row, value, now):
        one = self.followers[name]
        values, old = one.select(row, self.env, now), state.told
        state.centre, state.told = value, values
        if not one.of_table:
            self.tell(name, "event", None, values, old)
        elif old is not None:
            self.tell(name, "change", key, values, old)
        elif one.awaits_snapshot:
            self.tell(name, "snapshot", key, values, None, last=True)
        else:
            self.tell(name, "enter", key, values, None)
        one.awaits_snapshot = False

    def publish(self, event, now):
        key = event.attributes[KEY] if event.type in self.tables else None
        if event.type in self.tables:
            self.rows[event.type][key] = event
        may = self.may_be_told(event, key, now)
        for name, one in self.followers.items():
            if one.statement.source not in (None, event.type):
                continue
            if not one.satisfied(event, self.env, now) or one.number(event) is None:
                continue
            where = key if one.of_table else None
            one.counted[where] = event
            state = one.states.setdefault(where, State())
            paired = one.group() is not None and one.change.may is not None
            if not paired:
                self.judge(name, where, event, now)
            elif state.told is None or name in may:
                self.judge(name, where, event, now, may=True)

    def may_be_told(self, event, key, now):
        """Those with two radii who have been told before and are now."""
        found = set()
        groups = {}
        for name, one in self.followers.items():
            counts = one.statement.source == event.type and one.group() is not None
            if counts and one.change.may is not None and one.satisfied(event, self.env, now):
                state = one.states.get(key)
                if state is not None and state.told is not None and one.number(event) is not None:
                    groups.setdefault(one.group(), []).append((self.in_ticks(one), name))
        for members in groups.values():
            members.sort()
            one = self.followers[members[0][1]]
            centres = [self.followers[name].states[key].centre for _, name in members]
            may, must = (np.array([radii[at] for radii, _ in members], float) for at in (0, 1))
            rule = Rule(strict=one.group()[3])
            heard = told(rule, may, must, np.array(centres), one.number(event))
            found |= {name for (_, name), is_told in zip(members, heard, strict=True) if is_told}
        return found

    def in_ticks(self, one):
        if one.tick is None:
            return one.may, one.radius
        must, may = self.radii(one)
        return may, must

    def delete(self, table, key, now):
        del self.rows[table][key]
        for name, one in self.followers.items():
            if one.statement.source == table:
                one.counted.pop(key, None)
                state = one.states.pop(key, None)
                if state is not None and state.told is not None:
                    self.tell(name, "leave", key, {}, state.told)
