"""How do events of any source that Spark knows get an order for good?

They are written to files first, a file for each batch, and recorded like all others. A batch that
Spark repeats finds its file there and is passed over: the file has its name in one step, so it is
there as a whole or not at all.

A source with a column `value` of text or bytes and no `ce_type` gives CloudEvents as text (Kafka
does); any other gives wide events, a column for each attribute.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from driftline.errors import PipelineFailed
from driftline.language.columns import TEXT, TYPE
from driftline.recorded.config import PipelineConfig
from driftline.spark.failure import SPARK_ERRORS, reason
from driftline.spark.manifest import pipeline_id

INGEST = "ingest"
FILES = (None, "parquet", "json")
"""Formats that are read as they are."""

_SCHEMA = "schema"
"""The option that says what columns files have; others are the source's own."""


def is_wanted(config: PipelineConfig) -> bool:
    """Do events come from a source that is no directory of files for us?"""
    return config.events.format not in FILES


def ingest(spark: SparkSession, config: PipelineConfig, *, once: bool) -> StreamingQuery:
    """Start to write what the source gives to the directory of events."""
    options = dict(config.events.options)
    schema = options.pop(_SCHEMA, None)
    reader = spark.readStream.format(str(config.events.format)).options(**options)
    try:
        events = (reader if schema is None else reader.schema(schema)).load()
    except SPARK_ERRORS as error:
        raise PipelineFailed(f"reading {config.events.format}", reason(error)) from error
    writer = events.writeStream.queryName(INGEST).foreachBatch(
        _Files(config.events.path, pipeline_id(str(config.checkpoint)))
    )
    writer = writer.option("checkpointLocation", str(config.checkpoint / INGEST))
    return started(writer, config, once=once)


def started(writer: DataStreamWriter, config: PipelineConfig, *, once: bool) -> StreamingQuery:
    """Start a query of a pipeline: for what there is now, or on and on."""
    if once:
        return writer.trigger(availableNow=True).start()
    pause = f"{round(config.run.interval * 1000)} milliseconds"
    return writer.trigger(processingTime=pause).start()


class _Files:
    """Writes each batch to a file of its own."""

    def __init__(self, directory: str, pipeline: str) -> None:
        self._directory = Path(directory)
        # Another checkpoint counts its batches from 0 too, and they hold something else.
        self._pipeline = pipeline[:12]

    def __call__(self, events: DataFrame, batch: int) -> None:
        is_text = TEXT in events.columns and TYPE not in events.columns
        is_text = is_text and dict(events.dtypes)[TEXT] in ("string", "binary")
        name = f"{INGEST}-{self._pipeline}-{batch:010d}"
        final = self._directory / f"{name}.{'jsonl' if is_text else 'parquet'}"
        if final.exists():
            return
        hidden = self._directory / f".{name}"
        if is_text:
            # A line each: in JSON the end of a line is but a space. What is nothing is no event.
            texts = F.regexp_replace(F.col(TEXT).cast("string"), "[\\r\\n]+", " ")
            lines = events.select(F.coalesce(texts, F.lit("null")).alias(TEXT)).coalesce(1)
            lines.write.mode("overwrite").text(str(hidden))
        else:
            events.coalesce(1).write.mode("overwrite").parquet(str(hidden))
        parts = [*hidden.glob("part-*")]
        if parts:
            os.replace(parts[0], final)
        shutil.rmtree(hidden)
