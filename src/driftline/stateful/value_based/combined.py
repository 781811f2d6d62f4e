"""Ours for any radii: the tree of end points over rings of classes. [VALUE §5]

An entry of the tree is a radius; where those who have it have different centres, a ring of classes
says who of them is told. A radius told as a whole, as most are, does not touch its ring.
"""

from __future__ import annotations

from driftline.stateful.value_based.packed import Packed


class Combined(Packed):
    """See `Structure`: O(ranges log n) an event."""

    _joins = True
