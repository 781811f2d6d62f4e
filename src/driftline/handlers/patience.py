"""When is something tried again that failed, and when is it given up?

Twice as long each time, never longer than a bound, and a little at random, so that those who lost
the same receiver do not all come back at once. Who says how long to wait is waited for, within the
same bound: nobody can make a broker wait for a year, or come back at once forever.
"""

from __future__ import annotations

from collections.abc import Callable

from driftline.handlers.outcome import Patient


class Patience:
    """How often one thing was tried, and since when. Another thing is tried from the beginning.

    Several that are handed over together are known by the first of them. All of them are
    remembered: a receiver may have had them, and knows them again only if they are the same.
    """

    def __init__(
        self, settings: Patient, clock: Callable[[], float], random: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._random = random
        self.tried: tuple[str, ...] = ()
        """By what they are known that were tried together, until they were taken or given up."""
        self._began = 0.0
        self._until = 0.0
        self.attempts = 0
        self.why = ""

    @property
    def left(self) -> float:
        """For how many seconds nothing is to be tried again."""
        return max(0.0, self._until - self._clock())

    def begin(self, *ids: str) -> None:
        """These are tried now, together."""
        if ids[:1] != self.tried[:1]:
            self._began, self.attempts = self._clock(), 0
        self.tried = ids
        self.attempts += 1

    def succeeded(self) -> None:
        """It was taken, or given up: nothing is wrong."""
        self.attempts, self.why, self.tried, self._until = 0, "", (), 0.0

    def failed(self, why: str, after: float | None = None, *, ever: bool = False) -> float | None:
        """How long to wait before it is tried again; None: no longer, which `ever` rules out."""
        self.why = why
        settings = self._settings
        if self.attempts >= settings.attempts and not ever:
            return None
        # No number is made that a float cannot hold, however often it is tried.
        doubled = settings.first * 2.0 ** min(self.attempts - 1, 60)
        delay = min(doubled, settings.longest) * (0.5 + self._random() / 2)
        if after is not None:
            delay = min(max(delay, after), settings.longest)
        if self._clock() + delay - self._began > settings.give_up and not ever:
            return None
        self._until = self._clock() + delay
        return delay
