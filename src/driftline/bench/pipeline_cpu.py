"""How much CPU time have this process and all that it has started taken?

A pipeline is many processes: this one, Java, and Python's workers. What they take together says
what an event costs, whoever else is on the machine. Linux tells; elsewhere it is not known.
"""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# The places of numbers in /proc/<pid>/stat behind the name, which may hold anything.
_PARENT, _TIMES = 1, slice(11, 15)


def tree_cpu_s() -> float | None:
    """Seconds, those of processes that have ended included."""
    spent: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            said = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # It has just ended.
        pid = int(folder.name)
        # Its own time, and that of children that have ended, each in user and system mode.
        spent[pid] = sum(map(int, said[_TIMES]))
        children.setdefault(int(said[_PARENT]), []).append(pid)
    if os.getpid() not in spent:
        return None
    ticks, waiting = 0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        ticks += spent[pid]
        waiting += children.get(pid, ())
    return ticks / _TICKS_PER_S
