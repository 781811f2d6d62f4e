"""Who has a journal on this machine open?

A file beside the journal is locked for as long as a process has it open, however that ends. It says
which process that is, and that there is a journal: one that is empty then has lost something.
"""

from __future__ import annotations

import os
import sys

from driftline.errors import JournalInUse

if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        # Beyond what is written, which others are to read.
        os.lseek(file, 1 << 20, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


_BYTES_MAX = 4096


class Lock:
    """A lock that this process holds; `known`: has there been a journal before?"""

    __slots__ = ("_file", "known")

    def __init__(self, path: str) -> None:
        self._file = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(self._file)
        except OSError:
            holder = self._read().partition("\n")[0]
            os.close(self._file)
            who = f"process {holder}" if holder.isdigit() else "another process"
            raise JournalInUse(path, f"{who} has it open: end that first") from None
        self.known = self._read().partition("\n")[2] == "known"
        self._write()

    def made(self) -> None:
        """There is a journal from now on."""
        self.known = True
        self._write()
        os.fsync(self._file)

    def release(self) -> None:
        """Let another process have it."""
        os.close(self._file)

    def _read(self) -> str:
        os.lseek(self._file, 0, os.SEEK_SET)
        return os.read(self._file, _BYTES_MAX).decode(errors="replace")

    def _write(self) -> None:
        os.lseek(self._file, 0, os.SEEK_SET)
        written = os.write(self._file, f"{os.getpid()}\n{'known' if self.known else ''}".encode())
        os.ftruncate(self._file, written)
