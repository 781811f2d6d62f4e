"""Do events come in over HTTP in every form that people have them in?"""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

import driftline as dl
from driftline.client.client import Client
from driftline.errors import JournalFull, NotAuthenticated, Unreachable
from driftline.gateway import publishing, turns
from driftline.gateway.publishing import EVENTS_MOST, REFUSALS_MOST, published
from tests.net.here import address, gateway, http, served

OPEN = {"listen": "127.0.0.1:0", "body_bytes": 100_000, "patience": 0.5}
CLOUD = {
    "specversion": "1.0",
    "id": "7",
    "source": "/feed",
    "type": "quote",
    "time": "2026-01-31T09:30:00Z",
    "subject": "IBM",
    "data": {"price": 9.5, "firm": {"name": "IBM"}},
}


BINARY = {"ce-specversion": "1.0", "ce-type": "quote"}


def run(test, within=60.0):
    asyncio.run(asyncio.wait_for(test, within))


def told(bodies):
    """What somebody is told who asks for everything while these are posted, and the answers."""
    found: list[dl.Event] = []
    answers: list[httpx.Response] = []

    async def test():
        async with (
            served(http=OPEN) as server,
            dl.connect(address(server)) as client,
            client.subscribe("SELECT *") as s,
            httpx.AsyncClient(base_url=http(server)) as web,
        ):
            for headers, content in bodies:
                answers.append(await web.post("/v1/events", content=content, headers=headers))
            await client.confirm()
            found.extend(one.event for one in s.pending())

    run(test())
    return found, answers


def js(value):
    return json.dumps(value).encode()


def of_type(media, **more):
    return {"content-type": media, **more}


@pytest.mark.parametrize(
    ("headers", "content"),
    [
        (of_type("application/cloudevents+json"), js(CLOUD)),
        (of_type("application/cloudevents+json; charset=utf-8"), js(CLOUD)),
        (of_type("application/cloudevents-batch+json"), js([CLOUD])),
        (of_type("application/json"), js(CLOUD)),
        (of_type("application/x-ndjson"), js(CLOUD) + b"\n\n"),
        (
            of_type(
                "application/json",
                **{f"ce-{name}": str(value) for name, value in CLOUD.items() if name != "data"},
            ),
            js(CLOUD["data"]),
        ),
    ],
)
def test_one_event_in_every_form(headers, content):
    (event,), (answer,) = told([(headers, content)])
    assert (answer.status_code, answer.json()) == (200, {"published": 1})
    assert (event.type, event.id, event.source) == ("quote", "7", "/feed")
    assert dict(event.attributes) == {"price": 9.5, "firm.name": "IBM", "ce_subject": "IBM"}


@pytest.mark.parametrize(
    ("media", "content", "data", "attributes"),
    [
        ("", b"", {}, {}),
        ("", b'{"price": 9.5}', {"data": {"price": 9.5}}, {"price": 9.5}),
        ("application/json", b'{"price": 9.5}', {"data": {"price": 9.5}}, {"price": 9.5}),
        ("application/json; charset=utf-8", b'{"n": 1}', {"data": {"n": 1}}, {"n": 1}),
        ("application/vnd.quote+json", b'{"price": 9.5}', {"data": {"price": 9.5}}, None),
        ("text/json", b'{"price": 9.5}', {"data": {"price": 9.5}}, None),
        ("text/plain", b"hello", {"data": "hello"}, None),
        ("text/plain; charset=ISO-8859-1", b"\xe9", {"data": "\xe9"}, None),
        ("application/xml", "<\xe9/>".encode(), {"data": "<\xe9/>"}, None),
        ("image/svg+xml", b"<svg/>", {"data": "<svg/>"}, None),
        ("application/octet-stream", b"\x00\xff", {"data_base64": "AP8="}, None),
        ("application/x-ndjson", b"{}\n{}\n", {"data_base64": "e30Ke30K"}, None),
    ],
)
def test_data_of_every_kind_is_what_it_is_in_one_piece(media, content, data, attributes):
    """The envelope in headers or beside the data: what matches the one matches the other."""
    kind = {"datacontenttype": media} if attributes is None else {}
    whole = {"specversion": "1.0", "type": "quote", **kind, **data}
    headers = of_type(media, **BINARY) if media else BINARY
    events, answers = told(
        [(headers, content), (of_type("application/cloudevents+json"), js(whole))]
    )
    assert [one.status_code for one in answers] == [200, 200]
    parts, one = (dict(event.attributes) for event in events)
    assert parts == one
    assert attributes is None or parts == attributes
    assert parts.get("ce_datacontenttype") == kind.get("datacontenttype")


