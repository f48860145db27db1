"""Builds planning metadata by hand: manifests with entries, and summaries that follow from them unless given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyiceberg.conversions import to_bytes
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.transforms import parse_transform
from pyiceberg.types import NestedField, PrimitiveType

from planning_health.identifiers import TableName
from planning_health.metadata.model import (
    DATA,
    DELETE_FILE_PATH_ID,
    DELETE_FILE_POS_ID,
    DELETED,
    DELETES,
    MANIFESTS_SCHEMA,
    PlanningMetadata,
    TableInfo,
    files_schema,
)

ADDED = 1
SNAPSHOT = 77


@dataclass(frozen=True)
class Entry:
    """One entry; ``partition`` holds values of the spec's result types, ``statistics`` recorded columns."""

    partition: tuple[Any, ...] = ()
    status: int = ADDED
    sequence: int | None = 1
    path: str | None = None
    size: int = 1000
    records: int = 10
    content: int = 0
    file_format: str = "PARQUET"
    referenced: str | None = None
    path_bound: str | None = None
    statistics: Mapping[str, Any] = field(default_factory=dict)


class TableBuilder:
    """A table of these columns and specs.

    Args:
        columns: names and types; their field ids count from 1.
        specs: each a list of (column, transform).
        dropped: columns that an earlier schema had and the current one has not.
    """

    def __init__(
        self,
        columns: Mapping[str, PrimitiveType],
        specs: Sequence[Sequence[tuple[str, str]]] = ((),),
        *,
        properties: Mapping[str, str] | None = None,
        dropped: Sequence[str] = (),
        recorded: Sequence[str] = (),
        snapshots: int = 1,
    ) -> None:
        self.fields = {
            name: NestedField(i, name, kind, required=False) for i, (name, kind) in enumerate(columns.items(), 1)
        }
        self.schemas = [Schema(*self.fields.values(), schema_id=0)]
        kept = [item for name, item in self.fields.items() if name not in dropped]
        if dropped:
            self.schemas.append(Schema(*kept, schema_id=1))
        self.specs = [
            PartitionSpec(
                *(
                    PartitionField(self.fields[column].field_id, 1000 + i, parse_transform(transform), f"{column}_{i}")
                    for i, (column, transform) in enumerate(spec)
                ),
                spec_id=spec_id,
            )
            for spec_id, spec in enumerate(specs)
        ]
        self.properties = dict(properties or {})
        self.snapshots = snapshots
        self.recorded = {self.fields[name].field_id for name in recorded}
        self.manifests: list[dict[str, Any]] = []
        self.files: dict[int, list[dict[str, Any]]] = {DATA: [], DELETES: []}

    def types(self, spec_id: int) -> list[Any]:
        by_id = {item.field_id: item for item in self.fields.values()}
        return [item.transform.result_type(by_id[item.source_id].field_type) for item in self.specs[spec_id].fields]

    def manifest(
        self, *entries: Entry, spec: int = 0, content: int = DATA, summaries: Any = "from the entries", **columns: Any
    ) -> TableBuilder:
        """Adds a manifest; ``columns`` override columns of the ``manifests`` table."""
        ordinal = len(self.manifests)
        types = self.types(spec)
        if summaries == "from the entries":
            summaries = [summary([e.partition[i] for e in entries], kind) for i, kind in enumerate(types)]
        counts = {
            kind: sum(e.status == code for e in entries)
            for kind, code in (("added", 1), ("existing", 0), ("deleted", 2))
        }
        self.manifests.append(
            {
                "ordinal": ordinal,
                "path": f"s3://lake/t/metadata/m{ordinal}.avro",
                "length": 5000,
                "file_size": 5000,
                "partition_spec_id": spec,
                "content": content,
                "sequence_number": 1,
                "min_sequence_number": 1,
                "added_snapshot_id": SNAPSHOT,
                **{f"{kind}_files_count": count for kind, count in counts.items()},
                **{f"entries_{kind}": count for kind, count in counts.items()},
                "partitions": summaries,
                "uncompressed_bytes": 10_000,
                "statistics_bytes": [],
                "codec": "deflate",
                "read_ms": 1.0,
                "decode_ms": 1.0,
                **columns,
            }
        )
        self.files[content] += [self._row(ordinal, i, spec, e, types) for i, e in enumerate(entries)]
        return self

    def _row(self, ordinal: int, position: int, spec: int, entry: Entry, types: list[Any]) -> dict[str, Any]:
        bound = entry.path_bound.encode() if entry.path_bound else None
        return {
            "manifest_ordinal": ordinal,
            "position": position,
            "status": entry.status,
            "spec_id": spec,
            "snapshot_id": SNAPSHOT,
            "sequence_number": entry.sequence,
            "file_sequence_number": entry.sequence,
            "content": entry.content,
            "file_path": entry.path or f"s3://lake/t/data/{ordinal}-{position}.parquet",
            "file_format": entry.file_format,
            "record_count": entry.records,
            "file_size_in_bytes": entry.size,
            "referenced_data_file": entry.referenced,
            "partition": [encoded(value, kind) for value, kind in zip(entry.partition, types, strict=True)],
            f"lower_bound.{DELETE_FILE_PATH_ID}": bound,
            f"upper_bound.{DELETE_FILE_PATH_ID}": bound,
            **entry.statistics,
        }

    def build(self) -> PlanningMetadata:
        """The recording."""
        info = TableInfo(
            name=TableName.parse("lake.test.t"),
            metadata=TableMetadataUtil.parse_obj(self._document()),
            metadata_location="s3://lake/t/metadata/v1.json",
            snapshot_id=SNAPSHOT if self.manifests else None,
            ref=None,
            schema=self.schemas[-1],
            recorded_field_ids=frozenset(self.recorded),
            recorder="test",
            measured_at="2026-01-01T00:00:00.000+00:00",
            manifest_list_bytes=2000,
            record_ms=1.0,
        )
        delete_ids = self.recorded | {DELETE_FILE_PATH_ID, DELETE_FILE_POS_ID}
        return PlanningMetadata(
            info,
            pa.Table.from_pylist(self.manifests, MANIFESTS_SCHEMA),
            pa.Table.from_pylist(self.files[DATA], files_schema(self.recorded)),
            pa.Table.from_pylist(self.files[DELETES], files_schema(delete_ids)),
        )

    def _document(self) -> dict[str, Any]:
        return {
            "format-version": 2,
            "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
            "location": "s3://lake/t",
            "last-sequence-number": 34,
            "last-updated-ms": 1_602_638_573_590,
            "last-column-id": len(self.fields),
            "schemas": [schema.model_dump(by_alias=True) for schema in self.schemas],
            "current-schema-id": self.schemas[-1].schema_id,
            "partition-specs": [spec.model_dump(by_alias=True) for spec in self.specs],
            "default-spec-id": self.specs[-1].spec_id,
            "last-partition-id": 1000 + max((len(spec.fields) for spec in self.specs), default=0),
            "properties": self.properties,
            "current-snapshot-id": SNAPSHOT,
            "snapshots": [
                {
                    "snapshot-id": SNAPSHOT + i,
                    "timestamp-ms": 1_602_638_573_590,
                    "sequence-number": 1,
                    "summary": {"operation": "append"},
                    "manifest-list": "s3://lake/t/metadata/snap.avro",
                }
                for i in range(self.snapshots)
            ],
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
        }


def encoded(value: Any, kind: PrimitiveType) -> bytes | None:
    """A value's single-value serialization."""
    return None if value is None else to_bytes(kind, value)


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def summary(values: Sequence[Any], kind: PrimitiveType) -> dict[str, Any]:
    """The summary that Iceberg would write for these partition values."""
    numbers = [value for value in values if value is not None and not is_nan(value)]
    return {
        "contains_null": any(value is None for value in values),
        "contains_nan": any(is_nan(value) for value in values),
        "lower_bound": encoded(min(numbers), kind) if numbers else None,
        "upper_bound": encoded(max(numbers), kind) if numbers else None,
    }


__all__ = ["ADDED", "DATA", "DELETED", "DELETES", "Entry", "TableBuilder", "encoded", "summary"]
