"""Does an overlay work on for two minutes while its brokers are killed?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.net.soak import soak


@pytest.mark.slow
def test_an_overlay_whose_brokers_are_killed_loses_nothing(tmp_path: Path, seed: int) -> None:
    done = soak(tmp_path, 110, 25, seed, print)
    assert not done.wrong, done.wrong
    assert done.kills >= 3
    assert done.published > 3000