@pytest.mark.parametrize(
    ("said", "subject"),
    [
        ("Euro%20%E2%82%AC", "Euro \u20ac"),
        ('"quoted \\"text\\""', 'quoted "text"'),
        ('"%22 and %25"', '" and %'),
        ('"half', '"half'),
        ("caf\u00e9".encode(), "caf\u00e9"),
    ],
)
def test_what_headers_say_is_read_as_it_was_written(said, subject):
    headers = of_type("application/json", **BINARY, **{"ce-subject": said})
    (event,), (answer,) = told([(headers, b"{}")])
    assert answer.status_code == 200
    assert event.attributes["ce_subject"] == subject


def test_events_by_hand_one_and_several_in_order():
    many = [{"type": "tick", "n": n} for n in range(100)]
    events, answers = told(
        [
            (of_type("application/json"), js({"type": "quote", "price": 9.5})),
            (of_type("application/json"), js(many)),
            (of_type("application/x-ndjson"), b"\n".join(map(js, many))),
            (of_type("application/json"), b"[]"),
        ]
    )
    assert [one.status_code for one in answers] == [200] * 4
    assert [one.json()["published"] for one in answers] == [1, 100, 100, 0]
    assert [one.attributes.get("n") for one in events] == [None, *range(100), *range(100)]


def test_of_several_the_sound_ones_are_published_and_the_others_named():
    some = [
        {"type": "tick", "n": 1},
        {"n": 2},
        {"type": "tick", "n": [3]},
        {"type": "tick", "n": 4},
    ]
    events, (answer,) = told([(of_type("application/json"), js(some))])
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    said = answer.json()
    assert said["published"] == 2
    assert [one["index"] for one in said["refused"]] == [1, 2]
    assert "wanted a string, came nothing" in said["refused"][0]["detail"]
    assert [one.attributes["n"] for one in events] == [1, 4]


def test_each_of_very_many_that_are_refused_is_counted_as_refused():
    """Also those that are not named."""

    async def test():
        async with (
            served(http={**OPEN, "body_bytes": 1_000_000}) as server,
            dl.connect(address(server)) as client,
            httpx.AsyncClient(base_url=http(server)) as web,
        ):
            await client.declare("t", "k")
            some = [{"type": "t" if n % 3 else "tick", "n": n} for n in range(6_000)]
            said = await web.post("/v1/events", json=some)
            assert said.status_code == 422
            body = said.json()
            assert body["published"] == server.counters.published == 2_000
            assert body["detail"].startswith("4000 refused, the first at 1: table t: ")
            assert [one["index"] for one in body["refused"]] == [n for n in range(1_500) if n % 3]
            assert body["left_off"] == 3_000
            assert (await web.post("/v1/events", json=some[:300])).json().get("left_off") is None

    run(test())


def test_a_line_that_is_no_json_is_refused_by_itself():
    lines = b'{"type": "tick", "n": 1}\n{bad\n\xff\n{"type": "tick", "n": 2}'
    events, (answer,) = told([(of_type("application/x-ndjson"), lines)])
    assert answer.status_code == 422
    assert answer.json()["published"] == 2
    assert [one["index"] for one in answer.json()["refused"]] == [1, 2]
    assert "JSON" in answer.json()["refused"][0]["detail"]
    assert [one.attributes["n"] for one in events] == [1, 2]


@pytest.mark.parametrize(
    "problem",
    [Unreachable("b", "the connection was lost"), JournalFull("b.journal", "no room")],
)
def test_whether_some_of_many_were_published_is_not_said_if_nobody_knows(monkeypatch, problem):
    """Whoever is told that so many were, and which were not, never says the others again."""

    async def half(self, events, *, once=False):
        return [None, problem]

    monkeypatch.setattr(Client, "publish_each", half)

    async def test():
        async with (
            served(http=OPEN) as server,
            httpx.AsyncClient(base_url=http(server)) as web,
        ):
            # One that is refused for what it is changes nothing in that.
            some = [{"type": "tick"}, {"n": 1}, {"type": "tick"}]
            said = await web.post("/v1/events", json=some)
            assert said.status_code == 503
            assert "retry-after" in said.headers
            assert "may have been published" in said.json()["detail"]
            assert not said.json().keys() & {"published", "refused"}

    run(test())


