"""Does a process that was large for a moment become small again?"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from driftline.net import trimming
from driftline.net.trimming import Trimming

needs_gnu = pytest.mark.skipif(
    not Trimming().is_possible, reason="this C library cannot be asked to"
)
GROWS = """
import asyncio, json
from driftline.net import sweeping
from driftline.net.trimming import resident

sweeping._OFTEN = 0.05
sizes = []

async def test():
    one = sweeping.Sweeping(asyncio.get_running_loop())
    one.begin()
    for _ in range(3):
        sizes.append(resident())
        # Between all that was needed for a moment there is a little that stays.
        many = [bytes(600 + 13 * at % 800) for at in range(200_000)]
        few = many[::50]
        sizes.append(resident())
        del many
        async with asyncio.timeout(30):
            while resident() > sizes[-2] + (64 << 20):
                await asyncio.sleep(0.05)
    one.end()

asyncio.run(test())
print(json.dumps(sizes))
"""


@needs_gnu
def test_a_process_gives_back_what_it_needed_for_a_moment():
    ran = subprocess.run(
        [sys.executable, "-c", GROWS], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    sizes = json.loads(ran.stdout)
    assert all(
        large > small + (128 << 20) for small, large in zip(sizes[::2], sizes[1::2], strict=True)
    )


@needs_gnu
def test_what_is_needed_is_not_asked_for_again_and_again(monkeypatch):
    """What others than the C library have, it cannot give back: Python has it for small objects."""
    one, size, used = Trimming(), 1 << 30, 1 << 28
    monkeypatch.setattr(trimming, "resident", lambda: size)
    monkeypatch.setattr(one, "_used", lambda: used)
    monkeypatch.setattr(one, "_trim", lambda pad: 0)
    one.trim()
    trims = 0
    for _ in range(1000):
        size += 4 << 20
        if one.is_due():
            one.trim()
            trims += 1
    assert 3 <= trims <= 8
    # What the library has and uses is nothing that could be given back, and then it is.
    used += 4 << 30
    size += 4 << 30
    assert not one.is_due()
    used -= 3 << 30
    assert one.is_due()
    size -= 3 << 30
    assert not one.is_due()


def test_where_the_system_does_not_say_how_much_there_is_nothing_is_done(monkeypatch, tmp_path):
    monkeypatch.setattr(trimming, "_PAGES", tmp_path / "none")
    assert not Trimming().is_due()
