"""What else would they want to be told, that needs memory, and how do they change their minds?

To `subscriptions`, which are plain filters, come some who follow a stock (`moved`: again when its
price is some percent from the one they were told last) and some who want the least price among the
stocks that are traded so much (`MIN` over a range of volumes).

As time goes by, those with a limit of their own move it to where the price has gone, to be told
when it falls below, or rises above, by some percent from now.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from driftline.language.records import Record
from driftline.model.event import Event
from driftline.workload.prices import EVENT_TYPE, SYMBOLS

Row = dict[str, object]

_MOVED = (
    f"SELECT symbol, price FROM {EVENT_TYPE} WHERE symbol = '%s' AND moved(price, percent => :p)"
)
_LEAST = f"SELECT MIN(price) FROM {EVENT_TYPE} WHERE volume BETWEEN :low AND :high"

_PERCENT = (5, 10, 20, 30)
_NEAREST, _FARTHEST = 0.05, 0.25
"""How far from the price a limit is set."""


def remembered(count: int, seed: int = 1) -> list[Row]:
    """So many that need memory, as a file of changes has them; three of four follow a stock."""
    random = Random(seed)
    rows: list[Row] = []
    for number in range(count):
        params: dict[str, object]
        if number % 4:
            text, params = _MOVED % random.choice(SYMBOLS), {"p": random.choice(_PERCENT)}
            rows.append({"id": f"moved-{number:04}", "text": text, "params": params})
        else:
            low = random.randrange(1, 60) * 1_000_000
            params = {"low": low, "high": low * random.choice((2, 5, 10))}
            rows.append({"id": f"least-{number:04}", "text": _LEAST, "params": params})
    return rows


def moves(records: Iterable[Record], past: Sequence[Event], count: int, seed: int = 1) -> list[Row]:
    """So many whose bound is `:limit` set it some way off the price that was last."""
    random = Random(seed)
    last = {str(event.attributes["symbol"]): event.attributes["price"] for event in past}
    limited = []
    for record in records:
        if record.standing.params.keys() == {"limit"}:
            text = str(record.standing.statement)
            side = -1 if "price < :limit" in text else 1
            limited += [(record.id, last[one], side) for one in last if repr(one) in text]
    rows: list[Row] = []
    for id, price, side in random.sample(limited, min(count, len(limited))):
        assert isinstance(price, float)
        limit = round(price * (1 + side * random.uniform(_NEAREST, _FARTHEST)), 1)
        rows.append({"op": "set", "id": id, "params": {"limit": limit}})
    return rows
