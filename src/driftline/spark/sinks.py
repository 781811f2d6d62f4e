"""How is each batch written exactly once?

Spark repeats a batch, under the same number and with the same rows, when it cannot know that the
last attempt was finished. So a batch is written to a place of its own, replacing what an earlier
attempt left there, and counts once its manifest exists; a batch whose manifest exists is passed
over. `manifest` says what a reader sees at each moment.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from driftline.errors import FileRefused, PipelineFailed
from driftline.spark import manifest as manifests
from driftline.spark.failure import reason
from driftline.spark.manifest import DATA, REJECTED, Manifest
from driftline.spark.match import rejected, told
from driftline.spark.schemas import PROBLEM


class ManifestSink:
    """What `writeStream.foreachBatch` calls with the output of `mark`, batch by batch.

    `query` tells whose batches these are, asked at each batch because Spark chooses a new query's
    id only when it starts. Batch 3 of another query is not our batch 3: it is refused, and not
    taken for done.
    """

    def __init__(
        self,
        out_dir: str,
        query: Callable[[], str],
        subscriptions: str = "",
        on_commit: Callable[[Manifest], None] | None = None,
    ) -> None:
        self.out_dir = out_dir
        self._query = query
        self._subscriptions = subscriptions
        self._on_commit = on_commit
        self.failure: Exception | None = None

    def __call__(self, marked: DataFrame, batch: int) -> None:
        """As `write`, for Spark to call; `failure` keeps what went wrong, as it was."""
        try:
            self.write(marked, batch)
        except Exception as error:
            self.failure = error
            # Spark searches the text for a sign of interruption, with an expression that overflows
            # Java's stack on pages of traceback; and an error is text anyway once it was in Java.
            raise PipelineFailed(f"batch {batch}", reason(error)) from None

    def write(self, marked: DataFrame, batch: int) -> None:
        """Write one batch, or pass over it if it counts already."""
        query = self._query()
        known = manifests.committed_batch(self.out_dir, batch)
        if known is not None:
            if known.query != query:
                raise FileRefused(self.out_dir, None, f"batch {batch} is of another query")
            return
        written = self._write(marked, batch, query)
        manifests.commit(self.out_dir, written)
        if self._on_commit is not None:
            self._on_commit(written)

    def _write(self, marked: DataFrame, batch: int, query: str) -> Manifest:
        observation = Observation()
        observed = marked.observe(
            observation,
            F.count(F.lit(1)).alias("events"),
            F.count(F.col(PROBLEM)).alias("rejected"),
        )
        # Kept, because it is written twice if anything is rejected, and matching is what costs.
        kept = observed.where("subscriptions IS NOT NULL OR problem IS NOT NULL").persist()
        try:
            self._save(told(kept), DATA, batch)
            seen = observation.get
            if seen["rejected"]:
                self._save(rejected(kept), REJECTED, batch)
            else:
                shutil.rmtree(manifests.folder(self.out_dir, REJECTED, batch), ignore_errors=True)
        finally:
            kept.unpersist()
        data_files = manifests.files_in(self.out_dir, DATA, batch)
        rejected_files = manifests.files_in(self.out_dir, REJECTED, batch)
        return Manifest(
            batch=batch,
            query=query,
            subscriptions=self._subscriptions,
            events=seen["events"],
            # Counted in the files, so that a manifest and what it names cannot disagree.
            matched=manifests.count_rows(self.out_dir, data_files),
            notifications=manifests.count_notifications(self.out_dir, data_files),
            rejected=manifests.count_rows(self.out_dir, rejected_files),
            data_files=data_files,
            rejected_files=rejected_files,
        )

    def _save(self, rows: DataFrame, kind: str, batch: int) -> None:
        rows.write.mode("overwrite").parquet(str(manifests.folder(self.out_dir, kind, batch)))


def read_committed(spark: SparkSession, out_dir: str, kind: str = DATA) -> DataFrame:
    """The rows of all batches that count; `kind` is `data` or `rejected`."""
    files = manifests.committed_files(out_dir, kind)
    if not files:
        what = "directory" if not Path(out_dir).exists() else f"{kind} committed there"
        raise FileRefused(out_dir, None, f"no {what}")
    # Batches written before and after a restart may differ in columns.
    return spark.read.option("mergeSchema", True).parquet(*files)