def test_what_was_waiting_when_a_token_expired_may_have_been_published(monkeypatch):
    async def ended(self, events, *, once=False):
        self._talk.ended(NotAuthenticated("the token has expired"))
        return [NotAuthenticated("the token has expired")] * 2

    monkeypatch.setattr(Client, "publish_each", ended)

    async def test():
        async with (
            served(http=OPEN) as server,
            httpx.AsyncClient(base_url=http(server)) as web,
        ):
            said = await web.post("/v1/events", json=[{"type": "tick"}] * 2)
            assert (said.status_code, "published" in said.json()) == (503, False)

    run(test())


def test_of_several_that_are_to_be_heard_once_those_are_refused_that_nobody_could_know_again():
    async def test():
        async with (
            served(http=OPEN) as server,
            httpx.AsyncClient(base_url=http(server)) as web,
        ):
            some = [CLOUD, {"specversion": "1.0", "type": "quote"}, {**CLOUD, "id": "8"}]
            said = await web.post("/v1/events?once=true", json=some)
            assert said.status_code == 422
            assert said.json()["published"] == 2
            assert [one["index"] for one in said.json()["refused"]] == [1]

    run(test())


def test_a_request_that_is_repeated_is_heard_once():
    async def test():
        async with (
            served(http=OPEN) as server,
            dl.connect(address(server)) as client,
            client.subscribe("SELECT *") as s,
            httpx.AsyncClient(base_url=http(server)) as web,
        ):
            for id in ("7", "7", "8"):
                said = await web.post("/v1/events?once=true", json={**CLOUD, "id": id})
                assert said.json() == {"published": 1}
            assert (await web.post("/v1/events?once=x", json=CLOUD)).status_code == 422
            # Without an id nobody can tell.
            nameless = {name: value for name, value in CLOUD.items() if name != "id"}
            assert (await web.post("/v1/events?once=true", json=nameless)).status_code == 422
            await client.confirm()
            assert [one.event.id for one in s.pending()] == ["7", "8"]

    run(test())


@pytest.mark.parametrize(
    ("headers", "content", "status", "detail"),
    [
        (of_type("application/json"), b"{", 400, "JSON"),
        (of_type("application/json"), b"\xff\xfe", 400, "JSON"),
        (of_type("application/json"), b"[" * 50_000, 400, "JSON"),
        (of_type("application/json"), b" ", 400, "came nothing"),
        (of_type("application/json"), b'{"type": "x"', 400, "ends too early"),
        (of_type("application/json"), b'{"type": "\\ud800"}', 400, "half of a surrogate pair"),
        (of_type("application/json"), b'{"type": 7}', 422, "a string"),
        (of_type("application/json"), b"7", 422, "a JSON object"),
        (of_type("application/json"), b'{"type": "$rows:x"}', 422, ""),
        (of_type("application/json"), js({"type": "x", "y": "z" * 200_000}), 413, "at most"),
        (of_type("application/cloudevents-batch+json"), js(CLOUD), 422, ""),
        (of_type("text/plain"), js(CLOUD), 415, "application/json"),
        ({}, js(CLOUD), 415, "no content type"),
        (of_type("application/json", **{"ce-type": "quote"}), b"{}", 422, "ce-specversion"),
        (of_type("application/json", **BINARY, **{"ce-data": "x"}), b"{}", 422, "ce-data"),
        (of_type("text/x", **BINARY, **{"ce-datacontenttype": "a/b"}), b"", 422, "Content-Type"),
        (of_type("application/json", **BINARY, **{"ce-a": "%ff"}), b"{}", 422, "ce-a"),
        (of_type("application/json", **BINARY, **{"ce-a": "100%"}), b"{}", 422, "ce-a"),
        (of_type("application/json", **BINARY, **{"ce-a": b"\xff"}), b"{}", 422, "ce-a"),
        ([*of_type("application/json", **BINARY).items(), ("ce-type", "b")], b"{}", 422, "twice"),
        (of_type("application/json", **BINARY), b"{", 400, "JSON"),
        (of_type("application/json", **BINARY, **{"ce-": "a"}), b"{}", 422, "a name"),
        (of_type("a" * 5_000), b"{}", 415, "aaa..."),
        (of_type("text/plain", **BINARY), b"\xff", 422, "utf-8"),
        (of_type("text/plain; charset=punycode", **BINARY), b"x", 415, "punycode"),
        (of_type("application/cloudevents+avro", **BINARY), b"x", 415, "cloudevents+avro"),
    ],
)
def test_what_is_no_event_is_refused_and_said_why(headers, content, status, detail):
    events, (answer,) = told([(headers, content)])
    assert (answer.status_code, events) == (status, [])
    assert answer.headers["content-type"] == "application/problem+json"
    said = answer.json()
    assert said["status"] == status
    assert detail in said["detail"]


