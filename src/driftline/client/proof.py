"""What proves to a broker who we are, and to us that it is the one we mean?

Tokens come from the environment or from a file that it names: never from an option, which everybody
on the machine can read, and never from a configuration, which is copied about.
"""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from driftline.errors import FileRefused


def token() -> str:
    """What proves who we are: $DRIFTLINE_TOKEN, or what the file $DRIFTLINE_TOKEN_FILE holds now;
    FileRefused if it holds none.

    There is no option for it: everybody on a machine can see the options of a process.
    """
    file = os.environ.get("DRIFTLINE_TOKEN_FILE")
    if file:
        try:
            found = Path(file).read_text().strip()
        except (OSError, UnicodeDecodeError) as problem:
            raise FileRefused(file, None, f"no token: {problem}") from None
        if not found:
            # Somebody is about to write it: nobody names a file to prove nothing.
            raise FileRefused(file, None, "no token: it is empty")
        return found
    return os.environ.get("DRIFTLINE_TOKEN", "").strip()


def authority_context(authority: str | Path | None) -> ssl.SSLContext | None:
    """Trust in whoever this authority has signed; None: in whom the system trusts."""
    if authority is None:
        return None
    try:
        return ssl.create_default_context(cafile=str(authority))
    except (OSError, ValueError) as problem:  # ValueError: a name that no file can have.
        raise FileRefused(str(authority), None, f"no certificate: {problem}") from None
