"""How are filters of one shape written quickly, one by one or many at once?

The same text is subscribed to again and again with other values for its parameters, and values
move. So the letters of its filters are written once; what is left is to put operands in their
places. Whatever would need more than that (a long text, an integer beyond 2^53, an IN with
parameters, a value of another kind than before) is left to `letters`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from driftline.errors import InvalidValue
from driftline.kernels import layout
from driftline.kernels.keys import TEXT_EXACT
from driftline.kernels.types import Bytes, Words
from driftline.matching.axes import Axes
from driftline.matching.columns import Column, Columns, Texts
from driftline.matching.letters import INEXACT, Letter, Writer
from driftline.matching.matcher import Bounds
from driftline.model.constraint import Constraint, Operator
from driftline.model.expression import Literal, Parameter
from driftline.model.filter import Filter
from driftline.model.value import KIND_OF, Kind, Value

_PLAIN = (np.dtype(np.int64), np.dtype(np.float64))
_PUT = {Kind.NUMBER: float, Kind.STRING: str}
# Filters of more constraints than these are not lifted.
_NAMES = tuple(f"p{number}" for number in range(16))
_SHAPES_MAX = 4096
# One filter is often added again: to another index, or when it comes and goes.
_LIFTED_MAX = 1 << 14


class Place(NamedTuple):
    """Where the operand of a parameter goes: which letter, which word of it."""

    letter: int
    word: int
    name: str
    kind: Kind


class Template:
    """The letters of some filters, and the places of their parameters."""

    __slots__ = (
        "_floats",
        "_places",
        "_texts",
        "_words",
        "letters",
        "places",
        "row",
        "said",
        "text",
        "texts",
    )

    def __init__(
        self,
        said: tuple[Filter, ...],
        letters: list[Letter],
        text: bytes,
        places: tuple[Place, ...],
    ) -> None:
        self.said, self.letters, self.text, self.places = said, letters, text, places
        # One filter has a row of its own, in which every place is ready to be written.
        self.row = np.zeros((1, layout.LETTER_HEAD + len(letters[0].parts)), np.int64)
        letters[0].pack_into(self.row[0].data.cast("B"), False)
        self._words = self.row[0].data
        self._floats = self.row[0].view(np.float64).data
        self.texts = np.zeros(len(text) + TEXT_EXACT * len(places) + 1, np.uint8)
        self.texts[: len(text)] = np.frombuffer(text, np.uint8)
        self._texts = self.texts.data
        self._places: list[tuple[int, str, type | None, int]] = []
        start = len(text)
        for _, word, name, kind in places:
            self._places.append((layout.LETTER_HEAD + word, name, _PUT.get(kind), start))
            start += TEXT_EXACT

    def put(self, bounds: Bounds) -> bool:
        """Write these values into the row of the one filter; False where that is not enough.

        One loop without calls: this is most of what moving a single bound costs.
        """
        floats, words, texts = self._floats, self._words, self._texts
        for word, name, wanted, start in self._places:
            value: Any = bounds.get(name)
            kind = type(value)
            if kind is float or kind is int:
                if wanted is not float or not -INEXACT < value < INEXACT:
                    return False
                floats[word] = value
            elif kind is str:
                raw = value.encode()
                size = len(raw)
                if wanted is not str or size > TEXT_EXACT:
                    return False
                texts[start : start + size] = raw
                words[word] = start
                words[word + 1] = size
            else:
                return False
        return True


def template_of(axes: Axes, m: Words, said: tuple[Filter, ...], bounds: Bounds) -> Template | None:
    """The template of some filters, written with a first set of values; None if there is none."""
    writer = Writer(axes, m, bounds, slots=[])
    letters = writer.letters(said)
    if writer.slots is None or any(letter.doubt for letter in letters):
        return None
    # A first value that nothing satisfies leaves out its alternative, and the places in it.
    if {slot.name for slot in writer.slots} != bounds.keys() or len(letters) < len(said):
        return None
    if any(slot.letter not in letters for slot in writer.slots):
        return None
    places = tuple(
        Place(letters.index(slot.letter), slot.place, slot.name, KIND_OF[type(bounds[slot.name])])
        for slot in writer.slots
    )
    if any(place.kind in (Kind.STRING, Kind.BYTES) for place in places) and any(
        not _is_short(bounds[place.name]) for place in places
    ):
        return None
    return Template(said, letters, bytes(writer.text), places)


def _is_short(value: Value) -> bool:
    if isinstance(value, str):
        value = value.encode()
    return not isinstance(value, bytes) or len(value) <= TEXT_EXACT


@dataclass(frozen=True, slots=True)
class Batch:
    """The letters of many: `per` rows for each."""

    rows: Words
    per: int
    texts: Bytes


def batch_of(template: Template, count: int, bounds: Mapping[str, ArrayLike]) -> Batch | None:
    """The letters with each row of values; None where it takes more than putting them in."""
    columns = _columns(bounds, count)
    for place in template.places:
        column = columns.get(place.name)
        if column is None or column.kind is not place.kind or not _is_plain(column):
            return None
    letters = template.letters
    width = layout.LETTER_HEAD + max(len(letter.parts) for letter in letters)
    rows = np.zeros((count, len(letters), width), np.int64)
    for at, letter in enumerate(letters):
        letter.pack_into(rows[0, at].data.cast("B"), len(letters) > 1)
        rows[1:, at] = rows[0, at]
    runs = [np.frombuffer(template.text or b"\0", np.uint8)]
    size = len(runs[0])
    bases: dict[str, int] = {}
    for name, column in columns.items():
        if isinstance(column.values, Texts):
            bases[name] = size
            runs.append(column.values.data)
            size += len(column.values.data)
    for place in template.places:
        word = layout.LETTER_HEAD + place.word
        values = columns[place.name].values
        if isinstance(values, Texts):
            rows[:, place.letter, word] = values.starts + bases[place.name]
            rows[:, place.letter, word + 1] = values.lengths
        elif place.kind is Kind.NUMBER:
            rows[:, place.letter, word] = values.astype(np.float64).view(np.int64)
        else:
            rows[:, place.letter, word] = values
    return Batch(rows.reshape(-1, width), len(letters), np.concatenate(runs))


def row_of(bounds: Mapping[str, ArrayLike], at: int) -> dict[str, Value]:
    """The values of one row."""
    return {name: _scalar(values, at) for name, values in bounds.items()}


def _scalar(values: Any, at: int) -> Any:
    value = values[at]
    if isinstance(value, pa.Scalar):
        return value.as_py()
    return value.item() if isinstance(value, np.generic) else value


def check_lengths(bounds: Mapping[str, ArrayLike], count: int) -> None:
    """Has every column as many values as there are ids?"""
    for name, values in bounds.items():
        came = len(values)  # type: ignore[arg-type]
        if came != count:
            raise InvalidValue(f":{name}", f"{count} values", str(came))


def _columns(bounds: Mapping[str, ArrayLike], count: int) -> dict[str, Column]:
    if not bounds:
        return {}
    # Plain numbers are columns as they are.
    columns = {
        name: Column(name, Kind.NUMBER, values)
        for name, values in bounds.items()
        if type(values) is np.ndarray and values.dtype in _PLAIN and values.ndim == 1
    }
    others = {name: values for name, values in bounds.items() if name not in columns}
    if others:
        # A batch of events has the same columns; the type is of no concern here.
        read = {column.attribute: column for column in Columns.of_arrays("bounds", others)}
        columns.update((name, read[name]) for name in others if name in read)
    return columns


def _is_plain(column: Column) -> bool:
    """Has every row a value that a letter can hold as it is?"""
    if column.valid is not None:
        return False
    values: NDArray[Any] | Texts = column.values
    if isinstance(values, Texts):
        return bool(values.lengths.max(initial=0) <= TEXT_EXACT)
    if column.kind is Kind.NUMBER:
        # NaN fails here too. Not by `abs`, of which the lowest integer has none.
        return bool(np.all((values > -INEXACT) & (values < INEXACT)))
    return True


def is_constant(said: Sequence[Filter]) -> bool:
    """Have they no parameters, as far as a quick look tells?"""
    for one in said:
        if one.conditions:
            return False
        for constraint in one.constraints:
            if not constraint.constant:
                return False
    return True


def lifted_of(one: Filter) -> tuple[tuple[Filter, ...], Bounds] | None:
    """A filter without parameters as a shape that others share, and what was constant in it.

    None where a template would not do: with conditions, with very many constraints, or operands
    other than plain numbers and short texts.
    """
    return None if one.conditions or not one.small else _lifted_of(one)


@lru_cache(maxsize=_LIFTED_MAX)
def _lifted_of(one: Filter) -> tuple[tuple[Filter, ...], Bounds] | None:
    shape: list[str | Operator] = []
    values: dict[str, Value] = {}
    for name, constraint in zip(_NAMES, one.constraints, strict=False):
        operand = constraint.operand
        value = operand.value if type(operand) is Literal else None
        if value is None or not _is_liftable(value):
            return None
        shape += (constraint.attribute, constraint.operator)
        values[name] = value
    if len(values) < len(one.constraints) or not values:
        return None
    return _shape(one.type, tuple(shape)), values


def _is_liftable(value: Value) -> bool:
    """Would a template take it, whatever others of its kind it was made with?"""
    kind = type(value)
    if kind is int or kind is float:
        return -INEXACT < value < INEXACT  # type: ignore[operator]  # NaN is not
    return kind is str and _is_short(value)


@lru_cache(maxsize=_SHAPES_MAX)
def _shape(type: str | None, parts: tuple[Any, ...]) -> tuple[Filter, ...]:
    asked = zip(_NAMES, parts[::2], parts[1::2], strict=False)
    constraints = (Constraint(attribute, sign, Parameter(name)) for name, attribute, sign in asked)
    # A tuple that stays the same one: an index knows what it has prepared by its identity.
    return (Filter(type, tuple(constraints)),)
