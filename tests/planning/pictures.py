"""Recorded pictures made by hand: small tables whose every bound and count a test chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyiceberg.conversions import to_bytes
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.transforms import parse_transform
from pyiceberg.types import IcebergType

from planning_health.identifiers import TableName
from planning_health.metadata.model import (
    DELETE_FILE_PATH_ID,
    DELETE_FILE_POS_ID,
    MANIFESTS_SCHEMA,
    PlanningMetadata,
    TableInfo,
    files_schema,
)
from planning_health.planning.expressions import Operation
from planning_health.planning.projection import BoundSpec

AUTOMATIC: Any = object()


@dataclass
class File:
    """A data or delete file; statistics are values by column name, a missing name is a missing statistic."""

    path: str
    partition: tuple[Any, ...] = ()
    lower: Mapping[str, Any] = field(default_factory=dict)
    upper: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, int] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)
    nans: Mapping[str, int] = field(default_factory=dict)
    records: int = 100
    size: int = 1000
    sequence: int = 1
    status: int = 1
    content: int = 0
    format: str = "PARQUET"
    split_offsets: Sequence[int] | None = None
    equality_ids: Sequence[int] | None = None
    referenced: str | None = None
    content_size: int | None = None


@dataclass
class Manifest:
    """A manifest; its summaries are those of its files' partitions unless given (None = absent)."""

    files: Sequence[File]
    spec_id: int = 0
    content: int = 0
    summaries: Any = AUTOMATIC
    added: int | None = AUTOMATIC
    length: int = 5000


def spec(*fields: tuple[int, str], spec_id: int = 0) -> PartitionSpec:
    """A spec of (source id, transform) pairs; the fields are called p0, p1 and so on."""
    parts = [
        PartitionField(source, 1000 + 10 * spec_id + index, parse_transform(transform), f"p{index}")
        for index, (source, transform) in enumerate(fields)
    ]
    return PartitionSpec(*parts, spec_id=spec_id)


def picture(
    schema: Schema,
    specs: Sequence[PartitionSpec],
    manifests: Sequence[Manifest],
    *,
    recorded: frozenset[int] | None = None,
    properties: Mapping[str, str] | None = None,
) -> PlanningMetadata:
    """Build a picture; every column is recorded unless some are named."""
    ids = frozenset(schema.field_ids) if recorded is None else recorded
    metadata = TableMetadataUtil.parse_obj(
        {
            "format-version": 2,
            "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
            "location": "file:/t",
            "last-sequence-number": 9,
            "last-updated-ms": 1,
            "last-column-id": max(schema.field_ids),
            "schemas": [schema.model_dump(by_alias=True)],
            "current-schema-id": schema.schema_id,
            "partition-specs": [item.model_dump(by_alias=True) for item in specs],
            "default-spec-id": specs[-1].spec_id,
            "last-partition-id": 1999,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": dict(properties or {}),
        }
    )
    info = TableInfo(
        name=TableName.parse("lake.db.t"),
        metadata=metadata,
        metadata_location="",
        snapshot_id=1,
        ref=None,
        schema=schema,
        recorded_field_ids=ids,
        recorder="test",
        measured_at="2026-01-01T00:00:00Z",
        manifest_list_bytes=100,
        record_ms=1.0,
    )
    bound = {item.spec_id: BoundSpec(item, schema) for item in specs}
    rows = [_manifest_row(ordinal, manifest, bound[manifest.spec_id]) for ordinal, manifest in enumerate(manifests)]
    sides = []
    for content, recorded_ids in ((0, ids), (1, ids | {DELETE_FILE_PATH_ID, DELETE_FILE_POS_ID})):
        files = [
            _file_row(ordinal, position, file, manifest, schema, bound[manifest.spec_id], recorded_ids)
            for ordinal, manifest in enumerate(manifests)
            if manifest.content == content
            for position, file in enumerate(manifest.files)
        ]
        sides.append(pa.Table.from_pylist(files, schema=files_schema(recorded_ids)))
    return PlanningMetadata(info, pa.Table.from_pylist(rows, schema=MANIFESTS_SCHEMA), sides[0], sides[1])


def raw(value_type: IcebergType, value: Any) -> bytes | None:
    """A value's single-value bytes; bytes pass as they are."""
    return value if value is None or isinstance(value, bytes) else to_bytes(value_type, value)


