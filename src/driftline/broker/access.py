"""Who may do what? The place where it is asked, before anything is done.

A party is asked about by its name. What is published is asked about by type and attributes: once
for each form on a connection, not for each event.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from driftline.model.advertisement import Advertisement
from driftline.model.covering import Statement


class Access(Protocol):
    """Each raises `NotAllowed`, or lets it be."""

    def publish(self, party: str, type: str, attributes: Collection[str]) -> None:
        """May it publish such events?"""

    def subscribe(self, party: str, statement: Statement) -> None:
        """May it be told this?"""

    def advertise(self, party: str, says: Advertisement) -> None:
        """May it say that it will publish such events, or ask who would want them?"""

    def declare(self, party: str, table: str) -> None:
        """May it declare this table?"""

    def delete(self, party: str, table: str) -> None:
        """May it remove rows of this table?"""

    def observe(self, party: str, variable: str) -> None:
        """May it say what a variable of the environment is worth?"""

    def operate(self, party: str) -> None:
        """May it see how the broker does, and change its links?"""


class Anyone:
    """Anyone may do everything."""

    def publish(self, party: str, type: str, attributes: Collection[str]) -> None:
        """See `Access`."""

    def subscribe(self, party: str, statement: Statement) -> None:
        """See `Access`."""

    def advertise(self, party: str, says: Advertisement) -> None:
        """See `Access`."""

    def declare(self, party: str, table: str) -> None:
        """See `Access`."""

    def delete(self, party: str, table: str) -> None:
        """See `Access`."""

    def observe(self, party: str, variable: str) -> None:
        """See `Access`."""

    def operate(self, party: str) -> None:
        """See `Access`."""
