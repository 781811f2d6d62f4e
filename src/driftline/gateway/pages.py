"""May a page in somebody's browser ask for this? Nobody else says which page it asks for.

A page need not be able to read an answer to do harm: what it asks for would be done. So a request
of a page whose origin is not allowed is refused, and not only its answer kept from the page.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import Response

from driftline.broker.identity import ANYONE
from driftline.gateway.problems import Refused
from driftline.model.value import show

if TYPE_CHECKING:
    from driftline.gateway.gateway import Gateway
    from driftline.gateway.visitors import Proof

METHODS = ("GET", "POST", "PUT", "DELETE")
_HEADERS = frozenset(
    (
        *("accept", "accept-language", "content-language", "content-type"),
        *("authorization", "last-event-id", "traceparent", "tracestate"),
    )
)
_ENVELOPE = "ce-"
"""What the headers begin with that say an event's envelope, extensions of anybody's among them."""
_PORTS = {"http": ":80", "https": ":443"}


def check_page(gateway: Gateway, asked: HTTPConnection, proof: Proof) -> None:
    """Refuse what a browser sends for a page that may not use this; of a WebSocket, too."""
    is_nobodys = proof.identity == ANYONE
    host = asked.headers.get("host", "")
    is_plain = _is_plain(host)
    is_ours = is_plain or _is_named(host, gateway.http.origins)
    if is_nobodys and gateway.address.is_loopback and not is_ours:
        # A page whose own name leads to this machine would be of no other origin.
        why = f"Host: wanted an address, localhost or one of http.origins, came {show(host)}"
        raise Refused(421, why)
    origin, site = asked.headers.get("origin"), asked.headers.get("sec-fetch-site")
    if origin is None:
        if site in ("cross-site", "same-site"):
            raise Refused(403, "a page of another origin may not ask for this")
        return
    # Programs send one, too, that of the address they were given. Where nobody proves who they are
    # that must be no name: anybody's name can be made to lead here.
    is_own = (is_plain or not is_nobodys) and origin.lower() == _own_origin(asked, host)
    if origin not in gateway.http.origins and not is_own:
        raise Refused(403, f"origin {show(origin)} is not in http.origins")


def _own_origin(asked: HTTPConnection, host: str) -> str:
    scheme = "https" if asked.scope["scheme"] in ("https", "wss") else "http"
    return f"{scheme}://{host.lower().removesuffix(_PORTS[scheme])}"


def _is_named(host: str, origins: Collection[str]) -> bool:
    """Is it the name of an origin whose pages may, as of a proxy in front of us?"""
    for origin in origins:
        scheme, _, name = origin.lower().partition("://")
        if host.lower().removesuffix(_PORTS[scheme]) == name.removesuffix(_PORTS[scheme]):
            return True
    return False


def _is_plain(host: str) -> bool:
    """Is it an address or this machine, which nobody can make lead elsewhere? None at all is."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name in ("localhost", ""):
            return name == "localhost" or not host
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Pages(CORSMiddleware):
    """Tells browsers which pages may ask for what. What is refused is a problem, as elsewhere."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """See `CORSMiddleware`, which knows no names by how they begin."""
        origin = request_headers["origin"]
        method = request_headers["access-control-request-method"]
        wanted = request_headers.get("access-control-request-headers", "")
        headers = {
            **self.preflight_headers,
            "Access-Control-Allow-Headers": ", ".join(sorted(_HEADERS)),
        }
        if not self.is_allowed_origin(origin):
            why = f"origin {show(origin)} is not in http.origins"
            return Refused(400, why, headers=headers).response()
        headers["Access-Control-Allow-Origin"] = origin
        if method not in METHODS:
            why = f"Access-Control-Request-Method: wanted {', '.join(METHODS)}, came {show(method)}"
            return Refused(400, why, headers=headers).response()
        names = [one.strip().lower() for one in wanted.split(",") if one.strip()]
        strange = [one for one in names if one not in _HEADERS and not one.startswith(_ENVELOPE)]
        if strange:
            known = f"{', '.join(sorted(_HEADERS))} and {_ENVELOPE}…"
            why = f"Access-Control-Request-Headers: wanted {known}, came {show(strange[0])}"
            return Refused(400, why, headers=headers).response()
        if names:
            headers["Access-Control-Allow-Headers"] = ", ".join(names)
        return Response(headers=headers)
