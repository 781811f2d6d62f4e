"""What did a subscription ask for when something was found for it?

What waits when a subscription is restated was found by what it asked for until then, and goes on
waiting. By the epoch under which it was found it is known by which text that was, for as long as
something waits.

Which way it may err: it may say that it does not know, never another text.

    >>> from driftline.language.sql import parse
    >>> first, then = parse("SELECT * FROM q WHERE x > 1"), parse("SELECT * FROM q")
    >>> restated = NEVER.again(5, first)
    >>> restated.at(4, then) is first, restated.at(5, then) is then
    (True, True)
    >>> Restated(5).at(4, then) is None
    True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from driftline.model.covering import Statement

BEFORE_MOST = 16
"""So many earlier texts of a subscription are known, the latest."""


class Former(NamedTuple):
    """Which text it had, from which epoch on."""

    since: int
    statement: Statement


@dataclass(frozen=True, slots=True)
class Restated:
    """From which epoch on a subscription has the text that it has, and which it had before."""

    since: int = 0
    before: tuple[Former, ...] = ()
    """The oldest first; none if nothing is left that was found by them."""

    def again(self, epoch: int, statement: Statement) -> Restated:
        """It asks for something else from an epoch on; until then for this."""
        former = Former(self.since, statement)
        return Restated(epoch, (*self.before, former)[-BEFORE_MOST:])

    def at(self, epoch: int, statement: Statement) -> Statement | None:
        """What it asked for under an epoch, if it asks for this now; None: it is not known."""
        if epoch >= self.since:
            return statement
        return next((one.statement for one in reversed(self.before) if epoch >= one.since), None)


NEVER = Restated()
