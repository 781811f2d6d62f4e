"""How is something handed over to a mailbox?

By SMTP, to one server, over TLS unless it is on this machine. A mail server that says 5xx of a mail
has refused it for good; whatever else goes wrong is tried again. What is wrong with the server, or
with what it knows us by, is wrong with all mails alike: none is given up because of it. A
subscription may send so many mails a minute: what is more is gathered into one.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from email.errors import MessageError

from driftline.broker.identity import durable_name
from driftline.errors import InvalidValue, NotSupported
from driftline.handlers.mail import mail_of
from driftline.handlers.outcome import TAKEN, Fate, Outcome
from driftline.handlers.outgoing import Outgoing
from driftline.model.value import show
from driftline.net.mailing import MAILBOX, Email

SCHEME = "mailto:"
_FORGET = 10_000
_OF_US = frozenset({502, 503, 521, 530, 534, 535, 538})
"""Who we are was not said or not believed, or nothing is taken at all: nothing about this mail."""
_TOO_LARGE = 552
"""This is said of a mail as soon as its size is."""


class Mail:
    """The mail of one broker. See `Way`."""

    def __init__(self, broker: str, settings: Email) -> None:
        try:
            import aiosmtplib  # noqa: F401
        except ImportError:
            why = "it needs aiosmtplib: pip install driftline[open]"
            raise NotSupported("e-mail", why) from None
        self.patience = self._settings = settings
        self._broker = broker
        self._password = settings.password()
        self._tls = settings.trust()
        self._at_once = asyncio.Semaphore(int(settings.at_once))
        self._buckets: dict[str, tuple[float, float]] = {}
        """How many mails each subscription may send, and when that was."""

    def address(self, handler: str) -> str:
        """The mailbox of a handler; `InvalidValue` if nothing may be sent there."""
        to = handler.removeprefix(SCHEME)
        if not MAILBOX.fullmatch(to):
            wanted = "mailto: and one mailbox, its domain in small letters"
            raise InvalidValue("handler", wanted, show(handler[:200]))
        if not {to, f"*@{to.rpartition('@')[2]}"} & set(self._settings.allow):
            wanted = "a mailbox that mail may go to from here"
            raise InvalidValue("handler", wanted, show(to))
        return to

    def wait(self, party: str) -> float:
        """See `Way`."""
        rate = self._settings.per_minute / 60.0
        left = self._left(party)
        return 0.0 if left >= 1.0 else (1.0 - left) / rate

    def count(self, party: str, waiting: int) -> int:
        """See `Way`."""
        # If there are mails enough for all, each has one of its own.
        return 1 if self._left(party) >= waiting else min(waiting, int(self._settings.gathered))

    def _left(self, party: str) -> float:
        most = float(self._settings.per_minute)
        left, then = self._buckets.get(party, (most, 0.0))
        return min(most, left + (time.monotonic() - then) * most / 60.0)

    def _spend(self, party: str) -> None:
        if len(self._buckets) > _FORGET:
            # Who has all of theirs is as good as one who never sent anything.
            full = float(self._settings.per_minute)
            for one in [one for one in self._buckets if self._left(one) >= full]:
                del self._buckets[one]
        self._buckets[party] = self._left(party) - 1.0, time.monotonic()

    async def hand_over(
        self, party: str, mark: str, generation: int, handler: str, some: list[Outgoing]
    ) -> Outcome:
        """See `Way`."""
        to = self.address(handler)
        try:
            mail = mail_of(
                some,
                broker=self._broker,
                party=party,
                mark=mark,
                name=durable_name(party) or party,
                sender=self._settings.sender,
                to=to,
                now=time.time(),
            ).as_bytes()
        except (MessageError, ValueError) as problem:
            # Of the same there will never be one, and what follows must not wait for it.
            return Outcome(Fate.REFUSED, f"no mail can be made of it: {type(problem).__name__}")
        async with self._at_once:
            try:
                async with asyncio.timeout(4 * self._settings.timeout):
                    outcome = await self._send(mail, to)
            except TimeoutError:
                return Outcome(Fate.LATER, "the mail server does not answer")
        if outcome is TAKEN:
            # What nobody got was not too often.
            self._spend(party)
        return outcome

    async def _send(self, mail: bytes, to: str) -> Outcome:
        import aiosmtplib

        settings = self._settings
        server = aiosmtplib.SMTP(
            hostname=settings.host,
            port=settings.at,
            username=settings.user or None,
            password=self._password,
            use_tls=settings.security == "tls",
            start_tls=settings.security == "starttls",
            tls_context=None if settings.security == "none" else self._tls,
            timeout=settings.timeout,
        )
        try:
            await server.connect()
        except aiosmtplib.SMTPAuthenticationError as problem:
            # Nobody's letters are dead because a password is wrong.
            return _of_us(f"the mail server does not know us ({problem.code})")
        except (aiosmtplib.SMTPException, OSError, ValueError):
            return _of_us("the mail server cannot be reached, or not safely")
        try:
            await server.sendmail(settings.sender, [to], mail)
        except aiosmtplib.SMTPRecipientsRefused as problem:
            return _answered(problem.recipients[0].code)
        except aiosmtplib.SMTPHeloError as problem:
            return _of_us(f"the mail server answered {problem.code} to who we are")
        except aiosmtplib.SMTPSenderRefused as problem:
            # The sender is the same of all mails, and what the account may say is its server's.
            if problem.code == _TOO_LARGE:
                return _answered(problem.code)
            return _of_us(f"the mail server answered {problem.code} to who it is from")
        except aiosmtplib.SMTPResponseException as problem:
            return _answered(problem.code)
        except (aiosmtplib.SMTPException, OSError):
            return Outcome(Fate.LATER, "the connection to the mail server was lost")
        except ValueError:
            # Of addresses, before anything is sent: the library is stricter than we are.
            return Outcome(Fate.REFUSED, "no mail server can be told of this mailbox")
        else:
            # It has the mail: how it says goodbye changes nothing.
            with suppress(aiosmtplib.SMTPException, OSError, TimeoutError):
                await server.quit()
            return TAKEN
        finally:
            server.close()

    async def close(self) -> None:
        """Nothing is open between mails."""


def _of_us(why: str) -> Outcome:
    return Outcome(Fate.LATER, why, ours=True)


def _answered(code: int) -> Outcome:
    why = f"the mail server answered {code}"
    if code in _OF_US:
        return _of_us(why)
    return Outcome(Fate.REFUSED if 500 <= code < 600 else Fate.LATER, why)
