"""Does any value of any kind come back exactly, and is what a kind does not have refused?"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from driftline.broker.effects import Deliver
from driftline.broker.letters import Letter
from driftline.broker.links import Role
from driftline.broker.restated import Former, Restated
from driftline.errors import InvalidValue
from driftline.model.covering import Statement
from driftline.model.message import Neighbours
from driftline.model.notification import NotificationKind
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.model.value import INTEGER_MAX, INTEGER_MIN
from driftline.model.view import View
from driftline.net.journal.stored import _FORMS, decode, decode_key, encode, encode_key
from driftline.stateful.news import News
from driftline.stateful.value_based.address import Relabelling
from driftline.testing.strategies import (
    advertisements,
    parameters,
    patterns,
    subscriptions,
    values,
    views,
)
from driftline.wire.bundles import Bundle
from driftline.wire.forms import form_of
from tests.wire.drawn import (
    NAMES,
    VERSIONS,
    _filters,
    _sequences,
    _some_names,
    events,
    parcels,
    stamps,
)

_numbers = st.integers(INTEGER_MIN, INTEGER_MAX)
_texts = st.text(st.characters(exclude_categories=["Cs"]))


@st.composite
def _statements(draw: DrawFn) -> Statement:
    """All that a broker keeps: sets of rows and what depends on the past are views there."""
    if draw(st.booleans()):
        return draw(subscriptions() | patterns() | views())
    asked = draw(subscriptions(stateful=draw(st.booleans())))
    if asked.change is not None:
        return View.of_change(asked)
    return asked if asked.source is None else View.of_rows(asked)


@st.composite
def _standings(draw: DrawFn) -> Standing:
    statement = draw(_statements())
    bound = draw(parameters(statement.variables().parameters))
    return Standing(statement, bound, draw(_numbers), draw(st.integers(0, 2**40)))


_some_values = st.dictionaries(_texts, st.none() | values(), max_size=3)
_news = st.builds(
    News,
    st.sampled_from(NotificationKind),
    _some_values,
    st.none() | _some_values,
    st.lists(values(), max_size=2).map(tuple),
)


@st.composite
def _deliveries(draw: DrawFn) -> Deliver:
    ids = draw(_some_names)
    return Deliver(
        draw(NAMES),
        draw(VERSIONS),
        ids,
        draw(events()),
        {id: tuple(draw(st.lists(events(), max_size=2))) for id in ids[:1]},
        draw(NAMES),
        draw(VERSIONS),
        draw(st.booleans()),
        draw(_some_names),
        draw(NAMES),
        tuple(draw(VERSIONS) for _ in ids),
        draw(stamps()),
        {id: tuple(draw(st.lists(_news, max_size=2))) for id in ids[:2]},
    )


_relabellings = st.builds(
    Relabelling, VERSIONS, st.floats(), st.floats(), st.floats(), st.none() | _numbers
)
_declarations = st.builds(
    TableDeclaration,
    NAMES,
    NAMES,
    st.dictionaries(NAMES, st.sampled_from(("0.01", "1E+3", "25")).map(Decimal), max_size=2),
)

_letters = st.builds(
    Letter,
    _texts,
    _texts,
    VERSIONS,
    _numbers,
    st.binary(),
    st.booleans(),
    st.lists(_statements(), max_size=2).map(tuple),
)
_restated = st.builds(
    Restated,
    VERSIONS,
    st.lists(st.builds(Former, VERSIONS, _statements()), max_size=3).map(tuple),
)

VALUES: dict[str, SearchStrategy[Any]] = {
    "advertised": advertisements(),
    "born": VERSIONS,
    "cut": st.just(True),
    "dead": _letters,
    "deliver": _deliveries(),
    "env": values(),
    "evenly": VERSIONS,
    "forgotten": VERSIONS,
    "form": events().map(form_of),
    "generation": VERSIONS,
    "had": _numbers.map(abs),
    "handler": _texts,
    "bundle": st.binary().map(Bundle),
    "home": VERSIONS,
    "kept": st.binary(),
    "labels": st.tuples(values(), st.lists(_relabellings, max_size=3).map(tuple)),
    "latest": _numbers,
    "link": st.sampled_from(Role),
    "listens": st.tuples(_standings(), _texts),
    "mesh/home": VERSIONS,
    "mesh/links": st.builds(Neighbours, NAMES, VERSIONS, _some_names),
    "mesh/offer": advertisements(),
    "mesh/want": _filters,
    "offer": advertisements(),
    "once": st.binary(max_size=300),
    "out": parcels(),
    "partial": st.lists(events(), max_size=3).map(tuple),
    "published": st.tuples(VERSIONS, VERSIONS),
    "resync": st.tuples(VERSIONS, st.booleans()),
    "row": events(),
    "seen": VERSIONS,
    "sequence": VERSIONS,
    "short": st.just(True),
    "sub": st.tuples(NAMES, _standings(), st.integers(0, 2**32 - 1), _restated),
    "suspended": st.just(True),
    "table": _declarations,
    "want": _filters | _sequences,
}


def test_every_kind_is_drawn() -> None:
    assert VALUES.keys() == _FORMS.keys()


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=settings().max_examples // 3)
@given(st.data())
def test_any_value_comes_back(kind: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[kind])
    key = (*kind.split("/"), "a", "b")
    written = encode(key, value)
    back = decode(key, written)
    # By their texts: to Python 1, 1.0 and True are equal, and NaN is not what it is.
    assert repr(back) == repr(value).replace(", fold=1", "")  # Which means nothing in UTC.
    assert type(back) is type(value)
    assert encode(key, back) == written
    if "nan" not in repr(value):
        assert back == value


@given(st.lists(_texts, max_size=4).map(tuple))
def test_any_key_comes_back(key: tuple[str, ...]) -> None:
    assert decode_key(encode_key(key)) == key
    assert "\0" not in encode_key(key)  # PostgreSQL has no texts with it.


def test_batches_of_bytes_are_not_copied() -> None:
    batch = bytes(1000)
    assert encode(("kept", "p", "1"), batch) is batch
    assert decode(("kept", "p", "1"), batch) is batch


@pytest.mark.parametrize("kind", sorted({*VALUES} - {"env", "handler", "link"}))
def test_what_is_not_kept_under_a_key_is_refused(kind: str) -> None:
    with pytest.raises(InvalidValue, match="journal key"):
        encode((*kind.split("/"), "a"), "something else")


@pytest.mark.parametrize("value", [1 << 70, object(), {"a": 1}, None])
def test_no_value_is_guessed(value: object) -> None:
    with pytest.raises(InvalidValue, match="journal key"):
        encode(("env", "a"), value)
