"""By which certificates, keys and grants does whoever answers HTTP go? By those of the broker.

The broker reads these files when it begins and when it is told to, and what answers HTTP may have
to be begun again at any time. If that read them again then, files that nobody has asked to be read
would count over HTTP, and others at the broker's own door; and what is being written just then
would keep everybody out. So it gets what was in them, and reads that from files of its own, which
are in memory and have no names. Where the system has none (only Linux has), it reads the files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from driftline.net.config import Config


def contents_of(config: Config) -> list[bytes | None]:
    """What is in the files that one broker reads; None: it cannot be read, and who needs it is to
    say why.
    """
    found: list[bytes | None] = []

    def read(path: Path) -> Path:
        try:
            found.append(path.read_bytes() if path.is_file() else None)
        except (OSError, ValueError):
            found.append(None)
        return path

    _with_files(config, read)
    return found


@contextmanager
def files_of(config: Config, contents: Sequence[bytes | None]) -> Iterator[Config]:
    """The same configuration, whose files have these contents, while it is read."""
    if not hasattr(os, "memfd_create"):
        yield config
        return
    left = iter(contents)
    open_files: list[int] = []

    def made(path: Path) -> Path:
        content = next(left, None)
        if content is None:
            return path
        file = os.memfd_create("driftline")
        open_files.append(file)
        os.fchmod(file, 0o600)
        with open(file, "wb", closefd=False) as stream:
            stream.write(content)
        return Path(f"/proc/self/fd/{file}")

    try:
        yield _with_files(config, made)
    finally:
        for file in open_files:
            os.close(file)


def _with_files(config: Config, instead: Callable[[Path], Path]) -> Config:
    """The same with other files; each is asked about once, in an order that stays."""
    tls, tokens, access = config.tls, config.tokens, config.access
    if tls is not None:
        tls = replace(
            tls,
            certificate=instead(tls.certificate),
            key=instead(tls.key),
            authority=None if tls.authority is None else instead(tls.authority),
        )
    if tokens is not None:
        tokens = replace(tokens, key=instead(tokens.key))
    return replace(
        config, tls=tls, tokens=tokens, access=None if access is None else instead(access)
    )
