"""How does an event come in whose envelope is in headers, and its data in the body?

The binary mode of the HTTP binding of CloudEvents 1.0. What comes of it is what the same event
written in one piece would be: its data as JSON, as a text or as bytes by its content type, which is
`datacontenttype`.

>>> data_of("text/plain", b"hello")
{'datacontenttype': 'text/plain', 'data': 'hello'}
>>> data_of("application/json; charset=utf-8", b'{"price": 9.5}')
{'data': {'price': 9.5}}
"""

from __future__ import annotations

import base64
import re
from email.message import Message
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers

from driftline.gateway.asked import JSON, said
from driftline.gateway.problems import Refused
from driftline.language.cloudevents import SPEC_VERSION
from driftline.model.value import show

PREFIX = "ce-"
_ELSEWHERE = {
    "data": "the body",
    "data_base64": "the body",
    "datacontenttype": "Content-Type",
}
"""What is said elsewhere, and where."""
_CHARSETS = ("utf-8", "us-ascii", "iso-8859-1")
"""Those that are read as fast as they come: of all that Python knows some are not."""
_NO_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


def envelope_of(headers: Headers) -> dict[str, Any]:
    """The envelope, as headers say it; empty: they say none."""
    found: dict[str, Any] = {}
    for header, text in headers.items():
        if not header.startswith(PREFIX):
            continue
        name = header.removeprefix(PREFIX)
        if not name:
            raise Refused(422, f"header {header}: wanted a name behind it, came none")
        if name in _ELSEWHERE:
            wanted = f"it in {_ELSEWHERE[name]}"
            raise Refused(422, f"header {header}: wanted {wanted}, came it in a header")
        if name in found:
            raise Refused(422, f"header {header}: wanted it once, came it twice")
        found[name] = _text(header, text)
    if found and "specversion" not in found:
        raise Refused(422, f"header {PREFIX}specversion: wanted {SPEC_VERSION!r}, came nothing")
    return found


def _text(header: str, said: str) -> str:
    """What a header says, which may be quoted and has what is no ASCII as percents."""
    quoted = _QUOTED.fullmatch(said)
    text = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else said
    try:
        if _NO_PERCENT.search(text):
            raise ValueError
        # Headers are bytes, which were read as Latin-1; some write UTF-8 as it is.
        return unquote_to_bytes(text.encode("latin-1")).decode()
    except ValueError:
        wanted = "UTF-8, with % and two digits for what is no ASCII"
        raise Refused(422, f"header {header}: wanted {wanted}, came {show(said)}") from None


def data_of(content_type: str, raw: bytes) -> dict[str, Any]:
    """The data in a body and of what kind it is, as they are said in one piece."""
    media = content_type.partition(";")[0].strip().lower()
    group, _, form = media.partition("/")
    # JSON is what data is of which nothing is said.
    found: dict[str, Any] = {} if media in ("", JSON) else {"datacontenttype": content_type}
    if not raw:
        return found
    if not media or form == "json" or form.endswith("+json"):
        return {**found, "data": said(raw)}
    if group == "text" or form == "xml" or form.endswith("+xml"):
        return {**found, "data": _decoded(raw, content_type)}
    return {**found, "data_base64": base64.b64encode(raw).decode()}


def _decoded(raw: bytes, content_type: str) -> str:
    head = Message()
    head["Content-Type"] = content_type
    charset = str(head.get_param("charset", "utf-8")).lower()
    if charset not in _CHARSETS:
        wanted = f"one of {', '.join(_CHARSETS)}"
        raise Refused(415, f"charset of the body: wanted {wanted}, came {show(charset)}")
    try:
        return raw.decode(charset)
    except UnicodeDecodeError:
        why = f"body: wanted a text in {charset}, came what is none"
        raise Refused(422, why, "invalid-value") from None
