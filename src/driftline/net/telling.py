"""How does what a broker tells a party look on its connection?

A plain event is a notice in its form. What else there is (a view's news, a whole pattern, a gap) is
a message. Both are made here of a `Deliver`; notices that kernels have written are sent as they
are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from driftline.broker.concern import is_plain
from driftline.broker.edge import Edge
from driftline.broker.effects import Deliver
from driftline.broker.formed import Forms
from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.pattern import Pattern
from driftline.model.subscription import Subscription
from driftline.stateful.news import News
from driftline.wire.asking import Notification, encode, pack, pack_all
from driftline.wire.compact import split_records, write_record
from driftline.wire.forms import NO_FORM, Form, form_of
from driftline.wire.notices import Notice, marks_of, remarked, write_notice
from driftline.wire.stream import PAYLOAD_BYTES_MAX, Kind, frame


class Told:
    """One thing to tell: which handles it is for, its bytes, and of a notice the form."""

    __slots__ = ("data", "event", "form", "handles", "is_notice", "key")

    def __init__(
        self,
        handles: tuple[int, ...],
        data: bytes,
        form: int = NO_FORM,
        *,
        is_notice: bool = False,
        event: Event | None = None,
        key: object = None,
    ) -> None:
        self.handles = handles
        self.data = data
        self.form = form
        self.is_notice = is_notice
        self.event = event
        self.key = key


def record_of(event: Event) -> bytes:
    """An event as a record without a form."""
    return write_record(event, NO_FORM, Form(event.type, ()))


def told(
    deliver: Deliver, edge: Edge, forms: Forms, handle_of: Callable[[str], int | None], number: int
) -> Iterator[Told]:
    """What a delivery tells, in order; `number` is that of a durable one, else 0.

    A subscription that is no longer there is not told anything.
    """
    before: _Said | Told | None = None
    for one in _parts(deliver, edge, forms, handle_of, number):
        if before is not None:
            yield _message(before, more=number > 0) if isinstance(before, _Said) else before
        before = one
    if before is not None:
        yield _message(before) if isinstance(before, _Said) else before


class _Said(NamedTuple):
    """Something to tell by a message, and what a policy may look at."""

    said: Notification
    event: Event | None = None
    key: object = None


def _parts(
    deliver: Deliver, edge: Edge, forms: Forms, handle_of: Callable[[str], int | None], number: int
) -> Iterator[_Said | Told]:
    event = deliver.event
    lost = (*deliver.gaps, *deliver.subscriptions) if deliver.gap else deliver.gaps
    for id in dict.fromkeys(lost):
        handle = handle_of(id)
        if handle is not None:
            yield _Said(Notification(handle, number, NotificationKind.GAP, {}, _at(event), 0))
    plain: list[tuple[int, int]] = []
    epochs = deliver.epochs or (0,) * len(deliver.subscriptions)
    for id, epoch in zip(deliver.subscriptions, epochs, strict=True):
        handle = handle_of(id)
        if handle is None:
            continue
        if id in deliver.news:
            yield from _news(handle, number, epoch, deliver.news[id], event)
            continue
        standing = edge.standing(id)
        statement = standing.statement
        scope = standing.scope(event, deliver.stamps)
        if isinstance(statement, Pattern):
            values = statement.steps[-1].select(scope)
            events = [record_of(one) for one in deliver.sequences[id]]
            said = Notification(
                handle,
                number,
                NotificationKind.PATTERN,
                pack_all(values),
                _at(event),
                epoch,
                record_of(event),
                events,
            )
            yield _Said(said, event)
        elif is_plain(statement):
            plain.append((handle, epoch))
        else:
            assert isinstance(statement, Subscription)
            said = Notification(
                handle,
                number,
                NotificationKind.EVENT,
                pack_all(statement.select(scope)),
                _at(event),
                epoch,
                record_of(event),
            )
            yield _Said(said, event)
    if plain:
        form = form_of(event)
        named = forms.number(form)
        notice = Notice(tuple(plain), number, False, event)
        data = write_notice(notice, named, form)
        handles = tuple(handle for handle, _ in plain)
        yield Told(handles, data, named, is_notice=True, event=event)


def _at(event: Event) -> int:
    return event.stamp or 0


def _news(
    handle: int, number: int, epoch: int, news: tuple[News, ...], event: Event
) -> Iterator[_Said]:
    """What a view is told; the last of a snapshot says so."""
    snapshots = [one for one in news if one.kind is NotificationKind.SNAPSHOT]
    for one in news:
        key = one.keys[0] if len(one.keys) == 1 else one.keys or None
        said = Notification(
            handle,
            number,
            one.kind,
            pack_all(one.values),
            _at(event),
            epoch,
            old=None if one.old is None else pack_all(one.old),
            key=pack(key),
            last=bool(snapshots) and one is snapshots[-1],
        )
        yield _Said(said, key=key)


def gap(handle: int, lost: int) -> bytes:
    """The frame that says that so much was not told."""
    said = Notification(handle, 0, NotificationKind.GAP, {}, 0, 0, lost=lost)
    return frame(Kind.TOLD, encode(said))


def _message(one: _Said, *, more: bool = False) -> Told:
    said = one.said
    said.more = more
    return Told((said.handle,), frame(Kind.TOLD, encode(said)), event=one.event, key=one.key)


def framed(kind: Kind, head: bytes, notices: bytes | memoryview) -> Iterator[bytes]:
    """Notices as frames, as many as are needed."""
    most = PAYLOAD_BYTES_MAX - len(head)
    if len(notices) <= most:
        yield frame(kind, head, notices)
        return
    some: list[bytes | memoryview] = []
    size = 0
    for whole in split_records(notices):
        for one in _halved(whole, most):
            if some and size + len(one) > most:
                yield frame(kind, head, *some)
                some, size = [], 0
            some.append(one)
            size += len(one)
    yield frame(kind, head, *some)


def _halved(notice: bytes | memoryview, most: int) -> Iterator[bytes | memoryview]:
    """A notice, in several if it is for too many to fit."""
    marks = marks_of(notice)
    if len(notice) <= most or len(marks) < 2:
        yield notice
        return
    half = len(marks) // 2
    for some in (marks[:half], marks[half:]):
        yield from _halved(remarked(notice, some), most)
