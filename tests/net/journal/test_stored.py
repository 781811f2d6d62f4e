"""Does what a broker keeps come back from bytes as it was, and can a broker go on from it?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from driftline import broker
from driftline.broker.effects import Key
from driftline.errors import InvalidValue
from driftline.net.journal.stored import (
    _FORMS,
    decode,
    decode_key,
    encode,
    encode_key,
)
from driftline.sim import overlay
from driftline.sim.scenario import Plan, Scenario
from driftline.sim.topologies import TOPOLOGIES

written: Counter[str] = Counter()


class Written(MutableMapping[Key, object]):
    """A journal whose entries are bytes; whatever is set is compared with what comes back."""

    def __init__(self) -> None:
        self._bytes: dict[str, bytes] = {}

    def __setitem__(self, key: Key, value: object) -> None:
        data = encode(key, value)
        back = decode(key, data)
        # By their text too: to Python 1, 1.0 and True are equal.
        assert back == value
        assert repr(back) == repr(value)
        assert type(back) is type(value)
        assert encode(key, back) == data
        written["/".join(key[:2]) if key[0] == "mesh" else key[0]] += 1
        self._bytes[encode_key(key)] = data

    def __getitem__(self, key: Key) -> object:
        return decode(key, self._bytes[encode_key(key)])

    def __delitem__(self, key: Key) -> None:
        del self._bytes[encode_key(key)]

    def __iter__(self) -> Iterator[Key]:
        return map(decode_key, self._bytes)

    def __len__(self) -> int:
        return len(self._bytes)


@pytest.fixture(autouse=True)
def _written_journals(monkeypatch: pytest.MonkeyPatch) -> None:
    place: Any = overlay._Place
    monkeypatch.setattr(
        overlay, "_Place", lambda *given, **named: place(*given, journal=Written(), **named)
    )


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_brokers_go_on_from_what_was_bytes(topology: str) -> None:
    scenario = Scenario(Plan(topology, 3, tables=True, steps=25, brokers=5))
    scenario.run()
    assert {"sub", "row", "deliver", "sequence"} <= {*written}


def test_bundles_are_bytes_too() -> None:
    plan = Plan("acyclic", 3, matcher="index", advertised=False, tables=False, brokers=5)
    Scenario(plan).run()
    assert "bundle" in written


def test_what_every_part_of_a_broker_keeps_has_a_form() -> None:
    """As far as can be read from the code; whatever else is kept is refused when it is."""
    code = "".join(path.read_text() for path in Path(broker.__file__).parent.glob("*.py"))
    patterns = (
        r'_puts?[\[(]+"(\w+)"',
        r'key = \("(\w+)"',
        r'_note\(party, \("(\w+)"',
        r'stored_as: ClassVar\[str\] = "(\w+)"',
    )
    kinds = {kind for pattern in patterns for kind in re.findall(pattern, code)}
    assert len(kinds) > 20
    assert kinds - {"mesh"} == {*_FORMS} - {
        "mesh/home",
        "mesh/links",
        "mesh/offer",
        "mesh/want",
    }


def test_a_key_of_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"wanted one of advertised, .*, came 'mesh/nothing'"):
        encode(("mesh", "nothing", "a"), 1)
    with pytest.raises(InvalidValue, match="wanted one of"):
        encode((), 1)
