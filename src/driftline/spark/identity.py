"""Whose directory is this, and was it made for what is to be run?

A checkpoint has an id, which no other has ever had, and says for which configuration it was made:
shards and tables that were divided otherwise hold other rows, and to go on with them would be
silently wrong.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import msgspec

from driftline.errors import FileRefused
from driftline.recorded.config import OrderConfig, PipelineConfig, TableConfig
from driftline.recorded.sequence import replace_file
from driftline.spark.manifest import IDENTITY


class Identity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a checkpoint was made for."""

    id: str
    shards: int
    tables: dict[str, TableConfig]
    order: OrderConfig
    default_type: str | None


def claim(config: PipelineConfig) -> Identity:
    """The identity of a checkpoint, made if it is new; FileRefused if it is of another kind."""
    file = config.checkpoint / IDENTITY
    if not file.exists():
        made = _of(config, uuid.uuid4().hex)
        replace_file(file, msgspec.json.format(msgspec.json.encode(made)) + b"\n")
    found = read_identity(str(config.checkpoint))
    for name, has in msgspec.structs.asdict(found).items():
        wanted = getattr(_of(config, found.id), name)
        if has != wanted:
            problem = f"it was made with {name} = {_said(has)}, and this is {_said(wanted)}"
            remedy = (
                "go on with what it was made with, or run `driftline pipeline replay --into` with a"
                " new directory: the recorded sequence is taken again from its beginning"
            )
            raise FileRefused(str(config.checkpoint), None, f"{problem}; {remedy}")
    return found


def read_identity(checkpoint: str) -> Identity:
    """The identity of a checkpoint."""
    file = Path(checkpoint, IDENTITY)
    try:
        return msgspec.json.decode(file.read_bytes(), type=Identity)
    except (OSError, msgspec.DecodeError) as problem:
        raise FileRefused(str(file), None, f"no checkpoint of a pipeline: {problem}") from problem


def _of(config: PipelineConfig, id: str) -> Identity:
    return Identity(id, config.run.shards, config.tables, config.order, config.events.default_type)


def _said(what: object) -> str:
    return msgspec.json.encode(what).decode()
