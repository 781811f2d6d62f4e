"""Where are compiled kernels kept between runs?

In the user's cache directory, under a fingerprint of all kernel sources. Not beside the sources:
Numba would then look only at the file of the outermost function, and miss that one it calls has
changed; and a fresh clone would compile everything again.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import _CacheLocator


@functools.cache
def fingerprint() -> str:
    """What all kernels say, and so what they compile to."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def directory() -> Path:
    """The directory of these kernels: `DRIFTLINE_CACHE_DIR`, or the user's cache directory."""
    chosen = os.environ.get("DRIFTLINE_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    base = Path(chosen) if chosen else Path.home() / ".cache"
    return base / "driftline" / "kernels" / fingerprint()


class Locator(_CacheLocator):  # type: ignore[misc]  # Numba publishes no types
    """Tells Numba where to keep a kernel; see NUMBA_CACHE_LOCATOR_CLASSES in its documentation."""

    def __init__(self, path: Path, line: int) -> None:
        self._path = path
        self._line = line

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Locator:
        """The locator of a function: in a temporary directory where no other can be written."""
        line = py_func.__code__.co_firstlineno
        try:
            locator = cls(directory(), line)
            locator.ensure_cache_path()
        except (OSError, RuntimeError):  # RuntimeError: there is no home
            shared = Path(tempfile.gettempdir()) / f"driftline-kernels-{os.getuid()}"
            locator = cls(shared / fingerprint(), line)
            locator.ensure_cache_path()
        return locator

    def get_cache_path(self) -> str:
        """The directory."""
        return str(self._path)

    def get_source_stamp(self) -> str:
        """What must be the same for a cached kernel to be used."""
        return fingerprint()

    def get_disambiguator(self) -> str:
        """What tells functions of one name apart."""
        return str(self._line)
