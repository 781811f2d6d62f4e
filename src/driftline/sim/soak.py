"""Many seeded runs over all topologies: which of them found something that does not hold?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from driftline.sim.checkers import Violation
from driftline.sim.scenario import Plan, Scenario
from driftline.sim.topologies import TOPOLOGIES


@dataclass(slots=True)
class Soaked:
    """What came of the runs."""

    runs: int = 0
    frames: int = 0
    told: int = 0
    relabelled: int = 0
    failed: list[tuple[Plan, str]] = field(default_factory=list)


def plans(runs: int, like: Plan) -> Iterator[Plan]:
    """So many plans, the topologies in turn, each with a seed of its own."""
    for at in range(runs):
        topology = TOPOLOGIES[at % len(TOPOLOGIES)]
        yield replace(like, topology=topology, seed=like.seed + at // len(TOPOLOGIES))


def soak(runs: int, like: Plan, step: Callable[[], None]) -> Soaked:
    """Run them all; whatever goes wrong in one is kept, and the next is run."""
    soaked = Soaked()
    for plan in plans(runs, like):
        scenario = Scenario(plan)
        try:
            scenario.run()
        except Violation as violation:
            soaked.failed.append((plan, str(violation)))
        except Exception as error:  # A broker that fails is as bad as one that is wrong.
            soaked.failed.append((plan, f"{type(error).__name__}: {error}"))
        soaked.runs += 1
        soaked.frames += scenario.overlay.frames
        soaked.told += sum(len(party.told) for party in scenario.overlay.parties.values())
        soaked.relabelled += scenario.relabelled
        step()
    return soaked
