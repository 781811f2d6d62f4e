"""`driftline pipeline init`: an example that runs, whose comments teach every option."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from driftline import recorded
from driftline.cli.output import stderr
from driftline.errors import FileRefused

EXAMPLE = Path(recorded.__file__).with_name("example")


def init(
    directory: Annotated[Path, typer.Argument(help="An empty or new directory.")],
) -> None:
    """Write a pipeline to begin with: its file, some events, subscriptions of each kind.

    driftline pipeline init mine && driftline pipeline run mine
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise FileRefused(str(directory), None, "wanted an empty or new directory")
    shutil.copytree(EXAMPLE, directory, copy_function=shutil.copy, dirs_exist_ok=True)
    # Of one date, so that they count in the order of their names.
    date = (directory / "pipeline.toml").stat().st_mtime_ns
    for file in directory.rglob("*.jsonl"):
        os.utime(file, ns=(date, date))
    stderr.print(f"Read {directory}/pipeline.toml, then: driftline pipeline run {directory}")
