"""Which columns' statistics are recorded: those that a pruning decision can need."""

from __future__ import annotations

from dataclasses import replace

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, NestedField, StringType, StructType
from tests.planning.pictures import picture, spec

from planning_health.metadata.recorded_columns import columns_to_record

SCHEMA = Schema(
    NestedField(1, "key", IntegerType(), required=True),
    NestedField(2, "day", IntegerType()),
    NestedField(3, "old", IntegerType()),
    NestedField(4, "sorted", IntegerType()),
    NestedField(5, "Name", StringType()),
    NestedField(6, "place", StructType(NestedField(7, "city", StringType()))),
    NestedField(8, "rest", StringType()),
    identifier_field_ids=[1],
)


def recorded(*queried: str, specs: tuple[PartitionSpec, ...] = (), order: SortOrder | None = None) -> set[int]:
    metadata = picture(SCHEMA, specs or (spec(),), []).info.metadata
    if order is not None:
        metadata = metadata.model_copy(update={"sort_orders": [*metadata.sort_orders, order]})
    return set(columns_to_record(metadata, SCHEMA, queried))


def test_identifier_fields_are_recorded() -> None:
    assert recorded() == {1}


def test_partition_sources_of_every_spec_are_recorded() -> None:
    specs = (spec((3, "identity")), spec((2, "bucket[4]"), spec_id=1))
    assert recorded(specs=specs) == {1, 2, 3}


def test_the_sources_of_sort_orders_are_recorded() -> None:
    order = SortOrder(SortField(source_id=4, transform=IdentityTransform()), order_id=1)
    assert recorded(order=order) == {1, 4}


def test_columns_of_queries_are_recorded_whatever_their_case_and_however_deep() -> None:
    assert recorded("NAME", "place.city", "unknown") == {1, 5, 7}


def test_a_column_that_was_dropped_is_not_recorded() -> None:
    assert recorded(specs=(spec((99, "identity")),)) == {1}


def test_the_columns_are_those_of_the_scans_schema() -> None:
    metadata = replace(picture(SCHEMA, (spec((2, "identity")),), []).info).metadata
    older = Schema(*(field for field in SCHEMA.fields if field.field_id != 2))
    assert columns_to_record(metadata, older, ["day"]) == frozenset()
