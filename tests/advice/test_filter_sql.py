"""Observed filters are shown as Spark SQL that means the same."""

from __future__ import annotations

import json

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

from planning_health.advice.filter_sql import filter_sql
from planning_health.errors import InputError
from planning_health.planning.expressions import Operation, bind, predicate, to_iceberg_json
from planning_health.planning.predicates import parse_where

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "Site Name", StringType()),
    NestedField(3, "v", DoubleType()),
    NestedField(4, "amount", DecimalType(12, 2)),
    NestedField(5, "d", DateType()),
    NestedField(6, "ts", TimestampType()),
    NestedField(7, "tz", TimestamptzType()),
    NestedField(8, "raw", BinaryType()),
    NestedField(9, "flag", BooleanType()),
    NestedField(10, "real", FloatType()),
    NestedField(11, "st", StructType(NestedField(12, "y.z", StringType()), NestedField(13, "x", IntegerType()))),
    NestedField(14, "at", TimeType()),
    NestedField(15, "tags", ListType(16, StringType())),
)


@pytest.mark.parametrize(
    "where",
    [
        "id = 5",
        "`Site Name` = 'it\\'s \"q\" \\\\ %'",
        "`Site Name` LIKE 'a\\\\_b\\\\%%' AND NOT (`Site Name` LIKE 'ab%')",
        "v < 0.1 OR isnan(v) OR v > 1e300",
        "amount <= 12.50 AND amount <> -3",
        "d >= DATE'2026-01-03' AND d < DATE'1969-12-31'",
        "ts = TIMESTAMP_NTZ'2026-01-01 00:00:00.000001'",
        "tz > TIMESTAMP'2026-01-01 10:00:00.5+02:00'",
        "raw = X'00FF' AND flag",
        "real IN (0.5, 1.5) OR real < 0.25",
        "st.`y.z` IS NULL AND st.x NOT IN (1, 2)",
        "id IS NOT NULL",
        "true",
    ],
)
def test_what_is_written_is_read_as_the_same_filter(where: str) -> None:
    expression = parse_where(where, SCHEMA).expression
    written = filter_sql(expression, SCHEMA)
    again = parse_where(written, SCHEMA)
    assert again.not_pushed_down == ()
    assert set(_conjuncts(again.expression)) == set(_conjuncts(expression)), written


def _conjuncts(expression: object) -> list[str]:
    found = to_iceberg_json(bind(expression, SCHEMA))  # type: ignore[arg-type]
    pending, parts = [found], []
    while pending:
        node = pending.pop()
        if isinstance(node, dict) and node["type"] == "and":
            pending += [node["left"], node["right"]]
        else:
            parts.append(json.dumps(node, sort_keys=True))
    return parts


def test_what_spark_has_no_words_for_is_refused() -> None:
    with pytest.raises(InputError, match="Spark SQL has no literal for time"):
        filter_sql(predicate(Operation.EQ, "at", "10:00:00"), SCHEMA)
    with pytest.raises(InputError, match=r"'tags\.element' is within a list or map"):
        filter_sql(predicate(Operation.EQ, "tags.element", "a"), SCHEMA)
