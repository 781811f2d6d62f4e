"""What columns does an events DataFrame have, and what does matching add to them?

Events come in one of two forms.

**Wide**: one row per event, one column per attribute, null where the attribute is missing.

    column type                           attribute type
    string                                string
    tinyint, smallint, int, bigint        integer
    float, double                         float (NaN and infinities included)
    boolean                               boolean
    timestamp                             time (UTC, microseconds)
    binary                                bytes

Some names are not attributes but the envelope, each optional:

    ce_type     string      the event's type; may be left out if a default type is given
    ce_id       string      its id
    ce_source   string      where it came from
    ce_time     timestamp   when its publisher says it happened
    ce_entered  timestamp   the stamp it got on entering the system, which `now()` reads; without
                            it `now()` reads ce_time
    ce_data     string      a JSON object of further attributes, for those whose type varies from
                            event to event: values and tags (`{"@time": …}`) as in
                            `driftline.language.cloudevents`. An attribute may not be given both
                            there and in a column of the same row.

Any other column `ce_<name>` is an attribute of that name: a CloudEvents extension.

**Text**: a single string column `value`, one CloudEvents JSON object per row. This is what
`spark.read.text` gives, and Kafka after `.selectExpr("CAST(value AS STRING) AS value")`. A default
type stands in where the object has none.

Any other column type (decimal, date, array, struct, interval, a timestamp without a zone …) is
refused before any job runs: guessing what it means would be a silent change of meaning. A column
that is not meant as an attribute can be dropped or cast first.

Matching leaves the columns as they are and adds two:

    subscriptions  array<string>   the ids of the subscriptions that the event satisfies, in the
                                   order they were given; null if there are none
    problem        string          why the row is no event; null if it is one
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import types as T

from driftline.errors import InvalidValue
from driftline.model.value import WANTED

TYPE = "ce_type"
ID = "ce_id"
SOURCE = "ce_source"
TIME = "ce_time"
ENTERED = "ce_entered"
DATA = "ce_data"
TEXT = "value"

SUBSCRIPTIONS = "subscriptions"
PROBLEM = "problem"

ENVELOPE: dict[str, T.DataType] = {
    TYPE: T.StringType(),
    ID: T.StringType(),
    SOURCE: T.StringType(),
    TIME: T.TimestampType(),
    ENTERED: T.TimestampType(),
    DATA: T.StringType(),
}

TEXT_SCHEMA = T.StructType([T.StructField(TEXT, T.StringType())])

ADDED = (
    T.StructField(SUBSCRIPTIONS, T.ArrayType(T.StringType(), containsNull=False)),
    T.StructField(PROBLEM, T.StringType()),
)

_ATTRIBUTES = (
    T.StringType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.BooleanType,
    T.TimestampType,
    T.BinaryType,
)


@dataclass(frozen=True, slots=True)
class Layout:
    """How to read the rows of one DataFrame: what the workers need to know of its schema."""

    names: tuple[str, ...]
    is_text: bool
    default_type: str | None = None


def layout_of(schema: T.StructType, default_type: str | None = None) -> Layout:
    """Check the columns; refuse what cannot be read, naming it."""
    names = tuple(schema.fieldNames())
    for name in (SUBSCRIPTIONS, PROBLEM):
        if name in names:
            raise InvalidValue(f"column {name}", "a name that matching does not add", repr(name))
    for name in names:
        if names.count(name) > 1:
            raise InvalidValue(f"column {name}", "each name once", f"it {names.count(name)} times")
    if names == (TEXT,) and isinstance(schema[TEXT].dataType, T.StringType):
        return Layout(names, True, default_type)
    for field in schema:
        _check(field)
    if TYPE not in names and default_type is None:
        raise InvalidValue(
            "events",
            f"a column {TYPE}, a default type, or a single string column {TEXT} of JSON",
            f"the columns {', '.join(names)}" if names else "no columns",
        )
    return Layout(names, False, default_type)


def _check(field: T.StructField) -> None:
    came = field.dataType.simpleString()
    wanted = ENVELOPE.get(field.name)
    if wanted is not None:
        if not isinstance(field.dataType, type(wanted)):
            raise InvalidValue(f"column {field.name}", wanted.simpleString(), came)
    elif not isinstance(field.dataType, _ATTRIBUTES):
        if isinstance(field.dataType, T.TimestampNTZType):
            came += ", which has no zone"
        raise InvalidValue(f"column {field.name}", WANTED, came)


def marked_schema(schema: T.StructType) -> T.StructType:
    """The schema of events with what matching adds."""
    return T.StructType([*schema.fields, *ADDED])
