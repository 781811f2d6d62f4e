"""What lies where in the memory of an index?

An index is one array of 64-bit words. Everything in it is a record: a run of words at an address
(its offset in the array), whose fields are the named offsets below; address 0 is the header, so 0
also says "none". One array means one argument per call, which is what a call from Python costs
most; it can be written to a file and mapped as it is; and it grows by being resized, in place where
the system can.

How the records hang together:

    header ── table ──▶ cluster: the filters that share a type and one equality
                          ├── layers ──▶ chunks   of (lo, hi, ref) by the cell of `lo` on one axis
                          ├── families ─▶ tiles   of 64 or 512 filters as bitmaps over several axes
                          └── fields ──▶ slabs    of points (x, y, ref) by x, in each by y
    header ── directory ─▶ entries: one per filter; where it stands, and its program
                            └── program: what it asks, to be verified

An *axis* is one attribute seen as one kind of 64-bit key (see `keys`). Every constraint becomes a
closed interval of keys on an axis, or a check.
"""

from __future__ import annotations

# Keys. A value that is missing, NaN or of another kind has the key MISSING, below every interval.
MISSING = -(2**63)
LOWEST = MISSING + 1
HIGHEST = 2**63 - 1

# The kinds of axis: how an operand becomes a key.
NUMBER, PLAIN, TEXT, HASH, SPAN, PRESENCE = range(6)

# Axes that are always there: one on which every event has the key 0, and those of the type.
ALWAYS, TYPE_TEXT, TYPE_HASH, TYPE_SPAN = range(4)

# Header.
TAIL = 0  # first word never used
FREED = 1  # words below the tail that are free
ENTRIES = 2  # live entries
SEQUENCE = 3  # how many subscriptions were ever added: their order
DIRECTORY = 4  # address of the table of entry pages
DIRECTORY_CAP = 5
TOP = 6  # first entry number never used
FREE_NUMBER = 7  # first free entry number, -1 if none; they are linked
AXES = 8  # address of the axis records
AXES_CAP = 9
RULERS = 10  # address of the table of rulers by number
RULERS_CAP = 11
RULER_TOP = 12
FREE_RULER = 13
BORN = 14  # families that have tiles
CLUSTERS = 15
UNKEYED = 16  # three words: clusters without an equality, by how they name the type
FIELDS = 19
FREE = 32  # heads of the lists of free blocks, by size class
CLASSES = 96
SHARDS_AT = 128  # the table: (address, capacity << 32 | count) per shard
SHARDS = 1024
HEADER_WORDS = SHARDS_AT + 2 * SHARDS

# How a cluster names the type: not at all, by its key, or by its hash (and text).
UNTYPED, BY_TEXT, BY_HASH = range(3)

# Axis.
A_KIND = 0
A_PARTS = 1  # live parts of programs, and clusters, that use it
A_CLUSTERS = 2  # three words: clusters keyed on it, by how they name the type
A_RULER = 5
A_SEEN = 6  # bounds seen since the ruler was made
A_NEXT = 7  # make a new one when so many were seen
A_SAMPLE = 8
A_LIVE = 9  # live dimensions of families on it
A_SKETCH = 10  # four words: which of 256 classes of equality constants were seen
A_SPAN = 14  # of a hash axis: the axis of the texts themselves
AXIS_WORDS = 16
SAMPLE = 512
SKETCH_BITS = 256

# Ruler: boundaries that cut an axis into cells holding about equally many bounds.
R_NUMBER = 0
R_REFS = 1
R_AXIS = 2
R_SAMPLED = 3  # how many bounds it was made from
R_MARKS = 4
CELLS = 64
RULER_WORDS = R_MARKS + CELLS - 1

# Entry. Pages of them, so that growing moves none.
E_OWNER = 0  # the first entry of its subscription, and the next one: next << 32 | owner
E_SEQUENCE = 1
E_PROGRAM = 2
E_HOME = 3  # a chunk, a family or a field; 0 where nothing satisfies it
E_AT = 4  # place in it; in a chunk also the family it will join: family << 16 | place
ENTRY_WORDS = 5
PAGE_BITS = 10
PAGE = 1 << PAGE_BITS
NO_ENTRY = 0x7FFFFFFF

# Program: a header, then parts of three words, then the bytes of texts.
P_WORDS = 0  # words << 32 | flags << 16 | parts
P_PARTS = 1
PART_WORDS = 3  # axis << 8 | operation, a, b
MULTI = 1  # one of several entries of a subscription: report it once
DOUBT = 2  # the index finds too much: to be verified by the definition

# Operations of a program. A text operand is (byte offset from the program's start, length).
# MEMBER has sorted keys in place of a text.
RANGE, NOT, WITHIN, MEMBER, SAME_TEXT, OTHER_TEXT, PREFIX, SUFFIX, SUBSTRING = range(9)

# Operations of a letter: what a constraint says, before its operand is a key.
EQ, NE, LT, LE, GT, GE, LIKE_PREFIX, LIKE_SUFFIX, LIKE_SUBSTRING, IS, IN, ANY = range(12)
LETTER_FLAGS = 0
LETTER_PARTS = 1
LETTER_HEAD = 2
LETTER_PART = 4  # operation, axis, a, b

# What a chunk or tile says of an entry, its ref: program << 32 | number << 2 | flags. Numbers have
# 29 bits. The address of the program saves looking it up in the entry, far away from here.
CHECK = 1  # there is more to verify than the interval
CARE = 2  # MULTI or DOUBT
REF_BITS = 32

