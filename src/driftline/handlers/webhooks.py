"""How is something handed over to a webhook?

One POST with a CloudEvent, signed. What counts is the answer's status, and of the answer nothing
else: it is not shown to anybody, hardly read, and a redirection is not followed. Who could choose
where a broker connects to, or read what it gets there, would see what only the broker can reach.

Nothing that an answer says comes along with what is sent next: receivers of one host may be
strangers to each other, and cookies of one are nothing that another should get. Nor do they share a
connection: who answers twice would have answered for whoever comes next.

Which way it may err: an answer that is lost on its way counts as none, so the receiver gets the
same again, under the same id. Never the other way: what was not answered with 2xx, by whoever
answers at its address, was not had.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from driftline.broker.identity import stable_id
from driftline.broker.parties import is_first
from driftline.errors import InvalidValue, NotSupported
from driftline.handlers.outcome import TAKEN, Fate, Outcome
from driftline.handlers.outgoing import Outgoing
from driftline.handlers.signing import derived, secret_text, signed
from driftline.model.value import show
from driftline.net.web_address import WebAddress
from driftline.net.webhooks import Webhooks as Settings

if TYPE_CHECKING:
    import httpcore
    import httpx

    from driftline.handlers.sending import Lines

_READ_WITHIN = 1.0
"""For so many seconds what is left of an answer is read, so that its connection can be used again
..."""
_READ_MOST = 32
"""... in so many pieces at most: who is slower, or says more, is connected to anew."""
_LATER = frozenset({408, 425, 429})
_ALWAYS = {"user-agent": "driftline", "accept": "*/*"}


class Webhooks:
    """The webhooks of one broker. See `Way`."""

    def __init__(self, settings: Settings) -> None:
        self.patience = self._settings = settings
        self._master = settings.master()
        self._allowed = settings.prefixes()
        self._lines = _prepare(settings.trust())
        self._at_once = asyncio.Semaphore(int(settings.at_once))
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def address(self, handler: str) -> WebAddress:
        """The address of a handler; `InvalidValue` if nothing may be sent there."""
        found = WebAddress.of(handler, "handler")
        if str(found) != handler:
            raise InvalidValue("handler", f"the plain form, {found}", show(handler))
        if not any(one.covers(found) for one in self._allowed):
            wanted = "an address that webhooks may go to from here"
            raise InvalidValue("handler", wanted, show(found.place))
        # What could never be sent is refused to whoever says it, not found out when it is sent.
        _url(found)
        return found

    def secret(self, party: str, generation: int) -> str:
        """What is signed with for a durable subscription."""
        return secret_text(derived(self._master, party, generation))

    def wait(self, party: str) -> float:
        """See `Way`."""
        return 0.0

    def count(self, party: str, waiting: int) -> int:
        """See `Way`."""
        return 1

    async def hand_over(
        self, party: str, mark: str, generation: int, handler: str, some: list[Outgoing]
    ) -> Outcome:
        """See `Way`."""
        (one,) = some
        address = self.address(handler)
        host = self._hosts.setdefault(
            address.place, asyncio.Semaphore(int(self._settings.per_host))
        )
        async with host, self._at_once:
            # With the secret before this one too: a receiver changes over when it likes.
            before = () if is_first(generation) else (generation - 1,)
            secrets = [self.secret(party, each) for each in (generation, *before)]
            headers = signed(stable_id(mark, one.id), one.body, secrets, time.time())
            headers |= one.trace()
            headers["content-type"] = "application/cloudevents+json; charset=utf-8"
            return await self._post(address, headers, one.body)

    async def _post(self, address: WebAddress, headers: dict[str, str], body: bytes) -> Outcome:
        from driftline.handlers.sending import PROBLEMS

        url = _url(address)
        said = {"host": url.netloc.decode(), "content-length": f"{len(body)}", **_ALWAYS, **headers}
        line = await self._lines.take(str(address))
        try:
            # A bound for each step would not do: a receiver could take one after another.
            async with asyncio.timeout(self._settings.timeout):
                answer = await line.post(_where(url), said.items(), body)
        except TimeoutError:
            return Outcome(Fate.LATER, f"no answer within {self._settings.timeout:g} s")
        except PROBLEMS as problem:
            return Outcome(Fate.LATER, _reason(problem))
        # It counts from here on, whatever becomes of the rest.
        outcome = judged(answer.status, _retry_after(answer))
        with suppress(*PROBLEMS, TimeoutError):
            try:
                async with asyncio.timeout(_READ_WITHIN):
                    await _read_little(answer)
            finally:
                await answer.aclose()
        self._lines.give_back(line)
        return outcome

    async def close(self) -> None:
        """End all connections."""
        await self._lines.close()


def _url(address: WebAddress) -> httpx.URL:
    """The address as the library has it; `InvalidValue` if that is not as we have it."""
    import httpx

    wanted = "an address that can be read in one way only"
    try:
        url = httpx.URL(str(address))
    except httpx.InvalidURL:
        raise InvalidValue("handler", wanted, show(str(address))) from None
    port = url.port or {"https": 443, "http": 80}[url.scheme]
    path = address.path + (f"?{address.query}" if address.query else "")
    # The host as it is sent: of `xn--…` the library would otherwise say what that stands for.
    found = (url.scheme, url.raw_host.decode(), port, url.raw_path.decode(), url.userinfo)
    if found != (address.scheme, address.host.strip("[]"), address.port, path, b""):
        raise InvalidValue("handler", wanted, show(str(address)))
    return url


def _where(url: httpx.URL) -> httpcore.URL:
    """The same, as it is sent to."""
    import httpcore

    return httpcore.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )


def _retry_after(answer: httpcore.Response) -> str | None:
    """What it says of when to come back; None: nothing, or more than one thing."""
    found = [value for name, value in answer.headers if name.lower() == b"retry-after"]
    return found[0].decode("latin-1") if len(found) == 1 else None


async def _read_little(answer: httpcore.Response) -> None:
    pieces = 0
    async for _ in answer.aiter_stream():
        pieces += 1
        if pieces > _READ_MOST:
            return


def judged(
    status: int, retry_after: str | None = None, now: Callable[[], float] = time.time
) -> Outcome:
    """What an answer means.

    >>> [judged(status).fate.value for status in (204, 302, 404, 410, 503)]
    ['taken', 'refused', 'refused', 'gone', 'later']
    >>> judged(429, "7").why, judged(429, "7").after
    ('the receiver answered 429', 7.0)
    """
    why = f"the receiver answered {status}"
    if 200 <= status < 300:
        return TAKEN
    if status == 410:
        return Outcome(Fate.GONE, why)
    if status in _LATER or status >= 500:
        return Outcome(Fate.LATER, why, _seconds(retry_after, now))
    if 300 <= status < 400:
        why += ", and redirections are not followed"
    return Outcome(Fate.REFUSED, why)


def _seconds(said: str | None, now: Callable[[], float]) -> float | None:
    """How long to wait, from a number of seconds or a date; None: nothing that can be read."""
    if said is None or len(said) > 40:
        return None
    if said.isascii() and said.isdigit():
        return float(min(int(said), 1 << 31))
    try:
        date = parsedate_to_datetime(said)
    except (TypeError, ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.fromtimestamp(now(), UTC)).total_seconds())


def _reason(problem: Exception) -> str:
    """What kind of failure it was: more may say what lies where only the broker can look."""
    import httpcore

    if isinstance(problem, httpcore.ConnectError):
        return "the receiver cannot be reached"
    if isinstance(problem, httpcore.RemoteProtocolError):
        return "the receiver did not answer in HTTP, or ended the connection"
    return "the connection to the receiver was lost"


def _prepare(tls: ssl.SSLContext) -> Lines:
    try:
        import httpx  # noqa: F401

        from driftline.handlers.sending import Lines
    except ImportError:
        raise NotSupported("webhooks", "they need httpx: pip install driftline[open]") from None

    # It would say each address, and those may be secrets.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return Lines(tls)
