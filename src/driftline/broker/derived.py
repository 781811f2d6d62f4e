"""Is a message of the system's own as a broker would make it?

What comes by a link may come from anybody: what is said of tables is looked at before it is taken,
so that whoever reads it finds what is to be there.
"""

from __future__ import annotations

from collections.abc import Mapping

from driftline.broker.tables import (
    ASK,
    ASKED,
    DATA,
    DELETE,
    KEY,
    LATER,
    LEFT,
    PART,
    PARTS,
    SNAPSHOT,
    SUBSCRIPTION,
    TO,
    VIEW,
)
from driftline.model.event import Event
from driftline.model.value import KIND_OF, Kind, Value
from driftline.stateful.home import LIFE, SEQUENCE
from driftline.stateful.range_min.subscription import ENDS
from driftline.stateful.value_based.address import BOX, GENERATION, GROUP, LO, MOVED, SHIFT

PARTS_MAX = 1 << 16


def well_formed(event: Event) -> bool:
    """Has a message whose type begins with `$` all that is read of it?"""
    kind = event.type.partition(":")[0] + ":"
    said = event.attributes
    if kind == DELETE:
        return KEY in said
    if kind == ASK:
        return _is_question(said) and (LEFT in said or type(said.get(VIEW)) is bytes)
    if kind == SNAPSHOT:
        return _is_question(said) and (LATER in said or _is_part(said))
    if not (type(said.get(LIFE)) is int and type(said.get(SEQUENCE)) is int):
        return False
    if kind in ("$min:", "$max:"):
        return all(KIND_OF[type(said[end])] is Kind.NUMBER for end in ENDS if end in said)
    if kind == MOVED:
        return _is_moved(said)
    return kind in ("$rows:", "$pairs:") and KEY in said


def _is_moved(said: Mapping[str, Value]) -> bool:
    """Is it said in full whom it concerns, and how labels become others?"""
    if KEY not in said or type(said.get(GROUP)) is not str:
        return False
    if any(KIND_OF.get(type(said.get(end))) is not Kind.NUMBER for end in BOX):
        return False
    numbers = (said[name] for name in (GENERATION, SHIFT) if name in said)
    shifts = SHIFT not in said or (GENERATION in said and type(said[LO]) is int)
    return shifts and all(type(one) is int for one in numbers)


def _is_question(said: Mapping[str, Value]) -> bool:
    named = all(type(said.get(name)) is str for name in (TO, SUBSCRIPTION))
    return named and type(said.get(ASKED)) is int


def _is_part(said: Mapping[str, Value]) -> bool:
    part, parts = said.get(PART), said.get(PARTS)
    if type(part) is not int or type(parts) is not int or type(said.get(DATA)) is not bytes:
        return False
    numbered = type(said.get(LIFE)) is int and type(said.get(SEQUENCE)) is int
    return numbered and 0 <= part < parts <= PARTS_MAX
