"""Planning metadata: an immutable, columnar picture of one snapshot's manifests, data files and delete files."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.sorting import SortOrder
from pyiceberg.transforms import VoidTransform
from pyiceberg.types import IcebergType, NestedField

from planning_health.identifiers import TableName
from planning_health.metadata.manifest_encoding import EntrySamples

DATA: Final = 0
DELETES: Final = 1
"""Manifest contents (Iceberg specification, manifest list field 517)."""

EXISTING: Final = 0
ADDED: Final = 1
DELETED: Final = 2
"""Entry statuses (Iceberg specification, manifest entry field 0)."""

POSITION_DELETES: Final = 1
EQUALITY_DELETES: Final = 2
"""File contents of delete files (Iceberg specification, data file field 134)."""

DELETE_FILE_PATH_ID: Final = 2147483546
DELETE_FILE_POS_ID: Final = 2147483545
"""Reserved field ids of a position-delete file's columns."""

STATISTICS: Final = ("value_count", "null_value_count", "nan_value_count", "lower_bound", "upper_bound")
"""The statistics that are recorded of a column, each in a column ``<statistic>.<field id>``."""

_SUMMARY: Final = pa.struct(
    [
        pa.field("contains_null", pa.bool_()),
        pa.field("contains_nan", pa.bool_()),
        pa.field("lower_bound", pa.binary()),
        pa.field("upper_bound", pa.binary()),
    ]
)

MANIFESTS_SCHEMA: Final = pa.schema(
    [
        pa.field("ordinal", pa.int32()),
        pa.field("path", pa.string()),
        pa.field("length", pa.int64()),
        pa.field("file_size", pa.int64()),
        pa.field("partition_spec_id", pa.int32()),
        pa.field("content", pa.int8()),
        pa.field("sequence_number", pa.int64()),
        pa.field("min_sequence_number", pa.int64()),
        pa.field("added_snapshot_id", pa.int64()),
        pa.field("added_files_count", pa.int32()),
        pa.field("existing_files_count", pa.int32()),
        pa.field("deleted_files_count", pa.int32()),
        pa.field("added_rows_count", pa.int64()),
        pa.field("existing_rows_count", pa.int64()),
        pa.field("deleted_rows_count", pa.int64()),
        pa.field("first_row_id", pa.int64()),
        pa.field("partitions", pa.list_(_SUMMARY)),
        pa.field("entries_added", pa.int32()),
        pa.field("entries_existing", pa.int32()),
        pa.field("entries_deleted", pa.int32()),
        pa.field("uncompressed_bytes", pa.int64()),
        pa.field(
            "statistics_bytes",
            pa.list_(pa.struct([pa.field("field_id", pa.int32()), pa.field("bytes", pa.int64())])),
        ),
        pa.field("codec", pa.string()),
        pa.field("read_ms", pa.float64()),
        pa.field("decode_ms", pa.float64()),
    ]
)

_FILES_FIELDS: Final = [
    pa.field("manifest_ordinal", pa.int32()),
    pa.field("position", pa.int32()),
    pa.field("status", pa.int8()),
    pa.field("spec_id", pa.int32()),
    pa.field("snapshot_id", pa.int64()),
    pa.field("sequence_number", pa.int64()),
    pa.field("file_sequence_number", pa.int64()),
    pa.field("first_row_id", pa.int64()),
    pa.field("content", pa.int8()),
    pa.field("file_path", pa.string()),
    pa.field("file_format", pa.string()),
    pa.field("record_count", pa.int64()),
    pa.field("file_size_in_bytes", pa.int64()),
    pa.field("split_offsets", pa.list_(pa.int64())),
    pa.field("sort_order_id", pa.int32()),
    pa.field("equality_ids", pa.list_(pa.int32())),
    pa.field("referenced_data_file", pa.string()),
    pa.field("content_offset", pa.int64()),
    pa.field("content_size_in_bytes", pa.int64()),
    pa.field("partition", pa.list_(pa.binary())),
]


def files_schema(recorded: frozenset[int] | set[int]) -> pa.Schema:
    """The Arrow schema of ``data_files`` and ``delete_files`` for these recorded field ids."""
    statistics = [
        pa.field(f"{statistic}.{field_id}", pa.binary() if statistic.endswith("bound") else pa.int64())
        for field_id in sorted(recorded)
        for statistic in STATISTICS
    ]
    return pa.schema([*_FILES_FIELDS, *statistics])


