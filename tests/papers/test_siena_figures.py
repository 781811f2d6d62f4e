"""The scenarios of SIENA's Figures 13 to 16, message by message [SIENA §5.2.2–5.2.3].

`airline=any` of the paper is `airline IS NOT NULL`. We differ in one thing: what a broker tells a
neighbour in one step is one message. So an unsubscription and what it uncovers arrive together, and
a new subscription says which earlier ones it covers, where the paper lets the neighbour find out.
"""

from __future__ import annotations

from driftline import parse
from driftline.broker.broker import Broker
from driftline.broker.effects import Effect, Send
from driftline.broker.links import Role
from driftline.broker.requests import Subscribe, Unsubscribe
from driftline.model.filter import Filter
from driftline.model.message import Interest
from driftline.model.standing import Standing

ANY = "airline IS NOT NULL"
UA = "airline = 'UA'"
AZ = "airline = 'AZ'"
UA_TO_DEN = "airline = 'UA' AND dest = 'DEN'"
UA_FROM_DEN = "airline = 'UA' AND orig = 'DEN'"
UA_CHEAP = "airline = 'UA' AND price < 500"
AZ_CHEAP = "airline = 'AZ' AND price < 800"
TO_DEN = "dest = 'DEN'"


class Server:
    """Server 1 of the figures, and what it says to whom."""

    def __init__(self, **links: Role) -> None:
        self.broker = Broker("1")
        self._known: dict[str, dict[str, str]] = {}
        self._asked = 0
        for link, role in links.items():
            self._heard(self.broker.connect(link, role, 0))

    def subscribe(self, who: str, condition: str) -> dict[str, set[str]]:
        self._asked += 1
        standing = Standing.of(parse(f"SELECT * WHERE {condition}"))
        asked = Subscribe("", f"{who} {self._asked}", standing)
        return self._heard(self.broker.handle(asked, who, 0))

    def unsubscribe(self, who: str, condition: str) -> dict[str, set[str]]:
        general = parse(f"SELECT * WHERE {condition}")
        return self._heard(self.broker.handle(Unsubscribe("", general), who, 0))

    def hear(self, neighbour: str, condition: str) -> dict[str, set[str]]:
        """A neighbour forwards a subscription."""
        self._asked += 1
        (one,) = parse(f"SELECT * WHERE {condition}").filters()
        said = Interest({str(self._asked): one})
        return self._heard(self.broker.handle(said, neighbour, 0))

    def _heard(self, effects: list[Effect]) -> dict[str, set[str]]:
        """What each neighbour was told: + a subscription, - an unsubscription."""
        self.broker._check()
        said: dict[str, set[str]] = {}
        for effect in effects:
            if isinstance(effect, Send):
                assert isinstance(effect.message, Interest)
                known = self._known.setdefault(effect.peer, {})
                told = said.setdefault(effect.peer, set())
                for key in effect.message.removed:
                    told.add(f"- {known.pop(key)}")
                for key, one in effect.message.added.items():
                    known[key] = str(one)
                    told.add(f"+ {one}")
        return {peer: told for peer, told in said.items() if told}

    def wanted(self) -> set[str]:
        """The filters in the server's poset."""
        return {str(one) for _, one in self.broker.links.subscriptions.table}


def text(condition: str) -> str:
    (one,) = parse(f"SELECT * WHERE {condition}").filters()
    assert isinstance(one, Filter)
    return str(one)


def plus(*conditions: str) -> set[str]:
    return {f"+ {text(condition)}" for condition in conditions}


def minus(*conditions: str) -> set[str]:
    return {f"- {text(condition)}" for condition in conditions}


def test_figures_13_and_14_a_hierarchical_server() -> None:
    server = Server(**{"2": Role.MASTER})
    # 13 (a): a root subscription goes to the master.
    assert server.subscribe("a", UA) == {"2": plus(UA)}
    # 13 (b): one that is covered does not.
    assert server.subscribe("b", UA_TO_DEN) == {}
    # 13 (c): one that covers all takes the place of the first.
    assert server.subscribe("a", ANY) == {"2": plus(ANY) | minus(UA)}
    # 14: cancelling it uncovers what b wants.
    assert server.unsubscribe("a", ANY) == {"2": plus(UA_TO_DEN) | minus(ANY)}
    assert server.wanted() - {"TRUE"} == {text(UA_TO_DEN)}


def test_figure_15_subscriptions_in_an_acyclic_network() -> None:
    server = Server(**{"2": Role.PEER, "3": Role.PEER, "4": Role.PEER})
    # (a): to all but the one it came from.
    assert server.hear("3", ANY) == {"2": plus(ANY), "4": plus(ANY)}
    # (b): only to the neighbour that was not told of what covers it.
    assert server.hear("2", UA_FROM_DEN) == {"3": plus(UA_FROM_DEN)}
    # (c): a local client wants what server 3 alone has wanted so far.
    assert server.subscribe("a", ANY) == {"3": plus(ANY) | minus(UA_FROM_DEN)}


def test_figure_16_unsubscriptions_in_an_acyclic_network() -> None:
    server = Server(**{"2": Role.PEER, "3": Role.PEER, "4": Role.PEER})
    server.subscribe("a", UA)
    server.hear("3", UA)
    server.subscribe("a", AZ)
    server.subscribe("b", UA_CHEAP)
    server.hear("4", TO_DEN)
    server.subscribe("b", UA_TO_DEN)
    server.hear("3", AZ_CHEAP)
    assert server.unsubscribe("a", ANY) == {
        # Server 3 alone wants UA now; what b wants of it is no longer covered there.
        "3": minus(UA, AZ) | plus(UA_CHEAP),
        # AZ is gone everywhere; what server 3 wants of it has become a root.
        "2": minus(AZ) | plus(AZ_CHEAP),
        "4": minus(AZ) | plus(AZ_CHEAP),
    }


def test_peers_connect_and_disconnect() -> None:
    """The newcomer is told the roots; when it goes, so does what it wanted [SIENA §5.2.3.2]."""
    server = Server(**{"2": Role.PEER})
    server.subscribe("a", UA)
    server.subscribe("b", UA_TO_DEN)
    assert server._heard(server.broker.connect("3", Role.PEER, 0)) == {"3": plus(UA)}
    assert server.hear("3", ANY) == {"2": plus(ANY) | minus(UA)}
    assert server._heard(server.broker.disconnect("3", 0)) == {"2": plus(UA) | minus(ANY)}
