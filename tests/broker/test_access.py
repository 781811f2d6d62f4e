"""What is granted, and is every name that a text can use asked about?"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline import parse
from driftline.broker.access import Anyone, Granted, asked_of
from driftline.broker.grants import Grant, Grants, Names, Operation, grants_of
from driftline.broker.identity import ANYONE, durable_name, durable_of, guest_of, identity_of
from driftline.errors import InvalidValue, NotAllowed
from driftline.language.advertising import advertisement
from driftline.model.view import View
from driftline.net.access_file import read_grants

LETTERS = "abcd"
_names = st.builds(
    Names, st.booleans(), st.frozensets(st.sampled_from(LETTERS), max_size=len(LETTERS))
)


@given(_names, _names)
def test_what_is_in_one_of_two_is_in_both_together(a: Names, b: Names) -> None:
    for name in (*LETTERS, "another"):
        assert (name in a | b) == (name in a or name in b)


_WHO, _TYPES = ("alice", "bob", ANYONE), ("q", "qq", "r")
_grants = st.builds(
    Grant,
    st.frozensets(st.sampled_from([*_WHO, "*"]), min_size=1),
    st.frozensets(st.sampled_from([Operation.PUBLISH, Operation.SUBSCRIBE]), min_size=1),
    st.lists(st.sampled_from(["q", "q*", "r", "*"]), min_size=1).map(tuple),
    _names,
)


def _by_definition(
    grants: list[Grant], who: str, operation: Operation, type: str | None, name: str
) -> tuple[bool, bool]:
    """Slow and obvious: may they at all, and with this attribute?"""
    fit = []
    for one in grants:
        is_for = who in one.who or ("*" in one.who and who != ANYONE)
        if type is None:
            is_on = "*" in one.on
        else:
            is_on = any(
                type == on or (on[-1] == "*" and type[: len(on) - 1] == on[:-1]) for on in one.on
            )
        if is_for and is_on and operation in one.may:
            fit.append(one)
    return bool(fit), any(
        (name in one.attributes.listed) != one.attributes.everything for one in fit
    )


@given(st.lists(_grants, max_size=5))
def test_grants_add_up_and_whatever_none_gives_is_denied(grants: list[Grant]) -> None:
    known = Grants(grants)
    for who, operation, type, name in itertools.product(
        _WHO, (Operation.PUBLISH, Operation.SUBSCRIBE, Operation.VIEW), (*_TYPES, None), LETTERS
    ):
        names = known.names(who, operation, type)
        at_all, with_it = _by_definition(grants, who, operation, type, name)
        assert (names is not None) == at_all
        assert (names is not None and name in names) == with_it


TEXTS = [
    ("SELECT * FROM q WHERE a > 1", {"q": "a"}),
    ("SELECT b FROM q", {"q": "b"}),
    ("SELECT b + 1 AS z FROM q WHERE a IS NULL", {"q": "ab"}),
    ("SELECT * FROM q WHERE NOT (a = 1 OR b LIKE 'x%')", {"q": "ab"}),
    ("SELECT * FROM q WHERE a BETWEEN :p - c AND :p", {"q": "ac"}),
    ("SELECT * FROM q WHERE a IN (1, 2) AND :p < CASE WHEN b > 1 THEN c ELSE d END", {"q": "abcd"}),
    ("SELECT * FROM q WHERE sqrt(a) > abs(b)", {"q": "ab"}),
    ("SELECT * WHERE a > 1", {None: "a"}),
    ("SELECT a FROM q WHERE b = 1 AND moved(c, by => 2)", {"q": "abc"}),
    ("SELECT a FROM q WHERE crossed(b, above => 10, clear => 5)", {"q": "ab"}),
    ("SELECT MIN(a) FROM q WHERE b BETWEEN 1 AND 2", {"q": "ab"}),
    ("SELECT COUNT(*) FROM q WHERE b BETWEEN 1 AND 2", {"q": "b"}),
    ("SELECT MIN(a) FROM q WHERE b BETWEEN 1 AND 2 HAVING moved(MIN(a), by => 1)", {"q": "ab"}),
    ("SELECT DISTINCT a FROM q WHERE b BETWEEN 1 AND 2", {"q": "ab"}),
    (
        "SELECT q.a, r.b FROM q JOIN r ON q.c = r.c WHERE r.d < 10",
        {"q": "ac", "r": "bcd"},
    ),
    ("SELECT * FROM q WHERE a = 1 THEN SELECT b FROM r WHERE c = 2", {"q": "a", "r": "bc"}),
]


@pytest.mark.parametrize(("text", "wanted"), TEXTS)
def test_every_name_in_a_text_is_asked_about(text: str, wanted: dict[str | None, str]) -> None:
    found: dict[str | None, set[str]] = {}
    for type, names in asked_of(parse(text)):
        found.setdefault(type, set()).update(names)
    assert found == {type: set(names) for type, names in wanted.items()}


@pytest.mark.parametrize(("text", "wanted"), TEXTS)
def test_a_text_needs_all_of_its_names(text: str, wanted: dict[str | None, str]) -> None:
    may = frozenset({Operation.SUBSCRIBE, Operation.VIEW, Operation.SET})

    def access(grants: dict[str | None, str]) -> Granted:
        return Granted(
            Grants(
                Grant(frozenset({"alice"}), may, (type or "*",), Names.of(list(names)))
                for type, names in grants.items()
            )
        )

    statement = parse(text)
    access(wanted).subscribe("alice~1", statement)
    access(wanted).set("alice~1", statement)
    with pytest.raises(NotAllowed):
        access(wanted).subscribe("bob~1", statement)
    for type, names in wanted.items():
        for name in names:
            less = {**wanted, type: names.replace(name, "")}
            with pytest.raises(NotAllowed, match=rf"alice may not .* with {name}$"):
                access(less).subscribe("alice~1", statement)
            with pytest.raises(NotAllowed, match=rf"with {name}$"):
                access(less).set("alice~1", statement)


def test_what_is_kept_is_granted_by_itself() -> None:
    def access(*may: Operation) -> Granted:
        grant = Grant(frozenset({"alice"}), frozenset(may), ("q",), Names.of(["*"]))
        return Granted(Grants([grant]))

    only_events, only_views = access(Operation.SUBSCRIBE), access(Operation.VIEW)
    plain = parse("SELECT * FROM q WHERE a > 1")
    kept = [
        parse("SELECT MIN(a) FROM q WHERE b BETWEEN 1 AND 2"),
        parse("SELECT * FROM q WHERE moved(a, by => 1)"),
        View.of_rows(plain),
    ]
    only_events.subscribe("alice~1", plain)
    for one in kept:
        only_views.subscribe("alice~1", one)
        with pytest.raises(NotAllowed):
            only_events.subscribe("alice~1", one)
    with pytest.raises(NotAllowed):
        only_views.subscribe("alice~1", plain)


def test_any_type_needs_a_grant_on_all_types() -> None:
    grants = [
        Grant(frozenset({"a"}), frozenset({Operation.SUBSCRIBE}), ("q*",), Names.of(["*"])),
        Grant(frozenset({"b"}), frozenset({Operation.SUBSCRIBE}), ("*",), Names.of(["x"])),
    ]
    access = Granted(Grants(grants))
    with pytest.raises(NotAllowed, match="events of any type"):
        access.subscribe("a~1", parse("SELECT * WHERE x > 1"))
    access.subscribe("b~1", parse("SELECT * WHERE x > 1"))
    with pytest.raises(NotAllowed, match="with y"):
        access.subscribe("b~1", parse("SELECT * WHERE x > 1 AND y > 1"))


def test_variables_of_the_environment_are_read_by_those_who_may() -> None:
    may = frozenset({Operation.SUBSCRIBE})
    events = Grant(frozenset({"a", "b"}), may, ("*",), Names.of(["*"]))
    wind = Grant(frozenset({"a"}), frozenset({Operation.READ}), ("wind",))
    access = Granted(Grants([events, wind]))
    statement = parse("SELECT * FROM q WHERE x < env('wind')")
    access.subscribe("a/durable", statement)
    with pytest.raises(NotAllowed, match="b may not read the variable wind"):
        access.subscribe("b~1", statement)
    with pytest.raises(NotAllowed, match="say the variable wind"):
        access.observe("a~1", "wind")


def test_the_rest_is_denied_unless_it_is_granted() -> None:
    nothing, everything = Granted(Grants([])), Anyone()
    says = advertisement("SELECT * FROM q WHERE x IS NOT NULL")
    for access in (nothing, everything):
        tries = [
            lambda a=access: a.publish("a~1", "q", ["x"]),
            lambda a=access: a.advertise("a~1", says),
            lambda a=access: a.declare("a~1", "q"),
            lambda a=access: a.delete("a~1", "q"),
            lambda a=access: a.observe("a~1", "wind"),
            lambda a=access: a.operate("a~1"),
        ]
        for one in tries:
            if access is everything:
                one()
            else:
                with pytest.raises(NotAllowed, match=r"^a may not "):
                    one()
    assert not any(name in nothing.sight("a~1", "q") for name in "xyz")
    grant = Grant(frozenset({"a"}), frozenset({Operation.ADVERTISE}), ("q",), Names.of(["x"]))
    Granted(Grants([grant])).advertise("a~1", says)


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_party_says_whose_it_is_whatever_that_is_called(identity: str, name: str) -> None:
    try:
        durable = durable_of(identity, name)
    except InvalidValue:
        durable = durable_of(identity, "d")
        name = "d"
    guest = guest_of(identity, name)
    assert identity_of(durable) == identity_of(guest) == identity
    assert durable_name(durable) == name
    assert durable_name(guest) is None


WRONG = [
    ("x = 1", "only groups and grants"),
    ("[[grants]]\nwho = ['a']", "may: wanted some of publish"),
    ("[[grants]]\nmay = ['operate']", "came nobody"),
    ("[[grants]]\nwho = ['a']\nmay = ['fly']\non = ['q']", "came 'fly'"),
    ("[[grants]]\nwho = ['a']\nmay = ['publish']\nattributes = ['*']", "on: wanted types"),
    ("[[grants]]\nwho = ['a']\nmay = ['publish']\non = ['q']", "attributes: wanted attributes"),
    ("[[grants]]\ngroups = ['g']\nmay = ['operate']", "groups: wanted one of none, came g"),
    ("[[grants]]\nwho = 'a'\nmay = ['operate']", "a list of texts"),
    (
        "[[grants]]\nwho=['a']\nmay=['publish']\non=['q']\nattributes=['x']\nexcept=['y']",
        "only with attributes",
    ),
    ("[[grants]]\nwho = ['a']\nmay = ['operate']\nwhen = ['noon']", "came when"),
    ("[groups]\ng = 'a'", "a list of texts"),
    ("grants = 1", r"tables \[\[grants\]\]"),
    ("[[grants", "no TOML"),
]


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_a_file_that_says_it_wrongly_is_refused(tmp_path, text: str, why: str) -> None:
    from driftline.errors import FileRefused

    file = tmp_path / "access.toml"
    file.write_text(text)
    with pytest.raises(FileRefused, match=why):
        read_grants(file)


def test_groups_and_exceptions_from_a_file() -> None:
    grants = grants_of(
        {
            "groups": {"traders": ["alice", "bob"]},
            "grants": [
                {
                    "groups": ["traders"],
                    "who": ["carol"],
                    "may": ["subscribe"],
                    "on": ["q"],
                    "attributes": ["*"],
                    "except": ["audit"],
                }
            ],
        }
    )
    for who in ("alice", "bob", "carol"):
        names = grants.names(who, Operation.SUBSCRIBE, "q")
        assert names is not None
        assert "price" in names
        assert "audit" not in names
    assert grants.names("dave", Operation.SUBSCRIBE, "q") is None
    assert grants.mentions("alice")
    assert not grants.mentions(ANYONE)
