"""Where is the record of an entry, given its number?

Entries are numbered from 0, densely: the numbers are what a match reports. Their records lie in
pages, so that growing moves none; free numbers are linked through E_SEQUENCE.
"""

from __future__ import annotations

from driftline.kernels.arena import allocate, enlarge
from driftline.kernels.jit import inlined, jit
from driftline.kernels.layout import (
    DIRECTORY,
    DIRECTORY_CAP,
    E_AT,
    E_HOME,
    E_OWNER,
    E_PROGRAM,
    E_SEQUENCE,
    ENTRIES,
    ENTRY_WORDS,
    FREE_NUMBER,
    NO_ENTRY,
    PAGE,
    PAGE_BITS,
    REF_BITS,
    TOP,
)
from driftline.kernels.types import Words

NUMBER_MASK = (1 << (REF_BITS - 2)) - 1
PROGRAM_MASK = (1 << REF_BITS) - 1


@inlined
def entry(m: Words, number: int) -> int:
    """The address of an entry."""
    return m[m[DIRECTORY] + (number >> PAGE_BITS)] + (number & (PAGE - 1)) * ENTRY_WORDS


@inlined
def ref_to(number: int, program: int, flags: int) -> int:
    """What a chunk or tile says of an entry."""
    return (program << REF_BITS) | (number << 2) | flags


@inlined
def number_in(ref: int) -> int:
    """The number of the entry that a ref is of."""
    return (ref >> 2) & NUMBER_MASK


@inlined
def program_in(ref: int) -> int:
    """The address of the program of the entry that a ref is of."""
    return (ref >> REF_BITS) & PROGRAM_MASK


@jit
def new_entry(m: Words) -> int:
    """The number of a new entry, its own owner, standing nowhere."""
    number = m[FREE_NUMBER]
    if number >= 0:
        m[FREE_NUMBER] = m[entry(m, number) + E_SEQUENCE]
    else:
        number = m[TOP]
        page = number >> PAGE_BITS
        if page == m[DIRECTORY_CAP]:
            cap = 2 * page
            m[DIRECTORY] = enlarge(m, m[DIRECTORY], page, page, cap)
            m[DIRECTORY_CAP] = cap
        if number & (PAGE - 1) == 0:
            m[m[DIRECTORY] + page] = allocate(m, PAGE * ENTRY_WORDS)
        m[TOP] = number + 1
    e = entry(m, number)
    m[e + E_OWNER] = (NO_ENTRY << 32) | number
    m[e + E_SEQUENCE] = 0
    m[e + E_PROGRAM] = 0
    m[e + E_HOME] = 0
    m[e + E_AT] = 0
    m[ENTRIES] += 1
    return number


@jit
def free_entry(m: Words, number: int) -> None:
    """Let the number be used again."""
    e = entry(m, number)
    m[e + E_SEQUENCE] = m[FREE_NUMBER]
    m[e + E_OWNER] = -1
    m[FREE_NUMBER] = number
    m[ENTRIES] -= 1


@jit
def owner_of(m: Words, number: int) -> int:
    """The first entry of the same subscription: the number that is reported."""
    return m[entry(m, number) + E_OWNER] & NO_ENTRY


@jit
def next_of(m: Words, number: int) -> int:
    """The next entry of the same subscription; NO_ENTRY after the last."""
    return (m[entry(m, number) + E_OWNER] >> 32) & NO_ENTRY