def test_a_body_that_does_not_end_in_time_is_not_waited_for():
    async def test():
        async with served(http=OPEN) as server:
            host, _, port = http(server).removeprefix("http://").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(
                b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100\r\n\r\n{"
            )
            assert b" 408 " in await asyncio.wait_for(reader.readline(), 5)
            writer.close()
            # A head that is not finished has no answer, and an end.
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"POST /v1/events HTTP/1.1\r\nHost")
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()

    run(test())


class Rounds:
    """How often the loop of the gateway has gone round."""

    def __init__(self, server):
        self._loop = gateway(server)._loop
        self.so_far = 0

    async def __aenter__(self):
        self._loop.call_soon_threadsafe(self._next)
        return self

    async def __aexit__(self, *_):
        self._loop = None

    def _next(self):
        self.so_far += 1
        if self._loop is not None:
            self._loop.call_soon(self._next)


BAD = 3_000


@pytest.mark.parametrize(
    ("media", "content"),
    [
        ("application/x-ndjson", b"{bad\n" * BAD),
        ("application/x-ndjson", b'{"type": 7}\n' * BAD),
        ("application/json", b"[" + b"[]," * (BAD - 1) + b"7]"),
        ("application/cloudevents-batch+json", b"[" + b"[]," * (BAD - 1) + b"7]"),
    ],
)
def test_who_sends_much_that_is_refused_takes_turns(monkeypatch, media, content):
    """Between two events others are heard, if a slice is as short as that."""
    monkeypatch.setattr(turns, "SECONDS", 0.0)
    rounds: list[int] = []
    read = publishing._read

    async def test():
        async with (
            served(http=OPEN) as server,
            httpx.AsyncClient(base_url=http(server), timeout=60) as web,
            Rounds(server) as now,
        ):

            def noted(written):
                rounds.append(now.so_far)
                return read(written)

            monkeypatch.setattr(publishing, "_read", noted)
            said = await web.post("/v1/events", content=content, headers={"content-type": media})
            assert (said.status_code, said.json()["published"]) == (422, 0)
            assert said.json()["detail"].startswith(f"{BAD} refused, the first at 0")
            refused = said.json()["refused"]
            assert [one["index"] for one in refused] == list(range(REFUSALS_MOST))
            assert len(set(rounds)) == BAD

    run(test())


def test_of_very_many_that_are_refused_little_is_kept():
    """Only what is said of the first, and nothing of what was read."""

    async def test():
        async with served() as server, dl.connect(address(server)) as client:
            some = [b"{bad %d" % n for n in range(BAD)]
            found = await published(client, turns.Turns(asyncio.Lock()), some)
            assert list(found) == list(range(BAD))
            assert len({id(one) for one in found.values()}) <= REFUSALS_MOST + 1
            assert not [one for one in found.values() if one.__traceback__ or one.__context__]

    run(test())


@pytest.mark.parametrize(
    ("media", "content"),
    [
        ("application/x-ndjson", b"7\n" * (EVENTS_MOST + 1)),
        ("application/json", b"[" + b"7," * EVENTS_MOST + b"7]"),
    ],
)
def test_more_events_than_may_be_are_refused_before_any_is_read(media, content):
    async def test():
        async with (
            served(http={**OPEN, "body_bytes": 1 << 20}) as server,
            httpx.AsyncClient(base_url=http(server), timeout=60) as web,
        ):
            said = await web.post("/v1/events", content=content, headers={"content-type": media})
            assert said.status_code == 413
            assert f"at most {EVENTS_MOST} events" in said.json()["detail"]

    run(test())


def test_what_cannot_be_read_of_one_of_several_is_refused_by_itself():
    content = b'[{"type": "tick", "n": 1}, {"type": "\xff"}, {"type": "tick", "n": 2}]'
    events, (answer,) = told([(of_type("application/json"), content)])
    assert answer.status_code == 422
    assert [one["index"] for one in answer.json()["refused"]] == [1]
    assert [one.attributes["n"] for one in events] == [1, 2]
