"""Which columns of a DataFrame make events, and which are refused before any job runs?"""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from driftline.errors import InvalidValue
from driftline.spark.schemas import layout_of


@pytest.mark.parametrize(
    "odd",
    [
        T.DecimalType(10, 2),
        T.DateType(),
        T.TimestampNTZType(),
        T.ArrayType(T.IntegerType()),
        T.StructType([T.StructField("a", T.IntegerType())]),
        T.MapType(T.StringType(), T.IntegerType()),
        T.DayTimeIntervalType(),
        T.YearMonthIntervalType(),
    ],
    ids=str,
)
def test_a_column_type_that_no_attribute_has_is_refused_by_name(odd):
    schema = T.StructType([T.StructField("ce_type", T.StringType()), T.StructField("odd", odd)])
    with pytest.raises(InvalidValue, match="column odd: wanted a string"):
        layout_of(schema)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("x int", "a column ce_type"),
        ("value binary", "a column ce_type"),
        (
            "ce_type string, ce_time string",
            "column ce_time: wanted timestamp with a zone",
        ),
        ("ce_type int", "column ce_type: wanted string, came int32"),
        ("ce_type string, problem string", "column problem"),
        ("ce_type string, subscriptions int", "column subscriptions"),
        ("ce_type string, x int, x int", "column x: wanted each name once"),
    ],
)
def test_columns_that_make_no_event_are_refused(schema, problem):
    with pytest.raises(InvalidValue, match=problem):
        layout_of(_schema(schema))


def test_every_attribute_type_has_a_column_type():
    kinds = {
        "s": T.StringType(),
        "i": T.LongType(),
        "small": T.ByteType(),
        "f": T.DoubleType(),
        "b": T.BooleanType(),
        "t": T.TimestampType(),
        "y": T.BinaryType(),
        "ce_time": T.TimestampType(),
        "ce_data": T.StringType(),
    }
    schema = T.StructType([T.StructField(name, kind) for name, kind in kinds.items()])
    assert layout_of(schema, "t").names == tuple(kinds)


def test_the_form_is_read_from_the_columns():
    assert layout_of(_schema("value string")).is_text
    assert not layout_of(_schema("value string, ce_type string")).is_text
    assert not layout_of(_schema("value int"), "t").is_text


def _schema(text: str) -> T.StructType:
    fields = [field.strip().split(" ") for field in text.split(",")]
    types = {"int": T.IntegerType(), "string": T.StringType(), "binary": T.BinaryType()}
    return T.StructType([T.StructField(name, types[type_]) for name, type_ in fields])
