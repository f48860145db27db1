"""What column statistics cost in the manifests, and which columns lack them where a query needs them.

Both are measured from the files that are there. Properties would only say what new files will get: the default stops
after a number of columns, and a changed setting leaves existing files as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import DateType, DoubleType, FloatType, NestedField, PrimitiveType, StructType

from planning_health.health.columns import Mask, integers, present
from planning_health.health.picture import Picture
from planning_health.metadata.model import DATA, DELETE_FILE_PATH_ID, DELETE_FILE_POS_ID, TableInfo

_RESERVED: Final = {DELETE_FILE_PATH_ID: "file_path", DELETE_FILE_POS_ID: "pos"}


@dataclass(frozen=True)
class ColumnBytes:
    """The uncompressed bytes that one column's statistics take in all manifests of the snapshot."""

    field_id: int
    column: str
    bytes: int
    share: float | None


@dataclass(frozen=True)
class BoundsCoverage:
    """How many live data files let a predicate on the column prune them.

    Attributes:
        share: files with both bounds, or known to hold nothing but nulls or NaN, or whose partition is the column's
            own value, of all live files.
    """

    field_id: int
    column: str
    share: float


class ColumnStatistics:
    """The column statistics of one snapshot.

    Args:
        picture: the snapshot.
        filter_columns: columns of the workload's queries, in any case.
    """

    def __init__(self, picture: Picture, filter_columns: Iterable[str] = ()) -> None:
        self._picture = picture
        self._info = picture.info
        self._filtered = sorted({name.lower() for name in filter_columns})

    @cached_property
    def by_column(self) -> list[ColumnBytes]:
        """Every column that has statistics, the costliest first."""
        sums = _bytes_by_field(self._picture.metadata.manifests)
        whole = int(self._picture.manifests.uncompressed.sum())
        rows = [
            ColumnBytes(field_id, column_name(self._info, field_id), size, size / whole if whole else None)
            for field_id, size in sums.items()
        ]
        return sorted(rows, key=lambda row: (-row.bytes, row.field_id))

    @property
    def bytes(self) -> int:
        """All columns' statistics together, uncompressed."""
        return sum(row.bytes for row in self.by_column)

    @cached_property
    def share(self) -> float | None:
        """Statistics bytes / uncompressed bytes of all manifests; ``None`` without manifests."""
        whole = int(self._picture.manifests.uncompressed.sum())
        return self.bytes / whole if whole else None

    @cached_property
    def bytes_per_file(self) -> float | None:
        """Statistics bytes of data manifests / their entries; ``None`` without entries."""
        manifests = self._picture.metadata.manifests
        entries = int(self._picture.manifests.entries[self._picture.manifests.of(DATA)].sum())
        data = manifests.filter(pc.equal(manifests["content"], DATA))
        return sum(_bytes_by_field(data).values()) / entries if entries else None

    @cached_property
    def columns_without(self) -> list[str] | None:
        """Columns of the schema of which no live file has any statistic; ``None`` without live files."""
        if not self._picture.data.live.any():
            return None
        manifests = self._picture.metadata.manifests
        having = _bytes_by_field(manifests.filter(pc.equal(manifests["content"], DATA)))
        return [name for field_id, name in measurable_columns(self._info.schema) if field_id not in having]

    @cached_property
    def coverage(self) -> list[BoundsCoverage]:
        """Bounds coverage of each recorded column of a type that can have bounds; empty without live files."""
        live = self._picture.data.live
        if not live.any():
            return []
        recorded = [
            (field_id, name)
            for field_id, name in measurable_columns(self._info.schema)
            if field_id in self._info.recorded_field_ids
        ]
        return [
            BoundsCoverage(field_id, name, float(self._prunable(field_id)[live].mean())) for field_id, name in recorded
        ]

    @property
    def filter_coverage(self) -> list[BoundsCoverage]:
        """The coverage of the columns that the workload filters by."""
        return [item for item in self.coverage if item.column.lower() in self._filtered]

    def _prunable(self, field_id: int) -> Mask:
        table = self._picture.metadata.data_files
        bounded = present(table, f"lower_bound.{field_id}") & present(table, f"upper_bound.{field_id}")
        values = integers(table, f"value_count.{field_id}", absent=-1)
        nulls = integers(table, f"null_value_count.{field_id}", absent=-1)
        without_numbers = (values >= 0) & (nulls >= 0) & (nulls == values)
        if isinstance(self._info.schema.find_field(field_id).field_type, FloatType | DoubleType):
            nans = integers(table, f"nan_value_count.{field_id}", absent=-1)
            without_numbers |= (values >= 0) & (nans >= 0) & (np.maximum(nulls, 0) + nans == values)
        return np.asarray(bounded | without_numbers | self._by_partition(field_id), dtype=np.bool_)

    def _by_partition(self, field_id: int) -> Mask:
        """The files whose partition holds the column's value itself: identity, or the day of a date."""
        exact: tuple[type, ...] = (IdentityTransform,)
        if isinstance(self._info.schema.find_type(field_id), DateType):
            exact += (DayTransform,)
        specs = [
            spec_id
            for spec_id, spec in self._info.specs.items()
            if any(field.source_id == field_id and isinstance(field.transform, exact) for field in spec.fields)
        ]
        return np.isin(self._picture.data.spec_id, specs)


def _bytes_by_field(manifests: pa.Table) -> dict[int, int]:
    flat = pa.chunked_array(manifests["statistics_bytes"]).combine_chunks().flatten()
    sums = pa.table({"field_id": flat.field("field_id"), "bytes": flat.field("bytes")}).group_by("field_id")
    rows: list[dict[str, Any]] = sums.aggregate([("bytes", "sum")]).to_pylist()
    return {row["field_id"]: row["bytes_sum"] for row in rows}


def column_name(info: TableInfo, field_id: int) -> str:
    """A column's name for people: dropped columns keep their last one."""
    if field_id in _RESERVED:
        return f"{_RESERVED[field_id]} (of delete files)"
    name = info.schema.find_column_name(field_id)
    if name is not None:
        return name
    last = info.source_field(field_id)
    return f"{last.name} (dropped)" if last else f"field id {field_id} (unknown)"


def measurable_columns(schema: Schema) -> list[tuple[int, str]]:
    """The primitive columns that can have statistics (none inside lists and maps), with their full names."""
    return [(field.field_id, name) for field, name in _primitive(schema.fields, "")]


def _primitive(fields: Iterable[NestedField], prefix: str) -> Iterable[tuple[NestedField, str]]:
    for field in fields:
        name = f"{prefix}{field.name}"
        if isinstance(field.field_type, StructType):
            yield from _primitive(field.field_type.fields, f"{name}.")
        elif isinstance(field.field_type, PrimitiveType):
            yield field, name
