"""How much may come in one frame?

Both sides keep them: what is over a limit is not written, and not read either. They bound what a
peer can make us hold. Objects may take eighty times the bytes they are read from, so what counts is
the bytes of a frame and, where few bytes make many objects, how many things it has. The worst that
passes takes about 150 MB.
"""

from __future__ import annotations

FRAME_BYTES_MAX = 1 << 23
"""Bytes of a frame, its header and checksum included: some fifty thousand events or filters."""

NAME_BYTES_MAX = 65_535
"""UTF-8 bytes of a name, a key or a LIKE pattern: what two bytes can count."""

# Events

RECORDS_MAX = 65_536
"""Parcels in a batch, so that whoever reads it can have room for its answers ready."""

HOPS_MAX = 255
"""Links a parcel may cross: what one byte can count, and more than any overlay is wide."""

ATTRIBUTES_MAX = 65_535
"""Attributes of an event: what two bytes can count."""

# Control messages

FIELDS_MAX = 10
"""Parts of a control message, its name included."""

ENTRIES_MAX = 100_000
"""Filters, advertisements or names in one control message."""

SLOTS_MAX = 1 << 19
"""Constants of one filter, which can be updated."""

FILTER_BYTES_MAX = 1 << 20
"""Bytes of one filter or advertisement: some hundred thousand values in an IN."""

PARTS_MAX = 1 << 19
"""Constraints and nodes of expressions in one field of a message; each may take 300 bytes."""

PATTERN_PARTS = 8
"""A LIKE pattern counts as so many of these parts, and its length for half as many: it is compiled,
which takes a microsecond a character and some ten for the shortest."""

CALLS_MAX = 820
"""Calls on Python's stack for one expression, of about a thousand there are. Whoever writes it as
text, folds or compares it goes down the tree call by call: four a level, six where conditions are
joined (`shapes` says which). The language reads sums of 200 levels, and a NOT may be put on top."""
