"""Is importing the package quick, and does every public name exist?"""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import driftline

SOURCE = Path(driftline.__file__).parent
HEAVY = ("pyspark", "numba", "sqlglot", "pyarrow", "asyncio", "hypothesis", "pandas")
IMPORT_SECONDS_MAX = 0.3

_MEASURE = """
import sys, time
started = time.perf_counter()
import driftline
seconds = time.perf_counter() - started
import json
print(json.dumps([seconds, sorted(sys.modules)]))
"""


def _import() -> tuple[float, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE], capture_output=True, text=True, check=True
    )
    seconds, modules = json.loads(done.stdout)
    return seconds, modules


def test_importing_loads_nothing_heavy() -> None:
    _, modules = _import()
    assert not {name.partition(".")[0] for name in modules} & set(HEAVY)


@pytest.mark.parametrize("name", driftline.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(driftline, name) is not None
    assert name in dir(driftline)


def test_every_public_name_has_one_home() -> None:
    assert set(driftline.__all__) == driftline._HOMES.keys()
    assert len(driftline.__all__) == len(set(driftline.__all__))
    for home in driftline._HOMES.values():
        assert importlib.util.find_spec(home) is not None


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = driftline.nothing


def test_type_checkers_see_the_same_names() -> None:
    """The imports under TYPE_CHECKING name each public thing from its home."""
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("driftline")
        for alias in node.names
    }
    assert seen == driftline._HOMES


def test_nothing_in_the_package_imports_the_aids_for_tests() -> None:
    for path in SOURCE.rglob("*.py"):
        if path.parent.name != "testing":
            assert "driftline.testing" not in path.read_text(), path
