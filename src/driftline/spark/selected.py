"""What does a plain filter select of an event, by the text that it had at the event's number?

The files of a pipeline have whole events, each with all that it satisfied. Whoever is told of one
by itself gets the columns of its own text: those that the book says it had then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path

from driftline.model.event import ENVELOPE, Event
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.recorded.inputs import entered
from driftline.recorded.pages import Pages
from driftline.recorded.sequence import RecordedSequence


class Selected:
    """The texts with columns, by numbers; batches are gone through in their order."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._pages = Pages(checkpoint / "book")
        self._read: int | None = None
        self._start = 0
        # From which number on an id stands so; None: it has no columns, or is no more.
        self._texts: dict[str, list[tuple[int, Standing | None]]] = {}
        self._envs: list[tuple[int, Mapping[str, Value]]] = [(0, {})]
        self._sequence: RecordedSequence | None = None

    def look(self, start: int, end: int) -> bool:
        """Read of what counts for the numbers [start, end); does anybody select anything?"""
        self._start = start
        if self._read is None:
            book = self._pages.book(start)
            self._read = 0 if book is None else book.end
            if book is not None:
                self._envs = [(book.end, dict(book.env))]
                for id, standing in book.filters.items():
                    self._note(0, id, standing)
        for page in self._pages.between(self._read, end):
            for seq, id, known in page.filters:
                self._note(seq, id, known)
            for seq, name, value in page.env:
                env = {**self._envs[-1][1], name: value}
                self._envs.append((seq, {n: v for n, v in env.items() if v is not None}))
            self._read = page.end
        return bool(self._texts)

    def _note(self, seq: int, id: str, standing: Standing | None) -> None:
        if standing is not None:
            assert isinstance(standing.statement, Subscription)
            if not standing.statement.columns:
                standing = None
        texts = self._texts.get(id)
        if texts is None:
            if standing is not None:
                self._texts[id] = [(seq, standing)]
            return
        texts.append((seq, standing))
        # Of earlier ones the last that counts for this batch is enough.
        del texts[: max(0, bisect_right(texts, self._start, key=_from) - 1)]

    def of(self, seq: int, id: str, event: Event) -> Mapping[str, Value] | None:
        """What is told of the event with this number; None: all of it."""
        texts = self._texts.get(id, ())
        at = bisect_right(texts, seq, key=_from) - 1
        standing = texts[at][1] if at >= 0 else None
        if standing is None:
            return None
        assert isinstance(standing.statement, Subscription)
        if event.stamp is None:
            event = entered(event, self._recorded(seq))
        env = self._envs[max(0, bisect_right(self._envs, seq, key=_from) - 1)][1]
        values = standing.statement.select(standing.scope(event, env))
        return {
            name: value
            for name, value in values.items()
            if value is not None and name not in ENVELOPE
        }

    def _recorded(self, seq: int) -> int:
        """When the file with this number was recorded."""
        if self._sequence is None or self._sequence.end <= seq:
            self._sequence = RecordedSequence(self._checkpoint / "sequence").refresh()
        for segment, _, _ in self._sequence.between(seq, seq + 1):
            return segment.recorded
        raise AssertionError("it was recorded")


def _from(text: tuple[int, object]) -> int:
    return text[0]
