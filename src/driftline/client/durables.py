"""What can be done with durable subscriptions by their names, wherever they are attached?

await client.durables.keep("alerts", "SELECT * FROM quote WHERE price < :limit", {"limit": 10})
await client.durables.suspend("alerts")
for one in await client.durables.all():
print(one.name, one.kept)
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, NamedTuple

from driftline.errors import InvalidValue
from driftline.model.value import Value, admit
from driftline.wire import asking, by_name
from driftline.wire.asking import unpack_all


class Durable(NamedTuple):
    """A durable subscription, as its owner sees it."""

    name: str
    text: str
    rows: bool
    params: dict[str, Value]
    epoch: int
    kept: int
    """How many notifications wait until it is said that they were had."""
    next: int
    """The number of the first of these; 0: there is none."""
    attached: bool
    """Is it told to somebody who is connected?"""
    suspended: bool
    handler: str
    """What it is told through when nobody is attached; empty: nothing."""
    matched: int
    failing: str = ""
    """Why it cannot be told through its handler just now; empty: nothing is wrong."""
    attempts: int = 0
    """How often that was tried."""
    dead: int = 0
    """How many dead letters there are."""
    forgotten: int = 0
    """How many of these there were too many."""
    mark: str = ""
    """By what it is known that no other ever was, not even one of its name."""


class DeadLetter(NamedTuple):
    """What a handler has given up on."""

    id: str
    why: str
    attempts: int
    time: int
    """When it was given up, microseconds since 1970."""
    data: bytes
    """A CloudEvent, as JSON; empty if it is too large to be shown."""
    again: bool
    """Is it about to be delivered again?"""


class Durables:
    """Those of whoever is connected."""

    def __init__(self, ask: Callable[..., Coroutine[Any, Any, Any]]) -> None:
        self._ask = ask

    async def keep(
        self,
        name: str,
        text: str,
        params: Mapping[str, object] | None = None,
        *,
        rows: bool = False,
        within: float = 10.0,
    ) -> bool:
        """Let there be such a one; was there none? One that asks for something else is changed."""
        said = {one: asking.pack(admit(value, f":{one}")) for one, value in (params or {}).items()}
        within_us = round(within * 1e6)
        done = await self._ask(by_name.Keep, name, text, said, within_us, rows, rows, again=False)
        return bool(done["created"])

    async def all(self) -> list[Durable]:
        """All of them, by name."""
        found: list[Durable] = []
        while some := await self._ask(by_name.Durables, "", found[-1].name if found else ""):
            found += map(_durable, some)
        return found

    async def get(self, name: str) -> Durable:
        """One of them."""
        (found,) = await self._ask(by_name.Durables, name)
        return _durable(found)

    async def drop(self, name: str) -> None:
        """End one for good, with all that is kept for it."""
        await self._ask(by_name.Drop, name, again=False)

    async def had(self, name: str, number: int) -> None:
        """Say that everything up to a number was dealt with."""
        await self._ask(by_name.Had, name, number)

    async def suspend(self, name: str) -> None:
        """Tell nothing for now; it is kept."""
        await self._ask(by_name.Route, name, suspended=True)

    async def resume(self, name: str) -> None:
        """Tell what was kept, and go on."""
        await self._ask(by_name.Route, name, suspended=False)

    async def redirect(self, name: str, handler: str) -> None:
        """Tell it through a handler from now on, and what was not had too; empty: through none."""
        await self._ask(by_name.Route, name, handler)

    async def dead(self, name: str, *, after: str = "", most: int = 1000) -> list[DeadLetter]:
        """What its handler has given up on, the oldest first; behind the one of an id."""
        found: list[DeadLetter] = []
        while len(found) < most:
            page = await self._ask(by_name.Dead, name, after, min(100, most - len(found)))
            if not page:
                break
            found += (DeadLetter(*one) for one in page)
            after = found[-1].id
        return found

    async def redeliver(self, name: str, letters: Iterable[str] | None = None) -> int:
        """Deliver dead letters again, by their ids, None: all; how many there are of these.

        It is done when they are about to be: those that fail again are dead letters again.
        """
        return await self._count(by_name.Redeliver, name, letters)

    async def discard(self, name: str, letters: Iterable[str] | None = None) -> int:
        """Throw dead letters away, by their ids, None: all; how many there were of these."""
        return await self._count(by_name.Discard, name, letters)

    async def _count(self, kind: type[Any], name: str, letters: Iterable[str] | None) -> int:
        if isinstance(letters, str):
            raise InvalidValue("letters", "a list of ids", letters)
        named = None if letters is None else [*letters]
        return int((await self._ask(kind, name, named))["letters"])

    async def secret(self, name: str, *, renew: bool = False) -> str:
        """What its webhooks are signed with; `renew` makes another.

        What is sent from then on is signed with the last two, so that a receiver can change over.
        """
        found = await self._ask(by_name.Secret, name, renew, again=not renew)
        return str(found["secret"])


def _durable(said: dict[str, Any]) -> Durable:
    params = unpack_all(said["params"], "parameter")
    known = {name: value for name, value in params.items() if value is not None}
    return Durable(**{**said, "params": known})
