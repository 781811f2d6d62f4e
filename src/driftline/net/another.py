"""How is another process of ours begun, so that it is made of what we are made of?

With `-m` alone Python looks for modules first in the folder that somebody happens to be in: a file
`token.py` there would be taken for Python's own. Ours are looked for where we have found them.
"""

from __future__ import annotations

import os
import sys


def command_of(module: str, *arguments: str) -> tuple[str, ...]:
    """What begins it; `environment` belongs to it."""
    return sys.executable, "-P", "-m", module, *arguments


def environment() -> dict[str, str]:
    """What it is begun in."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
