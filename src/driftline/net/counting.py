"""What became of the events that a subscription was matched with?

    evaluated   events of its types that came to this broker since it began here
    matched     those of them that satisfied its condition
    suppressed  matched, and not told: by `moved`, a view that stays as it is, a pattern that is not
                complete, a policy (dropped, conflated), or what its party may not see
    sent        notifications that were handed to a connection
    waiting     those that are yet to be; of a durable one, what it has not said that it had

A passing subscription by plain filters has `matched = sent + suppressed + waiting`. Nothing is
counted for it while its connection takes everything: what is not in its queue has been sent.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from driftline.broker.access import may_be_told
from driftline.broker.concern import is_plain
from driftline.broker.effects import Deliver
from driftline.broker.identity import durable_name
from driftline.model.view import View
from driftline.net.sight import Sight, sight_of
from driftline.net.telling import told
from driftline.wire.asking import HANDLES_MAX

if TYPE_CHECKING:
    from driftline.net.guest import Guest
    from driftline.net.server import Server

SHOWN_MOST = HANDLES_MAX
"""So many subscriptions are shown at once."""
SHOWN_LETTERS = 1 << 20
"""And about so many letters of them, so that they fit a frame."""
_LOOKED_AT = 16
"""So many things that wait are looked at in one step."""
T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""What is found in short steps, between which others may have their turn."""
Shown: TypeAlias = dict[str, object]
"""A subscription, as it is shown."""


@dataclass(slots=True)
class Tally:
    """What cannot be told from elsewhere, of one subscription."""

    sent: int = 0
    """Messages that were handed to the connection, past its queue."""
    gaps: int = 0
    """Gaps that went through its queue, where they count like anything else."""
    hidden: int = 0
    """What its party may not see."""
    told: int = 0
    """Of a durable one: the highest number that somebody was told in this life of the broker."""


def mine_of(guest: Guest, handles: Sequence[int]) -> Steps[list[Shown]]:
    """Those of the subscriptions of a guest that it calls so, as they are shown to it; none named:
    any. The first of them, if there are too many to be shown at once.
    """
    some = handles or [*islice(guest.handles, SHOWN_MOST)]
    # They may end while others are looked at.
    known = ((guest.handles.get(handle), handle) for handle in some)
    return page(_shown(guest.server, id, guest, handle) for id, handle in known if id is not None)


def page(each: Iterable[Steps[Shown | None]]) -> Steps[list[Shown]]:
    """The first of what is shown, as much as can be at once; without what has ended meanwhile."""
    shown: list[Shown] = []
    letters = 0
    for one in each:
        found = yield from one
        if found is None:
            continue
        letters += len(str(found))
        if shown and letters > SHOWN_LETTERS:
            break
        shown.append(found)
    return shown


def left_of(server: Server, party: str, sight: Sight | None) -> Steps[tuple[int, int]]:
    """How many things a durable party has not said it has had, and the number of the first.

    Changes of rows that it cannot see are not told it, and so do not count. None is left of one
    that ends meanwhile.
    """
    yield
    edge = server.edge
    if party not in edge.parties or edge.owner(f"{party}#0") is None:
        return 0, 0
    kept, first = edge.parties.left(party)
    statement = edge.standing(f"{party}#0").statement
    if sight is None or not isinstance(statement, View) or statement.columns:
        return kept, first
    count = first = 0
    # They are told and had while they are looked at.
    for at, one in enumerate([*edge.parties[party].waiting]):
        if not at % _LOOKED_AT:
            yield
            if edge.owner(f"{party}#0") is None:
                return 0, 0
        if isinstance(one, Deliver) and any(
            told(one, edge, server.forms, lambda id: 1, one.number, sight)
        ):
            count += 1
            first = first or one.number
    return count, first


def identity_of_guest(guest: Guest) -> Steps[list[Shown]]:
    """The subscriptions of whose a guest is: of all its connections, and durable ones.

    The first of them, if there are too many to be looked at. Where only those go by no name who
    show nothing, each of their connections is somebody else's.
    """
    server, is_closed = guest.server, guest.server.config.is_closed
    held = (
        (id, one, handle)
        for one in server.guests.values()
        if (one.owner == guest.owner if is_closed else one.identity == guest.identity)
        for handle, id in one.handles.items()
        if server.edge.owner(id) is not None
    )
    alone = (
        (f"{party}#0", None, 0)
        for party in server.durables.of(guest.identity)
        if server.durables.guest(party) is None
    )
    some = [*islice(chain(held, alone), SHOWN_MOST)]
    return page(_shown(server, id, one, handle) for id, one, handle in some)


def _shown(server: Server, id: str, guest: Guest | None, handle: int) -> Steps[Shown | None]:
    """A subscription as it is shown; None: it has ended."""
    yield
    if server.edge.owner(id) is None or (guest is not None and guest.handles.get(handle) != id):
        return None
    standing = server.edge.standing(id)
    found: Shown = {
        "handle": handle,
        "text": str(standing.statement),
        "params": {name: str(value) for name, value in standing.params.items()},
        "epoch": standing.epoch,
    }
    owner = server.edge.owner(id)
    assert owner is not None
    name = durable_name(owner)
    if name is not None:
        sight = sight_of(server.broker.access, owner, server.forms)
        seen, _ = yield from left_of(server, owner, sight)
        if server.edge.owner(id) is None:
            return None
        counts = _of_durable(server, id, owner)
        seen = min(seen, counts["waiting"])
        # What it cannot see is not told it, whether it waits or not.
        counts["suppressed"] += counts["waiting"] - seen
        counts["waiting"] = seen
        if not may_be_told(server.broker.access, owner, standing.statement):
            # How often it matches would say what may not be seen any more.
            counts = dict.fromkeys(counts, 0)
        return {**found, "durable": name, **counts}
    assert guest is not None
    return {**found, **_of_passing(server, id, guest, handle)}


def _of_passing(server: Server, id: str, guest: Guest, handle: int) -> dict[str, int]:
    edge, tally = server.edge, guest.tallies.get(handle, Tally())
    counts, over = guest.behind.counts(handle)
    matched = edge.matched(id)
    waiting = counts.waiting + over
    lost = counts.dropped + counts.conflated
    if is_plain(edge.standing(id).statement):
        sent = matched - lost - waiting
    else:
        sent = tally.sent + counts.sent - min(tally.gaps, counts.sent)
    return {
        "evaluated": edge.evaluated(id),
        "matched": matched,
        "suppressed": edge.counted.quiet(id) + tally.hidden + lost,
        "sent": sent,
        "waiting": waiting,
        "dropped": counts.dropped,
        "conflated": counts.conflated,
        "repeated": counts.repeated,
    }


def _of_durable(server: Server, id: str, party: str) -> dict[str, int]:
    edge, tally = server.edge, server.durables.tally(party)
    known = edge.parties[party]
    return {
        "evaluated": edge.evaluated(id),
        "matched": edge.matched(id),
        "suppressed": edge.counted.quiet(id) + tally.hidden + known.dropped,
        "sent": tally.sent,
        "waiting": edge.parties.left(party)[0],
        "dropped": known.dropped,
        "conflated": 0,
        "repeated": 0,
    }