# Records that the table finds, and the homes of entries, begin by saying what they are.
TAG = 0
IS_CHUNK, IS_FAMILY, IS_CLUSTER, IS_FIELD = 1, 2, 3, 4

# Cluster.
C_TYPED = 1
C_TYPE_KEY = 2
C_AXIS = 3
C_KEY = 4
C_GUARD = 5  # a program: the texts behind keys that are hashes
C_COUNT = 6
C_LAYERS = 7
C_LAYERS_N = 8
C_LAYERS_CAP = 9
C_FAMILIES = 10  # the born ones
C_FAMILIES_N = 11
C_FAMILIES_CAP = 12
C_HASH = 13
C_FIELDS = 14  # the first; they are linked
CLUSTER_WORDS = 16

# Layer: the intervals of one width class on one axis, whose `lo` is in one run of cells.
L_KIND = 0  # axis << 8 | level
L_FROM = 1  # no interval reaches beyond L_FROM..L_TO; they only widen
L_TO = 2
L_BASE = 3  # the cell before the first; 0 where there is one cell
L_TABLE = 4  # address of the chunk per cell; of the chunk itself where there is one cell
L_COUNT = 5
LAYER_WORDS = 6
SEGMENT = 62  # cells per layer
TABLE_WORDS = SEGMENT + 2  # before and behind them stands a 0, so that every cell has neighbours
COARSER = 4  # levels up, when there are too many layers
ONE_CELL = 64  # from this level on a layer has a single cell
LIST = 65  # the level of what a small cluster holds, in no order

# Chunk: up to 1024 entries as (lo, hi, ref), one behind the other: whoever reads one end of an
# interval reads the other, and what lies in a row is fetched ahead.
K_COUNT = 1
K_CAP = 2
K_NEXT = 3
K_CLUSTER = 4
K_KIND = 5
K_CELL = 6
K_SPECIAL = 7  # how many refs carry a flag
CHUNK_HEAD = 8
ITEM_LOW = 0
ITEM_HIGH = 1
ITEM_REF = 2
ITEM_WORDS = 3
CHUNK_MAX = 1024

# Family: entries that constrain the same axes, by widely overlapping intervals.
F_HASH = 1
F_CLUSTER = 2
F_COUNT = 3
F_DIMS = 4
F_BORN = 5
F_TILES = 6
F_TILES_CAP = 7
F_BIGS = 8
F_OLD = 9  # the same axes by older rulers: emptied bit by bit
F_NEWER = 10  # the family that empties this one
F_PLACE = 11  # in its cluster's list
F_BY = 12  # 1 + the axis by which it is divided into parts; 0 if it is not
F_PARTS = 13  # how many there are
F_WHOLE = 14  # the family it is a part of
F_PATH = 15  # which part: 1, then three bits for each division
F_AXES = 16
DIMS_MAX = 8
F_RULERS = F_AXES + DIMS_MAX
F_FROM = (
    F_RULERS + DIMS_MAX
)  # on each axis no interval reaches beyond F_FROM..F_TO; they only widen
F_TO = F_FROM + DIMS_MAX
F_MEMBERS = F_TO + DIMS_MAX  # until it is born its entries stand in chunks
MEMBERS = 4
FAMILY_WORDS = F_MEMBERS + MEMBERS
DIVIDED_AT = 4096  # so many entries, and a family is divided if that tells them apart
PART_BITS = 3

# Tile: refs, then per axis the low ends and the high ends, then per axis 64 rows of bits.
SMALL = 64
BIG = 512
BIG_WORDS = BIG // 64
SMALLS_MAX = 16  # so many small tiles, and half of them become a big one

# Points: (x, y) with a ref each, in slabs. Slab i holds those from the i-th bound on and before the
# next, in the order of (x, y, number); the first bound is below all. In a slab they stand by (y,
# number), so that those between two y are a run.
N_COUNT = 0
N_SLABS = 1
N_CAP = 2
N_BOUNDS = 3  # address of as many x, y, numbers, and addresses of slabs, as there is room for
POINTS_WORDS = 4

# Slab: a head, then all y, all x, all refs, a third of the words for each; there may be room on
# both sides of them, and whoever comes or goes moves the shorter side.
S_COUNT = 0
S_WORDS = 1
S_SPECIAL = 2  # how many refs carry a flag
S_START = 3  # in each third, the first place in use
SLAB_HEAD = 4
SLAB_FIRST = 32
SLAB_WORDS = 3072  # the largest: room for 1,022

# Field: entries that are points to an event, which has intervals: below < x <= above, or from below
# on, where the axis below says so.
FIELD_HASH = 1
FIELD_CLUSTER = 2  # where a family has it
FIELD_NEXT = 3
FIELD_BEFORE = 4
FIELD_AXES = 5  # those below x, above x, below y, above y; -1 where nothing is asked
FIELD_CLOSED = 1 << 32
FIELD_POINTS = 9
FIELD_WORDS = FIELD_POINTS + POINTS_WORDS

SMALL_CLUSTER = 16  # up to so many entries a cluster is one list per axis
LAYERS_MAX = 64  # beyond so many layers, cells get coarser

# What one change can allocate at most, apart from what grows with the index.
SPARE_WORDS = 1 << 18
SPARE_PER_ENTRY = 1 << 14
SPARE_SHARE = 5  # and a 32nd of what there is: tables that double
