"""What is there at a broker, and how busy is it?"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from driftline.broker.items import Losses

if TYPE_CHECKING:
    from driftline.net.server import Server


@dataclass(slots=True)
class Counters:
    """What a broker has done since it began."""

    published: int = 0
    told: int = 0
    turned_away: int = 0
    unproven: int = 0
    """Connections of those who did not prove who they are."""
    refused: int = 0
    """Events that were not taken, for a reason that was told."""
    gaps: int = 0
    """How often somebody was told that something is missing."""
    losses: Losses = field(default_factory=Losses)
    # Bytes of connections that are no more.
    ended_in: int = 0
    ended_out: int = 0


def status_of(server: Server) -> dict[str, object]:
    """The state of a server, as it is shown and sent."""
    broker, counters = server.broker, server.counters
    on_way = broker.outbox.counts()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    slow = sorted(server.guests.values(), key=lambda one: one.waiting, reverse=True)[:10]
    return {
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
        "durable": len(server.durables),
        "tables": sorted(broker.tables.home.tables),
        "published": counters.published,
        "told": counters.told,
        "refused": counters.refused,
        "matched": broker.edge.counted.total(),
        "quiet": broker.edge.counted.total_quiet(),
        "dropped": counters.losses.dropped,
        "conflated": counters.losses.conflated,
        "gaps": counters.gaps,
        "bytes_in": counters.ended_in + sum(one.received for one in server.connections),
        "bytes_out": counters.ended_out + sum(one.sent for one in server.connections),
        "kept": broker.edge.parties.kept,
        "turned_away": counters.turned_away,
        "unproven": counters.unproven,
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
                "given_up": broker.outbox.given_up.get(link.name, 0),
                "bytes_in": link.carried[0],
                "bytes_out": link.carried[1],
            }
            for link in server.links.values()
        ],
        "slow": [{"client": one.name, "waiting_bytes": one.waiting} for one in slow if one.waiting],
    }
