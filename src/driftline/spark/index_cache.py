"""Where are the index files of a machine, and who builds them?

    <directory>/<fingerprint of the subscriptions>.<fingerprint of the code>.index
    <directory>/.lock-<first digit of the fingerprint>

The first worker that needs a version builds it, under a lock, and all workers map the file: so a
machine holds one copy, whatever the number of workers, executors and queries. It is built from the
file of another version where one has most of it, by taking in what has changed.

Nothing here is needed: a file may be deleted at any time, and a worker that cannot write one (a
full disk, a directory that is somebody else's) works with an index of its own. A lock is the
system's and ends with the process that holds it; what a builder leaves that dies is removed by the
next one.

The directory is local, because a mapped file should be, and is not Spark's: `spark.local.dir` has a
directory per executor, which ends with it.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from driftline.errors import FileRefused
from driftline.matching.index_file import code
from driftline.matching.roster import Roster
from driftline.matching.shared import Shared
from driftline.spark.private import private, user

try:
    import fcntl
except ImportError:  # Windows: builders may get in each other's way, which costs time only.
    fcntl = None  # type: ignore[assignment]

# A query needs one. A few more let queries take turns, and each version begin with another.
KEPT_MAX = 4

_SUFFIX = ".index"
_TEMPORARY = ".new"


def directory() -> Path:
    """Below DRIFTLINE_CACHE_DIR, or one per user among the system's temporary files."""
    chosen = os.environ.get("DRIFTLINE_CACHE_DIR")
    if chosen:
        return Path(chosen, "driftline", "index")
    return Path(tempfile.gettempdir(), f"driftline-index-{user()}")


def shared_for(fingerprint: str, packed: bytes) -> Shared:
    """The index of these subscriptions: mapped, after having been built if it was not there."""
    try:
        path = private(directory()) / f"{fingerprint}.{code()}{_SUFFIX}"
        with suppress(FileRefused):
            return _open(path)
        with _locked(path):
            with suppress(FileRefused):
                return _open(path)  # Somebody else has built it meanwhile.
            _build(path, Roster.unpacked(packed)).write(path)
            _tidy(path)
            return _open(path)
    except (OSError, FileRefused) as problem:
        logging.getLogger(__name__).warning("this worker has an index of its own: %s", problem)
        return Shared.of(Roster.unpacked(packed))


def _open(path: Path) -> Shared:
    shared = Shared.open(path)
    # Its time is that of its last use. It may be removed by now, and stays mapped all the same.
    with suppress(FileNotFoundError):
        os.utime(path)
    return shared


def _build(path: Path, roster: Roster) -> Shared:
    """From a file that has most of what is wanted, if there is one."""
    for other in _by_use(path.parent):
        if other.name.endswith(f".{code()}{_SUFFIX}"):
            with suppress(FileRefused):
                renewed = Shared.open(other).renewed(roster)
                if renewed is not None:
                    return renewed
    return Shared.of(roster)


def _tidy(path: Path) -> None:
    """Remove what was not used for longest, and what builders left that died with this lock."""
    for old in _by_use(path.parent)[KEPT_MAX:]:
        # Where the system lets go of open files (not on Windows); who has it mapped keeps it.
        with suppress(OSError):
            old.unlink()
    for left in path.parent.glob(f".{path.name[0]}*{_TEMPORARY}"):
        with suppress(OSError):
            left.unlink()


def _by_use(place: Path) -> list[Path]:
    """The index files, the one used last first."""
    used: list[tuple[int, Path]] = []
    for file in place.glob(f"*{_SUFFIX}"):
        with suppress(FileNotFoundError):
            used.append((file.stat().st_mtime_ns, file))
    return [file for _, file in sorted(used, reverse=True)]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One builder at a time per version. Locks are few, and never removed: a lock file that could
    be might be taken by two, one of them holding a file that has no name any more.
    """
    handle = os.open(path.with_name(f".lock-{path.name[0]}"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
