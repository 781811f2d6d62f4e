"""Advertisement forwarding [SIENA §5.2.4] and the patterns of Tables IV and V and Figure 17 [§5.3].

Server 1 has the neighbours 2 and 3; behind 2 are 4 and 5. Failed logins are offered by 4 and 5,
changes of files by 2 and 3.
"""

from __future__ import annotations

import pytest

from driftline import Event, parse
from driftline.broker.links import Role
from driftline.broker.requests import Advertise, Cancel, Publish, Subscribe, Unadvertise
from driftline.broker.settings import Settings
from driftline.language.advertising import advertisement
from driftline.model.message import Control, Interest, Offer, Steps
from driftline.model.standing import Standing
from driftline.sim.overlay import Overlay
from driftline.wire.codec import decode_control
from driftline.wire.framing import Decoder, FrameKind

LOGIN = "alarm = 'failed-login'"
ONE_ATTEMPT = f"{LOGIN} AND attempts BETWEEN 0 AND 1"
MORE = f"{LOGIN} AND attempts > 1"
FILE = "file IS NOT NULL AND operation = 'file-change'"

F = f"{LOGIN} AND attempts = 1"
G = f"{LOGIN} AND attempts = 2"
H = "file = '/etc/passwd' AND operation = 'file-change'"
PATTERN = f"SELECT * WHERE {F} THEN SELECT * WHERE {G} THEN SELECT * WHERE {H}"


class Listened(Overlay):
    """An overlay that remembers what brokers have said to one another."""

    def __init__(self) -> None:
        super().__init__(settings=Settings(advertised=True))
        self.said: list[tuple[str, str, Control]] = []

    def _arrive(self, sender, effect) -> None:
        for frame in Decoder().feed(effect.data):
            if frame.kind is FrameKind.CONTROL:
                self.said.append((sender, effect.peer, decode_control(frame.payload)))
        super()._arrive(sender, effect)

    def news(self) -> dict[tuple[str, str], set[str]]:
        """What was said since the last time: + and - with filters, advertisements, sequences."""
        told: dict[tuple[str, str], set[str]] = {}
        for here, there, message in self.said:
            assert isinstance(message, Interest | Offer)
            lines = told.setdefault((here, there), set())
            lines |= {f"+ {one}" for one in message.added.values()}
            lines |= {"-" for _ in message.removed}
            if isinstance(message, Interest):
                lines |= {f"+ {shown(one.steps)}" for one in message.sequences.values()}
        self.said.clear()
        return {link: lines for link, lines in told.items() if lines}

    def asks(self, broker: str, asked) -> dict[tuple[str, str], set[str]]:
        self.ask(self.party(f"{broker}-p", broker), asked)
        self.run()
        return self.news()


def shown(steps: Steps) -> str:
    return " THEN ".join(" OR ".join(map(str, step)) for step in steps)


def filters(condition: str) -> str:
    (one,) = parse(f"SELECT * WHERE {condition}").filters()
    return str(one)


def offers(condition: str) -> str:
    return str(advertisement(f"SELECT * WHERE {condition}"))


def advertise(condition: str) -> Advertise:
    return Advertise("", condition, advertisement(f"SELECT * WHERE {condition}"))


def subscribe(id: str, text: str) -> Subscribe:
    return Subscribe("", id, Standing.of(parse(text)))


@pytest.fixture
def overlay() -> Listened:
    overlay = Listened()
    for name in "12345":
        overlay.broker(name)
    for here, there in (("1", "2"), ("1", "3"), ("2", "4"), ("2", "5")):
        overlay.link(here, there, Role.PEER)
    overlay.run()
    overlay.said.clear()
    return overlay


def checked(overlay: Overlay) -> None:
    for name in overlay.names():
        overlay.station(name).broker._check()


