"""The effective metrics modes are those of Iceberg's own ``MetricsConfig``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import parse_transform
from pyiceberg.types import IntegerType, ListType, LongType, MapType, NestedField, StringType, StructType

from planning_health.maintenance.trim.metrics_config import effective_modes
from planning_health.maintenance.trim.rule import Kept
from planning_health.planning.fewer_statistics import MetricsMode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREFIX = "write.metadata.metrics."

NESTED = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "place", StructType(NestedField(3, "lat", LongType()), NestedField(4, "Lon.x", LongType()))),
    NestedField(5, "tags", ListType(6, StringType(), False)),
    NestedField(7, "by_name", MapType(8, StringType(), 9, IntegerType(), False)),
    NestedField(10, "deep", ListType(11, StructType(NestedField(12, "a", IntegerType())), False)),
    NestedField(13, "odd", MapType(14, StringType(), 15, StructType(NestedField(16, "b", StringType())), False)),
    NestedField(17, "last", StringType()),
)
WIDE = Schema(
    NestedField(1, "nest", StructType(*(NestedField(200 + n, f"n{n}", LongType()) for n in range(70)))),
    *(NestedField(2 + n, f"c{n}", LongType()) for n in range(60)),
)


def order(*fields: tuple[int, str]) -> SortOrder:
    return SortOrder(*(SortField(source_id=i, transform=parse_transform(name)) for i, name in fields), order_id=1)


CASES: list[tuple[Schema, Mapping[str, str], SortOrder | None]] = [
    (NESTED, {}, None),
    (NESTED, {"default": "none"}, order((17, "truncate[3]"), (1, "bucket[4]"))),
    (NESTED, {"default": "COUNTS", "column.last": "Truncate(3)"}, order((1, "identity"), (17, "identity"))),
    (NESTED, {"default": "full"}, order((1, "identity"))),
    (NESTED, {"default": "nonsense", "column.id": "truncate(0)", "column.place": "none"}, None),
    (NESTED, {"default": "none", "column.id": "no mode", "column.place.Lon.x": "full"}, order((1, "identity"))),
    (WIDE, {}, None),
    (WIDE, {}, order((269, "identity"))),
    (WIDE, {"max-inferred-column-defaults": "131"}, None),
    (WIDE, {"max-inferred-column-defaults": "130", "column.n69": "full", "column.nest.n69": "full"}, None),
    (WIDE, {"max-inferred-column-defaults": "0"}, None),
    (WIDE, {"max-inferred-column-defaults": "-1"}, None),
    *((NESTED, {"max-inferred-column-defaults": str(limit)}, None) for limit in range(14)),
]


def of_java(
    spark: SparkSession, schema: Schema, properties: Mapping[str, str], sorted_by: SortOrder | None
) -> dict[int, MetricsMode]:
    iceberg: Any = spark._jvm.org.apache.iceberg  # type: ignore[union-attr]
    java_schema = iceberg.SchemaParser.fromJson(schema.model_dump_json(by_alias=True))
    java_order = iceberg.SortOrder.unsorted()
    if sorted_by is not None:
        java_order = iceberg.SortOrderParser.fromJson(java_schema, sorted_by.model_dump_json(by_alias=True))
    config = getattr(iceberg.MetricsConfig, "from")(properties, java_schema, java_order)
    leaves = [i for i in schema.field_ids if schema.find_type(i).is_primitive]
    return {i: MetricsMode.parse(config.columnMode(schema.find_column_name(i)).toString()) for i in leaves}


@pytest.mark.spark
def test_modes_are_those_of_iceberg(spark: SparkSession) -> None:
    for schema, short, sorted_by in CASES:
        properties = {PREFIX + key: value for key, value in short.items()}
        expected = of_java(spark, schema, properties, sorted_by)
        found = effective_modes(schema, properties, sorted_by)
        assert {i: mode for i, mode in found.items() if i in schema.field_ids} == expected, (properties, sorted_by)


@pytest.mark.spark
def test_text_bounds_are_cut_as_iceberg_cuts_them(spark: SparkSession) -> None:
    util: Any = spark._jvm.org.apache.iceberg.util.UnicodeUtil  # type: ignore[union-attr]
    for text in ("abcdef", "aé\ud7ffz", "a\U0010ffffz", "\U0010ffff\U0010ffffz", "😀😁😂", "", "ab\x7fc"):
        for length in (1, 2, 3):
            kept, raw = Kept(length, text=True), text.encode()
            upper = util.truncateStringMax(text, length)
            assert kept.bound(raw, upper=False) == util.truncateStringMin(text, length).encode()
            assert kept.bound(raw, upper=True) == (None if upper is None else upper.encode())


def test_stored_row_ids_follow_the_default() -> None:
    modes = effective_modes(NESTED, {PREFIX + "default": "counts"})
    assert modes[2147483540] == modes[2147483539] == MetricsMode.parse("counts")
