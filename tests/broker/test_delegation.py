"""Does a pattern find what it would have found had nobody else looked after parts of it?"""

from __future__ import annotations

import pytest

from driftline import Event, parse
from driftline.broker.links import Role
from driftline.broker.requests import Advertise, Publish, Subscribe, Unadvertise
from driftline.broker.settings import Settings
from driftline.language.advertising import advertisement
from driftline.model.standing import Standing
from driftline.sim.overlay import Overlay, Party

F_THEN_G = "SELECT * FROM f THEN SELECT * FROM g"
ANY = advertisement("SELECT * WHERE x IS NOT NULL AND n IS NOT NULL")
ONLY_F = advertisement("SELECT * FROM f WHERE x IS NOT NULL AND n IS NOT NULL")


def overlay_of(names: str, *links: tuple[str, str, Role]) -> Overlay:
    overlay = Overlay(settings=Settings(advertised=True))
    for name in names:
        overlay.broker(name)
    for here, there, role in links:
        overlay.link(here, there, role)
    overlay.run()
    return overlay


def ask(overlay: Overlay, party: str, *requests) -> Party:
    """A party, named by its broker's letter, asks and all come to rest."""
    who = overlay.party(party, party[0])
    for asked in requests:
        overlay.ask(who, asked)
    overlay.run()
    return who


def publish(overlay: Overlay, party: str, type: str, n: int, x: int = 0) -> None:
    ask(overlay, party, Publish("p", Event(type, {"x": x, "n": n}, time=n)))


def subscribe(id: str, text: str, **params: object) -> Subscribe:
    return Subscribe("s", id, Standing.of(parse(text), params))


def found(party: Party) -> list[list[int]]:
    return [
        [event.attributes["n"] for event in whole]
        for deliver in party.told
        for whole in deliver.sequences.values()
    ]


def test_a_pattern_that_moves_onto_a_delegated_sequence_takes_its_half_with_it() -> None:
    overlay = overlay_of("ab", ("a", "b", Role.PEER))
    ask(overlay, "b", Advertise("", "1", ANY))
    text = "SELECT * FROM f WHERE x = :p THEN SELECT * FROM g"
    ask(overlay, "a1", subscribe("one", text, p=2))
    two = ask(overlay, "a2", subscribe("two", text, p=1))
    publish(overlay, "b", "g", 1)
    publish(overlay, "b", "f", 2, x=1)
    ask(overlay, "a2", subscribe("two", text, p=2))
    publish(overlay, "b", "g", 3)
    assert found(two) == [[2, 3]]


def test_what_an_asker_matches_while_it_is_cut_off_is_waited_for() -> None:
    overlay = overlay_of("ab", ("a", "b", Role.PEER))
    ask(overlay, "b", Advertise("", "1", ANY))
    party = ask(overlay, "a", subscribe("s", F_THEN_G))
    publish(overlay, "b", "g", 1)
    for link in (("a", "b"), ("b", "a")):
        overlay.cut(*link)
    other = overlay.party("a other", "a")
    overlay.ask(other, Advertise("", "1", ONLY_F))
    overlay.ask(other, Publish("p", Event("f", {"x": 0, "n": 2}, time=2)))
    overlay.ask(other, Unadvertise("", ONLY_F))
    overlay.run(overlay.now + 1000)
    overlay.crash("a", down=1000)
    overlay.run(overlay.now + 5000)
    for link in (("a", "b"), ("b", "a")):
        overlay.cut(*link, healed=True)
    overlay.run()
    publish(overlay, "b", "g", 3)
    assert found(party) == [[2, 3]]


@pytest.mark.parametrize("further", [False, True])
def test_a_source_that_withdraws_leaves_halves_that_others_complete(further: bool) -> None:
    """Also where whoever is asked has asked somebody else for the same before."""
    links = [("d", "a", Role.PEER), ("a", "b", Role.PEER), ("d", "c", Role.PEER)]
    overlay = overlay_of("abcd", *links)
    ask(overlay, "b", Advertise("", "1", ANY))
    ask(overlay, "c", Advertise("", "1", ONLY_F))
    if further:
        ask(overlay, "a", subscribe("other", F_THEN_G))
    party = ask(overlay, "d", subscribe("s", F_THEN_G))
    publish(overlay, "b", "g", 1)
    publish(overlay, "c", "f", 2)
    ask(overlay, "c", Unadvertise("", ANY))
    publish(overlay, "b", "g", 3)
    assert found(party) == [[2, 3]]


def test_in_a_mesh_a_withdrawal_may_overtake_an_event() -> None:
    mesh = [("a", "m"), ("m", "c"), ("a", "n"), ("n", "o"), ("o", "c")]
    links = [(here, there, Role.MESH) for here, there in mesh]
    overlay = overlay_of("abcmno", *links, ("a", "b", Role.PEER))
    ask(overlay, "b", Advertise("", "1", ANY))
    ask(overlay, "c", Advertise("", "1", ONLY_F))
    party = ask(overlay, "a", subscribe("s", F_THEN_G))
    overlay.pause("m", 2_000_000)
    source = overlay.party("c", "c")
    overlay.ask(source, Publish("p", Event("f", {"x": 0, "n": 2}, time=2)))
    overlay.ask(source, Unadvertise("", ONLY_F))
    overlay.run(overlay.now + 300_000)
    publish(overlay, "b", "g", 3)
    publish(overlay, "b", "g", 4)
    assert found(party) == [[2, 4]]


@pytest.mark.parametrize("role", [Role.PEER, Role.MESH])
def test_what_a_master_may_send_is_offered_on(role: Role) -> None:
    overlay = overlay_of("bmp", ("b", "m", Role.MASTER), ("p", "b", role))
    ask(overlay, "m", Advertise("", "1", ANY))
    far = ask(overlay, "p", subscribe("s", "SELECT * FROM f"))
    publish(overlay, "m", "f", 1)
    assert len(far.told) == 1
