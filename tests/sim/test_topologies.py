"""Does every topology deliver what one broker would, and so again after faults?"""

from __future__ import annotations

import pytest

from driftline.sim.scenario import Plan, Scenario
from driftline.sim.topologies import TOPOLOGIES


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("seed", range(3))
def test_a_topology_delivers_what_one_broker_would(topology: str, seed: int) -> None:
    Scenario(Plan(topology, seed, faults="none")).run()


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("seed", range(3))
def test_after_faults_everything_is_as_if_there_had_been_none(topology: str, seed: int) -> None:
    Scenario(Plan(topology, seed)).run()
