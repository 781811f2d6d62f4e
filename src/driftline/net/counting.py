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

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from driftline.broker.access import may_be_told
from driftline.broker.concern import is_plain
from driftline.broker.effects import Deliver
from driftline.broker.identity import durable_name
from driftline.model.view import View
from driftline.net.sight import Sight, sight_of
from driftline.net.telling import told

if TYPE_CHECKING:
    from driftline.net.guest import Guest
    from driftline.net.server import Server

SHOWN_MOST = 200
"""So many subscriptions of an identity are shown at once."""


@dataclass(slots=True)
class Tally:
    """What cannot be told from elsewhere, of one subscription."""

    sent: int = 0
    """Messages that were handed to the connection, past its queue."""
    gaps: int = 0
    """Gaps that went through its queue, where they count like anything else."""
    hidden: int = 0
    """What its party may not see."""


def mine_of(guest: Guest, handle: int = 0) -> list[dict[str, object]]:
    """The subscriptions of a guest, or one of them, as they are shown to it."""
    # One that was just refused may not have heard of it yet.
    edge = guest.server.edge
    known = [one for one in guest.handles.items() if edge.owner(one[1]) is not None]
    return [
        _shown(guest.server, id, guest, known_as)
        for known_as, id in known
        if handle in (0, known_as)
    ]


def left_of(server: Server, party: str, sight: Sight | None) -> tuple[int, int]:
    """How many things a durable party has not said it has had, and the number of the first.

    Changes of rows that it cannot see are not told it, and so do not count.
    """
    edge = server.edge
    kept, first = edge.parties.left(party)
    statement = edge.standing(f"{party}#0").statement
    if sight is None or not isinstance(statement, View) or statement.columns:
        return kept, first
    told_of = [
        one.number
        for one in edge.parties[party].waiting
        if isinstance(one, Deliver)
        and any(told(one, edge, server.forms, lambda id: 1, one.number, sight))
    ]
    return len(told_of), told_of[0] if told_of else 0


def identity_of_guest(guest: Guest) -> list[dict[str, object]]:
    """The subscriptions of whose a guest is: of all its connections, and durable ones.

    The first of them, if there are too many to be looked at.
    """
    server = guest.server
    found = (
        (id, one, handle)
        for one in server.guests.values()
        if one.identity == guest.identity
        for handle, id in one.handles.items()
        if server.edge.owner(id) is not None
    )
    shown = [_shown(server, id, one, handle) for id, one, handle in islice(found, SHOWN_MOST)]
    alone = (party for party in server.durable_of(guest.identity) if not server.is_attached(party))
    for party in islice(alone, max(0, SHOWN_MOST - len(shown))):
        if server.edge.owner(f"{party}#0") is not None:
            shown.append(_shown(server, f"{party}#0", None, 0))
    return shown


def _shown(server: Server, id: str, guest: Guest | None, handle: int) -> dict[str, object]:
    standing = server.edge.standing(id)
    found: dict[str, object] = {
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
        counts = _of_durable(server, id, owner)
        seen, _ = left_of(server, owner, sight)
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
    edge, tally = server.edge, server.tallies.get(party, Tally())
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
