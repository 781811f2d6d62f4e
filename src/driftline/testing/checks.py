"""Does this matcher give the answers of the definition, whatever is done to it?

A random program adds, replaces and discards subscriptions and publishes events, on the matcher
and on `Scan` side by side. After each step the invariants are checked, and each event must find the
same ids in the same order.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from driftline.matching.matcher import Matcher
from driftline.matching.scan import Scan
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.value import Value
from driftline.testing.strategies import environments, events, parameters, standings

# Few enough that replacing and discarding hit something.
_IDS = st.sampled_from(("1", "2", "3", "4", "5", "6"))


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
            self.standing: dict[str, Standing] = {}

        @rule(id=_IDS, standing=standings())
        def add(self, id: str, standing: Standing) -> None:
            self.matcher.add(id, standing)
            self.reference.add(id, standing)
            self.standing[id] = standing

        @rule(id=_IDS, data=st.data())
        def move(self, id: str, data: st.DataObject) -> None:
            """Replace a subscription by itself under other parameters."""
            before = self.standing.get(id)
            if before is not None:
                wanted = before.statement.variables().parameters
                params = data.draw(parameters(wanted), label="params")
                self.add(id, Standing(before.statement, params, before.start_us, before.epoch + 1))

        @rule(id=_IDS)
        def discard(self, id: str) -> None:
            self.matcher.discard(id)
            self.reference.discard(id)
            self.standing.pop(id, None)

        @rule(event=events(), env=environments())
        def match(self, event: Event, env: dict[str, Value]) -> None:
            assert self.matcher.match(event, env) == self.reference.match(event, env)

        @invariant()
        def is_sound(self) -> None:
            self.matcher._check()
            assert len(self.matcher) == len(self.reference)

    run_state_machine_as_test(Program, settings=config)
