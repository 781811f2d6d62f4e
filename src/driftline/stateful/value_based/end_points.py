"""Ours for different radii: the tree of end points. [VALUE §3.2]

The BA-tree, but a node says between which values its end points lie, not between which *moves*. So
a subtree that nobody is told in is not written at all, where the paper adds the move to five of its
fields; and nothing is added up that rounds, so that floats give what the definition gives.

    value 100 → 102          up to 103.5 nobody     from 101 some         from 99.5 all: one range,
                             in here is told        are: go down          told at 102 is noted here

Who has the radius of another but not its centre begins an entry of its own: right, though not the
best where most have few radii. That is what a percentage and a strict rule need, see `Rule.fits`.
"""

from __future__ import annotations

from driftline.stateful.value_based.packed import Packed


class EndPoints(Packed):
    """See `Structure`: O(ranges log n) an event."""

    _joins = False
