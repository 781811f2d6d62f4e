"""Durable subscriptions by their names, for a program without `async`; see `Durables`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from driftline.client.durables import DeadLetter, Durable, Durables


class WaitingDurables:
    """Those of whoever is connected; every call waits until it is done."""

    def __init__(self, wait: Callable[..., Any], durables: Durables) -> None:
        self._wait = wait
        self._some = durables

    def keep(
        self, name: str, text: str, params: Mapping[str, object] | None = None, **options: Any
    ) -> bool:
        """See `Durables.keep`."""
        return bool(self._wait(self._some.keep(name, text, params, **options)))

    def all(self) -> list[Durable]:
        """See `Durables.all`."""
        found: list[Durable] = self._wait(self._some.all())
        return found

    def get(self, name: str, within: float | None = None) -> Durable:
        """See `Durables.get`; `TimeoutError` if the broker does not say in so many seconds."""
        found: Durable = self._wait(self._some.get(name), within)
        return found

    def drop(self, name: str) -> None:
        """See `Durables.drop`."""
        self._wait(self._some.drop(name))

    def had(self, name: str, number: int) -> None:
        """See `Durables.had`."""
        self._wait(self._some.had(name, number))

    def suspend(self, name: str) -> None:
        """See `Durables.suspend`."""
        self._wait(self._some.suspend(name))

    def resume(self, name: str) -> None:
        """See `Durables.resume`."""
        self._wait(self._some.resume(name))

    def redirect(self, name: str, handler: str) -> None:
        """See `Durables.redirect`."""
        self._wait(self._some.redirect(name, handler))

    def dead(self, name: str, *, after: str = "", most: int = 1000) -> list[DeadLetter]:
        """See `Durables.dead`."""
        found: list[DeadLetter] = self._wait(self._some.dead(name, after=after, most=most))
        return found

    def redeliver(self, name: str, letters: Iterable[str] | None = None) -> int:
        """See `Durables.redeliver`."""
        return int(self._wait(self._some.redeliver(name, letters)))

    def discard(self, name: str, letters: Iterable[str] | None = None) -> int:
        """See `Durables.discard`."""
        return int(self._wait(self._some.discard(name, letters)))

    def secret(self, name: str, *, renew: bool = False) -> str:
        """See `Durables.secret`."""
        return str(self._wait(self._some.secret(name, renew=renew)))
