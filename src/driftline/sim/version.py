"""What was a view under one epoch, and since when?"""

from __future__ import annotations

from dataclasses import dataclass

from driftline.model.standing import Standing
from driftline.model.view import View
from driftline.sim.history import NEVER, Moment


@dataclass(frozen=True, slots=True)
class Version:
    """What a view is under one epoch; `begun` counts how often its id has begun anew."""

    standing: Standing
    begun: int
    asked: Moment = NEVER
    """The last change that was known when it was asked for."""

    @property
    def view(self) -> View:
        """The view."""
        assert isinstance(self.standing.statement, View)
        return self.standing.statement
