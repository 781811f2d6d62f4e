"""How does an index begin, and get another axis?"""

from __future__ import annotations

from driftline.kernels.arena import allocate_clear, enlarge
from driftline.kernels.jit import jit
from driftline.kernels.layout import (
    A_KIND,
    A_PARTS,
    A_SPAN,
    ALWAYS,
    AXES,
    AXES_CAP,
    AXIS_WORDS,
    DIRECTORY,
    DIRECTORY_CAP,
    FREE_NUMBER,
    FREE_RULER,
    HASH,
    HEADER_WORDS,
    PLAIN,
    RULERS,
    RULERS_CAP,
    SPAN,
    TAIL,
    TEXT,
    TYPE_HASH,
    TYPE_SPAN,
    TYPE_TEXT,
)
from driftline.kernels.programs import axis_at
from driftline.kernels.rulers import forget_axis
from driftline.kernels.types import Words

_AXES_FIRST = 16
_RULERS_FIRST = 8


@jit
def begin(m: Words) -> None:
    """Write the header of an empty index."""
    m[:HEADER_WORDS] = 0
    m[TAIL] = HEADER_WORDS
    m[FREE_NUMBER] = -1
    m[FREE_RULER] = -1
    m[DIRECTORY] = allocate_clear(m, 1)
    m[DIRECTORY_CAP] = 1
    m[AXES] = allocate_clear(m, _AXES_FIRST * AXIS_WORDS)
    m[AXES_CAP] = _AXES_FIRST
    m[RULERS] = allocate_clear(m, _RULERS_FIRST)
    m[RULERS_CAP] = _RULERS_FIRST
    set_axis(m, ALWAYS, PLAIN, 0)
    set_axis(m, TYPE_TEXT, TEXT, 0)
    set_axis(m, TYPE_HASH, HASH, TYPE_SPAN)
    set_axis(m, TYPE_SPAN, SPAN, 0)


@jit
def set_axis(m: Words, axis: int, kind: int, span: int) -> None:
    """Let this number be an axis of this kind; a hash axis says which one has the texts."""
    cap = m[AXES_CAP]
    if axis >= cap:
        used = cap * AXIS_WORDS
        m[AXES] = enlarge(m, m[AXES], used, used, 2 * used)
        m[AXES_CAP] = 2 * cap
    record = axis_at(m, axis)
    m[record : record + AXIS_WORDS] = 0
    m[record + A_KIND] = kind
    m[record + A_SPAN] = span


@jit
def is_unused(m: Words, axis: int) -> bool:
    """Does nothing name the axis any more? What was learnt about it is then forgotten."""
    if m[axis_at(m, axis) + A_PARTS] != 0:
        return False
    forget_axis(m, axis)
    return True
