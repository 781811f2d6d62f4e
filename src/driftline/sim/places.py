"""Does everybody on the way to a follower know its place?

A relabelling goes where the values go that it is about. So a place is known at the table's home, at
the follower's edge and between them; elsewhere it may be an older one, which does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driftline.broker.broker import Broker
from driftline.model.filter import Filter
from driftline.sim.overlay import Overlay
from driftline.stateful.value_based.address import MOVED, asked_by
from driftline.stateful.value_based.follower import Follower
from driftline.stateful.value_based.reformulate import MovedMessages

_Wanted = Mapping[Any, object]
"""What is wanted, by keys."""


def home_of(overlay: Overlay) -> str | None:
    """The broker that keeps tables."""
    names = (name for name in overlay.names() if overlay.station(name).broker.tables)
    return next(names, None)


def is_on_the_way(overlay: Overlay, here: str, there: str) -> bool:
    """Does what is said of tables come here from there? Both have a link to one another."""
    home = home_of(overlay)
    seen = {here, there}
    queue = [there]
    for near in queue:  # which grows
        more = [far for far in overlay.around(near) if far not in seen]
        seen.update(more)
        queue += more
    return home in queue


def alike(told: _Wanted, known: _Wanted, *, exactly: bool) -> bool:
    """Is this what was told? Unless `exactly` the places of followers may be others."""
    if exactly or told == known:
        return told == known
    return {key: _anywhere(one) for key, one in told.items()} == {
        key: _anywhere(one) for key, one in known.items()
    }


def _anywhere(one: object) -> object:
    asked = asked_by(one) if isinstance(one, Filter) else None
    if asked is None:
        return one
    assert isinstance(one, Filter)
    return asked.anywhere(str(one.type))


def wrong_place(overlay: Overlay) -> str | None:
    """A follower whose place is another one to its edge than to its home, if there is one."""
    home = home_of(overlay)
    if home is None:
        return None
    kept = overlay.station(home).broker.tables.home
    for name in overlay.names():
        for id, fold in _followers(overlay.station(name).broker):
            by = kept._reformulators.get(f"{MOVED}{fold._table}")
            member = by._members.get(f"{name}\n{id}") if isinstance(by, MovedMessages) else None
            if not isinstance(by, MovedMessages) or member is None:
                return f"{id} at {name}, of which its home does not know"
            found, known = (one._replace(generation=0) for one in (by._found(member), fold.found))
            # Who was late asks for every place until it is told something.
            if known not in (found, found._replace(place=None)):
                return f"{id} at {name} is found at {found}, and not at {fold.found}"
    return None


def _followers(broker: Broker) -> list[tuple[str, Follower]]:
    views = broker.edge.views
    folds = ((id, views._views[id].fold) for id in views)
    return [(id, fold) for id, fold in folds if isinstance(fold, Follower)]
