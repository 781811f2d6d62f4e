"""What will a publisher say? [SIENA §3.4, §3.6]

An advertisement covers an event if it covers each of the event's attributes: the dual of a filter,
which asks for attributes that must be there. Constraints on one attribute are alternatives.
"""

from __future__ import annotations

from dataclasses import dataclass

from driftline.model.constraint import Constraint, Operator
from driftline.model.domain import Domain
from driftline.model.event import ENVELOPE, Event
from driftline.model.filter import Filter
from driftline.model.predicate import And, conjunction
from driftline.model.text import identifier


@dataclass(frozen=True, slots=True)
class Advertisement:
    """For each attribute, the alternatives; each a conjunction (BETWEEN has two constraints).

    `anything`: attributes that are not named may come too, with any value. The language cannot say
    it; brokers do for those that do not say what they offer.
    """

    type: str | None
    attributes: tuple[tuple[str, tuple[tuple[Constraint, ...], ...]], ...] = ()
    anything: bool = False

    def alternatives(self, attribute: str) -> tuple[tuple[Constraint, ...], ...]:
        """What the attribute may be: one of these; nothing at all if it is not advertised."""
        for name, options in self.attributes:
            if name == attribute:
                return options
        return ((Constraint(attribute, Operator.EXISTS),),) if self.anything else ()

    def uncovered(self, event: Event) -> str | None:
        """Why the event is not covered, naming the first thing that is not; None if it is."""
        if self.type is not None and event.type != self.type:
            return f"type {event.type} is not {self.type}"
        for name, value in event.attributes.items():
            options = self.alternatives(name)
            if not any(all(part.satisfied_by(value) for part in option) for option in options):
                return f"{name} is not advertised" + (f" as {value!r}" if options else "")
        return None

    def covers(self, event: Event) -> bool:
        """Could the publisher have said this?

        >>> from driftline import Event, advertisement
        >>> says = advertisement("SELECT * WHERE what = 'alarm' OR what = 'login'")
        >>> says.covers(Event("log", {"what": "login"})), says.covers(Event("log", {"who": "x"}))
        (True, False)
        """
        return self.uncovered(event) is None

    def __str__(self) -> str:
        source = "" if self.type is None else f" FROM {identifier(self.type)}"
        groups = []
        for _, options in self.attributes:
            texts = [_option_text(option) for option in options]
            joined = " OR ".join(texts)
            groups.append(f"({joined})" if len(texts) > 1 and len(self.attributes) > 1 else joined)
        groups += ["anything"] * self.anything
        where = f" WHERE {' AND '.join(groups)}" if groups else ""
        return f"SELECT *{source}{where}"


def _option_text(option: tuple[Constraint, ...]) -> str:
    condition = conjunction(tuple(part.condition() for part in option))
    if isinstance(condition, And):  # the only conjunction on one attribute is BETWEEN
        low, high = (part.operand for part in option)
        return f"{identifier(option[0].attribute)} BETWEEN {low} AND {high}"
    return str(condition)


# Two that list a thousand alternatives each would take a million comparisons, and each is compared
# with each: of more than so many only the same covers.
_COMPARED_MAX = 256


def advertisement_covers(general: Advertisement, specific: Advertisement) -> bool:
    """Is every event of the second also of the first? May wrongly say no, never wrongly yes."""
    if general.type is not None and general.type != specific.type:
        return False
    if specific.anything and not general.anything:
        return False
    named = dict.fromkeys(name for name, _ in specific.attributes)
    if specific.anything:
        named |= dict.fromkeys(name for name, _ in general.attributes)
    left = _COMPARED_MAX
    for name in named:
        wider = general.alternatives(name)
        for option in specific.alternatives(name):
            domain = Domain.of(option)
            for other in wider:
                left -= 1
                if left < 0:
                    return general == specific
                if all(domain.implies(part) for part in other):
                    break
            else:
                return False
    return True


def advertisement_intersects(advertised: Advertisement, wanted: Filter) -> bool:
    """Could an advertised event satisfy the filter? May wrongly say yes, never wrongly no."""
    if None not in (advertised.type, wanted.type) and advertised.type != wanted.type:
        return False
    # The envelope is not advertised: an event is covered whatever its id or source.
    for attribute in {c.attribute for c in wanted.constraints}.difference(ENVELOPE):
        asked = wanted.on(attribute)
        domain = Domain.of(asked)
        if domain.empty:
            return False
        if not domain.present:  # asked to be missing, and no publisher must send it
            continue
        options = advertised.alternatives(attribute)
        if not any(not Domain.of((*asked, *option)).empty for option in options):
            return False
    return True
