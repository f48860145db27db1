"""Small planning metadata, made by hand: one row of partition values a file, grouped into manifests."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.transforms import parse_transform
from pyiceberg.types import DateType, LongType, NestedField, StringType, StructType

from planning_health.identifiers import TableName
from planning_health.metadata import PlanningMetadata, TableInfo
from planning_health.metadata.model import DATA, MANIFESTS_SCHEMA, files_schema

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "d", DateType()),
    NestedField(3, "Site", StringType()),
    NestedField(4, "place", StructType(NestedField(5, "lat", LongType()), NestedField(6, "Lon", LongType()))),
)
DAYS = PartitionSpec(PartitionField(2, 1000, parse_transform("day"), "d_day"), spec_id=0)
DAYS_AND_SITE = PartitionSpec(
    PartitionField(2, 1000, parse_transform("day"), "d_day"),
    PartitionField(3, 1001, parse_transform("identity"), "Site"),
    spec_id=0,
)
UNPARTITIONED = PartitionSpec(spec_id=0)
NAME = TableName("lake", ("sales",), "orders")
ENTRY_BYTES = 100
HEADER_BYTES = 8000

Value = int | str | None
File = Sequence[Value]
"""The partition values of one file."""


def table_metadata(
    spec: PartitionSpec = DAYS,
    properties: Mapping[str, str] | None = None,
    version: int = 2,
    schema: Schema = SCHEMA,
) -> TableMetadata:
    document: dict[str, Any] = {
        "format-version": version,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "file:/lake/sales/orders",
        "last-sequence-number": 7,
        "last-updated-ms": 1,
        "last-column-id": 6,
        "schemas": [schema.model_dump(by_alias=True)],
        "current-schema-id": schema.schema_id,
        "partition-specs": [spec.model_dump(by_alias=True)],
        "default-spec-id": spec.spec_id,
        "last-partition-id": 1001,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": dict(properties or {}),
        "current-snapshot-id": 11,
        "snapshots": [
            {
                "snapshot-id": 11,
                "sequence-number": 7,
                "timestamp-ms": 1,
                "manifest-list": "file:/lake/list.avro",
                "summary": {"operation": "append"},
                "schema-id": schema.schema_id,
            }
        ],
        "next-row-id": 0,
    }
    if version == 1:
        document |= {"schema": document["schemas"][0], "partition-spec": document["partition-specs"][0]["fields"]}
    return TableMetadataUtil.parse_obj(document)


def raw(value: Value) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else struct.pack("<i", value)


def picture(
    manifests: Sequence[Sequence[File]],
    *,
    spec: PartitionSpec = DAYS,
    properties: Mapping[str, str] | None = None,
    version: int = 2,
    deleted: int = 0,
) -> PlanningMetadata:
    """A snapshot of these data manifests; the first ``deleted`` entries of each are DELETED."""
    rows, files = [], []
    for ordinal, members in enumerate(manifests):
        length = HEADER_BYTES + ENTRY_BYTES * len(members)
        summaries = [_summary([member[position] for member in members]) for position in range(len(spec.fields))]
        rows.append(
            dict.fromkeys(MANIFESTS_SCHEMA.names)
            | {
                "ordinal": ordinal,
                "path": f"file:/lake/m{ordinal}.avro",
                "length": length,
                "file_size": length,
                "partition_spec_id": spec.spec_id,
                "content": DATA,
                "sequence_number": ordinal + 1,
                "min_sequence_number": ordinal + 1,
                "added_snapshot_id": 11,
                "added_files_count": len(members) - deleted,
                "existing_files_count": 0,
                "deleted_files_count": deleted,
                "partitions": summaries,
                "entries_added": len(members) - deleted,
                "entries_existing": 0,
                "entries_deleted": deleted,
                "uncompressed_bytes": ENTRY_BYTES * len(members),
                "statistics_bytes": [{"field_id": 1, "bytes": 10 * len(members)}],
                "codec": "deflate",
            }
        )
        files += [
            {
                "manifest_ordinal": ordinal,
                "position": position,
                "status": 2 if position < deleted else 1,
                "spec_id": spec.spec_id,
                "snapshot_id": 11,
                "sequence_number": ordinal + 1,
                "file_sequence_number": ordinal + 1,
                "content": 0,
                "file_path": f"file:/lake/f{ordinal}-{position}.parquet",
                "file_format": "PARQUET",
                "record_count": 5,
                "file_size_in_bytes": 1000,
                "partition": [raw(value) for value in member],
            }
            for position, member in enumerate(members)
        ]
    metadata = table_metadata(spec, properties, version)
    return PlanningMetadata(
        info=TableInfo(
            name=NAME,
            metadata=metadata,
            metadata_location="file:/lake/v1.metadata.json",
            snapshot_id=11,
            ref=None,
            schema=metadata.schema(),
            recorded_field_ids=frozenset({2, 3}),
            recorder="test",
            measured_at="2026-01-31T12:00:00+00:00",
            manifest_list_bytes=1,
            record_ms=0.0,
        ),
        manifests=pa.Table.from_pylist(rows, schema=MANIFESTS_SCHEMA),
        data_files=pa.Table.from_pylist(files, schema=files_schema({2, 3})),
        delete_files=files_schema({2, 3}).empty_table(),
    )


def _summary(values: Sequence[Value]) -> dict[str, Any]:
    known = sorted(value for value in values if value is not None)  # type: ignore[type-var]
    return {
        "contains_null": None in values,
        "contains_nan": False,
        "lower_bound": raw(known[0]) if known else None,
        "upper_bound": raw(known[-1]) if known else None,
    }


def with_info(metadata: PlanningMetadata, /, **changes: Any) -> PlanningMetadata:
    return replace(metadata, info=replace(metadata.info, **changes))


def with_files(metadata: PlanningMetadata, column: str, row: int, value: Any) -> PlanningMetadata:
    """The same picture with one value of one data file changed."""
    files = metadata.data_files
    values = files[column].to_pylist()
    values[row] = value
    position = files.schema.get_field_index(column)
    changed = files.set_column(position, files.schema.field(column), pa.array(values, files.schema.field(column).type))
    return replace(metadata, data_files=changed)
