"""The walk of Figures 4 and 7: re-subscribing, and moving a variable instead [PARAM §3.5, §5.2].

Clients c1 and c2 are at broker b1, whose neighbour is b3; behind b3 is b5, with the publishers. All
want quotes of one firm, as in the paper.
"""

from __future__ import annotations

import pytest

from driftline import Event, parse
from driftline.broker.links import Role
from driftline.broker.requests import Cancel, Publish, Request, Subscribe
from driftline.model.message import Interest
from driftline.model.standing import Standing
from driftline.sim.overlay import Overlay
from driftline.wire.codec import decode_control
from driftline.wire.framing import Decoder, FrameKind

FIRM = "stockclass = 'Technology' AND firm = 'IBM'"
PARAMETRIC = parse(f"SELECT * FROM StockQuote WHERE {FIRM} AND price < :x")


class Walk(Overlay):
    """An overlay that counts what brokers say to one another of their interest."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[str, str, str, int]] = []
        for name in ("b1", "b3", "b5"):
            self.broker(name)
        self.link("b1", "b3", Role.PEER)
        self.link("b3", "b5", Role.PEER)
        self.run()
        self.said.clear()

    def _arrive(self, sender, effect) -> None:
        for frame in Decoder().feed(effect.data):
            if frame.kind is FrameKind.CONTROL:
                message = decode_control(frame.payload)
                assert isinstance(message, Interest)
                for line in _lines(message):
                    self.said.append((sender, effect.peer, line, len(frame.payload)))
        super()._arrive(sender, effect)

    def asks(self, client: str, asked: Request) -> list[tuple[str, str, str]]:
        self.said.clear()
        self.ask(self.party(client, "b1"), asked)
        self.run()
        return [one[:3] for one in self.said]

    def bytes_of(self, *steps: tuple[str, Request]) -> int:
        total = 0
        for client, asked in steps:
            self.asks(client, asked)
            total += sum({one[:2]: one[3] for one in self.said}.values())
        return total


def _lines(message: Interest) -> list[str]:
    prices = (str(one.on("price")[0]) for one in message.added.values())
    return [
        *(f"sub {price}" for price in prices),
        *("unsub" for _ in message.removed),
        *(f"upd {dict(moved)}" for moved in message.updates.values()),
    ]


def fixed(client: str, price: int) -> Subscribe:
    text = f"SELECT * FROM StockQuote WHERE {FIRM} AND price < {price}"
    return Subscribe("", f"{client} {price}", Standing.of(parse(text)))


def moving(client: str, price: float) -> Subscribe:
    return Subscribe("", client, Standing.of(PARAMETRIC, {"x": price}))


def everywhere(*lines: str) -> list[tuple[str, str, str]]:
    return [(*hop, line) for hop in (("b1", "b3"), ("b3", "b5")) for line in lines]


def test_figure_4_an_interest_that_changes_is_told_anew() -> None:
    walk = Walk()
    assert walk.asks("c1", fixed("c1", 10)) == everywhere("sub price < 10")
    # It is covered.
    assert walk.asks("c2", fixed("c2", 5)) == []
    # c1 unsubscribes, and what was covered goes on; then c1 subscribes again.
    assert walk.asks("c1", Cancel("", "c1 10")) == everywhere("upd {2: 5}")
    assert walk.asks("c1", fixed("c1", 30)) == everywhere("upd {2: 30}")


def test_figure_7_a_variable_that_moves_is_one_update_a_hop() -> None:
    walk = Walk()
    assert walk.asks("c1", moving("c1", 10)) == everywhere("sub price < 10")
    assert walk.asks("c2", moving("c2", 5)) == []
    # c1.x becomes 30: one small message on each link, which says no name of the subscriber's.
    assert walk.asks("c1", moving("c1", 30)) == everywhere("upd {2: 30}")
    # c2.x stays below what b1 wants as a whole, and goes no further.
    assert walk.asks("c2", moving("c2", 7)) == []
    # c1.x falls below c2.x, which is now all that b1 wants.
    assert walk.asks("c1", moving("c1", 6)) == everywhere("upd {2: 7}")
    # The structure changes: what is new is told with what it replaces, in one message.
    text = f"SELECT * FROM StockQuote WHERE {FIRM} AND price > 3 AND price < 8"
    other = Subscribe("", "c2", Standing.of(parse(text)))
    assert walk.asks("c2", other) == everywhere("sub price > 3", "upd {2: 6}")


def test_an_update_is_much_shorter_than_subscribing_again() -> None:
    again = Walk()
    again.asks("c1", fixed("c1", 10))
    resubscribed = again.bytes_of(("c1", Cancel("", "c1 10")), ("c1", fixed("c1", 30)))
    walk = Walk()
    walk.asks("c1", moving("c1", 10.0))
    assert 3 * walk.bytes_of(("c1", moving("c1", 29.99))) <= resubscribed


@pytest.mark.parametrize("price", [3, 8, 12])
def test_events_follow_the_variable(price: int) -> None:
    walk = Walk()
    for x in (10, 5, 30, 9, 9.5, 10):
        walk.asks("c1", moving("c1", x))
    event = Event("StockQuote", {"stockclass": "Technology", "firm": "IBM", "price": price})
    walk.ask(walk.party("p", "b5"), Publish("", event))
    walk.run()
    assert bool(walk.parties["c1"].told) is (price < 10)
    for name in walk.names():
        walk.station(name).broker._check()


def spoken(walk: Walk, text: str, **params: object) -> list[str]:
    """What b1 says to b3 when c1 has these parameters."""
    standing = Standing.of(parse(text), params)
    said = walk.asks("c1", Subscribe("", "c1", standing))
    return [line for here, there, line in said if (here, there) == ("b1", "b3")]


def seen(walk: Walk, **attributes: object) -> bool:
    before = len(walk.party("c1", "b1").told)
    walk.ask(walk.party("p", "b5"), Publish("", Event("traffic", attributes)))
    walk.run()
    return len(walk.parties["c1"].told) > before


def test_an_expression_over_variables_is_one_value_a_bound() -> None:
    """Grammar Ge [PARAM §7.3]: a square around a car."""
    walk = Walk()
    text = (
        "SELECT * FROM traffic WHERE price >= 0 AND x >= :cx - :r AND x <= :cx + :r "
        "AND y >= :cy - :r AND y <= :cy + :r"
    )
    spoken(walk, text, cx=10, cy=20, r=5)
    assert spoken(walk, text, cx=12, cy=20, r=5) == ["upd {1: 7, 2: 17}"]
    assert spoken(walk, text, cx=12, cy=20, r=6) == ["upd {1: 6, 2: 18, 3: 14, 4: 26}"]
    assert seen(walk, price=1, x=17.5, y=25)
    assert not seen(walk, price=1, x=17.5, y=27)


def test_variables_beside_attributes_are_evaluated_at_the_brokers() -> None:
    """Grammar Ga [PARAM §9.1.1]: a circle around a car. It covers nothing and is covered by nothing
    but the same, and its centre moves all the same."""
    walk = Walk()
    text = (
        "SELECT * FROM traffic WHERE price >= 0 "
        "AND sqrt((x - :cx) * (x - :cx) + (y - :cy) * (y - :cy)) <= :r"
    )
    spoken(walk, text, cx=0.0, cy=0.0, r=5.0)
    assert seen(walk, price=1, x=3, y=4)
    assert not seen(walk, price=1, x=4, y=4)
    (update,) = spoken(walk, text, cx=1.0, cy=0.0, r=5.0)
    assert update.startswith("upd ")
    assert seen(walk, price=1, x=4, y=4)
    # Where it does not reach, an event goes no further than to the broker it came to.
    frames = walk.frames
    assert not seen(walk, price=1, x=400, y=4)
    assert walk.frames == frames


def test_a_switch_suspends_and_resumes_by_one_message() -> None:
    """Grammar Gb [PARAM §9.1.2]."""
    walk = Walk()
    text = "SELECT * FROM traffic WHERE :on = TRUE AND price < :x"
    assert spoken(walk, text, on=True, x=10) == ["sub price < 10"]
    assert spoken(walk, text, on=False, x=10) == ["unsub"]
    assert not seen(walk, price=5)
    assert spoken(walk, text, on=False, x=20) == []
    assert spoken(walk, text, on=True, x=20) == ["sub price < 20"]
    assert seen(walk, price=15)
    for name in walk.names():
        walk.station(name).broker._check()
