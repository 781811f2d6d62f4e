"""What may change while events pass, and how is it written?

One JSON object (or Parquet row) each, by its `op`; without one it is a subscription, so that a file
of subscriptions is a file of changes:

    {"id": "a", "text": "SELECT …", "params": {…}}            somebody subscribes; also "rows",
                                                              "on_change" and "start"
    {"op": "set", "id": "a", "params": {…}}                   all its parameters, at once; with
                                                              "rebase": true elapsed() begins again
    {"op": "restate", "id": "a", "text": "…", "params": {…}}  another statement in its place, with
                                                              values for what is new in it
    {"op": "cancel", "id": "a"}                               it ends
    {"op": "env", "name": "visibility", "value": 2}           the environment; null: unknown again
    {"op": "delete", "table": "quote", "key": "IBM"}          a row of a table goes

Values that JSON cannot say are tagged as everywhere (`{"@time": …}`). `time` is when it happens,
if that is not when it is recorded: for a history that is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from driftline.doors import admit_statement, check_followed
from driftline.errors import InvalidValue
from driftline.handle import OnChange
from driftline.language.cloudevents import condition_from, value_from
from driftline.language.records import start_of
from driftline.model.covering import Statement
from driftline.model.standing import admitted_params
from driftline.model.subscription import Subscription
from driftline.model.value import Value, admit, show


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Somebody asks to be told, under an id of its own."""

    id: str
    statement: Statement
    params: Mapping[str, Value]
    rows: bool = False
    on_change: OnChange = OnChange.SILENT
    start: int | None = None
    time: int | None = None

    @property
    def is_plain(self) -> bool:
        """Is it a filter of single events, which needs no memory?"""
        plain = isinstance(self.statement, Subscription) and self.statement.change is None
        return plain and not self.rows and self.on_change is OnChange.SILENT


@dataclass(frozen=True, slots=True)
class Set:
    """A subscription has other parameters."""

    id: str
    params: Mapping[str, Value]
    rebase: bool = False
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Restate:
    """A subscription asks for something else."""

    id: str
    statement: Statement
    params: Mapping[str, Value]
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """A subscription ends."""

    id: str
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Env:
    """A variable of the environment has another value, or none."""

    name: str
    value: Value | None
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """A row of a table goes."""

    table: str
    key: Value
    time: int | None = None


Change: TypeAlias = Subscribe | Set | Restate | Cancel | Env | Delete

SUBSCRIBE = "subscribe"


def change_from(row: object, default_id: str) -> Change:
    """The change in a JSON object; DriftlineError if it says none.

    >>> change_from({"op": "env", "name": "visibility", "value": 2}, "line 1")
    Env(name='visibility', value=2, time=None)
    """
    if not isinstance(row, Mapping):
        raise InvalidValue("change", "a JSON object", show(row))
    # A value may be null: the environment's.
    given = {name: value for name, value in row.items() if value is not None or name == "value"}
    op = given.pop("op", SUBSCRIBE)
    read, keys = _READ.get(op if isinstance(op, str) else "", (None, frozenset()))
    if read is None:
        raise InvalidValue("op", f"one of {', '.join(_READ)}", show(op))
    unknown = sorted(str(name) for name in given.keys() - keys - {"time"})
    if unknown:
        raise InvalidValue(str(op), f"only {', '.join(sorted(keys))}, time", ", ".join(unknown))
    if op == SUBSCRIBE:
        given.setdefault("id", default_id)
    change: Change = read(_Fields(str(op), given))
    return change


class _Fields:
    """The members of one object, each read as what it must be."""

    __slots__ = ("_given", "_op")

    def __init__(self, op: str, given: Mapping[str, object]) -> None:
        self._op = op
        self._given = given

    def has(self, name: str) -> bool:
        return name in self._given

    def any(self, name: str) -> object:
        if name not in self._given:
            raise InvalidValue(self._op, f"a member {name}", "none")
        return self._given[name]

    def text(self, name: str) -> str:
        value = self.any(name)
        if not isinstance(value, str) or not value:
            raise InvalidValue(f"{self._op}: {name}", "a text that is not empty", show(value))
        return str(admit(value, name))

    def flag(self, name: str) -> bool:
        value = self._given.get(name, False)
        if not isinstance(value, bool):
            raise InvalidValue(f"{self._op}: {name}", "true or false", show(value))
        return value

    def values(self, name: str) -> dict[str, Value]:
        value = self._given.get(name, {})
        if not isinstance(value, Mapping):
            raise InvalidValue(f"{self._op}: {name}", "an object of names and values", show(value))
        return {str(one): value_from(found, f":{one}") for one, found in value.items()}

    def value(self, name: str) -> Value:
        return value_from(self.any(name), name)

    def stamp(self, name: str) -> int | None:
        return start_of(self._given[name], name) if name in self._given else None


def _subscribe(given: _Fields) -> Subscribe:
    statement = _statement(given)
    rows, on_change = given.flag("rows"), _on_change(given)
    if on_change is OnChange.FOLLOW:
        check_followed(statement, rows)
    params = admitted_params(statement, given.values("params"))
    times = given.stamp("start"), given.stamp("time")
    return Subscribe(given.text("id"), statement, params, rows, on_change, *times)


def _set(given: _Fields) -> Set:
    return Set(given.text("id"), given.values("params"), given.flag("rebase"), given.stamp("time"))


def _restate(given: _Fields) -> Restate:
    return Restate(given.text("id"), _statement(given), given.values("params"), given.stamp("time"))


def _cancel(given: _Fields) -> Cancel:
    return Cancel(given.text("id"), given.stamp("time"))


def _env(given: _Fields) -> Env:
    value = None if given.any("value") is None else given.value("value")
    return Env(given.text("name"), value, given.stamp("time"))


def _delete(given: _Fields) -> Delete:
    return Delete(given.text("table"), given.value("key"), given.stamp("time"))


_SUBSCRIBING = frozenset({"id", "text", "filters", "params", "party", "rows", "on_change", "start"})

_READ: dict[str, tuple[Callable[[_Fields], Change], frozenset[str]]] = {
    SUBSCRIBE: (_subscribe, _SUBSCRIBING),
    "set": (_set, frozenset({"id", "params", "rebase"})),
    "restate": (_restate, frozenset({"id", "text", "filters", "params"})),
    "cancel": (_cancel, frozenset({"id"})),
    "env": (_env, frozenset({"name", "value"})),
    "delete": (_delete, frozenset({"table", "key"})),
}

# Many subscribe with one text and parameters of their own; one statement then stands for all.
_read_text = lru_cache(maxsize=65_536)(admit_statement)


def _statement(given: _Fields) -> Statement:
    if given.has("text") == given.has("filters"):
        came = "both" if given.has("text") else "neither"
        raise InvalidValue("subscription", "either text or filters", came)
    if given.has("filters"):
        return Subscription(where=condition_from(given.any("filters")))
    return _read_text(given.text("text"))


def _on_change(given: _Fields) -> OnChange:
    if not given.has("on_change"):
        return OnChange.SILENT
    said = given.text("on_change")
    if said not in tuple(OnChange):
        raise InvalidValue("on_change", " or ".join(OnChange), show(said))
    return OnChange(said)
