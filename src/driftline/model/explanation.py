"""Why did this event match, or not?

The condition is evaluated part by part, without stopping early, so that each part shows its
outcome and the values it saw; the parts that decided are marked.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from driftline.model.expression import (
    Attribute,
    Elapsed,
    Environment,
    Expression,
    Now,
    Parameter,
)
from driftline.model.pattern import SequenceMatcher
from driftline.model.predicate import And, Not, Or, truth_of
from driftline.model.scope import Scope
from driftline.model.subscription import Subscription, known
from driftline.model.text import identifier
from driftline.model.truth import Unknown
from driftline.model.value import Value, show, time_of
from driftline.model.variables import walk


@dataclass(frozen=True, slots=True)
class Explanation:
    """One condition: its text, its truth, the values it saw, and its parts.

    `outcome` is True, False or None for unknown (then `reason` says why). `decided` marks what the
    answer hung on: the part that was false, or all that were unknown, or the alternative that held.
    """

    text: str
    outcome: bool | None
    reason: str | None = None
    seen: dict[str, Value | None] = field(default_factory=dict)
    decided: bool = True
    parts: tuple[Explanation, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, depth: int) -> list[str]:
        word = {True: "true   ", False: "false  ", None: "unknown"}[self.outcome]
        mark = " *" if self.decided and depth else ""
        seen = ", ".join(
            f"{name} is {'missing' if value is None else show(value)}"
            for name, value in self.seen.items()
        )
        why = f"  ({self.reason})" if self.reason and not self.parts else ""
        line = f"{'  ' * depth}{word} {self.text}" + (f"   [{seen}]" if seen else "") + why + mark
        return [line, *(line for part in self.parts for line in part._lines(depth + 1))]

    def deciding(self) -> tuple[Explanation, ...]:
        """The smallest conditions the answer hung on."""
        if not self.parts:
            return (self,)
        return tuple(leaf for part in self.parts if part.decided for leaf in part.deciding())


def explain(subscription: Subscription, scope: Scope) -> Explanation:
    """Why the subscription does or does not match the scope's event."""
    event = scope.event
    assert event is not None
    body = _explain(subscription.where, scope, True)
    if subscription.source is None:
        return body
    right_type = event.type == subscription.source
    source = Explanation(
        f"FROM {identifier(subscription.source)}",
        right_type,
        None,
        {"ce_type": event.type},
        decided=not right_type,
    )
    outcome = body.outcome if right_type else False
    inner = (source, _undecided(body) if not right_type else body)
    return Explanation(
        str(subscription), outcome, body.reason if right_type else None, {}, True, inner
    )


def explain_told(subscription: Subscription, scope: Scope, change: Explanation) -> Explanation:
    """Why an event is or is not told where that depends on what was told before.

    `change` is about that alone; it matters for events that satisfy the rest.
    """
    rest = explain(replace(subscription, change=None), scope)
    counts = rest.outcome is True
    decisive = change if counts else rest
    parts = (_undecided(rest), change) if counts else (rest, _undecided(change))
    return Explanation(str(subscription), decisive.outcome, decisive.reason, {}, True, parts)


def explain_pattern(sequence: SequenceMatcher, scope: Scope) -> Explanation:
    """Why the event does or does not serve the step that the pattern waits for."""
    event = scope.event
    assert event is not None
    steps = [explain(step, scope) for step in sequence.pattern.steps]
    fits = [at for at, step in enumerate(steps) if step.outcome is True]
    expired = sequence.expires(event, fits)
    awaited = 0 if expired else len(sequence.found)
    waiting = steps[awaited]
    parts = [step if at == awaited else _undecided(step) for at, step in enumerate(steps)]
    outcome, reason = waiting.outcome, waiting.reason
    if expired or sequence.found:
        in_order = expired or sequence.in_order(event)
        text = "the window is over: the sequence begins anew" if expired else "generated later"
        last = None if expired else time_of(sequence.found[-1].time or 0)
        seen: dict[str, Value | None] = {"ce_time": event.envelope("ce_time")}
        if last is not None:
            seen["the step before"] = last
        parts.append(Explanation(text, in_order, None, seen, decided=not in_order))
        if not in_order:
            outcome, reason = False, None
    return Explanation(str(sequence.pattern), outcome, reason, {}, True, tuple(parts))


def _explain(node: Expression, scope: Scope, decided: bool) -> Explanation:
    truth = truth_of(node.evaluate(scope))
    outcome = None if isinstance(truth, Unknown) else truth
    reason = str(truth) if isinstance(truth, Unknown) else None
    parts: tuple[Explanation, ...] = ()
    seen: dict[str, Value | None] = {}
    if isinstance(node, And | Or | Not):
        children = [_explain(child, scope, True) for child in node.children()]
        # A part decided if it has the whole's own outcome: the false one in a conjunction, the
        # true one in a disjunction, every unknown where nothing settled it. NOT always decides.
        parts = tuple(
            part if isinstance(node, Not) or part.outcome is outcome else _undecided(part)
            for part in children
        )
    else:
        seen = {str(leaf): known(leaf.evaluate(scope)) for leaf in walk(node) if _is_leaf(leaf)}
    return Explanation(str(node), outcome, reason, seen, decided, parts)


def _undecided(part: Explanation) -> Explanation:
    return Explanation(
        part.text,
        part.outcome,
        part.reason,
        part.seen,
        False,
        tuple(_undecided(inner) for inner in part.parts),
    )


def _is_leaf(node: Expression) -> bool:
    return isinstance(node, Attribute | Parameter | Environment | Now | Elapsed)
