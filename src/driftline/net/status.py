"""What is there at a broker, and how busy is it?"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driftline.net.guest import Guest
    from driftline.net.server import Server


@dataclass(slots=True)
class Counters:
    """What a broker has done since it began."""

    published: int = 0
    told: int = 0
    turned_away: int = 0


def status_of(server: Server, guest: Guest | None = None) -> dict[str, object]:
    """The state of a server, as it is shown and sent; with the subscriptions of a guest."""
    broker, counters = server.broker, server.counters
    on_way = broker.outbox.counts()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    slow = sorted(server.guests.values(), key=lambda one: one.waiting, reverse=True)[:10]
    found: dict[str, object] = {
        "broker": broker.name,
        "incarnation": server.incarnation,
        "address": str(server.address),
        "process": os.getpid(),
        "uptime_seconds": (server.clock.now() - server.began) / 1e6,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "memory_bytes_most": usage.ru_maxrss * 1024,
        "connections": len(server.connections),
        "guests": len(server.guests),
        "subscriptions": len(broker.edge),
        "tables": sorted(broker.tables.home.tables),
        "published": counters.published,
        "told": counters.told,
        "kept": sum(party.kept for party in broker.edge.parties.values()),
        "turned_away": counters.turned_away,
        "waiting_for_journal": server.driver.waiting,
        "trouble": server.trouble,
        "draining": server.draining,
        "links": [
            {
                "broker": link.name,
                "role": str(link.role),
                "up": link.is_up,
                "problem": link.problem,
                "waiting": on_way.get(link.name, 0),
            }
            for link in server.links.values()
        ],
        "slow": [{"client": one.name, "waiting_bytes": one.waiting} for one in slow if one.waiting],
    }
    if guest is not None:
        # One that was just refused may not have heard of it yet.
        known = [one for one in guest.handles.items() if broker.edge.owner(one[1]) is not None]
        found["mine"] = [_subscription(server, guest, *one) for one in known]
    return found


def _subscription(server: Server, guest: Guest, handle: int, id: str) -> dict[str, object]:
    standing = server.edge.standing(id)
    found: dict[str, object] = {
        "handle": handle,
        "text": str(standing.statement),
        "params": {name: str(value) for name, value in standing.params.items()},
        "epoch": standing.epoch,
        "matched": server.edge.matched(id),
    }
    if handle in guest.out:
        counts = guest.out.counts(handle)
        found |= {
            "dropped": counts.dropped,
            "conflated": counts.conflated,
            "waiting": counts.waiting,
        }
    return found
