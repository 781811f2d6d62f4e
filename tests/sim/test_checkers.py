"""Do the checkers see a broker that believes something else than it was told?"""

from __future__ import annotations

import pytest

from driftline import parse
from driftline.broker.links import MESH, Role
from driftline.broker.requests import Observed, Subscribe
from driftline.model.filter import Filter
from driftline.model.standing import Standing
from driftline.sim import checkers
from driftline.sim.checkers import Violation
from driftline.sim.overlay import Overlay


@pytest.fixture(params=[Role.PEER, Role.MESH])
def overlay(request) -> Overlay:
    """What a party at a wants is known at b."""
    overlay = Overlay()
    for name in "ab":
        overlay.broker(name)
    overlay.link("a", "b", request.param)
    party = overlay.party("p", "a")
    party.wants["s"] = Standing.of(parse("SELECT * FROM q WHERE x = 1"))
    overlay.ask(party, Subscribe("", "s", party.wants["s"]))
    overlay.run()
    checkers.quiet(overlay)
    return overlay


def other() -> Filter:
    (one,) = parse("SELECT * FROM q WHERE x = 2").filters()
    return one


def test_another_filter_under_the_same_key(overlay) -> None:
    links = overlay.station("b").broker.links
    owner = "a" if links.roles["a"] is Role.PEER else MESH
    (key,) = links.subscriptions.keys(owner)
    if owner == MESH:
        links.homes._mesh._homes["a"][key[1]] = other()
    else:
        links._want("a", key, other())
        overlay._places["b"].journal["want", "a", key] = other()
    links.tell()
    with pytest.raises(Violation, match="b does not know what a wants"):
        checkers.quiet(overlay)


def test_a_journal_that_has_not_everything(overlay) -> None:
    overlay.ask(overlay.parties["p"], Observed("v", 10))
    overlay.run()
    checkers.quiet(overlay)
    for key in list(overlay._places["a"].journal):
        journal = overlay._places["a"].journal
        value = journal.pop(key)
        with pytest.raises(AssertionError):
            checkers.quiet(overlay)
        journal[key] = value
