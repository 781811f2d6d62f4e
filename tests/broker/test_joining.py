"""Does one message say what several that waited would have said in turn?"""

from __future__ import annotations

import random

import pytest

from driftline.broker.effects import SendBytes
from driftline.broker.joining import ENTRIES_MAX, groups, joined
from driftline.broker.requests import Confirm, Subscribe
from driftline.broker.station import Role, Station
from driftline.language.sql import parse
from driftline.model.filter import Filter
from driftline.model.message import Ask, Home, Interest
from driftline.model.standing import Standing
from driftline.routing.mesh import Mesh
from driftline.wire.codec import decode_control
from driftline.wire.framing import Decoder, Frame, FrameKind, encode_frame

KEYS = [str(number) for number in range(6)]


def changes(draw: random.Random) -> tuple[dict[str, Filter], tuple[str, ...]]:
    keys = draw.sample(KEYS, draw.randrange(4))
    cut = draw.randrange(len(keys) + 1)
    return {key: Filter(f"t{draw.randrange(9)}") for key in keys[:cut]}, tuple(keys[cut:])


def heard(known: dict[str, Filter], said: Interest) -> dict[str, Filter]:
    kept = {} if said.reset else {k: v for k, v in known.items() if k not in said.removed}
    return {**kept, **said.added}


@pytest.mark.parametrize("seed", range(200))
def test_interest_is_the_same_said_at_once_or_in_turn(seed: int) -> None:
    draw = random.Random(seed)
    said = [Interest(*changes(draw), reset=draw.random() < 0.2) for _ in range(5)]
    before = {key: Filter("old") for key in draw.sample(KEYS, 3)}
    known = before
    for one in said:
        known = heard(known, one)
    together = joined(said)
    assert isinstance(together, Interest)
    assert heard(before, together) == known


@pytest.mark.parametrize("seed", range(200))
def test_a_member_that_knows_some_of_it_learns_the_rest(seed: int) -> None:
    """Whatever version it has reached by another way."""
    draw = random.Random(seed)
    said = [Home("a", 1, 0, {key: Filter("old") for key in draw.sample(KEYS, 3)})]
    for version in range(2, 7):
        added, removed = changes(draw)
        said.append(Home("a", version, version - 1, added, removed))
    last = Mesh("last")
    for one in said:
        assert last.hear_home(one)
    begin = draw.randrange(1, 6)
    together = joined(said[begin:])
    assert isinstance(together, Home)
    for knows in range(begin, 6):
        mesh = Mesh("b")
        for one in said[:knows]:
            mesh.hear_home(one)
        assert mesh.hear_home(together)
        assert mesh.wants("a") == last.wants("a")
    # What does not follow on what it knows it does not take.
    behind = Mesh("c")
    for one in said[: begin - 1]:
        behind.hear_home(one)
    assert not behind.hear_home(together)


def test_what_the_neighbour_has_told_us_itself_is_not_told_again() -> None:
    first = Home("a", 2, 1, {"x": Filter("t")})
    later = Home("a", 4, 3, {"y": Filter("t")})  # Between the two it took x back, and told us so.
    assert joined([first, later]) == later


def test_many_are_parted_in_order() -> None:
    said = [Interest({f"{at} {key}": Filter(None) for key in range(400)}) for at in range(5)]
    parts = list(groups(said))
    assert [len(part) for part in parts] == [2, 2, 1]
    assert [one for part in parts for one in part] == said
    assert all(len(joined(part).added) <= ENTRIES_MAX for part in parts)
    assert list(groups([])) == []


def wanting(text: str) -> Standing:
    return Standing.of(parse(f"SELECT * FROM q WHERE {text}"))


def test_interest_waits_while_some_is_on_its_way_but_not_behind_a_question() -> None:
    station = Station("a")
    (hello,) = sent(station.connect("b", Role.PEER, 0))
    mine = hello.sender
    frames = sent(station.receive("b", frame(FrameKind.HELLO, 9, mine), 0))
    (first,) = [one for one in frames if one.kind is FrameKind.CONTROL]
    assert decode_control(first.payload) == Interest(reset=True)
    for at in range(3):
        asked = Subscribe(f"r{at}", f"s{at}", wanting(f"x = {at}"))
        assert not sent(station.ask("p", asked, 0)), "the first is not acknowledged yet"
    (one,) = sent(station.receive("b", frame(FrameKind.ACK, 9, mine, first.sequence), 0))
    together = decode_control(one.payload)
    assert isinstance(together, Interest)
    assert [str(wanted) for wanted in together.added.values()] == [
        "q: x = 0",
        "q: x = 1",
        "q: x = 2",
    ]
    assert not sent(station.ask("p", Subscribe("r4", "s4", wanting("x = 4")), 0))
    told, asks = sent(station.ask("p", Confirm("r5"), 0))
    assert isinstance(decode_control(told.payload), Interest)
    assert isinstance(decode_control(asks.payload), Ask)


def sent(effects) -> list[Frame]:
    data = [one.data for one in effects if isinstance(one, SendBytes)]
    return [frame for one in data for frame in Decoder().feed(one)]


def frame(kind: FrameKind, sender: int, receiver: int, acknowledged: int = 0) -> bytes:
    return encode_frame(Frame(kind, b"", sender, receiver, 0, acknowledged))
