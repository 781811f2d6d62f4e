"""How is a subscription written in a file?

One JSON object (or one Parquet row) each: `id`, then `text` in SQL or `filters` in the CloudEvents
shapes, and where wanted `params`, `party` and `start` (from which `elapsed()` counts). Values that
JSON cannot say are tagged as in `cloudevents`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from driftline.errors import InvalidValue, LanguageError
from driftline.language.cloudevents import condition_from, value_from, value_to
from driftline.language.sql import parse
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value, admit, microseconds_of, show, time_of

_KEYS = frozenset({"id", "text", "filters", "params", "party", "start"})


@dataclass(frozen=True, slots=True)
class Record:
    """A subscription with its id and the party it belongs to."""

    id: str
    standing: Standing
    party: str = ""


def record_from(row: object, default_id: str) -> Record:
    """The subscription in a JSON object.

    >>> record_from({"text": "SELECT * WHERE x < :p", "params": {"p": 3}}, "line 1").id
    'line 1'
    """
    if not isinstance(row, Mapping):
        raise InvalidValue("subscription", "a JSON object", show(row))
    present = {name: value for name, value in row.items() if value is not None}
    unknown = sorted(str(name) for name in present.keys() - _KEYS)
    if unknown:
        raise InvalidValue("subscription", f"only {', '.join(sorted(_KEYS))}", ", ".join(unknown))
    statement = _statement(present)
    params = present.get("params", {})
    if not isinstance(params, Mapping):
        raise InvalidValue("params", "an object of names and values", show(params))
    values = {str(name): value_from(value, f":{name}") for name, value in params.items()}
    standing = Standing.of(statement, values, start_of(present.get("start", 0), "start"))
    return Record(
        _string(present.get("id", default_id), "id"),
        standing,
        _string(present.get("party", ""), "party"),
    )


def record_to(record: Record) -> dict[str, object]:
    """The JSON object that `record_from` reads back as the same."""
    standing = record.standing
    row: dict[str, object] = {"id": record.id, "text": str(standing.statement)}
    if standing.params:
        row["params"] = {name: value_to(value) for name, value in standing.params.items()}
    if record.party:
        row["party"] = record.party
    if standing.start_us:
        row["start"] = value_to(time_of(standing.start_us))
    return row


def _statement(row: Mapping[str, object]) -> Subscription:
    if ("text" in row) == ("filters" in row):
        raise InvalidValue(
            "subscription", "either text or filters", "both" if "text" in row else "neither"
        )
    if "filters" in row:
        return Subscription(where=condition_from(row["filters"]))
    statement = parse(row["text"])  # type: ignore[arg-type]  # parse refuses what is no text
    if not isinstance(statement, Subscription) or statement.change is not None:
        raise LanguageError("a stateless filter here", str(statement))
    return statement


def start_of(value: object, where: str) -> int:
    """Microseconds since 1970: a number of them, or a time as text or tagged."""
    if isinstance(value, Mapping | str):
        value = value_from({"@time": value} if isinstance(value, str) else value, where)
    admitted: Value = admit(value, where)
    try:
        if isinstance(admitted, int) and not isinstance(admitted, bool):
            return microseconds_of(time_of(admitted))  # by way of a time, which has bounds
        return microseconds_of(admitted)  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        raise InvalidValue(where, "a time or integer microseconds", show(value)) from None


def _string(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidValue(where, "a string", show(value))
    return str(admit(value, where))
