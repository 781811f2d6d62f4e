"""Which pipeline is meant? A file, a directory that has one, or the directory where one stands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftline.recorded.config import PipelineConfig, read_config
from driftline.recorded.quick import CONFIG

ConfigArgument = Annotated[
    Path, typer.Argument(metavar="[CONFIG]", help=f"A {CONFIG}, or a directory with one.")
]
HERE = Path(".")


def chosen(path: Path) -> PipelineConfig:
    """The pipeline in a file or directory; FileRefused if there is none."""
    return read_config(path / CONFIG if path.is_dir() else path)