def test_advertisements_go_everywhere_and_subscriptions_to_where_they_are_met(overlay) -> None:
    # Nobody offers it: nobody is told.
    assert overlay.asks("3", subscribe("s", f"SELECT * WHERE {F}")) == {}
    # An advertisement goes everywhere, and the subscription comes to meet it.
    assert overlay.asks("5", advertise(ONE_ATTEMPT)) == {
        ("5", "2"): {f"+ {offers(ONE_ATTEMPT)}"},
        ("2", "4"): {f"+ {offers(ONE_ATTEMPT)}"},
        ("2", "1"): {f"+ {offers(ONE_ATTEMPT)}"},
        ("1", "3"): {f"+ {offers(ONE_ATTEMPT)}"},
        ("3", "1"): {f"+ {filters(F)}"},
        ("1", "2"): {f"+ {filters(F)}"},
        ("2", "5"): {f"+ {filters(F)}"},
    }
    # One that it covers is told to none but those who have not heard of it from elsewhere.
    assert overlay.asks("4", advertise(f"{LOGIN} AND attempts = 1")) == {
        ("4", "2"): {f"+ {offers(f'{LOGIN} AND attempts = 1')}"},
        ("2", "5"): {f"+ {offers(f'{LOGIN} AND attempts = 1')}"},
        ("2", "4"): {f"+ {filters(F)}"},
    }
    # What cannot meet it draws nothing.
    assert ("3", "1") not in overlay.asks("4", advertise(MORE))
    # When the advertisement is taken back, so is the subscription; the other offer comes up.
    taken = overlay.asks("5", Unadvertise("", advertisement(f"SELECT * WHERE {ONE_ATTEMPT}")))
    assert taken["2", "5"] == {"-"}
    assert taken["2", "1"] == {"-", f"+ {offers(f'{LOGIN} AND attempts = 1')}"}
    checked(overlay)


def test_what_is_not_advertised_is_refused(overlay) -> None:
    overlay.asks("5", advertise(ONE_ATTEMPT))
    party = overlay.party("5-p", "5")
    overlay.asks("1", subscribe("s", "SELECT * WHERE TRUE"))
    overlay.asks("5", Publish("p", Event("log", {"alarm": "failed-login", "attempts": 2})))
    assert "attempts is not advertised" in str(party.answered["p"].refused)
    overlay.asks("5", Publish("q", Event("log", {"alarm": "failed-login", "attempts": 1})))
    assert party.answered["q"].refused is None
    assert len(overlay.parties["1-p"].told) == 1


def test_tables_4_and_5_and_figure_17(overlay) -> None:
    overlay.asks("5", advertise(ONE_ATTEMPT))
    overlay.asks("4", advertise(MORE))
    overlay.asks("2", advertise(FILE))
    overlay.asks("3", advertise(FILE))
    # Table IV, at server 1: failed logins come from 2, changes of files from 2 and 3.
    table = overlay.station("1").broker.links.offers
    for condition, providers in ((F, ["2"]), (G, ["2"]), (H, ["2", "3"])):
        (one,) = parse(f"SELECT * WHERE {condition}").filters()
        assert sorted(table.providers(one)) == providers
    # Table V: f and g are delegated together, h is asked for. Figure 17: server 2 asks 5 and 4.
    delegated = f"{filters(F)} THEN {filters(G)}"
    assert overlay.asks("1", subscribe("s", PATTERN)) == {
        ("1", "2"): {f"+ {delegated}", f"+ {filters(H)}"},
        ("1", "3"): {f"+ {filters(H)}"},
        ("2", "5"): {f"+ {filters(F)}"},
        ("2", "4"): {f"+ {filters(G)}"},
    }
    monitored = overlay.station("2").broker.links.subscriptions.monitored()
    assert [(owner, shown(steps)) for owner, steps in monitored] == [("1", delegated)]
    checked(overlay)
    # The monitor at 1 finds the pattern; that at 2 holds back what cannot be part of one.
    told = overlay.parties["1-p"].told
    login = {"alarm": "failed-login"}
    change = {"operation": "file-change", "file": "/etc/passwd"}
    sent = []
    for time, (broker, attributes) in enumerate(
        (
            ("4", login | {"attempts": 2}),  # It may have been waited for before.
            ("4", login | {"attempts": 2}),  # Held back: nothing came that it could follow.
            ("5", login | {"attempts": 1}),
            ("4", login | {"attempts": 2}),
            ("4", login | {"attempts": 2}),  # Held back.
            ("3", change | {"file": "/etc/hosts"}),
            ("3", change),
            ("2", change),
        )
    ):
        event = Event("log", attributes, time=time)
        frames = overlay.frames
        overlay.asks(broker, Publish("p", event))
        sent.append(overlay.frames > frames + 2)  # Further than to server 2 and its answer.
    assert sent[:5] == [True, False, True, True, False]
    (deliver,) = told
    assert [one.time for one in deliver.sequences["s"]] == [2, 3, 6]
    # When f comes from 3 too, no neighbour alone can look after it: f and g are asked for singly.
    news = overlay.asks("3", advertise(ONE_ATTEMPT))
    assert news["1", "2"] >= {"-", f"+ {filters(F)}", f"+ {filters(G)}"}
    assert news["1", "3"] == {f"+ {filters(F)}"}
    checked(overlay)
    # And nothing is left when the subscription ends.
    overlay.asks("1", Cancel("", "s"))
    for name in overlay.names():
        broker = overlay.station(name).broker
        assert not list(broker.links.subscriptions.monitored())
        assert len(broker.links.subscriptions.table) == 0
        broker._check()
