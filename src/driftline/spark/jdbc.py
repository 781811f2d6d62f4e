"""How does what was told reach a table of a database, exactly once?

Batch by batch, as they were committed to files. The rows of a batch are written beside the table
first; one transaction then puts them into it and notes the batch. A batch that is noted is passed
over, so it makes no difference where it failed.

    driftline_matched    seq, subscription
    driftline_told       seq, nth, subscription, kind, values, old, key, events, epoch, time, last
    driftline_refused    seq, file, content, problem
    driftline_batches    pipeline, query, batch

Here each subscriber has a row of its own: that is what databases are good at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from driftline.errors import PipelineFailed
from driftline.spark.failure import SPARK_ERRORS, reason
from driftline.spark.manifest import REFUSED, TABLES, TOLD, Manifest, committed

_PREFIX = "driftline"


class Database:
    """A database by its URL and the properties of its driver."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        self._spark = spark
        self._properties = dict(options)
        self._url = self._properties.pop("url")
        self._noted: set[tuple[str, str, int]] | None = None

    def deliver(self, out: str) -> int:
        """Put in all batches that are committed and not there yet; how many those were."""
        try:
            if self._noted is None:
                self._noted = self._batches()
            fresh = [one for one in committed(out) if _key(one) not in self._noted]
            for manifest in fresh:
                if any(pipeline != manifest.pipeline for pipeline, _, _ in self._noted):
                    why = "it has what another pipeline has told; drop the tables driftline_… of"
                    raise PipelineFailed(
                        f"writing to {self._url}", f"{why} that one, or take another"
                    )
                self._put(out, manifest)
                self._noted.add(_key(manifest))
            return len(fresh)
        except SPARK_ERRORS as error:
            raise PipelineFailed(f"writing to {self._url}", reason(error)) from error

    def _batches(self) -> set[tuple[str, str, int]]:
        with self._connection() as connection:
            pipeline, query, batch = _quoted(connection, ["pipeline", "query", "batch"])
            columns = f"{pipeline} VARCHAR(64), {query} VARCHAR(64), {batch} BIGINT"
            keys = f"PRIMARY KEY ({pipeline}, {query}, {batch})"
            self._create(connection, f"{_PREFIX}_batches", f"{columns}, {keys}")
        rows = self._read(f"{_PREFIX}_batches").collect()
        return {(row[0], row[1], row[2]) for row in rows}

    def _put(self, out: str, manifest: Manifest) -> None:
        staged = []
        for table in TABLES:
            files = [str(Path(out, one.path)) for one in manifest.files if one.table == table]
            if files:
                rows = _singly(self._spark.read.parquet(*files), table)
                self._write(rows, f"{_PREFIX}_{table}_next", "overwrite")
                if not self._exists(f"{_PREFIX}_{table}"):
                    self._write(rows.limit(0), f"{_PREFIX}_{table}", "append")
                staged.append((table, rows.columns))
        with self._connection() as connection:
            connection.setAutoCommit(False)
            statement = connection.createStatement()
            noted = f"'{manifest.pipeline}', '{manifest.query}', {manifest.batch}"
            statement.executeUpdate(f"INSERT INTO {_PREFIX}_batches VALUES ({noted})")
            for table, columns in staged:
                names = ", ".join(_quoted(connection, columns))
                into = f"INSERT INTO {_PREFIX}_{table} ({names})"
                statement.executeUpdate(f"{into} SELECT {names} FROM {_PREFIX}_{table}_next")
            connection.commit()

    def _write(self, rows: DataFrame, table: str, mode: str) -> None:
        rows.write.jdbc(self._url, table, mode=mode, properties=self._properties)

    def _read(self, table: str) -> DataFrame:
        return self._spark.read.jdbc(self._url, table, properties=self._properties)

    def _exists(self, table: str) -> bool:
        with self._connection() as connection:
            return _has(connection, table)

    def _create(self, connection: Any, table: str, columns: str) -> None:
        if not _has(connection, table):
            connection.createStatement().executeUpdate(f"CREATE TABLE {table} ({columns})")

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """A connection of the driver, through Java as Spark's own are."""
        jvm = self._spark.sparkContext._jvm
        assert jvm is not None
        properties = jvm.java.util.Properties()
        for name, value in self._properties.items():
            properties.setProperty(name, value)
        if "driver" in self._properties:
            jvm.java.lang.Class.forName(self._properties["driver"])
        connection = jvm.java.sql.DriverManager.getConnection(self._url, properties)
        try:
            yield connection
        finally:
            connection.close()


def _has(connection: Any, table: str) -> bool:
    here = connection.getCatalog(), connection.getSchema()
    found = connection.getMetaData().getTables(*here, "%", None)
    while found.next():
        if found.getString("TABLE_NAME").lower() == table:
            return True
    return False


def _singly(rows: DataFrame, table: str) -> DataFrame:
    """A row for each subscriber."""
    if table == REFUSED:
        return rows
    told = rows.withColumn("subscription", F.explode("subscriptions")).drop("subscriptions")
    return told if table == TOLD else told.select("seq", "subscription")


def _key(manifest: Manifest) -> tuple[str, str, int]:
    return manifest.pipeline, manifest.query, manifest.batch


def _quoted(connection: Any, names: list[str]) -> list[str]:
    """Names as the database wants them: VALUES, KEY and such are words of SQL."""
    quote = connection.getMetaData().getIdentifierQuoteString()
    return [f"{quote}{name}{quote}" for name in names]
