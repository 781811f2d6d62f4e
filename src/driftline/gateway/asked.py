"""What has somebody asked for over HTTP: which request, whose, and what is in it?"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from driftline.client.client import Client
from driftline.errors import InvalidValue, LanguageError
from driftline.gateway.bodies import NAME, NAME_MAX, Subscribing, read_json
from driftline.gateway.problems import Refused
from driftline.gateway.turns import Turns
from driftline.model.covering import Statement
from driftline.model.value import show

if TYPE_CHECKING:
    from driftline.gateway.gateway import Gateway
    from driftline.gateway.visitors import Proof

JSON = "application/json"
STRUCTURED = "application/cloudevents+json"
BODY_BYTES = 1 << 20
"""Of whatever is no event: nothing that can be asked for is longer."""
_SHORT = 1_000
"""So many letters are read in a few milliseconds."""
_NAME = re.compile(NAME)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    gateway: Gateway
    request: Request
    proof: Proof
    client: Client
    turns: Turns

    @property
    def name(self) -> str:
        """The name in its path."""
        return checked_name(str(self.request.path_params["name"]))

    def query(self, *known: str) -> dict[str, str]:
        """What its address says behind the question mark: each once, and nothing unknown. A word
        that is misspelt would be passed over, and what it asks for not be done.
        """
        found: dict[str, str] = {}
        for name, text in self.request.query_params.multi_items():
            if name not in known:
                wanted = f"only {', '.join(known)}"
                raise Refused(422, f"query: wanted {wanted}, came {show(name)}", "invalid-value")
            if name in found:
                raise Refused(
                    422, f"query: wanted {show(name)} once, came it twice", "invalid-value"
                )
            found[name] = text
        return found

    @property
    def media(self) -> str:
        """Of what kind its body is, without parameters."""
        return self.request.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def raw(self, most: int = 1 << 30) -> bytes:
        """Its body, which must come in time and be no longer than it may."""
        http, room, taker = self.gateway.http, self.gateway.unfinished, self.proof.taker
        most = min(most, http.body_bytes)
        self._check_head(most)
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(http.patience):
                async for part in self.request.stream():
                    if size + len(part) > most:
                        raise _too_large(most, "more")
                    if not room.take(taker, len(part)):
                        raise Refused(503, "too much is being said and not finished just now")
                    size += len(part)
                    parts.append(part)
        except TimeoutError:
            raise Refused(408, f"body: not all of it came in {http.patience:g} s") from None
        except ClientDisconnect:
            raise Refused(400, "the body ends early") from None
        finally:
            room.give(taker, size)
        return b"".join(parts)

    def _check_head(self, most: int) -> None:
        """Refuse a body that cannot be taken before it is sent, where its head says so."""
        coding = self.request.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("identity", ""):
            raise Refused(415, f"Content-Encoding: wanted identity or none, came {show(coding)}")
        length = self.request.headers.get("content-length", "0")
        if int(length) > most:
            raise _too_large(most, length)

    async def body(self, kind: type[Any]) -> Any:
        """Its body, which must be JSON of a kind."""
        if self.media != JSON:
            came = show(self.media) if self.media else "no content type"
            raise Refused(415, f"body: wanted {JSON}, came {came}")
        return said(await self.raw(BODY_BYTES), kind)

    async def statement(self, body: Subscribing) -> Statement:
        """What a body asks to be told, without letting others wait while it is read."""
        return await statement_of(self.turns, body)


async def statement_of(turns: Turns, body: Subscribing) -> Statement:
    """What is asked for; what may take long to be read is read aside."""
    if body.sql is not UNSET and len(body.sql) <= _SHORT:
        return body.statement()
    return await turns.aside(body.statement)


def _too_large(most: int, came: str) -> Refused:
    return Refused(413, f"body: wanted at most {most} bytes, came {came}", "too-large")


def checked_name(name: str) -> str:
    """A name that can stand in an address; `InvalidValue` for any other."""
    # In an address a name of dots leads somewhere else.
    if len(name) > NAME_MAX or not _NAME.fullmatch(name) or name in (".", ".."):
        wanted = f"1 to {NAME_MAX} letters, without / and #, and neither . nor .."
        raise InvalidValue("name", wanted, show(name))
    return name


def said(raw: bytes, kind: Any = Any, where: str = "body") -> Any:
    """What JSON says somewhere, which must be of a kind."""
    try:
        return read_json(raw, kind)
    except LanguageError as problem:
        raise Refused(400, f"{where}: {problem}", "not-json") from None
    except InvalidValue as problem:
        raise Refused(422, str(problem), "invalid-value") from None


def answer(value: object, status: int = 200) -> Response:
    """An answer in JSON."""
    return Response(msgspec.json.encode(value), status, media_type=JSON)


def done() -> Response:
    """An answer that says only that it is done."""
    return Response(status_code=204)