def summary(value_type: IcebergType, values: Sequence[Any]) -> dict[str, Any]:
    """The summary of one partition field."""
    nan = [value for value in values if isinstance(value, float) and value != value]
    present = sorted(value for value in values if value is not None and value == value)
    return {
        "contains_null": None in values,
        "contains_nan": bool(nan),
        "lower_bound": raw(value_type, present[0]) if present else None,
        "upper_bound": raw(value_type, present[-1]) if present else None,
    }


def _manifest_row(ordinal: int, manifest: Manifest, spec: BoundSpec) -> dict[str, Any]:
    summaries = manifest.summaries
    if summaries is AUTOMATIC:
        columns = list(zip(*(file.partition for file in manifest.files), strict=True)) or [()] * len(spec)
        summaries = [summary(kind, values) for kind, values in zip(spec.field_types, columns, strict=True)]
    existing, added, deleted = (sum(file.status == status for file in manifest.files) for status in (0, 1, 2))
    return {
        "ordinal": ordinal,
        "path": f"m{ordinal}.avro",
        "length": manifest.length,
        "file_size": manifest.length,
        "partition_spec_id": manifest.spec_id,
        "content": manifest.content,
        "sequence_number": 1,
        "min_sequence_number": 1,
        "added_snapshot_id": 1,
        "added_files_count": added if manifest.added is AUTOMATIC else manifest.added,
        "existing_files_count": existing if manifest.added is AUTOMATIC else manifest.added,
        "deleted_files_count": deleted,
        "partitions": summaries,
        "entries_added": added,
        "entries_existing": existing,
        "entries_deleted": deleted,
        "read_ms": 2.0,
        "decode_ms": 1.0,
    }


def _file_row(
    ordinal: int,
    position: int,
    file: File,
    manifest: Manifest,
    schema: Schema,
    spec: BoundSpec,
    recorded: frozenset[int],
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "manifest_ordinal": ordinal,
        "position": position,
        "status": file.status,
        "spec_id": manifest.spec_id,
        "snapshot_id": 1,
        "sequence_number": file.sequence,
        "file_sequence_number": file.sequence,
        "content": file.content,
        "file_path": file.path,
        "file_format": file.format,
        "record_count": file.records,
        "file_size_in_bytes": file.size,
        "split_offsets": file.split_offsets,
        "equality_ids": file.equality_ids,
        "referenced_data_file": file.referenced,
        "content_size_in_bytes": file.content_size,
        "partition": [raw(kind, value) for kind, value in zip(spec.field_types, file.partition, strict=True)],
    }
    statistics = {
        "lower_bound": file.lower,
        "upper_bound": file.upper,
        "value_count": file.values,
        "null_value_count": file.nulls,
        "nan_value_count": file.nans,
    }
    for statistic, by_name in statistics.items():
        for name, value in by_name.items():
            field_id = DELETE_FILE_PATH_ID if name == "file_path" else schema.find_field(name).field_id
            if field_id in recorded:
                kind = None if name == "file_path" else schema.find_type(field_id)
                is_bound = statistic.endswith("bound")
                row[f"{statistic}.{field_id}"] = raw(kind, value) if is_bound and kind is not None else value
    return row


COMPARED_WITH_3_TO_7: Final[tuple[tuple[Operation, tuple[int, ...], bool], ...]] = (
    (Operation.LT, (3,), False),
    (Operation.LT, (4,), True),
    (Operation.LT_EQ, (2,), False),
    (Operation.LT_EQ, (3,), True),
    (Operation.GT, (7,), False),
    (Operation.GT, (6,), True),
    (Operation.GT_EQ, (8,), False),
    (Operation.GT_EQ, (7,), True),
    (Operation.EQ, (2,), False),
    (Operation.EQ, (3,), True),
    (Operation.EQ, (7,), True),
    (Operation.EQ, (8,), False),
    (Operation.IN, (1, 2, 8), False),
    (Operation.IN, (2, 3), True),
    (Operation.IN, (7, 8), True),
    (Operation.NOT_EQ, (3,), True),
    (Operation.NOT_IN, (3, 7), True),
)
"""Comparisons, their literals, and whether values with the bounds 3 and 7 can match: the rules at the bounds."""
