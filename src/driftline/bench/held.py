"""How much more memory does a subscription take if its bounds are variables? [PARAM §8.1, e]

Beside a broker with subscriptions `symbol = :s AND price < :x` stands one with the same constants
written into them. Each subscription has a statement of its own, as if each subscriber had sent its
text; subscribers that share one take less. What is counted is what Python and NumPy allocate
(tracemalloc), for a broker that is alone and for one with a neighbour who is told of all of them.
"""

from __future__ import annotations

import gc
import pickle
import tracemalloc
from dataclasses import replace
from functools import _lru_cache_wrapper
from random import Random

from driftline.broker.broker import Broker
from driftline.broker.links import Role
from driftline.broker.requests import Subscribe
from driftline.broker.settings import Settings
from driftline.language.sql import parse
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.variables import bind

SEED = 1
SUBSCRIPTIONS = 5_000
MATCHERS = ("index", "poset")
PLACES = ("alone", "linked")

# What is compiled or made once is there before anything is counted.
_WARMING = 300
_SYMBOLS = 500
_WANTED = "SELECT * FROM quote WHERE symbol = :s AND price < :x"


def bytes_per_subscription(matcher: str, place: str, *, parametric: bool) -> float:
    """Of a broker with so many subscriptions."""
    _filled(matcher, place, parametric, _WARMING)
    _forget()
    tracemalloc.start()
    try:
        broker = _filled(matcher, place, parametric, SUBSCRIPTIONS)
        _forget()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del broker
    return held / SUBSCRIPTIONS


def _forget() -> None:
    """Empty our caches, which hold some thousand entries however many subscriptions there are."""
    gc.collect()
    for one in gc.get_objects():
        if isinstance(one, _lru_cache_wrapper) and one.__module__.startswith("driftline."):
            one.cache_clear()
    gc.collect()


def _filled(matcher: str, place: str, parametric: bool, count: int) -> Broker:
    draw = Random(SEED)
    alone = place == "alone"
    broker = Broker("b", settings=Settings(matcher=matcher, stores=False, alone=alone))
    if not alone:
        broker.connect("neighbour", Role.PEER, 0)
    statement = parse(_WANTED)
    assert isinstance(statement, Subscription)
    for at in range(count):
        params: dict[str, Value] = {"s": f"S{draw.randrange(_SYMBOLS)}", "x": draw.uniform(0, 100)}
        if parametric:
            standing = Standing.of(_own(statement), params)
        else:
            standing = Standing.of(_own(replace(statement, where=bind(statement.where, params))))
        broker.handle(Subscribe("", str(at), standing), "p", 0)
    return broker


def _own(statement: Subscription) -> Subscription:
    """A copy that shares nothing."""
    copied: Subscription = pickle.loads(pickle.dumps(statement))
    return copied
