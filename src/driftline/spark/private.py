"""From which directories of a machine are pickles read? From those that only we write to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from driftline.errors import FileRefused


def private(place: Path) -> Path:
    """The directory, made if needed; FileRefused if others can write there."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = place.lstat()
    mode = stat.filemode(found.st_mode)
    if hasattr(os, "getuid") and (mode[0] + mode[5] + mode[8], found.st_uid) != ("d--", user()):
        wanted = f"wanted a directory to which only user {user()} writes"
        raise FileRefused(str(place), None, f"{wanted}, came {mode} of user {found.st_uid}")
    return place


def user() -> int:
    """Who we are to the system; where it knows no users, nobody in particular."""
    return os.getuid() if hasattr(os, "getuid") else 0
