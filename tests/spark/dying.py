"""Parts of a pipeline that die once, in the middle of their work.

What dies notes it first, in a file beside the checkpoint, and is well the next time.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

from driftline.recorded.inputs import ShardState
from driftline.spark.matched import Matching
from driftline.spark.reformulate import Shards, _SparkMemory

# Workers get these by value: nothing of the tests need be importable there.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def marks(checkpoint: str) -> Path:
    """Where is noted who has died."""
    return Path(checkpoint).with_name("marks")


def die_once(checkpoint: str, moment: str) -> None:
    """End this process, as a machine does that loses its power, if it has not at this moment."""
    mark = marks(checkpoint) / moment
    mark.parent.mkdir(exist_ok=True)
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def keep(checkpoint: str, file: Any, truth: Any) -> None:
    """Keep the mapped file as it is when somebody dies with it, and what it was taken as."""
    marks(checkpoint).mkdir(exist_ok=True)
    shutil.copy(file, marks(checkpoint) / "file")
    (marks(checkpoint) / "stamp").write_bytes(truth.stamp)


class DyingMatching(Matching):
    """Dies when it has matched some events."""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in Matching.__call__(self, batches):
            yield batch
            die_once(self.checkpoint, "match")


class DyingShards(Shards):
    """Dies once with a shard that has been changed, and once with one that has been left."""

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        if not self._truth.exists():
            yield from super().handleInputRows(key, rows, timerValues)
            return
        take = ShardState.take
        checkpoint = self._checkpoint
        file = self._files(self._labels.index(int(key[0]))).cache
        truth = _SparkMemory(self._truth, self._log).truth()

        def dying(state: ShardState, inputs: bytes) -> Any:
            told = take(state, inputs)
            if not (marks(checkpoint) / "within").exists():
                keep(checkpoint, file, truth)
            die_once(checkpoint, "within")
            return told

        ShardState.take = dying  # type: ignore[method-assign]
        try:
            told = list(super().handleInputRows(key, rows, timerValues))
        finally:
            ShardState.take = take  # type: ignore[method-assign]
        die_once(checkpoint, "left")
        yield from told
