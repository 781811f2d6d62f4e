"""A subscriber as a class: fields that are parameters, methods that are told [PARAM §4.2, §7.1].

    >>> import driftline as dl
    >>> class StockMonitor(dl.Subscriber):
    ...     last_buy = dl.Parameter(10.0)
    ...     @dl.when("SELECT * FROM quote WHERE firm = 'IBM' AND price < :last_buy")
    ...     def quote(self, firm, price):
    ...         print("buys at", price)
    ...         self.last_buy = price
    >>> engine = dl.Engine(clock=dl.ManualClock())
    >>> monitor = StockMonitor(engine)
    >>> for price in (9.5, 9.75, 9.0):
    ...     _ = engine.publish(dl.Event("quote", {"firm": "IBM", "price": price}))
    buys at 9.5
    buys at 9.0

An assignment moves every subscription that follows the field, in the order of assignments; one that
is refused raises and moves none. A method is called only if the event still satisfies its condition
under the values of that moment (*strictness*): what was matched before an assignment and is told
after it is looked at again.

A field declared `local` keeps what is assigned to it back, until it is released [PARAM §9.2]:

    >>> class Driver(dl.Subscriber):
    ...     x = dl.Parameter(0.0, local=True)
    ...     @dl.when("SELECT * FROM traffic WHERE at >= :x - 5 AND at <= :x + 5")
    ...     def traffic(self, at):
    ...         print("traffic at", at)
    ...     def moved_to(self, x):
    ...         self.x = x
    ...         if abs(self.x - self.last("x")) > 2:
    ...             self.release("x")
    >>> driver = Driver(engine)
    >>> driver.moved_to(1.5)
    >>> (driver.x, driver.last("x"))
    (1.5, 0.0)
    >>> driver.moved_to(2.5)
    >>> (driver.x, driver.last("x"))
    (2.5, 2.5)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, ClassVar, Protocol, Self, TypeAlias, TypeVar

from driftline.errors import InvalidValue, ParameterError
from driftline.language.sql import parse
from driftline.model.covering import Statement
from driftline.model.event import Event
from driftline.model.notification import Notification, NotificationKind
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value, admit, show

Method = TypeVar("Method", bound=Callable[..., object])
Handler: TypeAlias = Callable[[Any, Notification], None]

_ASKED = "__driftline_when__"
_numbers = count(1)


class _Handle(Protocol):
    """What is needed of a handle."""

    id: str
    statement: Statement
    epoch: int
    _standing: Standing

    def set(self, /, **params: object) -> int: ...

    def cancel(self) -> None: ...


class _Engine(Protocol):
    """What is needed of whoever tells."""

    env: Mapping[str, Value]

    def subscribe(
        self, wanted: Statement, params: Mapping[str, object], *, party: str
    ) -> _Handle: ...

    def redirect(self, party: str, handler: Handler | None) -> None: ...


def when(wanted: str | Statement) -> Callable[[Method], Method]:
    """Let a method of a `Subscriber` be called with what satisfies a subscription.

    Its arguments are the columns of their names (None where one is missing), `**rest` all others,
    and `notification` the whole of it.
    """
    statement = parse(wanted) if isinstance(wanted, str) else wanted

    def marked(method: Method) -> Method:
        setattr(method, _ASKED, statement)
        return method

    return marked


class Parameter:
    """A field of a `Subscriber` that subscriptions follow; `local`: only when it is released."""

    def __init__(self, initial: object, *, local: bool = False) -> None:
        self.initial = admit(initial, "parameter")
        self.local = local
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Subscriber | None, owner: type) -> Any:
        return self if instance is None else instance._values[self.name]

    def __set__(self, instance: Subscriber, value: object) -> None:
        instance._assign(self, value)


class Subscriber:
    """The base of classes whose methods are told. One instance is one party of the engine."""

    _parameters: ClassVar[dict[str, Parameter]] = {}
    _asked: ClassVar[dict[str, Statement]] = {}

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        members = inspect.getmembers_static(cls)
        cls._parameters = {name: one for name, one in members if isinstance(one, Parameter)}
        cls._asked = {
            name: getattr(one, _ASKED)
            for name, one in members
            if callable(one) and hasattr(one, _ASKED)
        }
        for statement in cls._asked.values():
            missing = statement.variables().parameters - cls._parameters.keys()
            if missing:
                raise ParameterError(tuple(sorted(missing)), (), ())

    def __init__(self, engine: _Engine, *, party: str | None = None) -> None:
        self._engine = engine
        self.party = f"{type(self).__name__} {next(_numbers)}" if party is None else party
        self._values = {name: one.initial for name, one in self._parameters.items()}
        self._released = dict(self._values)
        self._handles: dict[str, tuple[_Handle, Callable[..., object]]] = {}
        engine.redirect(self.party, self._told)
        for name, statement in self._asked.items():
            handle = engine.subscribe(statement, self._params(statement), party=self.party)
            self._handles[handle.id] = handle, getattr(self, name)

    def _params(self, statement: Statement) -> dict[str, object]:
        return {name: self._released[name] for name in statement.variables().parameters}

    # Variables that move

    def _assign(self, parameter: Parameter, value: object) -> None:
        admitted = admit(value, f":{parameter.name}")
        if not parameter.local:
            self._release({parameter.name: admitted})
        self._values[parameter.name] = admitted

    def release(self, *names: str) -> None:
        """Let subscriptions follow what was assigned to these fields that are local, or to all."""
        self._release({name: self._values[self._known(name)] for name in names or self._parameters})

    def last(self, name: str) -> Any:
        """What subscriptions follow: the value last released."""
        return self._released[self._known(name)]

    def _known(self, name: str) -> str:
        if name not in self._parameters:
            known = ", ".join(sorted(self._parameters)) or "nothing"
            raise InvalidValue("parameter", f"one of {known}", show(name))
        return name

    def _release(self, values: Mapping[str, Value]) -> None:
        before = self._released
        self._released = {**before, **values}
        moving = [
            handle
            for handle, _ in self._handles.values()
            if handle.statement.variables().parameters & values.keys()
        ]
        try:
            for handle in moving:  # Is any of them refused? Then none is moved.
                handle._standing.moved_to(self._params(handle.statement))
        except ParameterError:
            self._released = before
            raise
        for handle in moving:
            handle.set(**self._params(handle.statement))

    # What is told

    def _told(self, handle: _Handle, told: Notification) -> None:
        found = self._handles.get(handle.id)
        if found is None or not self._still(handle, told):
            return
        if told.kind is NotificationKind.GAP:
            self.gap(told)
            return
        _, method = found
        method(**_arguments(method, told))

    def gap(self, told: Notification) -> None:
        """Something was forgotten that would have been told; override it to know."""

    def _still(self, handle: _Handle, told: Notification) -> bool:
        """Does what was matched under earlier values satisfy the condition under those of now?"""
        if told.epoch == handle.epoch or told.kind is not NotificationKind.EVENT:
            return True
        assert isinstance(handle.statement, Subscription)
        assert isinstance(told.event, Event)
        return handle._standing.matches(told.event, self._engine.env)

    def close(self) -> None:
        """End all its subscriptions; doing it twice does nothing."""
        for handle, _ in self._handles.values():
            handle.cancel()
        self._handles.clear()
        self._engine.redirect(self.party, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


def _arguments(method: Callable[..., object], told: Notification) -> dict[str, object]:
    """The columns that a method asks for, by the names of its parameters."""
    found: dict[str, object] = {}
    rest = dict(told.values)
    for name, one in inspect.signature(method).parameters.items():
        if one.kind is one.VAR_KEYWORD:
            return {**rest, **found}
        if name == "notification":
            found[name] = told
        elif name in told.values or one.default is one.empty:
            found[name] = rest.pop(name, None)
    return found