@dataclass(frozen=True)
class TableInfo:
    """What is known of the table as a whole.

    Attributes:
        name: the table's full name.
        metadata: Iceberg's table metadata, as PyIceberg reads it.
        metadata_location: where that metadata file lies.
        snapshot_id: the measured snapshot; ``None`` for a table without one.
        ref: the branch or tag that was asked for, if any.
        schema: the schema that a scan of this snapshot is bound to: the current one for the main branch or any other
            branch, the snapshot's own for a snapshot id or a tag.
        recorded_field_ids: the columns whose statistics are recorded.
        recorder: which engine recorded, ``spark`` or ``pyiceberg``.
        measured_at: UTC time in ISO format.
        manifest_list_bytes: size of the manifest list file.
        record_ms: how long the recording took, in milliseconds.
    """

    name: TableName
    metadata: TableMetadata
    metadata_location: str
    snapshot_id: int | None
    ref: str | None
    schema: Schema
    recorded_field_ids: frozenset[int]
    recorder: str
    measured_at: str
    manifest_list_bytes: int
    record_ms: float

    @cached_property
    def specs(self) -> dict[int, PartitionSpec]:
        """All partition specs by id."""
        return {spec.spec_id: spec for spec in self.metadata.partition_specs}

    @property
    def default_spec_id(self) -> int:
        """The spec that new files are written with."""
        return self.metadata.default_spec_id

    @property
    def sort_order(self) -> SortOrder | None:
        """The order that new files are written in."""
        return self.metadata.sort_order_by_id(self.metadata.default_sort_order_id)

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return self.metadata.properties

    @property
    def format_version(self) -> int:
        """The table's format version."""
        return self.metadata.format_version

    @property
    def table_uuid(self) -> str:
        """The table's UUID, which outlives a rename."""
        return str(self.metadata.table_uuid)

    @property
    def snapshot(self) -> Snapshot | None:
        """The measured snapshot."""
        return self.metadata.snapshot_by_id(self.snapshot_id) if self.snapshot_id is not None else None

    @cached_property
    def _historical_fields(self) -> dict[int, NestedField]:
        fields: dict[int, NestedField] = {}
        for schema in [*self.metadata.schemas, self.schema]:
            fields |= {field_id: schema.find_field(field_id) for field_id in schema.field_ids}
        return fields

    def source_field(self, source_id: int) -> NestedField | None:
        """A partition source column: as the scan's schema has it, else as the latest schema that still had it."""
        return self._historical_fields.get(source_id)

    def partition_types(self, spec: PartitionSpec) -> list[IcebergType | None]:
        """The result type of each of the spec's fields; ``None`` where the source column is in no known schema."""
        sources = [self.source_field(field.source_id) for field in spec.fields]
        return [
            field.transform.result_type(source.field_type) if source else None
            for field, source in zip(spec.fields, sources, strict=True)
        ]


def own_order(spec: PartitionSpec) -> list[PartitionField]:
    """The fields that ``rewrite_manifests`` clusters by where no order is named: all but dropped ones, by field id."""
    return sorted(
        (field for field in spec.fields if not isinstance(field.transform, VoidTransform)),
        key=lambda field: field.field_id,
    )


@dataclass(frozen=True)
class PlanningMetadata:
    """The recorded picture: everything the simulations and signals read, without Spark, Airflow or the table.

    Attributes:
        info: the table as a whole.
        manifests: one row a manifest of the snapshot, in the manifest list's order; see ``MANIFESTS_SCHEMA``.
        data_files: one row an entry of the data manifests, DELETED ones included, in manifest and physical order;
            see :func:`files_schema`.
        delete_files: the same for the delete manifests.
        samples: some real entries, from which predictions tell how large manifests become.
    """

    info: TableInfo
    manifests: pa.Table
    data_files: pa.Table
    delete_files: pa.Table
    samples: EntrySamples = field(default_factory=EntrySamples)

    @property
    def metadata_bytes(self) -> int:
        """Sizes of all manifests, summed."""
        return int(pc.sum(self.manifests["length"]).as_py() or 0)
