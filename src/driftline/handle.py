"""What does a subscriber hold in its hand?

A handle reads what its subscription was told, moves it and ends it. The engine behind it does the
work; the handle is the only thing a program needs to keep.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from types import TracebackType
from typing import Protocol, TypeGuard

from driftline.errors import SubscriptionEnded
from driftline.model.covering import Statement
from driftline.model.event import Event
from driftline.model.explanation import Explanation
from driftline.model.notification import Notification
from driftline.model.pattern import Pattern
from driftline.model.standing import Standing
from driftline.model.value import Value
from driftline.model.view import View, ViewKind
from driftline.moving.parametric.structure import added, removed, replaced


class OnChange(StrEnum):
    """What a change of a variable does to a live set of rows.

    SILENT: nothing until the next upsert of a row. REEVALUATE: tell at once what entered and left
    when a parameter or the environment changed; time passing tells nothing by itself, so a row with
    an `elapsed()` bound leaves with its next upsert or change of a variable. FOLLOW: that too, when
    it happens: `Engine.wake` says when to look again. For live rows whose bounds move by
    polynomials of `elapsed()`.
    """

    SILENT = "silent"
    REEVALUATE = "reevaluate"
    FOLLOW = "follow"


class Keeper(Protocol):
    """What a handle asks of the engine that keeps its subscription."""

    def _move(self, handle: Handle, standing: Standing) -> None: ...

    def _explain(self, handle: Handle, event: Event) -> Explanation: ...

    def _cancel(self, handle: Handle) -> None: ...

    def _now(self) -> int: ...


class Handle:
    """One subscription of one party: read what it was told, move it, end it."""

    __slots__ = ("_keeper", "_pending", "_standing", "active", "id", "on_change", "party")

    def __init__(
        self, keeper: Keeper, id: str, party: str, standing: Standing, on_change: OnChange
    ) -> None:
        self._keeper = keeper
        self._standing = standing
        self._pending: deque[Notification] = deque()
        self.id = id
        self.party = party
        self.on_change = on_change
        self.active = True

    @property
    def statement(self) -> Statement:
        """What was asked for."""
        statement = self._standing.statement
        return statement.asked() if isinstance(statement, View) else statement

    @property
    def of_rows(self) -> bool:
        """Is it to a live set of rows?"""
        return _of_rows(self._standing.statement)

    @property
    def source(self) -> str:
        """The type or the table that it is about; empty if it is none in particular."""
        statement = self._standing.statement
        return "" if isinstance(statement, Pattern) else statement.source or ""

    @property
    def params(self) -> dict[str, Value]:
        """The parameters now."""
        return dict(self._standing.params)

    @property
    def epoch(self) -> int:
        """How many parameter changes were accepted."""
        return self._standing.epoch

    def pending(self) -> list[Notification]:
        """All that was told since the last call, oldest first; the queue is then empty."""
        told = list(self._pending)
        self._pending.clear()
        return told

    def set(self, /, **params: object) -> int:
        """Set all parameters at once, or raise `ParameterError` and change none; the new epoch.

        `elapsed()` goes on counting from where it began, unless `rebase=True` is among them; a text
        with a parameter of that name has `rebase` for that.
        """
        rebase = "rebase" not in self._standing.params and params.pop("rebase", False)
        return self.rebase(**params) if rebase else self._set(params, rebase=False)

    def rebase(self, /, **params: object) -> int:
        """Like `set`, and let `elapsed()` count from now; without parameters they stay."""
        return self._set(params, rebase=True)

    def _set(self, params: Mapping[str, object], *, rebase: bool) -> int:
        now = self._now()
        values = params or self.params if rebase else params
        self._keeper._move(self, self._standing.moved_to(values, now if rebase else None))
        return self.epoch

    def _now(self) -> int:
        """The time, after all that it makes due: that may move or end this very subscription."""
        now = self._keeper._now()
        self._check_active()
        return now

    def add(self, condition: str, /, **params: object) -> int:
        """Ask for one more condition, with values for parameters that are new; the new epoch."""
        return self._restate(added(self.statement, condition), params)

    def remove(self, condition: str, /) -> int:
        """Ask no longer for one of its conditions; the new epoch."""
        return self._restate(removed(self.statement, condition), {})

    def replace(self, condition: str, other: str, /, **params: object) -> int:
        """Ask for another condition in the place of one it has; the new epoch."""
        return self._restate(replaced(self.statement, condition, other), params)

    def _restate(self, statement: Statement, params: dict[str, object]) -> int:
        self._now()
        self._keeper._move(self, self._standing.restated(statement, params))
        return self.epoch

    def explain(self, event: Event) -> Explanation:
        """Why this event does or does not match now: each condition and the values it saw."""
        return self._keeper._explain(self, event)

    def cancel(self) -> None:
        """End it. What is pending can still be read; cancelling twice does nothing."""
        self._keeper._cancel(self)

    def __enter__(self) -> Handle:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()

    def __repr__(self) -> str:
        state = "" if self.active else ", cancelled"
        return f"<Handle {self.id}: {self.statement}{state}>"

    def _check_active(self) -> None:
        if not self.active:
            raise SubscriptionEnded(self.id)


def _of_rows(statement: Statement) -> TypeGuard[View]:
    return isinstance(statement, View) and statement.of is ViewKind.ROWS
