"""Standing subscriptions in a file: the definition's answers, however the file came about."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline import Event, parse
from driftline.errors import FileRefused
from driftline.matching import shared
from driftline.matching.columns import Columns
from driftline.matching.roster import Roster
from driftline.matching.shared import Shared
from driftline.model.standing import Standing
from driftline.testing.conditions import environments, events
from driftline.testing.strategies import standings


def standing(condition: str, start_us: int = 0, **params) -> Standing:
    return Standing.of(parse(f"SELECT * FROM quote WHERE {condition}"), params, start_us)


def told(held: Shared, batch: list[Event], env=None) -> list[list[str]]:
    found = held.match_batch(Columns.of_events(batch), env or {})
    return [found.ids(at) for at in range(len(batch))]


def by_definition(said: dict[str, Standing], batch: list[Event], env=None) -> list[list[str]]:
    return [[id for id, one in said.items() if one.matches(event, env or {})] for event in batch]


def roster(said: dict[str, Standing]) -> Roster:
    return Roster.unpacked(Roster.of(said.items()).packed())


def many(count: int = 40) -> dict[str, Standing]:
    texts = ("x > :low", "x > :low AND y < env('e')", "x > 1 OR elapsed() > :low")
    return {f"s{at}": standing(texts[at % 3], low=at % 7) for at in range(count)}


QUOTES = [Event("quote", {"x": x, "y": x % 3}, time=x * 1_000_000) for x in range(9)]


@settings(max_examples=60)
@given(data=st.data())
def test_any_rosters_one_after_the_other_are_answered_by_the_definition(
    data, tmp_path_factory
) -> None:
    path = tmp_path_factory.mktemp("shared") / "a.index"
    ids = st.sampled_from([str(number) for number in range(12)])
    said = data.draw(st.dictionaries(ids, standings(), max_size=12))
    held = Shared.of(roster(said))
    for _ in range(3):
        held._check()
        held.write(path)
        held = Shared.open(path)
        batch = data.draw(st.lists(events(), max_size=4))
        env = data.draw(environments())
        assert told(held, batch, env) == by_definition(said, batch, env)
        for id in data.draw(st.lists(ids, max_size=2)):
            said.pop(id, None)
        said |= data.draw(st.dictionaries(ids, standings(), max_size=2))
        said = dict(data.draw(st.permutations(list(said.items()))))
        held = held.renewed(roster(said)) or Shared.of(roster(said))


def test_what_has_not_changed_is_not_read(monkeypatch) -> None:
    said = many()
    held = Shared.of(roster(said))
    said["s3"] = said["s3"].moved_to({"low": 5})
    said["s4"] = standing("x = 3")
    said["new"] = standing("y < env('e')")
    del said["s5"]
    read: list[int] = []
    original = type(roster(said).reader()).__getitem__
    monkeypatch.setattr(
        "driftline.matching.roster.Reader.__getitem__",
        lambda self, place: (read.append(place), original(self, place))[1],
    )
    held = held.renewed(roster(said))
    assert held is not None
    assert held.generation == 1
    assert read == [3, 4, len(said) - 1]
    held._check()
    env = {"e": 2}
    assert told(held, QUOTES, env) == by_definition(said, QUOTES, env)


def test_answers_are_in_the_order_of_the_roster_also_where_only_that_changed() -> None:
    said = many()
    held = Shared.of(roster(said))
    said = dict(reversed(said.items()))
    held = held.renewed(roster(said))
    assert held is not None
    assert told(held, QUOTES) == by_definition(said, QUOTES)


def test_another_start_is_a_change() -> None:
    said = many() | {"late": standing("elapsed() > 5", start_us=0)}
    held = Shared.of(roster(said))
    said["late"] = standing("elapsed() > 5", start_us=4_000_000)
    held = held.renewed(roster(said))
    assert told(held, QUOTES) == by_definition(said, QUOTES)


def test_an_index_is_built_anew_where_most_has_changed_and_now_and_then(monkeypatch) -> None:
    said = many()
    other = {id: standing("x = 3") for id in said}
    assert Shared.of(roster(said)).renewed(roster(other)) is None
    assert Shared.of(roster(said)).renewed(roster({})) is None
    monkeypatch.setattr(shared, "GENERATIONS_MAX", 2)
    held = Shared.of(roster(said))
    for _ in range(2):
        held = held.renewed(roster(said))
        assert held is not None
    assert held.renewed(roster(said)) is None


def test_no_subscriptions_at_all_can_be_written_too(tmp_path) -> None:
    Shared.of(roster({})).write(tmp_path / "none.index")
    assert told(Shared.open(tmp_path / "none.index"), QUOTES) == [[]] * len(QUOTES)


@pytest.mark.parametrize("name", ["place", "digests", "evolving"])
def test_a_damaged_section_is_refused_by_name(tmp_path, name) -> None:
    path = tmp_path / "a.index"
    Shared.of(roster(many())).write(path)
    whole = path.read_bytes()
    at = shared.open_sections(path, code=shared.code()).places[name].start
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(FileRefused, match=f"whose {name} are damaged"):
        Shared.open(path)


def test_a_fingerprint_is_of_what_matching_depends_on_and_its_order() -> None:
    said = many()
    same = {id: Standing(parse(str(one.statement)), dict(one.params)) for id, one in said.items()}
    assert roster(same).fingerprint == roster(said).fingerprint
    for other in (
        dict(reversed(said.items())),
        said | {"s1": said["s1"].moved_to({"low": 9})},
        said | {"s1": standing("x > 3")},
        said | {"more": standing("x > 3")},
        {f"{id} ": one for id, one in said.items()},
    ):
        assert roster(other).fingerprint != roster(said).fingerprint
    assert len(roster(said).statements) == 3
