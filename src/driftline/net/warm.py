"""How is compiled code made ready before anybody waits for it?

By using it: a broker that nobody sees takes an event from a party to another, and to a neighbour.
On a machine's first run this compiles for up to a minute; later it loads what was compiled.
"""

from __future__ import annotations

import numpy as np

from driftline.broker.access import Granted
from driftline.broker.broker import Broker
from driftline.broker.effects import DeliverMany, SendParcels
from driftline.broker.grants import Grants
from driftline.broker.links import Role
from driftline.broker.requests import PublishMany, Subscribe
from driftline.broker.settings import Settings
from driftline.kernels import warm_up
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.message import Interest
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.net.gathering import Gathering
from driftline.net.sight import Sight
from driftline.wire.bundles import Bundle
from driftline.wire.compact import write_record
from driftline.wire.forms import form_of
from driftline.wire.notices import Notice, write_notice
from driftline.wire.publishing import batch
from driftline.wire.stream import Kind, frame


def warm() -> None:
    """Compile all kernels that a broker uses, or load them."""
    warm_up()
    gathering = Gathering(1 << 10)
    empty = frame(Kind.EVENTS, batch(0, 0, 0, b""))
    assert gathering.gather(memoryview(bytearray(empty * 2)), 0)[1] == 2 * len(empty)
    broker = Broker("warm", settings=Settings(matcher="index", stores=False))
    event = Event("t", {"a": 1, "b": "text"})
    wanted = parse("SELECT * FROM t WHERE a = :a AND b LIKE 't%'")
    for name in ("p", "q"):
        broker.enter(name, durable=name == "q")
        standing = Standing.of(wanted, {"a": 1})
        broker.handle(Subscribe("", name, standing, handle=1), name, 0)
        broker.handle(Subscribe("", name, standing.moved_to({"a": 1}), handle=1), name, 0)
    form = form_of(event)
    forms = np.array([broker.publishing.forms.number(form)], np.int64)
    broker.connect("far", Role.PEER, 0)
    assert isinstance(wanted, Subscription)
    (one,) = wanted.filters()
    broker.handle(Interest({"": one.bound({"a": 1})}), "far", 0)
    told = broker.handle(PublishMany("", write_record(event, 0, form), forms), "p", 0)
    assert sum(isinstance(one, DeliverMany) for one in told) == 2
    notice = write_notice(Notice(((1, 0),), 0, False, event.entering(0)), int(forms[0]), form)
    sight = Sight(Granted(Grants([])), "p", broker.publishing.forms)
    assert len(sight.notices(notice, *forms, *forms).notices) < len(notice)
    far = Broker("far", settings=broker.settings)
    (sent,) = [one for one in told if isinstance(one, SendParcels)]
    for _, bundle in sent.parcels:
        assert isinstance(bundle, Bundle)
        far.handle_bundle(bundle.payload, "warm", 0)
    assert far.passing.had("warm")
