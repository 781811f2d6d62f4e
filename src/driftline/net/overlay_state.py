"""Is an overlay up, and where are its brokers? What its supervisor leaves in a folder says it.

The folder stands beside the overlay's file and has its name: of `overlay.toml`, `overlay.run`. In
it are `state.json`, and for each broker its configuration and its log. Whoever holds the lock
there is the supervisor: a lock goes with its process, so nobody is deceived by an old state.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from driftline.errors import FileRefused

_STATE = "state.json"
_LOCK = "lock"


def state_folder(file: Path) -> Path:
    """Where the state of an overlay is kept."""
    return file.with_suffix(".run")


class Lock:
    """Held by the supervisor of an overlay, as long as its process lives."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None

    def take(self) -> None:
        """Be the supervisor; refused if there is another."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            why = "the overlay is up already: driftline overlay down ends it"
            raise FileRefused(str(self._folder), None, why) from None
        except OSError as problem:
            raise FileRefused(str(self._folder), None, problem.strerror or "no folder") from None

    def release(self) -> None:
        """Be it no longer."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def is_up(folder: Path) -> bool:
    """Is there a supervisor?"""
    try:
        file = os.open(folder / _LOCK, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def write_state(folder: Path, state: dict[str, Any]) -> None:
    """Leave a state, whole."""
    new = folder / f".{_STATE}.new"
    new.write_text(json.dumps(state, indent=2) + "\n")
    new.replace(folder / _STATE)


def read_state(folder: Path) -> dict[str, Any]:
    """The state of an overlay that is up; refused if it is not."""
    if not is_up(folder):
        why = "the overlay is not up: driftline overlay up starts it"
        raise FileRefused(str(folder), None, why)
    try:
        found: dict[str, Any] = json.loads((folder / _STATE).read_text())
        return found
    except (OSError, ValueError):
        raise FileRefused(str(folder), None, "the overlay is only just starting") from None


def remove_state(folder: Path) -> None:
    """There is no overlay any more."""
    (folder / _STATE).unlink(missing_ok=True)
