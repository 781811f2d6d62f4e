"""How does what a broker tells a party look on its connection?

A plain event is a notice in its form. What else there is (a view's news, a whole pattern, a gap) is
a message. Both are made here of a `Deliver`; notices that kernels have written are sent as they
are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from driftline.broker.access import is_kept, is_unseen, shows_rows
from driftline.broker.concern import is_plain
from driftline.broker.edge import Edge
from driftline.broker.effects import Deliver
from driftline.broker.formed import Forms
from driftline.model.covering import Statement
from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.pattern import Pattern
from driftline.model.scope import Scope
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.view import View
from driftline.net.sight import Sight
from driftline.stateful.news import News
from driftline.wire.asking import Notification, encode, pack, pack_all
from driftline.wire.compact import split_records, write_record
from driftline.wire.forms import NO_FORM, Form, form_of
from driftline.wire.notices import Notice, marks_of, remarked, write_notice
from driftline.wire.stream import PAYLOAD_BYTES_MAX, Kind, frame


class Told:
    """One thing to tell: which handles it is for, its bytes, and of a notice the form."""

    __slots__ = ("data", "event", "form", "handles", "is_gap", "is_notice", "key")

    def __init__(
        self,
        handles: tuple[int, ...],
        data: bytes,
        form: int = NO_FORM,
        *,
        is_notice: bool = False,
        event: Event | None = None,
        key: object = None,
        is_gap: bool = False,
    ) -> None:
        self.handles = handles
        self.data = data
        self.form = form
        self.is_notice = is_notice
        self.is_gap = is_gap
        self.event = event
        self.key = key


def record_of(event: Event) -> bytes:
    """An event as a record without a form."""
    return write_record(event, NO_FORM, Form(event.type, ()))


def told(
    deliver: Deliver,
    edge: Edge,
    forms: Forms,
    handle_of: Callable[[str], int | None],
    number: int,
    sight: Sight | None,
) -> Iterator[Told]:
    """What a delivery tells, in order; `number` is that of a durable one, else 0.

    A subscription that is no longer there is not told anything, nobody what they may not see.
    """
    before: _Said | Told | None = None
    for one in _parts(deliver, edge, forms, handle_of, number, sight):
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
    deliver: Deliver,
    edge: Edge,
    forms: Forms,
    handle_of: Callable[[str], int | None],
    number: int,
    sight: Sight | None,
) -> Iterator[_Said | Told]:
    event = deliver.event
    seen = event if sight is None else sight.event(event)
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
            news, keys_too = deliver.news[id], True
            if sight is not None:
                news, keys_too = _visible(news, edge.standing(id).statement, event, sight)
            yield from _news(handle, number, epoch, news, event, keys_too)
            continue
        standing = edge.standing(id)
        statement = standing.statement
        scope = standing.scope(event, deliver.stamps)
        if isinstance(statement, Pattern):
            values = _selected(statement.steps[-1], scope, sight)
            sequence = deliver.sequences[id]
            events = [record_of(one if sight is None else sight.event(one)) for one in sequence]
            said = Notification(
                handle,
                number,
                NotificationKind.PATTERN,
                pack_all(values),
                _at(event),
                epoch,
                record_of(seen),
                events,
            )
            yield _Said(said, seen)
        elif is_plain(statement):
            plain.append((handle, epoch))
        else:
            assert isinstance(statement, Subscription)
            said = Notification(
                handle,
                number,
                NotificationKind.EVENT,
                pack_all(_selected(statement, scope, sight)),
                _at(event),
                epoch,
                record_of(seen),
            )
            yield _Said(said, seen)
    if plain:
        form = form_of(seen)
        named = forms.number(form, "" if sight is None else sight.identity)
        notice = Notice(tuple(plain), number, False, seen)
        data = write_notice(notice, named, form)
        handles = tuple(handle for handle, _ in plain)
        yield Told(handles, data, named, is_notice=True, event=seen)


def _selected(asked: Subscription, scope: Scope, sight: Sight | None) -> dict[str, Value | None]:
    """What a subscription selects; the columns that it names are its to name."""
    values = asked.select(scope)
    if sight is None or asked.columns or scope.event is None:
        return values
    return sight.values(scope.event.type, values)


def _visible(
    news: tuple[News, ...], statement: Statement, event: Event, sight: Sight
) -> tuple[tuple[News, ...], bool]:
    """What a view is told, without what its party may not see; and may it see the keys of rows?

    That something has changed which it may not see is not told either. The keys are for those who
    may see everything: which attribute is the key, only the home of the table knows.
    """
    assert isinstance(statement, View)
    kept = is_kept(statement)
    types = statement.tables or (event.type,)
    keys_too = all(sight.names(type, kept=kept).is_all for type in types)
    names = sight.names(types[0], kept=kept)
    is_of_rows = shows_rows(statement)
    told: list[News] = []
    for one in news:
        values, old = one.values, one.old
        if is_of_rows and is_unseen(one, names):
            continue  # It waited when more was granted.
        if not statement.columns:
            values = sight.values(types[0], values, kept=kept)
            old = None if old is None else sight.values(types[0], old, kept=kept)
        told.append(News(one.kind, values, old, one.keys))
    return tuple(told), keys_too


def _at(event: Event) -> int:
    return event.stamp or 0


def _news(
    handle: int,
    number: int,
    epoch: int,
    news: tuple[News, ...],
    event: Event,
    keys_too: bool,
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
            key=pack(key) if keys_too else None,
            last=bool(snapshots) and one is snapshots[-1],
            trace=event.trace or "",
        )
        yield _Said(said, key=key)


def gap(handle: int, lost: int) -> bytes:
    """The frame that says that so much was not told."""
    said = Notification(handle, 0, NotificationKind.GAP, {}, 0, 0, lost=lost)
    return frame(Kind.TOLD, encode(said))


def _message(one: _Said, *, more: bool = False) -> Told:
    said = one.said
    said.more = more
    data = frame(Kind.TOLD, encode(said))
    is_gap = said.kind == NotificationKind.GAP
    return Told((said.handle,), data, event=one.event, key=one.key, is_gap=is_gap)


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
