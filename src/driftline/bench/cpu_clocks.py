"""How much CPU time has a process spent, and how much all of the machine?

The clock on the wall counts what others do, and a driver that waits for its turn looks idle. What
the machine spent beyond the broker and its driver says how far a rate can be trusted. Linux tells.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_STAT = Path("/proc/stat")
# user, nice, system, idle, waiting for a disk, interrupts, soft ones, stolen by the host.
_WORKING = (0, 1, 2, 5, 6, 7)
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def process_cpu_s(pid: int) -> float:
    """The CPU time of a running process, all its threads together, to the nanosecond.

    Linux makes a clock of every process: its number is the complement of the process's, with three
    bits that ask for time spent running. /proc tells the same in hundredths of a second.
    """
    return time.clock_gettime((~pid << 3) | 2)


def machine_cpu_s() -> float:
    """The CPU time of everything on this machine, and what its host has taken away."""
    with _STAT.open() as file:
        ticks = [int(word) for word in file.readline().split()[1:]]
    return sum(ticks[at] for at in _WORKING) / _TICKS_PER_S
