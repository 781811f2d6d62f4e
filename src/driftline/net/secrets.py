"""Where do secrets come from? From files that only their owner can read, or from the environment.

Never from the command line, where everybody on a machine can see them, and never from a
configuration file, which is copied about.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from driftline.errors import FileRefused

SECRET_BYTES_MAX = 1 << 16


def read_secret(path: Path) -> bytes:
    """The secret in a file, without the line's end; `FileRefused` if others can read it."""
    try:
        mode = path.stat().st_mode
        with path.open("rb") as file:
            secret = file.read(SECRET_BYTES_MAX + 1)
    except OSError as problem:
        raise FileRefused(str(path), None, problem.strerror or str(problem)) from None
    if stat.S_IMODE(mode) & 0o077:
        why = f"others can read this secret: chmod 600 {path}"
        raise FileRefused(str(path), None, why)
    if len(secret) > SECRET_BYTES_MAX:
        raise FileRefused(str(path), None, f"more than {SECRET_BYTES_MAX} bytes are no secret")
    secret = secret.rstrip(b"\r\n")
    if not secret:
        raise FileRefused(str(path), None, "there is no secret in it")
    return secret


def secret_of(path: Path | None, variable: str, environment: Mapping[str, str]) -> bytes | None:
    """A secret from a file, else from a variable of the environment; None: there is none."""
    if path is not None:
        return read_secret(path)
    found = environment.get(variable, "")
    return found.encode() or None


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, and that was not there."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as problem:
        raise FileRefused(str(path), None, problem.strerror or str(problem)) from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def without_password(journal: str) -> str:
    """A journal's address as it may be shown: without a password."""
    if "://" not in journal:
        return journal
    try:
        parts = urlsplit(re.sub(r"(?i)(password=)[^&]*", r"\1***", journal))
        if parts.password is None:
            return parts.geturl()
        host = parts.netloc.rpartition("@")[2]
        return parts._replace(netloc=f"{parts.username}:***@{host}").geturl()
    except ValueError:
        return journal.partition("://")[0] + "://…"
