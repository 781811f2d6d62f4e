"""How much may one connection, or one party, ask of a broker?

Whatever is beyond a limit is refused with a reason, held back, or ends the connection. What is said
here is what is limited, and nothing else. Some things are not: the rows of a table and the values
that a view or a follower has met, which are as many as those who may publish make them; what plain
subscriptions and advertisements take, but by their number (and by `weight`, at a closed broker);
what neighbours want and offer, who are believed to have limits of their own. So whoever may reach a
broker, publish to a table or be a neighbour is to be chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from driftline.errors import InvalidValue
from driftline.model.value import show
from driftline.wire.forms import FORMS_SAID
from driftline.wire.limits import FRAME_BYTES_MAX

_LEAST = {"rate": 0, "forms": FORMS_SAID}
"""What a limit is at least, if not 1. Who says more forms than may be is no client of ours, and
what they say is not read any further."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a broker; times are seconds."""

    connections: int = 10_000
    """All at once; more are turned away."""
    connections_each: int = 5_000
    """Of one identity; more are turned away. Where nobody has one there is no such limit."""
    frame_bytes: int = FRAME_BYTES_MAX
    subscriptions: int = 200_000
    """Of one connection."""
    durable: int = 100_000
    """Durable subscriptions of one identity."""
    parameters: int = 1_000
    """Of one subscription."""
    parameter_bytes: int = 64 << 20
    """About what the parameters of all subscriptions of one connection take; and likewise of all
    durable subscriptions of one identity."""
    weight: int = 30_000
    """At a closed broker, of all subscriptions of one identity, or of a connection without one:
    parts of conditions that no index answers and that are judged one by one for each event, and
    what takes as much, in its advertisements too."""
    advertisements: int = 1_000
    """Of one connection."""
    forms: int = 4_096
    """Of events, on one connection."""
    attributes: int = 4_096
    """Of one form of events."""
    rate: int = 0
    """Events a second from one connection, on average; 0: any. Who is faster is held back."""
    queue_bytes: int = 16 << 20
    """What waits for one connection."""
    kept: int = 100_000
    """Notifications kept for one durable subscription; of more the oldest are forgotten, and a gap
    is told."""
    kept_bytes: int = 256 << 20
    """About what these may take."""
    dead: int = 1_000
    """Dead letters kept for one durable subscription; of more the oldest are forgotten."""
    dead_bytes: int = 64 << 20
    """About what these may take."""
    handlers: int = 1_000
    """Durable subscriptions that are told through a handler, of all identities together."""
    once: int = 100_000
    """Events that one identity has published once, by source and id, and that are remembered."""
    outbox: int = 100_000
    """Events on their way to one neighbour; of more the oldest are given up, and a gap is told."""
    outbox_bytes: int = 256 << 20
    """About what these may take."""
    journal_bytes: int = 64 << 20
    """What waits for the journal; publishers are held back while it is more."""
    unfinished_bytes: int = 256 << 20
    """Of frames that are not whole, on all connections; beyond, the one with the most ends. As much
    of bodies over HTTP, of which nobody has more than is left to others.
    """
    strangers: int = 1_000
    """Connections that have not said who they are; of more the oldest ends."""
    greeting: float = 10.0
    """Who has not said who it is by then is turned away."""
    silence: float = 60.0
    """Who says nothing for so long, not even when asked, is gone; so is who does not finish what
    they say."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            least = _LEAST.get(one.name, 1)
            is_whole = one.type == "int"
            kinds = int if is_whole else int | float
            number = isinstance(value, kinds) and not isinstance(value, bool)
            if not number or not value >= least or value > 1 << 40:
                wanted = f"a {'whole ' * is_whole}number, {least} or more"
                raise InvalidValue(f"limits.{one.name}", wanted, show(value))
        if self.frame_bytes > FRAME_BYTES_MAX:
            wanted = f"at most {FRAME_BYTES_MAX}"
            raise InvalidValue("limits.frame_bytes", wanted, show(self.frame_bytes))
