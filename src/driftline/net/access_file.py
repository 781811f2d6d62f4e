"""How is it said who may do what? In a TOML file of grants; whatever it does not grant is denied.

[groups]
traders = ["alice", "bob"]

[[grants]]
groups = ["traders"]
may = ["subscribe", "view", "set"]
on = ["quote"]                       # types; "news.*" is all that begin so, "*" all
attributes = ["symbol", "price"]     # which they may name, and see

[[grants]]
who = ["feed"]                       # names; "*" is everybody who has proven who they are,
may = ["publish", "advertise"]       # "anyone" those who have not
on = ["quote"]
attributes = ["*"]
except = ["audit"]
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from driftline.broker.grants import Grants, grants_of
from driftline.errors import FileRefused, InvalidValue


def read_grants(path: Path) -> Grants:
    """The grants in a file; `FileRefused` with the reason if it has none."""
    try:
        return grants_of(tomllib.loads(path.read_text()))
    except OSError as problem:
        raise FileRefused(str(path), None, problem.strerror or str(problem)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise FileRefused(str(path), None, f"no TOML: {problem}") from None
    except RecursionError:
        raise FileRefused(str(path), None, "no TOML: lists in lists, too deep") from None
    except InvalidValue as problem:
        raise FileRefused(str(path), None, str(problem)) from None
