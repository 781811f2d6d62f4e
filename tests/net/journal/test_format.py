"""Is what was written by an earlier version still read? These bytes are a contract.

If a change to the code makes one of these fail, journals of brokers that run could not be read any
more: raise `FORMAT`, and go on reading what was.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from driftline import Event, parse
from driftline.broker.effects import Deliver, Key
from driftline.broker.letters import Letter
from driftline.broker.links import Role
from driftline.broker.restated import Former, Restated
from driftline.language.advertising import advertisement
from driftline.model.message import Neighbours, Parcel, Sequence
from driftline.model.notification import NotificationKind
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.model.view import View
from driftline.net.journal.stored import _FORMS, FORMAT, decode, encode, encode_key
from driftline.stateful.news import News
from driftline.stateful.value_based.address import Relabelling
from driftline.wire.bundles import Bundle
from driftline.wire.forms import Form

EVENT = Event("q", {"x": 7, "s": "é"}, time=1, entered=2)
ROWS = Standing(View.of_rows(parse("SELECT * FROM t WHERE x < :m")), {"m": 1.5}, 3, 4)
(FILTER,) = parse("SELECT * FROM q WHERE x > 3").filters()
OFFER = advertisement("SELECT * FROM q WHERE x > 3")
NEWS = News(NotificationKind.CHANGE, {"x": 1}, {"x": None}, (7,))

GOLDEN: list[tuple[Key, object, str]] = [
    (("advertised", "p", "a"), OFFER, "92a17192a1789193a178a13e03"),
    (("bundle", "c", "4"), Bundle(b"as it is"), "6173206974206973"),
    (("born", "p"), 3, "03"),
    (("cut",), True, "c3"),
    (
        ("dead", "p", "7-1"),
        Letter("7-1", "it answered 500", 3, 9, b"{}", True, (parse("SELECT * FROM q"),)),
        "97a3372d31af697420616e737765726564203530300309c4027b7dc39192af53454c454354202a2046524f4d2071c2",
    ),
    (
        ("deliver", "p", "5"),
        Deliver(
            "p",
            5,
            ("s",),
            EVENT,
            {"s": (EVENT,)},
            "b",
            6,
            True,
            ("g",),
            "h",
            (1,),
            {"e": 2.0},
            {"s": (NEWS,)},
        ),
        "9da1700591a173c447470000000300020000000000000000000200000000000000010000000000000000000000010000000000000000000000710101007807000000000000001001007302000000c3a981a17391c447470000000300020000000000000000000200000000000000010000000000000000000000010000000000000000000000710101007807000000000000001001007302000000c3a9a16206c391a167a168910181a165cb400000000000000081a1739194a66368616e676581a1780181a178c09107",
    ),
    (("env", "e"), 2.0, "cb4000000000000000"),
    (("forgotten", "p"), 2, "02"),
    (("form", "0"), Form("q", (("x", 1), ("s", 16))), "92a1719292a1780192a17310"),
    (("generation", "p"), 1, "01"),
    (("had", "p"), 9, "09"),
    (("handler", "p"), "h", "a168"),
    (("home",), 8, "08"),
    (("kept", "p", "9"), b"as it is", "6173206974206973"),
    (
        ("labels", "$m", "g", "7"),
        (7, (Relabelling(1, 2.0, 3.0, 4.0, None),)),
        "9207919501cb4000000000000000cb4008000000000000cb4010000000000000c0",
    ),
    (("evenly",), 5, "05"),
    (("latest",), -5, "fb"),
    (("link", "c"), Role.PEER, "a470656572"),
    (
        ("listens", "$t", "x"),
        (ROWS, "8 1"),
        "9295bc53454c454354202a2046524f4d20742057484552452078203c203a6dc381a16dcb3ff80000000000000304a3382031",
    ),
    (("mesh", "home", "c"), 3, "03"),
    (("mesh", "links", "c"), Neighbours("c", 3, ("d",)), "94aa6e65696768626f757273a1630391a164"),
    (("mesh", "offer", "c", "k"), OFFER, "92a17192a1789193a178a13e03"),
    (("mesh", "want", "c", "k"), FILTER, "92a666696c74657293a1719193a178a13e0390"),
    (("offer", "c", "k"), OFFER, "92a17192a1789193a178a13e03"),
    (
        ("out", "c", "4"),
        Parcel("b", 4, EVENT, "p", 1, ("d",), {"e": True}),
        "580000000301020004000000000000000200000000000000010000000000000001000100010000000000030000000c006270710100640301006501000000000000000101007807000000000000001001007302000000c3a9",
    ),
    (
        ("partial", "s"),
        (EVENT,),
        "91c447470000000300020000000000000000000200000000000000010000000000000000000000010000000000000000000000710101007807000000000000001001007302000000c3a9",
    ),
    (("once", "alice", "1"), bytes(range(16)), "000102030405060708090a0b0c0d0e0f"),
    (("published", "p"), (1, 2), "920102"),
    (("resync", "c", ""), (3, True), "9203c3"),
    (
        ("row", "q", "7"),
        EVENT,
        "470000000300020000000000000000000200000000000000010000000000000000000000010000000000000000000000710101007807000000000000001001007302000000c3a9",
    ),
    (("seen", "c"), 1 << 40, "cf0000010000000000"),
    (("sequence",), 2, "02"),
    (("short", "c"), True, "c3"),
    (
        ("sub", "s"),
        ("p", ROWS, 7, Restated(4, (Former(1, parse("SELECT * FROM q")),))),
        "95a17095bc53454c454354202a2046524f4d20742057484552452078203c203a6dc381a16dcb3ff80000000000000304070491920192af53454c454354202a2046524f4d2071c2",
    ),
    (("suspended", "p"), True, "c3"),
    (
        ("table", "t"),
        TableDeclaration("t", "k", {"x": Decimal("0.01")}),
        "93a174a16b81a178a4302e3031",
    ),
    (
        ("want", "c", "k"),
        Sequence(((FILTER,), (FILTER,)), 9),
        "92a873657175656e636593099193a1719193a178a13e03909193a1719193a178a13e0390",
    ),
]


FORMAT_1: list[tuple[Key, object, str]] = [
    # What it was made from is not known, nor what was asked for under epochs before this one.
    (
        ("dead", "p", "7-1"),
        Letter("7-1", "it answered 500", 3, 9, b"{}", True),
        "96a3372d31af697420616e737765726564203530300309c4027b7dc3",
    ),
    (
        ("sub", "s"),
        ("p", ROWS, 7, Restated(4)),
        "93a17095bc53454c454354202a2046524f4d20742057484552452078203c203a6dc381a16dcb3ff8000000000000030407",
    ),
]


@pytest.mark.parametrize(("key", "value", "written"), GOLDEN, ids=lambda one: str(one)[:20])
def test_these_bytes_are_what_they_were(key: Key, value: object, written: str) -> None:
    assert encode(key, value).hex() == written
    assert decode(key, bytes.fromhex(written)) == value


@pytest.mark.parametrize(("key", "value", "written"), FORMAT_1, ids=lambda one: str(one)[:20])
def test_what_was_written_before_is_read(key: Key, value: object, written: str) -> None:
    assert decode(key, bytes.fromhex(written)) == value


def test_every_kind_is_among_them() -> None:
    kinds = {"/".join(key[:2]) if key[0] == "mesh" else key[0] for key, *_ in GOLDEN}
    assert kinds == {*_FORMS}
    assert FORMAT == 2


def test_keys_are_texts_that_can_be_read() -> None:
    assert encode_key(("sub", "it's \u00e9\0")) == '["sub","it\'s é\\u0000"]'
