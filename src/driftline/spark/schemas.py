"""What columns does an events DataFrame have, and what does matching add to them?

The columns are those of `driftline.language.columns`, in Spark's types: wide (one column per
attribute, the envelope in `ce_…`) or text (a single string column `value` of CloudEvents JSON,
which is what `spark.read.text` gives, and Kafka after `.selectExpr("CAST(value AS STRING) AS
value")`). Whatever cannot be read is refused here, before any job runs.

Matching leaves the columns as they are and adds two:

    subscriptions  array<string>   the ids of the subscriptions that the event satisfies, in the
                                   order they were given; null if there are none
    problem        string          why the row is no event; null if it is one
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from driftline.errors import InvalidValue
from driftline.language import columns
from driftline.language.columns import Layout
from driftline.model.value import WANTED

SUBSCRIPTIONS = "subscriptions"
PROBLEM = "problem"

ADDED = (
    T.StructField(SUBSCRIPTIONS, T.ArrayType(T.StringType(), containsNull=False)),
    T.StructField(PROBLEM, T.StringType()),
)


def layout_of(schema: T.StructType, default_type: str | None = None) -> Layout:
    """Check the columns; refuse what cannot be read, naming it."""
    for name in (SUBSCRIPTIONS, PROBLEM):
        if name in schema.fieldNames():
            raise InvalidValue(f"column {name}", "a name that matching does not add", repr(name))
    # As the workers will see them.
    return columns.layout_of(pa.schema([_arrow(field) for field in schema]), default_type)


def _arrow(field: T.StructField) -> pa.Field:
    try:
        return pa.field(field.name, to_arrow_type(field.dataType, timezone="UTC"))
    except PySparkException:
        came = field.dataType.simpleString()
        raise InvalidValue(f"column {field.name}", WANTED, came) from None


def marked_schema(schema: T.StructType) -> T.StructType:
    """The schema of events with what matching adds."""
    return T.StructType([*schema.fields, *ADDED])
