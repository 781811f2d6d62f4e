"""Does mail go out over a real SMTP server, safely, once, and not too often?"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from email import message_from_bytes
from email.errors import HeaderParseError
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword
from hypothesis import example, given
from hypothesis import strategies as st

import driftline as dl
from driftline.handlers import mailing
from driftline.handlers.mail import mail_of
from driftline.handlers.outgoing import Outgoing
from tests.net.here import address, eventually, served
from tests.net.secured import Authority

TEXT = "SELECT * FROM quote WHERE price < :limit"
SENDER = "driftline@example.org"
USER, PASSWORD = "driftline", "correct horse"


class Post:
    """What a mail server was handed, and what it is to answer."""

    def __init__(self, *answers: str) -> None:
        self.mails: list[EmailMessage] = []
        self.offered: list[EmailMessage] = []
        """Also those that were not taken."""
        self.envelopes: list[Envelope] = []
        self.answers = [*answers]
        self.recipients: list[str] = []
        """How it answers to who the mail is for."""
        self.senders: list[str] = []
        """How it answers to who the mail is from."""
        self.greetings: list[str] = []
        """How it answers to who we are."""

    async def handle_EHLO(  # noqa: N802
        self, server: Any, session: Any, envelope: Any, name: str, responses: list[str]
    ) -> list[str]:
        if self.greetings:
            return [self.greetings.pop(0)]
        session.host_name = name
        return responses

    async def handle_HELO(self, server: Any, session: Any, envelope: Any, name: str) -> str:  # noqa: N802
        if self.greetings:
            return self.greetings.pop(0)
        session.host_name = name
        return f"250 {server.hostname}"

    async def handle_MAIL(  # noqa: N802
        self, server: Any, session: Any, envelope: Any, sender: str, options: Any
    ) -> str:
        if self.senders:
            return self.senders.pop(0)
        envelope.mail_from = sender
        return "250 OK"

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, to: str, options: Any):  # noqa: N802
        if self.recipients:
            return self.recipients.pop(0)
        envelope.rcpt_tos.append(to)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802
        assert session.ssl is not None or session.authenticated is not True
        answer = self.answers.pop(0) if self.answers else "250 OK"
        self.offered.append(message_from_bytes(envelope.content, policy=default))
        if answer.startswith("250"):
            self.envelopes.append(envelope)
            self.mails.append(message_from_bytes(envelope.content, policy=default))
        return answer


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("mail") / "keys")


@pytest.fixture(scope="module")
def tls(authority):
    said = authority.tls("mail")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(said["certificate"], said["key"])
    return context


def authenticated(server, session, envelope, mechanism, data) -> AuthResult:
    right = isinstance(data, LoginPassword) and data.password == PASSWORD.encode()
    return AuthResult(success=right, handled=right)


@pytest.fixture
def server_of(tls):
    """Starts a mail server with STARTTLS and passwords; the port of it."""
    running = []

    def start(post: Post, **options: Any) -> int:
        said = {
            "tls_context": tls,
            "require_starttls": True,
            "auth_required": True,
            "authenticator": authenticated,
            **options,
        }
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        one = Controller(post, hostname="127.0.0.1", port=port, **said)
        one.start()
        running.append(one)
        return port

    yield start
    for one in running:
        one.stop()


def table(authority: Authority, port: int, **said: Any) -> dict[str, Any]:
    settings = {
        "host": "127.0.0.1",
        "port": port,
        "sender": SENDER,
        "allow": ["*@example.org"],
        "user": USER,
        "authority": str(authority.folder / "ca.pem"),
        "first": 0.02,
        "longest": 0.1,
        "attempts": 3,
    }
    return {"email": settings | said}


@pytest.fixture(autouse=True)
def _password(monkeypatch):
    monkeypatch.setenv("DRIFTLINE_EMAIL_PASSWORD", PASSWORD)


def quote(price: float) -> dl.Event:
    return dl.Event("quote", {"price": price})


async def kept(client: Any, name: str = "alerts") -> None:
    await client.durables.keep(name, TEXT, {"limit": 10})
    await client.durables.redirect(name, "mailto:alice@example.org")


async def settled(client: Any, **wanted: Any) -> Any:
    for _ in range(1000):
        one = await client.durables.get("alerts")
        if all(getattr(one, key) == value for key, value in wanted.items()):
            return one
        await asyncio.sleep(0.01)
    raise AssertionError(f"{one}, wanted {wanted}")


def run(test: Any) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


def test_a_mail_tells_people_and_programs_over_tls_with_a_password(authority, server_of):
    post = Post()

    async def test():
        settings = table(authority, server_of(post))
        async with served(**settings) as server, dl.connect(address(server)) as client:
            await kept(client, "alerts é")
            await client.publish(quote(9.5))
            await eventually(lambda: len(post.mails) == 1)
        (mail,) = post.mails
        assert post.envelopes[0].mail_from == SENDER
        assert post.envelopes[0].rcpt_tos == ["alice@example.org"]
        assert (mail["From"], mail["To"]) == (SENDER, "alice@example.org")
        assert mail["Subject"] == "[alerts é] event quote"
        assert mail["Auto-Submitted"] == "auto-generated"
        assert mail["List-Id"].startswith("alerts é <")
        assert mail["Message-ID"].endswith("@example.org>")
        text = mail.get_body(("plain",)).get_content()
        assert "price = 9.5" in text
        (attached,) = mail.iter_attachments()
        assert attached.get_content_type() == "application/cloudevents+json"
        event = json.loads(attached.get_content())
        assert event["data"]["values"] == {"price": 9.5}
        assert event["type"] == "driftline.event"

    run(test())


def test_what_is_more_than_so_many_a_minute_is_gathered(authority, server_of):
    post = Post()

    async def test():
        settings = table(authority, server_of(post), per_minute=2, gathered=30)
        async with served(**settings) as server, dl.connect(address(server)) as client:
            await kept(client)
            await client.publish(quote(0))
            await settled(client, kept=0)
            await client.durables.suspend("alerts")
            await client.publish_many([quote(price / 10) for price in range(1, 21)])
            await client.durables.resume("alerts")
            await settled(client, kept=0)
        one, many = post.mails
        assert one["Subject"] == "[alerts] event quote"
        assert many["Subject"] == "[alerts] 20 notifications"
        (attached,) = many.iter_attachments()
        assert attached.get_content_type() == "application/cloudevents-batch+json"
        told = [event["data"]["values"]["price"] for event in json.loads(attached.get_content())]
        assert told == [price / 10 for price in range(1, 21)]

    run(test())


def test_a_server_that_says_not_now_is_asked_again_with_the_same_mail(authority, server_of):
    post = Post("451 later", "421 overloaded")
    post.recipients = ["450 greylisted"]

    async def test():
        settings = table(authority, server_of(post), attempts=10)
        async with served(**settings) as server, dl.connect(address(server)) as client:
            await kept(client)
            await client.publish(quote(1))
            one = await settled(client, kept=0)
            assert (one.dead, one.failing) == (0, "")
            assert len(post.mails) == 1

    run(test())


@pytest.mark.parametrize("where", ["data", "recipient"])
def test_what_is_refused_for_good_is_a_dead_letter_that_keeps_its_id(authority, server_of, where):
    post = Post()
    refused = "550 no such mailbox"
    (post.answers if where == "data" else post.recipients).append(refused)

    async def test():
        settings = table(authority, server_of(post))
        async with served(**settings) as server, dl.connect(address(server)) as client:
            await kept(client)
            await client.publish_many([quote(1)])
            await settled(client, kept=0, dead=1)
            (letter,) = await client.durables.dead("alerts")
            assert (letter.why, letter.attempts) == ("the mail server answered 550", 1)
            assert post.mails == []
            await client.durables.redeliver("alerts")
            await settled(client, dead=0)
            (mail,) = post.mails
            assert f"-{letter.id}@" in mail["Message-ID"]

    run(test())


def test_nothing_goes_out_without_tls_or_to_a_server_that_is_not_trusted(authority, server_of):
    post = Post()
    plain = {"tls_context": None, "require_starttls": False, "auth_required": False}

    async def test():
        for port, trusted in ((server_of(post, **plain), True), (server_of(post), False)):
            # Without a name there is nothing else that would need TLS.
            settings = table(authority, port, attempts=50, user="" if trusted else USER)
            if not trusted:
                del settings["email"]["authority"]  # Then those count whom the system trusts.
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client)
                await client.publish(quote(1))
                wanted = "the mail server cannot be reached, or not safely"
                one = await settled(client, failing=wanted)
                assert (one.kept, one.dead) == (1, 0)
        assert post.mails == []

    run(test())


def test_a_wrong_password_buries_nothing(authority, server_of, monkeypatch, caplog):
    monkeypatch.setenv("DRIFTLINE_EMAIL_PASSWORD", "wrong horse")
    post = Post()

    async def test():
        settings = table(authority, server_of(post), attempts=100)
        async with served(**settings) as server, dl.connect(address(server)) as client:
            await kept(client)
            await client.publish(quote(1))
            one = await settled(client, failing="the mail server does not know us (535)")
            assert (one.kept, one.dead) == (1, 0)

    run(test())
    assert "wrong horse" not in caplog.text


@pytest.mark.parametrize(
    ("where", "answer"),
    [
        ("greetings", "550 not from there"),
        ("senders", "530 5.7.0 authentication required"),
        ("senders", "550 5.7.1 not your address"),
        ("recipients", "530 5.7.0 authentication required"),
        ("recipients", "503 5.5.1 authenticate first"),
        ("answers", "535 5.7.8 who are you"),
    ],
    ids=lambda said: said[:8],
)
def test_what_is_wrong_with_the_account_or_the_server_buries_nothing_however_long_it_takes(
    authority, server_of, caplog, where, answer
):
    post = Post()
    getattr(post, where).extend([answer] * 8)

    async def test():
        settings = table(authority, server_of(post), attempts=2, give_up=60)
        async with served(**settings) as server, dl.connect(address(server)) as client:
            await kept(client)
            await client.publish_many([quote(1), quote(2)])
            one = await settled(client, kept=0)
            assert (one.dead, one.failing) == (0, "")
            assert len(post.mails) == 2

    run(test())
    said = [one for one in caplog.records if "b: nothing can be handed over" in one.getMessage()]
    assert len(said) == 1  # Once, and not at each try.
    assert answer[:3] in said[0].getMessage() or where == "greetings"


def test_a_server_that_greets_nobody_without_tls_buries_nothing_either(server_of):
    post = Post()
    post.greetings = ["550 not from there"] * 12
    plain = {"tls_context": None, "require_starttls": False, "auth_required": False}

    async def test():
        said = {"host": "127.0.0.1", "security": "none", "sender": SENDER, "attempts": 2}
        said |= {"allow": ["*@example.org"], "port": server_of(post, **plain)}
        settings = {"email": said | {"first": 0.02, "longest": 0.1}}
        async with served(**settings) as server, dl.connect(address(server)) as client:
            await kept(client)
            await client.publish(quote(1))
            one = await settled(client, kept=0)
            assert (one.dead, len(post.mails)) == (0, 1)

    run(test())


@pytest.mark.parametrize(
    ("where", "answer"),
    [
        ("senders", "552 5.3.4 too large"),
        ("recipients", "550 5.1.1 no such mailbox"),
        ("recipients", "556 5.1.10 takes no mail"),
        ("answers", "554 5.7.1 it looks like spam"),
    ],
    ids=lambda said: said[:8],
)
def test_what_is_wrong_with_one_mail_is_a_dead_letter_at_once(authority, server_of, where, answer):
    post = Post()
    getattr(post, where).append(answer)

    async def test():
        settings = table(authority, server_of(post))
        async with served(**settings) as server, dl.connect(address(server)) as client:
            await kept(client)
            await client.publish_many([quote(1), quote(2)])
            await settled(client, kept=0, dead=1)
            (letter,) = await client.durables.dead("alerts")
            assert (letter.why, letter.attempts) == (f"the mail server answered {answer[:3]}", 1)
            assert len(post.mails) == 1

    run(test())


def test_letters_are_gathered_too_when_they_are_delivered_again(authority, server_of):
    post = Post()
    post.answers = ["550 no such mailbox"]

    async def test():
        settings = table(authority, server_of(post), per_minute=1)
        async with served(**settings) as server, dl.connect(address(server)) as client:
            await client.durables.keep("alerts", TEXT, {"limit": 10})
            await client.publish_many([quote(1), quote(2), quote(3)])
            await client.durables.redirect("alerts", "mailto:alice@example.org")
            await settled(client, kept=0, dead=3)
            await client.durables.redeliver("alerts")
            await settled(client, dead=0)
            assert [mail["Subject"] for mail in post.mails] == ["[alerts] 3 notifications"]

    run(test())


def test_a_gathered_mail_that_is_sent_again_is_the_same_whatever_came_meanwhile(
    authority, server_of
):
    post = Post("250 OK", "451 later", "451 later")

    async def test():
        settings = table(authority, server_of(post), per_minute=2, first=0.5, longest=0.5)
        async with served(**settings) as server, dl.connect(address(server)) as client:
            await kept(client)
            await client.publish(quote(0))
            await settled(client, kept=0)
            await client.durables.suspend("alerts")
            await client.publish_many([quote(1), quote(2), quote(3)])
            await client.durables.resume("alerts")
            for more in (2, 3):
                await eventually(lambda more=more: len(post.offered) == more)
                await client.publish(quote(3 + more))
            await settled(client, kept=2)
        same = post.offered[1:4]
        assert len({mail["Message-ID"] for mail in same}) == 1
        assert [mail["Subject"] for mail in same] == ["[alerts] 3 notifications"] * 3
        assert post.mails[1]["Message-ID"] == same[0]["Message-ID"]

    run(test())


def test_letters_that_are_mailed_again_and_fail_are_the_same_mail_the_next_time(
    authority, server_of
):
    post = Post(*["550 no such mailbox"] * 3)

    async def test():
        settings = table(authority, server_of(post), per_minute=1, first=0.5)
        async with served(**settings) as server, dl.connect(address(server)) as client:
            await client.durables.keep("alerts", TEXT, {"limit": 10})
            await client.publish_many([quote(1), quote(2), quote(3)])
            await client.durables.redirect("alerts", "mailto:alice@example.org")
            await settled(client, kept=0, dead=3)
            letters = await client.durables.dead("alerts")
            # However many mails that took.
            before, post.answers = len(post.offered), ["451 later"]
            await client.durables.redeliver("alerts", [one.id for one in letters[:2]])
            await eventually(lambda: len(post.offered) == before + 1)
            await client.durables.redeliver("alerts")
            await eventually(lambda: len(post.mails) == 1)
        first, again = post.offered[before : before + 2]
        assert first["Message-ID"] == again["Message-ID"]
        assert again["Subject"] == "[alerts] 2 notifications"

    run(test())


@pytest.mark.parametrize("problem", [HeaderParseError("x"), ValueError("x")])
def test_of_what_no_mail_can_be_made_there_is_a_letter_and_the_next_goes_on(
    authority, server_of, monkeypatch, problem
):
    post = Post()

    def made(some: list[Outgoing], **said: Any) -> EmailMessage:
        if some[0].event()["data"]["values"]["price"] == 1:
            raise problem
        return mail_of(some, **said)

    monkeypatch.setattr(mailing, "mail_of", made)

    async def test():
        settings = table(authority, server_of(post))
        async with served(**settings) as server, dl.connect(address(server)) as client:
            await kept(client)
            await client.publish_many([quote(1), quote(2)])
            await settled(client, kept=0, dead=1)
            (letter,) = await client.durables.dead("alerts")
            assert letter.why == f"no mail can be made of it: {type(problem).__name__}"
            assert len(post.mails) == 1

    run(test())


HOSTILE = "x\r\nBcc: mallory@evil.example\r\n\r\nbody\0\x1b[2J\u2028"


def test_nothing_that_others_write_becomes_a_header_of_its_own():
    event = {
        "id": HOSTILE,
        "time": HOSTILE,
        "data": {"kind": "event", "type": HOSTILE, "key": HOSTILE, "values": {HOSTILE: HOSTILE}},
    }
    body = json.dumps(event).encode()
    mail = mail_of(
        [Outgoing("7", 7, body)],
        broker="b",
        party="alice/x",
        mark="m",
        name="x> <y@evil.example>, \u202e",
        sender=SENDER,
        to="alice@example.org",
        now=0.0,
    )
    raw = mail.as_bytes()
    back = message_from_bytes(raw, policy=default)
    assert back["Bcc"] is None
    assert b"\nBcc:" not in raw.split(b"\r\n\r\n")[0]
    assert back["To"] == "alice@example.org"
    assert back["List-Id"].count("<") == 1
    assert all(len(line) <= 998 for line in raw.split(b"\r\n"))
    (attached,) = back.iter_attachments()
    assert json.loads(attached.get_content()) == event


HEADERS = [
    "From",
    "To",
    "Subject",
    "Date",
    "Message-ID",
    "Auto-Submitted",
    "Precedence",
    "List-Id",
    "MIME-Version",
    "Content-Type",
]
PIECES = [
    "=?utf-8?q?",
    "=0D=0A",
    "Bcc:=20x@y",
    "?=",
    "=?utf-8?b?DQpCY2M6IHhAeQ0KDQpmb3JnZWQ=?=",
    "=?us-ascii?q?=0A?=",
    "=",
    "?",
    "\x00",
    "\r\n",
    "\u2028",
    " ",
    "<",
    ">",
    '"',
    "(",
    "\\",
    ",",
    ";",
    ":",
    "@",
    "é",
    "a" * 80,
    "\U0001f600" * 30,
    "--",
    "\xa0",
]
texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join)


@given(name=texts, type=texts, attribute=texts, value=texts)
@example(name="x", type="=?utf-8?b?DQpCY2M6IHhAeQ0KDQpmb3JnZWQ=?=", attribute="a", value="b")
@example(name="=?us-ascii?q?=0A?=", type="x", attribute="a", value="b")
@example(name="x", type="=\0utf-8?q?=0D=0ABcc:=20x@y?=", attribute="a", value="b")
def test_whatever_things_are_called_a_mail_has_our_headers_and_our_body(
    name, type, attribute, value
):
    event = {"id": "x", "data": {"kind": "event", "type": type, "values": {attribute: value}}}
    some = [Outgoing("7", 7, json.dumps(event).encode())]
    raw = mail_of(
        some,
        broker="b",
        party=f"alice/{name}",
        mark="m",
        name=name,
        sender=SENDER,
        to="alice@example.org",
        now=0.0,
    ).as_bytes()
    head = raw.partition(b"\r\n\r\n")[0].decode("ascii").split("\r\n")
    assert [line.partition(":")[0] for line in head if line[0] not in " \t"] == HEADERS
    assert not {"\r", "\n"} & set(raw.decode("ascii").replace("\r\n", ""))
    assert all(len(line) <= 998 for line in raw.split(b"\r\n"))
    back = message_from_bytes(raw, policy=default)
    assert back.keys() == HEADERS
    assert back["To"] == "alice@example.org"
    lines = back.get_body(("plain",)).get_content().splitlines()
    assert lines[0].startswith("event ")
    assert lines[1].startswith("  ")
    assert lines[2:5] == ["  id x", "", "-- "]
    assert lines[5].endswith(", a durable subscription at b")
    assert len(lines) == 6
    (attached,) = back.iter_attachments()
    assert json.loads(attached.get_content()) == event


def test_the_same_notifications_have_the_same_message_id_and_no_others_have_it():
    def id(some: list[Outgoing], now: float = 1.0, mark: str = "m") -> str:
        names = {"broker": "b", "party": "alice/x", "name": "x", "sender": SENDER, "to": SENDER}
        return str(mail_of(some, now=now, mark=mark, **names)["Message-ID"])

    first, second, third = (
        Outgoing(str(n), n, b'{"id": "x", "data": {"kind": "gap"}}') for n in (7, 8, 9)
    )
    every = [[first], [first, second], [first, third], [first, second, third]]
    assert [id(some, 2.0) for some in every] == [id(some) for some in every]
    assert len({id(some, mark=mark) for some in every for mark in ("m", "n")}) == 8


def test_who_ends_a_subscription_and_makes_it_again_gets_no_mail_under_an_id_of_before(
    authority, server_of, tmp_path
):
    """Also when the broker was started anew; what is sent again has the id it had."""
    post = Post("451 later")

    async def test():
        settings = table(authority, server_of(post), first=0.5) | {"journal": str(tmp_path / "j")}
        async with served(**settings) as server, dl.connect(address(server)) as client:
            await kept(client)
            await client.publish(quote(1))
            await eventually(lambda: len(post.offered) == 1)
        async with served(**settings) as server, dl.connect(address(server)) as client:
            await settled(client, kept=0)
            await client.durables.drop("alerts")
            await kept(client)
            await client.publish(quote(1))
            await settled(client, kept=0)
        before, again, other = (mail["Message-ID"] for mail in post.offered)
        assert before == again
        assert other.partition("-")[0] != again.partition("-")[0]
        assert len({mail["List-Id"] for mail in post.offered}) == 1

    run(test())
