"""Driftline: publish/subscribe for interests that move.

Say precisely what you want to be told, in SQL; let that interest move; be told exactly then.

    >>> import driftline as dl
    >>> engine = dl.Engine(clock=dl.ManualClock())
    >>> s = engine.subscribe("SELECT price FROM quote WHERE price < :limit", params={"limit": 10})
    >>> _ = engine.publish(dl.Event("quote", {"firm": "IBM", "price": 9.5}))
    >>> [n.values for n in s.pending()]
    [{'price': 9.5}]

Names load when first used, so importing the package starts and loads nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driftline.clock import ManualClock, SystemClock
    from driftline.connecting import connect
    from driftline.crowd import Crowd
    from driftline.engine import Engine
    from driftline.errors import (
        DriftlineError,
        InvalidValue,
        LanguageError,
        LimitExceeded,
        NotAdvertised,
        NotEffective,
        NotSupported,
        ParameterError,
        SubscriptionEnded,
        TableError,
        Unreachable,
    )
    from driftline.handle import Handle
    from driftline.language.advertising import advertisement
    from driftline.language.builder import (
        attr,
        call,
        crossed,
        elapsed,
        env,
        moved,
        now,
        param,
        select,
    )
    from driftline.language.sql import parse
    from driftline.model.covering import covers, intersects
    from driftline.model.event import Event
    from driftline.model.notification import Notification
    from driftline.moving.parametric.declare import Parameter, Subscriber, when

__version__ = "0.1.0"

_HOMES = {
    "Engine": "driftline.engine",
    "connect": "driftline.connecting",
    "Handle": "driftline.handle",
    "Crowd": "driftline.crowd",
    "Event": "driftline.model.event",
    "Notification": "driftline.model.notification",
    "parse": "driftline.language.sql",
    "advertisement": "driftline.language.advertising",
    "covers": "driftline.model.covering",
    "intersects": "driftline.model.covering",
    "attr": "driftline.language.builder",
    "param": "driftline.language.builder",
    "env": "driftline.language.builder",
    "now": "driftline.language.builder",
    "elapsed": "driftline.language.builder",
    "moved": "driftline.language.builder",
    "crossed": "driftline.language.builder",
    "select": "driftline.language.builder",
    "call": "driftline.language.builder",
    "Subscriber": "driftline.moving.parametric.declare",
    "Parameter": "driftline.moving.parametric.declare",
    "when": "driftline.moving.parametric.declare",
    "SystemClock": "driftline.clock",
    "ManualClock": "driftline.clock",
    "DriftlineError": "driftline.errors",
    "LanguageError": "driftline.errors",
    "InvalidValue": "driftline.errors",
    "ParameterError": "driftline.errors",
    "TableError": "driftline.errors",
    "NotSupported": "driftline.errors",
    "LimitExceeded": "driftline.errors",
    "NotAdvertised": "driftline.errors",
    "SubscriptionEnded": "driftline.errors",
    "Unreachable": "driftline.errors",
    "NotEffective": "driftline.errors",
}

__all__ = [
    "Engine",
    "connect",
    "Handle",
    "Crowd",
    "Event",
    "Notification",
    "parse",
    "advertisement",
    "covers",
    "intersects",
    "attr",
    "param",
    "env",
    "now",
    "elapsed",
    "moved",
    "crossed",
    "select",
    "call",
    "Subscriber",
    "Parameter",
    "when",
    "SystemClock",
    "ManualClock",
    "DriftlineError",
    "LanguageError",
    "InvalidValue",
    "ParameterError",
    "TableError",
    "NotSupported",
    "LimitExceeded",
    "NotAdvertised",
    "SubscriptionEnded",
    "Unreachable",
    "NotEffective",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'driftline' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
