"""How does a mail look that tells of notifications?

Plain text for people, with all of it as JSON beside, for programs. What a subscription is called
and what an event says is written by others: in a header it can be nothing but a header's text, and
in the body nothing but a line of it.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any

import msgspec

from driftline.broker.identity import mark_of, stable_id
from driftline.handlers.outgoing import Outgoing

_SUBJECT_MOST = 150
_LINES_MOST = 200
_WORD_MOST = 500


def mail_of(
    some: list[Outgoing],
    *,
    broker: str,
    party: str,
    mark: str,
    name: str,
    sender: str,
    to: str,
    now: float,
) -> EmailMessage:
    """One mail that tells of one or several notifications, in order.

    The same ones have the same Message-ID, however often they are sent, and no others have it.
    """
    events = [one.event() for one in some]
    mail = EmailMessage(policy=SMTP)
    mail["From"] = sender
    mail["To"] = to
    mail["Subject"] = _header(_subject(name, events))
    mail["Date"] = format_datetime(datetime.fromtimestamp(now, UTC))
    domain = sender.rpartition("@")[2]
    mail["Message-ID"] = f"<{stable_id(mark, _ids(some))}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail["Precedence"] = "bulk"
    # It is sorted by: the same when the subscription is ended and made again.
    label = re.sub(r"[^\w .@-]", "_", name)[:_SUBJECT_MOST]
    mail["List-Id"] = _header(f"{label} <{mark_of(broker, party)}.{domain}>")
    mail.set_content(_text(name, broker, events), cte="quoted-printable")
    many = len(events) > 1
    mail.add_attachment(
        msgspec.json.format(msgspec.json.encode(events if many else events[0]), indent=2),
        maintype="application",
        subtype="cloudevents-batch+json" if many else "cloudevents+json",
        filename="notifications.json" if many else "notification.json",
    )
    return mail


def _ids(some: list[Outgoing]) -> str:
    """One id for all: of letters that are sent again any may have been thrown away in between."""
    if len(some) == 1:
        return some[0].id
    every = hashlib.sha256("\0".join(one.id for one in some).encode()).hexdigest()
    return f"{some[0].id}-to-{some[-1].id}-{every[:12]}"


def _line(text: str) -> str:
    """A text that is one line, whatever is in it."""
    return "".join(one if one.isprintable() else "?" for one in text)


def _header(text: str) -> str:
    """A text that can stand in a header, and means there what it says.

    >>> _header("=?utf-8?b?DQpCY2M6IHg=?=")
    '= ?utf-8?b?DQpCY2M6IHg= ?='
    """
    # The library decodes what looks like an encoded word [RFC 2047], and writes what was in it as
    # it is: also an end of the line, and another header behind it. None begins without these two.
    # Only then: what cannot be printed has become a question mark.
    return _line(text).replace("=?", "= ?")


def _subject(name: str, events: list[dict[str, Any]]) -> str:
    if len(events) > 1:
        return f"[{name}] {len(events)} notifications"[:_SUBJECT_MOST]
    data = events[0]["data"]
    words = [data["kind"], *([data["type"]] if "type" in data else [])]
    return f"[{name}] {' '.join(words)}"[:_SUBJECT_MOST]


def _text(name: str, broker: str, events: list[dict[str, Any]]) -> str:
    blocks = [_block(one) for one in events[:_LINES_MOST]]
    if len(events) > _LINES_MOST:
        blocks.append(f"… and {len(events) - _LINES_MOST} more: see the attachment")
    end = "-- \n" + _line(f"{name}, a durable subscription at {broker}")
    return "\n\n".join([*blocks, end]) + "\n"


def _block(event: dict[str, Any]) -> str:
    data = event["data"]
    if data["kind"] == "gap":
        lines = ["gap: something may not have been told"]
    else:
        what = [data["kind"], *([data["type"]] if "type" in data else [])]
        if "key" in data:
            what.append(f"[{_word(data['key'])}]")
        lines = [" ".join(what)]
        lines += [f"  {name} = {_word(value)}" for name, value in data["values"].items()]
        lines += [f"  {name} was {_word(value)}" for name, value in data.get("old", {}).items()]
    if "time" in event:
        lines.append(f"  at {event['time']}")
    lines.append(f"  id {event['id']}")
    return "\n".join(_line(line) for line in lines)


def _word(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _WORD_MOST else f"{text[:_WORD_MOST]}…"
