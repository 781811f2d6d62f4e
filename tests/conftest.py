"""How random are the tests, and how is a failure replayed?

Hypothesis prints the example it found and how to replay it. A test that draws from `random`
takes the fixture `seed`, which prints its seed: `pytest --hypothesis-seed=N` replays it.
DRIFTLINE_PROFILE=thorough tries twenty times as many examples.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import HealthCheck, settings

# Whole statements are large data by hypothesis's standards; the checks on them are quick.
_SLOW_DATA = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "default", max_examples=200, deadline=None, print_blob=True, suppress_health_check=_SLOW_DATA
)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=4000)
settings.load_profile(os.environ.get("DRIFTLINE_PROFILE", "default"))


@pytest.fixture
def seed(request: pytest.FixtureRequest, record_property) -> int:
    given = request.config.getoption("--hypothesis-seed")
    number = int(given) if given is not None else random.SystemRandom().randrange(2**32)
    record_property("seed", number)
    print(f"seed {number}: replay with --hypothesis-seed={number}")
    return number
