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
from urllib.parse import unquote

from driftline.errors import FileRefused

SECRET_BYTES_MAX = 1 << 16
_HIDDEN = "***"
_SECRET = re.compile(r"password|secret|scram_", re.IGNORECASE)
"""What names of parameters have in them whose values are secrets."""
_WORDS = re.compile(r"(password\s*=\s*).+", re.IGNORECASE | re.DOTALL)
"""A password among words such as `host=… password=…`, and all behind it: it may be quoted."""
_ALMOST = re.compile(r"(postgres(?:ql)?(?::|//)).*", re.IGNORECASE | re.DOTALL)
"""What was meant as postgresql://…, and lacks a character: it is no name of a file."""


def read_secret(path: Path) -> bytes:
    """The secret in a file, without the line's end; `FileRefused` if others can read it."""
    try:
        # Opening a pipe may wait for ever, opening a device may do something.
        if not stat.S_ISREG(path.stat().st_mode):
            raise FileRefused(str(path), None, "wanted an ordinary file for a secret")
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            secret = file.read(SECRET_BYTES_MAX + 1)
    except OSError as problem:
        raise FileRefused(str(path), None, problem.strerror or str(problem)) from None
    except ValueError as problem:
        raise FileRefused(str(path), None, str(problem)) from None  # a NUL in its name
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
    """A journal's address as it may be shown: without a password.

    It errs to the side of showing less. A password that should have been written otherwise is one
    too, so everything up to the last @ is the user and the password, as PostgreSQL itself takes
    `#` and `?` there.

    >>> without_password("postgresql://bob:ge/h#e?i@m@host/db?password=x&user=bob")
    'postgresql://bob:***@host/db?password=***&user=bob'
    """
    scheme, is_url, rest = journal.partition("://")
    if not is_url:
        if almost := _ALMOST.fullmatch(journal):
            return f"{almost[1]}{_HIDDEN}"
        return _WORDS.sub(rf"\1{_HIDDEN}", journal)
    who, at, where = rest.rpartition("@")
    user, colon, _ = who.partition(":")
    if not colon:
        return f"{scheme}://{_without_parameters(rest)}"
    if _without_parameters(who) != who:
        # The last @ may be inside a parameter: what is behind it may be half a password.
        return f"{scheme}://{_HIDDEN}"
    return f"{scheme}://{user}:{_HIDDEN}{at}{_without_parameters(where)}"


def has_password(journal: str) -> bool:
    """Is there one in a journal's address? It may say so where there is none, never the reverse."""
    return without_password(journal) != journal


def is_misread(journal: str) -> bool:
    """Would PostgreSQL look elsewhere for the password than we do, and name parts of it in errors?

    It ends a user and a password at the first @, and sees none behind a /.

    >>> is_misread("postgresql://bob:ge/heim@host/db"), is_misread("postgresql://bob:ge#h@host/db")
    (True, False)
    """
    who, _, _ = journal.partition("://")[2].rpartition("@")
    place, _, parameters = who.partition("?")
    if "/" in place and "=" in parameters.rpartition("&")[2]:
        return False  # The last @ is in a parameter, as it may be.
    return ":" in who and ("/" in who or "@" in who)


def _without_parameters(address: str) -> str:
    """What stands behind ? without the values that are secrets, however their names are written."""
    place, mark, parameters = address.partition("?")
    said = []
    for one in parameters.split("&"):
        name, equals, _ = one.partition("=")
        said.append(f"{name}={_HIDDEN}" if equals and _SECRET.search(unquote(name)) else one)
    return f"{place}{mark}{'&'.join(said)}"
