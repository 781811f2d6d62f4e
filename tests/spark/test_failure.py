"""A failed job is told in one sentence."""

from __future__ import annotations

import pytest

from driftline.spark.failure import reason

IN_WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "x.py", line 16, in bad
    for b in bs: raise RuntimeError("no such luck")
RuntimeError: no such luck
"""

IN_SINK = """[STREAM_FAILED] Query [id = 28b470d6] terminated with exception: [FOREACH_BATCH] \
Reason: Return Message: Traceback (most recent call last):
  File "clientserver.py", line 644, in _call_proxy
driftline.errors.FileRefused: /x: what now
 SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 28b470d6]
Logical Plan: x
"""

IN_TASK = """An error occurred while calling o183.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 \
times, most recent failure: Lost task 0.3 in stage 3.0 (TID 18) (localhost executor driver): \
java.io.IOException: Mkdirs failed to create file:/proc/nope
\tat org.apache.hadoop.fs.ChecksumFileSystem.create(ChecksumFileSystem.java:774)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler
"""

CAUSED = """An error occurred while calling o206.count.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error. SQLSTATE: KD001
\tat org.apache.spark.sql.errors
Caused by: java.lang.RuntimeException: file:/in/zz.parquet is not a Parquet file
\tat org.apache.parquet
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (IN_WORKER, "RuntimeError: no such luck"),
        (IN_SINK, "FileRefused: /x: what now"),
        (IN_TASK, "Mkdirs failed to create file:/proc/nope"),
        (CAUSED, "file:/in/zz.parquet is not a Parquet file"),
        (
            "[PATH_NOT_FOUND] Path does not exist: /x. SQLSTATE: 42K03",
            "[PATH_NOT_FOUND] Path does not exist: /x.",
        ),
        ("", "Exception"),
    ],
)
def test_the_sentence_that_matters_is_found(text, sentence):
    assert reason(Exception(text)) == sentence
