"""What becomes of what was told and a broker refuses for good?

It is set aside, so that what follows it is published: a line of JSON each in a file beside the note
of what is published, on disk before that is noted. Whoever dies in between writes some twice, under
the same id.

    {"id": "match/17/0/cheap", "why": "event: wanted at most …", "time": …, "event": {…}}

The event is a CloudEvent, so what was put right can be published from the file:

    jq -c .event out/checkpoint/unpublished.jsonl | driftline pub --file - --once
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from driftline.errors import (
    DriftlineError,
    FrameRefused,
    InvalidValue,
    LanguageError,
    NotAdvertised,
    NotAllowed,
    NotSupported,
    TableError,
)
from driftline.language.cloudevents import event_to
from driftline.model.event import Event

LETTERS = "unpublished.jsonl"
FOR_GOOD = (
    FrameRefused,
    InvalidValue,
    LanguageError,
    NotAdvertised,
    NotAllowed,
    NotSupported,
    TableError,
)
"""Why a broker refuses an event itself. All else may be over when it is tried again."""


@dataclass(frozen=True, slots=True)
class Letter:
    """Something that was told and cannot be published."""

    id: str
    why: str
    event: Mapping[str, Any]
    """As near to a CloudEvent as it comes."""


def letter_of(event: Event, why: DriftlineError) -> Letter:
    """An event that was refused."""
    return Letter(event.id or "", str(why), event_to(event))


def write_letters(file: Path, letters: Iterable[Letter]) -> None:
    """Add some, on disk when this returns."""
    now = datetime.now(UTC)
    with file.open("ab") as stream:
        for one in letters:
            said = {"id": one.id, "why": one.why, "time": now, "event": one.event}
            # What is no value of an event is shown as what it is.
            stream.write(msgspec.json.encode(said, enc_hook=repr) + b"\n")
        stream.flush()
        os.fsync(stream.fileno())
