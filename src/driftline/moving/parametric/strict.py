"""Is what a broker tells a subscriber still wanted when it arrives? [PARAM §4.4, Figure 5]

A broker evaluates with the values it knows, and those may be older than the subscriber's own by as
long as a message takes. So the subscriber evaluates once more, at the last moment and with the
values of that moment (*strictness*). It only takes away: what a broker did not find is not found
here either.

    >>> from driftline.language.sql import parse
    >>> wants = {"a": Standing.of(parse("SELECT * FROM quote WHERE price < :last"), {"last": 10})}
    >>> quote = Event("quote", {"price": 9.5})
    >>> still_wanted(wants, quote, ["a"])
    ('a',)
    >>> wants["a"] = wants["a"].moved_to({"last": 9})
    >>> still_wanted(wants, quote, ["a", "cancelled meanwhile"])
    ()

What the environment is, brokers know. A subscriber that does not (None) judges the part of a
condition that is fixed, and takes its broker's word for the rest:

    >>> foggy = parse("SELECT * FROM quote WHERE price < :last AND volume > env('usual')")
    >>> wants = {"a": Standing.of(foggy, {"last": 10})}
    >>> quote = Event("quote", {"price": 9.5, "volume": 3})
    >>> still_wanted(wants, quote, ["a"])
    ('a',)
    >>> still_wanted(wants, quote, ["a"], env={"usual": 5})
    ()
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from driftline.matching.lazy import fixed_of
from driftline.model.event import RESERVED, Event
from driftline.model.pattern import Pattern
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.variables import variables_of
from driftline.model.view import View


def still_wanted(
    wants: Mapping[str, Standing],
    event: Event,
    ids: Iterable[str],
    completed: Collection[str] = (),
    env: Mapping[str, Value] | None = None,
) -> tuple[str, ...]:
    """Those of the ids that hold under what is wanted now, in their order.

    `completed` are the ids under which the broker found a pattern, of which this is the last event.
    """
    return tuple(
        id
        for id in ids
        if (standing := wants.get(id)) is not None and _holds(standing, event, id in completed, env)
    )


def _holds(
    standing: Standing, event: Event, completed: bool, env: Mapping[str, Value] | None
) -> bool:
    if isinstance(standing.statement, Pattern):
        # Each of its events was judged when it came, by the values of that time. To judge the first
        # again by those of now would take away what was truly found. But where the id stood for
        # something else when the broker looked, there is no pattern.
        return completed
    if isinstance(standing.statement, Subscription) and standing.statement.change is not None:
        # Whether it moved since is known to the broker alone.
        return not completed
    if isinstance(standing.statement, View):
        # What it was told is the state that the next difference is from, also after a move.
        return event.type.startswith(RESERVED)
    assert isinstance(standing.statement, Subscription)
    if completed or event.type.startswith(RESERVED):
        return False
    if env is None and variables_of(standing.statement.where).environment:
        return _fixed_part_holds(standing, standing.statement, event)
    return standing.matches(event, env or {})


def _fixed_part_holds(standing: Standing, statement: Subscription, event: Event) -> bool:
    """May let pass too much, never too little: only conditions are left out."""
    scope = standing.scope(event, {})
    return any(one.matches(scope) for one in fixed_of(statement).filters)
