"""Which of the subscriptions with one shape does an event satisfy?

A family is all that differs in values alone: rows of parameters and starts. What a kernel needs of
them lies in arrays, one `Sheet` for each set of values that the shared variables had lately: events
may be stamped with those of several brokers. How the rows are gone through is the family's `way`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftline.model.comparison import FLIPPED
from driftline.model.event import Event
from driftline.model.scope import Scope
from driftline.model.truth import Unknown
from driftline.model.value import Value
from driftline.model.variables import attributes_of
from driftline.moving.evolving.arrays import (
    ATTRIBUTE,
    ELAPSED,
    Floats,
    Known,
    evaluate,
    exactly,
    tame,
)
from driftline.moving.evolving.plan import Plan

Row: TypeAlias = Mapping[str, Value]
Shared: TypeAlias = tuple[float, ...]
Rows: TypeAlias = NDArray[np.int64]
Marks: TypeAlias = NDArray[np.int8]
Truths: TypeAlias = NDArray[np.bool_]

FEW = 16
"""So many rows are looked at by the definition: compiled code need not be loaded for them."""

_SHEETS_MAX = 4
_FIRST_ROWS = 64
_ROUNDING = 2.0**-51
# The definition and the kernel get to the same value by other steps: fifteen operations each at
# most, and seven a degree to have the time and its powers. Each rounds by 2^-53: 58 in all.
_STEPS = 2.0**-47
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class Moment:
    """An event, and what the variables are that it is judged by."""

    event: Event
    env: Mapping[str, Value]
    at: int

    def scope(self, params: Row, start: int) -> Scope:
        """What the definition sees of it for one row."""
        elapsed = max(0.0, float(self.at - start) / 1e6)
        return Scope(self.event, params, self.env, self.at, elapsed)


class Sheet:
    """The coefficients of all rows, while the shared variables have certain values."""

    __slots__ = (
        "bounds",
        "clean",
        "coefficients",
        "errors",
        "largest",
        "off",
        "off_bits",
        "since",
        "touched",
    )

    def __init__(self, capacity: int, tests: int, degree: int) -> None:
        self.coefficients = np.zeros((capacity, tests * (degree + 1)))
        # Of all rows: what a coefficient is made of at most (see `sizes_of`), and its error.
        self.largest = np.zeros((tests, degree + 1))
        self.errors = np.zeros((tests, degree + 1))
        # How far a bound may be off, and up to which time (in bits): see `Family.margin`.
        self.off: Floats | None = None
        self.off_bits = 0
        # Rows up to `clean` are worked out, but for those that were touched since.
        self.clean = 0
        self.touched: set[int] = set()
        # For the way that keeps versions: see `cached`.
        self.bounds = np.zeros((0, tests))
        self.since = np.zeros(0, np.int64)

    def grow(self, capacity: int) -> None:
        """Make room for so many rows."""
        self.coefficients = _grown(self.coefficients, capacity)
        if len(self.since):
            self.bounds = _grown(self.bounds, capacity)
            self.since = _grown(self.since, capacity)

    def move(self, last: int, row: int) -> None:
        """The last row goes where another was."""
        self.coefficients[row] = self.coefficients[last]
        self.touched.discard(row)
        if (last in self.touched or last >= self.clean) and row < min(self.clean, last):
            self.touched.add(row)
        self.touched.discard(last)
        self.clean = min(self.clean, last)
        if len(self.since):
            self.bounds[row], self.since[row] = self.bounds[last], self.since[last]


class Family:
    """The rows of one shape, in no order: the last takes the place of one that goes."""

    __slots__ = (
        "columns",
        "earliest",
        "found",
        "marks",
        "names",
        "params",
        "plan",
        "row_of",
        "sheets",
        "starts",
    )

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names: list[str] = []
        self.row_of: dict[str, int] = {}
        self.params: list[Row] = []
        self.starts = np.zeros(_FIRST_ROWS, np.int64)
        self.columns = {name: np.zeros(_FIRST_ROWS) for name in plan.columns}
        self.sheets: dict[Shared, Sheet] = {}
        self.earliest = 1 << 62
        # Where a kernel writes what it finds.
        self.found = np.zeros(0, np.int64)
        self.marks = np.zeros(0, np.int8)

    def __len__(self) -> int:
        return len(self.names)

    def put(self, name: str, params: Row, start: int) -> None:
        """Take in a row, or let the one of that name have other values."""
        row = self.row_of.get(name)
        if row is None:
            row = self.row_of[name] = len(self.names)
            if row == len(self.starts):
                self._grow(2 * row)
            self.names.append(name)
            self.params.append(params)
        self._fill(row, params, start)

    def _fill(self, row: int, params: Row, start: int) -> None:
        self.params[row] = params
        self.starts[row] = start
        self.earliest = min(self.earliest, start)
        for name, column in self.columns.items():
            value = params[name]
            # What arrays cannot compute with is no number to them: the definition decides.
            column[row] = value if tame(value) else np.nan  # type: ignore[assignment]  # a number
        for sheet in self.sheets.values():
            if row < sheet.clean:
                sheet.touched.add(row)
            if len(sheet.since):
                sheet.since[row] = -(1 << 62)

    def remove(self, name: str) -> None:
        """Let a row go; the last one takes its place."""
        row, last = self.row_of.pop(name), len(self.names) - 1
        moved, params = self.names.pop(), self.params.pop()
        for sheet in self.sheets.values():
            sheet.move(last, row)
        if row == last:
            return
        self.names[row], self.params[row] = moved, params
        self.row_of[moved] = row
        self.starts[row] = self.starts[last]
        for column in self.columns.values():
            column[row] = column[last]

    def _grow(self, capacity: int) -> None:
        self.starts = _grown(self.starts, capacity)
        self.columns = {name: _grown(one, capacity) for name, one in self.columns.items()}
        for sheet in self.sheets.values():
            sheet.grow(capacity)

    def room(self) -> tuple[Rows, Marks]:
        """Where a kernel may write a number and a mark for every row."""
        if len(self.found) < len(self.starts):
            self.found = np.zeros(len(self.starts), np.int64)
            self.marks = np.zeros(len(self.starts), np.int8)
        return self.found, self.marks

    # What an event is judged by

    def common(self, moment: Moment) -> bool:
        """Are the parts true that are the same for all rows?"""
        if not self.plan.common:
            return True
        scope = Scope(moment.event, {}, moment.env, moment.at)
        return all(one.evaluate(scope) is True for one in self.plan.common)

    def shared(self, moment: Moment) -> Shared | None:
        """The values that all rows share; None if one of them is nothing that arrays compute with.

        Raises `LookupError` where one is unknown: then nothing can be true.
        """
        if not self.plan.shared:
            return ()
        scope = Scope(moment.event, {}, moment.env, moment.at)
        values = [one.evaluate(scope) for one in self.plan.shared.values()]
        if any(isinstance(value, Unknown) for value in values):
            raise LookupError
        return tuple(map(float, values)) if all(map(tame, values)) else None  # type: ignore[arg-type]  # numbers

    def values(self, moment: Moment) -> Floats | None:
        """The attributes that bounds are asked of; None if one is no number: then none holds."""
        scope = Scope(moment.event)
        found = [scope.attribute(one.attribute) for one in self.plan.bounds]
        if any(type(value) is not int and type(value) is not float for value in found):
            return None
        return np.array(found, np.float64)

    def sheet(self, shared: Shared) -> Sheet:
        """What all rows are worth under these shared values, up to date."""
        sheet = self.sheets.pop(shared, None)
        if sheet is None:
            sheet = Sheet(len(self.starts), len(self.plan.bounds), self.plan.degree)
            if len(self.sheets) == _SHEETS_MAX:
                del self.sheets[next(iter(self.sheets))]
        self.sheets[shared] = sheet  # the latest last
        count = len(self)
        if sheet.clean < count:
            self._work_out(sheet, shared, np.arange(sheet.clean, count))
            sheet.clean = count
        if sheet.touched:
            self._work_out(sheet, shared, np.fromiter(sheet.touched, np.int64))
            sheet.touched.clear()
        return sheet

    def _work_out(self, sheet: Sheet, shared: Shared, rows: Rows) -> None:
        known: dict[str, Known] = {
            name: exactly(column[rows]) for name, column in self.columns.items()
        }
        known |= dict(zip(self.plan.shared, map(exactly, shared), strict=True))
        width = self.plan.degree + 1
        sheet.off = None
        for j, bound in enumerate(self.plan.bounds):
            for k, (part, size) in enumerate(zip(bound.motion, bound.sizes, strict=True)):
                values, errors, sizes = np.broadcast_arrays(
                    *evaluate(part, known), evaluate(size, known)[0]
                )
                sure = np.isfinite(errors) & np.isfinite(values)
                sheet.coefficients[rows, j * width + k] = np.where(sure, values, np.nan)
                if sure.any():
                    sheet.largest[j, k] = max(sheet.largest[j, k], float(sizes[sure].max()))
                    sheet.errors[j, k] = max(sheet.errors[j, k], float(errors[sure].max()))

    def margin(self, sheet: Sheet, x: Floats, until: int) -> Floats:
        """How near to its bound a value is in doubt, for any row, up to a time."""
        # Most of it is the same for all events until twice as much time has passed.
        bits = max(0, until - self.earliest).bit_length()
        if sheet.off is None or sheet.off_bits != bits:
            sheet.off, sheet.off_bits = _off(sheet, (1 << bits) / 1e6), bits
        return sheet.off + np.abs(x) * _ROUNDING

    # What the kernel leaves

    def compared(
        self, rows: Rows, doubt: Truths, moment: Moment, shared: Shared
    ) -> tuple[Rows, Truths]:
        """Of these rows, in doubt or not, those whose comparisons hold too, or perhaps do."""
        scope = Scope(moment.event)
        since = np.maximum(moment.at - self.starts[rows], 0) / 1e6
        known: dict[str, Known] = {ELAPSED: exactly(since)}
        known |= {name: exactly(column[rows]) for name, column in self.columns.items()}
        known |= dict(zip(self.plan.shared, map(exactly, shared), strict=True))
        for one in self.plan.comparisons:
            values = {name: scope.attribute(name) for name in attributes_of(one)}
            if not all(type(value) in (int, float) for value in values.values()):
                # Nothing can be computed with it, so it is unknown for everybody.
                return rows[:0], doubt[:0]
            if not all(map(tame, values.values())):
                return rows, np.ones(len(rows), np.bool_)
            attributes = {ATTRIBUTE + name: exactly(value) for name, value in values.items()}  # type: ignore[arg-type]
            left, right = (evaluate(side, known | attributes) for side in (one.left, one.right))
            sure, never = _compare(one.sign, left, right)
            keep = ~np.broadcast_to(never, rows.shape)
            rows, doubt = rows[keep], (doubt | ~sure)[keep]
            known = {name: _kept(value, keep) for name, value in known.items()}
        return rows, doubt

    def holds(self, row: int, moment: Moment) -> bool:
        """The definition."""
        return self.plan.whole.matches(moment.scope(self.params[row], int(self.starts[row])))

    def _check(self) -> None:
        assert len(self.names) == len(self.params) <= len(self.starts)
        assert self.row_of == {name: row for row, name in enumerate(self.names)}
        for row, params in enumerate(self.params):
            for name, column in self.columns.items():
                value = params[name]
                assert column[row] == value if tame(value) else np.isnan(column[row])
        for shared, sheet in self.sheets.items():
            assert sheet.clean <= len(self)
            assert all(row < sheet.clean for row in sheet.touched)
            fresh = Sheet(len(self.starts), len(self.plan.bounds), self.plan.degree)
            rows = np.array([row for row in range(sheet.clean) if row not in sheet.touched], int)
            if len(rows):
                self._work_out(fresh, shared, rows)
                assert np.array_equal(
                    fresh.coefficients[rows], sheet.coefficients[rows], equal_nan=True
                )
                assert (fresh.largest <= sheet.largest).all()


def _grown(array: np.ndarray, capacity: int) -> np.ndarray:
    larger = np.zeros((capacity, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def _off(sheet: Sheet, t: float) -> Floats:
    """By how much a bound may differ from the definition's, of any row, up to so many seconds."""
    width = sheet.largest.shape[1]
    each = sheet.errors + _STEPS * sheet.largest
    off: Floats = each @ t ** np.arange(width) + _TINY
    return off


def _compare(sign: str, left: Known, right: Known) -> tuple[Truths, Truths]:
    """Where a comparison is surely true, and where it surely is not."""
    if sign in (">", ">="):
        sign, left, right = FLIPPED[sign], right, left
    apart = right[0] - left[0]
    margin = left[1] + right[1] + (np.abs(left[0]) + np.abs(right[0])) * _ROUNDING
    if sign in ("<", "<="):
        return apart > margin, apart < -margin
    beyond = np.abs(apart) > margin
    nowhere = np.zeros_like(beyond)
    return (beyond, nowhere) if sign == "!=" else (nowhere, beyond)


def _kept(known: Known, keep: Truths) -> Known:
    values, errors = known
    return (values[keep], errors[keep]) if values.ndim else known
