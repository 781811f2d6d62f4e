"""Where are the rows of a batch, and what is in them?

A slice names numbers of one recorded file. It is a piece like any other, and a few bytes: the stage
that needs the rows opens it, and nothing is carried to it that it can read itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from driftline.recorded.sequence import Segment, What
from driftline.spark.manifest import REFUSED
from driftline.spark.pieces import CHANGES, EVENTS, REFUSED_ROWS, Piece, piece_of, things_of

if TYPE_CHECKING:
    from driftline.recorded.pages import Pages

SLICE = "slice"


def slice_of(segment: Segment, low: int, high: int, *, changes: bool) -> Piece:
    """The rows [low, high) of a file: with changes, or with what was refused of those."""
    return things_of(SLICE, segment.first + low, [segment, low, high, changes])


def opened(pieces: Iterable[Piece], checkpoint: str) -> Iterator[Piece]:
    """The pieces, with what is in slices instead of these; each is of one file."""
    root = Path(checkpoint)
    for piece in pieces:
        if piece.table == SLICE:
            yield from _in_slice(root, *piece.things())
        else:
            yield piece


def _in_slice(root: Path, segment: Segment, low: int, high: int, changes: bool) -> Iterator[Piece]:
    if segment.what is What.EVENTS:
        # Loaded when needed: the process that plans batches, and starts often, needs none.
        from driftline.recorded.reading import read, read_columns

        for batch in read(segment, low, high, read_columns(root)):
            if batch.num_rows:
                yield piece_of(EVENTS, batch.column(0)[0].as_py(), batch)
    elif segment.what is What.CHANGES and changes:
        for page in _pages(root).between(segment.first + low, segment.first + high):
            shown = [one for one in page.shown if low <= one[0] - segment.first < high]
            if shown:
                yield things_of(CHANGES, shown[0][0], shown)
    elif not changes:
        refused: list[tuple[int, Any]] = [(segment.first, segment.problem)]
        if segment.what is What.CHANGES:
            refused = [*_pages(root).refused(segment.first + low, segment.first + high)]
        if refused:
            yield piece_of(REFUSED, segment.first, _refused(segment, refused))


def _pages(root: Path) -> Pages:
    from driftline.recorded.pages import Pages

    return Pages(root / "book")


def _refused(segment: Segment, refused: list[tuple[int, Any]]) -> pa.RecordBatch:
    numbers, problems = (list(one) for one in zip(*refused, strict=True))
    columns = [numbers, [segment.path] * len(refused), [None] * len(refused), problems]
    arrays = [pa.array(one, field.type) for one, field in zip(columns, REFUSED_ROWS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=REFUSED_ROWS)
