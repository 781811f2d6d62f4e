"""Does this matcher give the answers of the definition, whatever is done to it?

A random program adds, changes and discards, and publishes events one by one and in batches, on the
matcher and on `Scan` side by side. After each step the invariants are checked; each event must find
the same ids in the same order.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from driftline.errors import ParameterError
from driftline.matching.bounds import parameters_of
from driftline.matching.columns import Columns
from driftline.matching.lazy import Lazy
from driftline.matching.matcher import Matcher, Matches
from driftline.matching.scan import Scan
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.standing import Standing
from driftline.model.value import Value
from driftline.testing.filters import bounds, filters, published
from driftline.testing.strategies import environments, events, parameters, standings

# Few enough that replacing and discarding hit something.
_IDS = st.sampled_from(("1", "2", "3", "4", "5", "6", "7", "8"))


def check_matcher(make_matcher: Callable[[], Matcher], config: settings | None = None) -> None:
    """Raise if some random program tells the matcher from `Scan`; hypothesis prints the program.

    >>> from driftline.matching.scan import Scan
    >>> check_matcher(Scan, settings(max_examples=2, stateful_step_count=5, database=None))
    """

    class Program(RuleBasedStateMachine):
        """Both matchers, and what may be done to them."""

        def __init__(self) -> None:
            super().__init__()
            self.matcher = make_matcher()
            self.reference = Scan()
            self.filters: dict[str, tuple[Filter, ...]] = {}

        @rule(id=_IDS, given=filters(), data=st.data())
        def add(self, id: str, given: tuple[Filter, ...], data: st.DataObject) -> None:
            values = data.draw(bounds(parameters_of(given)), label="bounds")
            self.matcher.add(id, given, values)
            self.reference.add(id, given, values)
            self.filters[id] = given

        @rule(id=_IDS, data=st.data())
        def change(self, id: str, data: st.DataObject) -> None:
            if id in self.filters:
                values = data.draw(bounds(parameters_of(self.filters[id])), label="bounds")
                self.matcher.change(id, values)
                self.reference.change(id, values)

        @rule(id=_IDS)
        def refuse(self, id: str) -> None:
            """What is refused changes nothing, which the next steps would show."""
            if id not in self.filters:
                _assert_raises(KeyError, lambda: self.matcher.change(id, {}))
            elif parameters_of(self.filters[id]):
                _assert_raises(ParameterError, lambda: self.matcher.change(id, {}))
                _assert_raises(ParameterError, lambda: self.matcher.add(id, self.filters[id], {}))

        @rule(id=_IDS)
        def discard(self, id: str) -> None:
            self.matcher.discard(id)
            self.reference.discard(id)
            self.filters.pop(id, None)

        @rule(event=published())
        def match(self, event: Event) -> None:
            assert self.matcher.match(event) == self.reference.match(event)

        @rule(batch=st.lists(published(), max_size=4))
        def match_batch(self, batch: list[Event]) -> None:
            found = self.matcher.match_batch(Columns.of_events(batch))
            assert _sorted(found, batch) == [sorted(self.reference.match(one)) for one in batch]

        @invariant()
        def is_sound(self) -> None:
            self.matcher._check()
            assert len(self.matcher) == len(self.reference)
            assert all(id in self.matcher for id in self.filters)
            assert "nobody" not in self.matcher

    run_state_machine_as_test(Program, settings=config)


def check_lazy(make_matcher: Callable[[], Matcher], config: settings | None = None) -> None:
    """Raise if some random program tells `Lazy` on this matcher from the definition.

    >>> from driftline.matching.scan import Scan
    >>> check_lazy(Scan, settings(max_examples=2, stateful_step_count=5, database=None))
    """

    class Program(RuleBasedStateMachine):
        """Standing subscriptions, and a plain dictionary of the same."""

        def __init__(self) -> None:
            super().__init__()
            self.lazy = Lazy(make_matcher())
            self.standing: dict[str, Standing] = {}

        @rule(id=_IDS, standing=standings())
        def add(self, id: str, standing: Standing) -> None:
            self.lazy.add(id, standing)
            self.standing.pop(id, None)
            self.standing[id] = standing

        @rule(id=_IDS, data=st.data())
        def move(self, id: str, data: st.DataObject) -> None:
            """The same subscription under other parameters keeps its place."""
            before = self.standing.get(id)
            if before is not None:
                wanted = before.statement.variables().parameters
                params = data.draw(parameters(wanted), label="params")
                moved = Standing(before.statement, params, before.start_us, before.epoch + 1)
                self.lazy.move(id, moved)
                self.standing[id] = moved

        @rule(id=_IDS)
        def discard(self, id: str) -> None:
            self.lazy.discard(id)
            self.standing.pop(id, None)

        @rule(event=events(), env=environments())
        def match(self, event: Event, env: dict[str, Value]) -> None:
            assert self.lazy.match(event, env) == self.told(event, env)

        @rule(batch=st.lists(events(), max_size=4), env=environments())
        def match_batch(self, batch: list[Event], env: dict[str, Value]) -> None:
            found = self.lazy.match_batch(Columns.of_events(batch), env)
            rows = [found.ids(at) for at in range(len(batch))]
            assert rows == [self.told(one, env) for one in batch]

        def told(self, event: Event, env: dict[str, Value]) -> list[str]:
            return [id for id, one in self.standing.items() if one.matches(event, env)]

        @invariant()
        def is_sound(self) -> None:
            self.lazy._check()
            assert len(self.lazy) == len(self.standing)

    run_state_machine_as_test(Program, settings=config)


def _sorted(found: Matches, batch: list[Event]) -> list[list[str]]:
    assert len(found.offsets) == len(batch) + 1
    assert len(found) == len(list(found)) == len(set(found)), "an id is found once"
    return [sorted(found.ids(at)) for at in range(len(batch))]


def _assert_raises(kind: type[Exception], job: Callable[[], None]) -> None:
    try:
        job()
    except kind:
        return
    raise AssertionError(f"wanted {kind.__name__}, and nothing was raised")
