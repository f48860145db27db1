"""What if the table were partitioned otherwise, its data rewritten: a model of the files that would result.

The model of how rows spread, stated so that its predictions can be checked:

* The rows of a file are spread evenly between the bounds of a time column, evenly over the known values between
  the bounds of an identity or truncate column, and evenly over all buckets of a bucket column. Null values go to
  the null partition. A file without bounds is spread over all partitions that the other files make.
* The writer gathers each partition's rows and fills files up to ``write.target-file-size-bytes``. All files of one
  partition have its bounds.
* The part of a file that goes to a partition is so many rows, each as likely anywhere between the file's bounds as
  elsewhere, whatever its other columns hold; so the bounds of numbers and times are drawn
  (``planning_health.planning.drawn_bounds``). Other types keep the widest bounds of the parts.
* Manifests hold the files in the order of their partitions, as ``rewrite_manifests`` would leave them, up to
  ``commit.manifest.target-size-bytes``, with the bytes that an entry takes among others of today's.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.conversions import to_bytes
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
    parse_transform,
)
from pyiceberg.types import (
    DateType,
    IcebergType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)

from planning_health.errors import InputError
from planning_health.metadata.model import DATA, DELETED, MANIFESTS_SCHEMA, PlanningMetadata, TableInfo, files_schema
from planning_health.metadata.single_values import decode
from planning_health.planning.comparable import Ints, Mask
from planning_health.planning.drawn_bounds import NUMBER_TYPES, Floats, drawn_extremes, numbers
from planning_health.planning.expressions import ReferenceResolver
from planning_health.planning.manifest_size import header_bytes
from planning_health.planning.sql_constants import Interval, add_interval
from planning_health.planning.transforms import result_type, transform_function

_EPOCH = dt.datetime(1970, 1, 1)
_NANOS = (TimestampNanoType, TimestamptzNanoType)
_TIME_TYPES = (DateType, TimestampType, TimestamptzType, *_NANOS)
_UNITS: dict[type, Interval] = {
    YearTransform: Interval(months=12),
    MonthTransform: Interval(months=1),
    DayTransform: Interval(micros=86_400_000_000),
    HourTransform: Interval(micros=3_600_000_000),
}
_NULL = 0
"""Code of the null partition on every axis; others count from 1."""
_MOST_PIECES = 20_000_000


@dataclass(frozen=True)
class _Column:
    """One source column's statistics over the live files; bounds decoded, None where unknown."""

    field_id: int
    type: IcebergType
    lower: list[Any]
    upper: list[Any]
    null_share: Floats
    records: Ints

    @property
    def known(self) -> Mask:
        pairs = zip(self.lower, self.upper, strict=True)
        return np.array([low is not None and high is not None for low, high in pairs], dtype=np.bool_)


class _Axis(ABC):
    """One field of the new spec: over which of its values each file's rows spread."""

    def __init__(self, column: _Column) -> None:
        self.column = column
        self.first, self.last = self._ranges()
        self.has_null = column.null_share > 0
        self.count: Ints = np.where(column.null_share >= 1, 0, self.last - self.first + 1) + self.has_null

    @abstractmethod
    def _ranges(self) -> tuple[Ints, Ints]:
        """Return each file's first and last code."""

    @abstractmethod
    def value(self, code: int) -> Any:
        """Return the partition value of a code."""

    def spread(self, file: Ints, inner: Ints) -> tuple[Ints, Floats]:
        """Return (code, share of the file's rows) of each file's n-th value."""
        null = self.has_null[file] & (inner == self.count[file] - 1)
        code = np.where(null, _NULL, self.code(file, inner))
        rest = 1 - self.column.null_share[file]
        share = np.where(null, self.column.null_share[file], rest * self.share(file, inner))
        return code, share

    def code(self, file: Ints, inner: Ints) -> Ints:
        """Return the code of each file's n-th value that is not null."""
        codes: Ints = self.first[file] + inner
        return codes

    def share(self, file: Ints, inner: Ints) -> Floats:
        """Return the share of a file's rows with that value, of those that are not null."""
        del inner
        shares: Floats = 1 / np.maximum(1, self.last[file] - self.first[file] + 1)
        return shares


class _TimeAxis(_Axis):
    """Year, month, day or hour of a date or timestamp."""

    def __init__(self, column: _Column, transform: Any) -> None:
        if not isinstance(column.type, _TIME_TYPES):
            raise InputError(f"{transform} needs a date or timestamp column, not {column.type}")
        self._unit = _UNITS[type(transform)]
        self._function = transform_function(transform, column.type)
        super().__init__(column)
        known = self.column.known
        self._low = np.array([v if ok else 0 for v, ok in zip(column.lower, known, strict=True)], dtype=np.int64)
        self._high = np.array([v if ok else 0 for v, ok in zip(column.upper, known, strict=True)], dtype=np.int64)
        codes = int(self.last.max(initial=0)) + 2
        self._starts = np.array([self._start(self._base + code - 1) for code in range(codes)], dtype=np.int64)

    def _ranges(self) -> tuple[Ints, Ints]:
        known = self.column.known
        low = [self._function(v) if ok else None for v, ok in zip(self.column.lower, known, strict=True)]
        high = [self._function(v) if ok else None for v, ok in zip(self.column.upper, known, strict=True)]
        self._base = min((value for value in low if value is not None), default=0)
        top = max((value for value in high if value is not None), default=self._base)
        first = np.array([self._base if value is None else value for value in low], dtype=np.int64)
        last = np.array([top if value is None else value for value in high], dtype=np.int64)
        return first - self._base + 1, last - self._base + 1

    def _start(self, value: int) -> int:
        moved = add_interval(_EPOCH, Interval(self._unit.months * value, self._unit.micros * value))
        assert isinstance(moved, dt.datetime)  # noqa: S101 - it started as one
        micros = (moved - _EPOCH) // dt.timedelta(microseconds=1)
        if isinstance(self.column.type, DateType):
            return micros // 86_400_000_000
        return micros * 1000 if isinstance(self.column.type, _NANOS) else micros

    def share(self, file: Ints, inner: Ints) -> Floats:
        code = self.code(file, inner)
        start = np.maximum(self._low[file], self._starts[code])
        end = np.minimum(self._high[file] + 1, self._starts[np.minimum(code + 1, len(self._starts) - 1)])
        even = super().share(file, inner)
        width = self._high[file] + 1 - self._low[file]
        return np.where(self.column.known[file], np.maximum(end - start, 0) / width, even)

    def value(self, code: int) -> Any:
        return self._base + code - 1

    def clip(self, code: Ints) -> tuple[Ints, Ints]:
        """Return the first and the last source value of partitions."""
        return self._starts[code], self._starts[np.minimum(code + 1, len(self._starts) - 1)] - 1


class _BucketAxis(_Axis):
    """Hash buckets."""

    def __init__(self, column: _Column, transform: Any) -> None:
        self._buckets = transform.num_buckets
        self._function = transform_function(transform, column.type)
        super().__init__(column)

    def _ranges(self) -> tuple[Ints, Ints]:
        spread = np.maximum(1, np.minimum(self._buckets, self.column.records))
        self._single = np.zeros(len(spread), dtype=np.int64)
        for file, (low, high) in enumerate(zip(self.column.lower, self.column.upper, strict=True)):
            if low is not None and low == high:
                self._single[file] = self._function(low) + 1
        return np.ones(len(spread), dtype=np.int64), np.where(self._single > 0, 1, spread)

    def code(self, file: Ints, inner: Ints) -> Ints:
        evenly = inner * self._buckets // np.maximum(1, self.last[file]) + 1
        return np.where(self._single[file] > 0, self._single[file], evenly)

    def value(self, code: int) -> Any:
        return code - 1


class _ValueAxis(_Axis):
    """Identity and truncate: the values that are known from bounds."""

    def __init__(self, column: _Column, transform: Any) -> None:
        is_identity = isinstance(transform, IdentityTransform)
        self._function: Callable[[Any], Any] = _same if is_identity else transform_function(transform, column.type)
        super().__init__(column)

    def _ranges(self) -> tuple[Ints, Ints]:
        bounds = [value for value in (*self.column.lower, *self.column.upper) if value is not None]
        self._values = sorted({self._function(value) for value in bounds}, key=_sort_key)
        position = {_sort_key(value): index + 1 for index, value in enumerate(self._values)}
        low = [1 if value is None else position[_sort_key(self._function(value))] for value in self.column.lower]
        top = max(1, len(self._values))
        high = [top if value is None else position[_sort_key(self._function(value))] for value in self.column.upper]
        return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)

    def value(self, code: int) -> Any:
        return self._values[code - 1] if self._values else None


def _same(value: Any) -> Any:
    return value


def _sort_key(value: Any) -> Any:
    return (value.bytes if hasattr(value, "bytes") and not isinstance(value, bytes) else value,)


def with_spec(
    metadata: PlanningMetadata, fields: Sequence[tuple[str, str]], *, target_file_bytes: int | None = None
) -> PlanningMetadata:
    """Predict the picture after a change of the partition spec with all data rewritten.

    Args:
        metadata: the recorded picture.
        fields: (column, transform) of the new spec, transforms as Iceberg writes them: ``day``, ``bucket[16]``.
        target_file_bytes: the writer's target; by default the table's property.

    Raises:
        InputError: an unknown column or transform, or one that does not fit the column.
    """
    info = metadata.info
    spec = _new_spec(info, fields)
    live = metadata.data_files.filter(pc.not_equal(metadata.data_files["status"], DELETED)).combine_chunks()
    axes = [_axis(live, info, field) for field in spec.fields]
    target = target_file_bytes or int(info.properties.get("write.target-file-size-bytes", 512 * 1024 * 1024))
    new_info = replace(
        info,
        metadata=info.metadata.model_copy(update={"partition_specs": [spec], "default_spec_id": spec.spec_id}),
    )
    files = _files(live, axes, info, target, spec)
    return _manifested(replace(metadata, info=new_info), files, spec)


def _new_spec(info: TableInfo, fields: Sequence[tuple[str, str]]) -> PartitionSpec:
    resolve = ReferenceResolver(info.schema)
    spec_id = max(info.specs, default=0) + 1
    parts = []
    for index, (column, text) in enumerate(fields):
        transform = parse_transform(text.strip().lower().replace("(", "[").replace(")", "]"))
        source = resolve(column)
        if not isinstance(transform, tuple(kinds for kinds, _ in _AXES)):
            raise InputError(f"transform {text!r}: expected identity, bucket[n], truncate[n], year, month, day or hour")
        name = f"{column.replace('.', '_')}_{text.split('[')[0].split('(')[0]}"
        parts.append(PartitionField(source.field_id, 2000 + index, transform, name))
    return PartitionSpec(*parts, spec_id=spec_id)


_AXES: tuple[tuple[Any, Any], ...] = (
    (YearTransform, _TimeAxis),
    (MonthTransform, _TimeAxis),
    (DayTransform, _TimeAxis),
    (HourTransform, _TimeAxis),
    (BucketTransform, _BucketAxis),
    (TruncateTransform, _ValueAxis),
    (IdentityTransform, _ValueAxis),
)


def _axis(live: pa.Table, info: TableInfo, field: PartitionField) -> _Axis:
    column_type = info.schema.find_type(field.source_id)
    if field.source_id not in info.recorded_field_ids:
        name = info.schema.find_column_name(field.source_id)
        raise InputError(f"column {name!r} is not recorded: measure with a query on it, then ask again")
    records = np.asarray(live["record_count"].to_numpy(), dtype=np.int64)
    nulls = np.asarray(live[f"null_value_count.{field.source_id}"].fill_null(0).to_numpy(), dtype=np.float64)
    column = _Column(
        field.source_id,
        column_type,
        [decode(raw, column_type) for raw in live[f"lower_bound.{field.source_id}"].to_pylist()],
        [decode(raw, column_type) for raw in live[f"upper_bound.{field.source_id}"].to_pylist()],
        np.clip(nulls / np.maximum(records, 1), 0, 1),
        records,
    )
    axis: _Axis = next(kind for transform, kind in _AXES if isinstance(field.transform, transform))(
        column, field.transform
    )
    return axis


@dataclass(frozen=True)
class _Pieces:
    """Parts of files, each in one new partition; ``codes`` holds one column an axis."""

    file: Ints
    share: Floats
    codes: list[Ints]

    def spread(self, axis: _Axis) -> _Pieces:
        """Split each part along one more axis."""
        counts = axis.count[self.file]
        if counts.sum() > _MOST_PIECES:
            raise InputError("the new spec has too many partitions to predict: choose a coarser transform")
        rows = np.repeat(np.arange(len(self.file)), counts)
        inner = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        code, share = axis.spread(self.file[rows], inner)
        return _Pieces(self.file[rows], self.share[rows] * share, [*(codes[rows] for codes in self.codes), code])


def _files(live: pa.Table, axes: list[_Axis], info: TableInfo, target: int, spec: PartitionSpec) -> dict[str, Any]:
    """Return the new files' columns, in the order of their partitions."""
    pieces = _Pieces(np.arange(len(live)), np.ones(len(live)), [])
    for axis in axes:
        pieces = pieces.spread(axis)
    codes = np.stack(pieces.codes, axis=1) if axes else np.zeros((len(pieces.file), 1), dtype=np.int64)
    partitions, owner = np.unique(codes, axis=0, return_inverse=True)
    owner = owner.reshape(-1)
    sizes = np.asarray(live["file_size_in_bytes"].to_numpy(), dtype=np.float64)
    records = np.asarray(live["record_count"].to_numpy(), dtype=np.float64)
    bytes_ = np.bincount(owner, weights=pieces.share * sizes[pieces.file], minlength=len(partitions))
    rows = np.bincount(owner, weights=pieces.share * records[pieces.file], minlength=len(partitions))
    kept = np.flatnonzero(rows >= 0.5)
    number = np.maximum(1, np.ceil(bytes_[kept] / target)).astype(np.int64)
    of_file = np.repeat(kept, number)
    columns: dict[str, Any] = {
        "partition": [_raw_partition(partitions[partition], axes, info, spec) for partition in of_file.tolist()],
        "file_size_in_bytes": np.rint(bytes_[of_file] / np.repeat(number, number)).astype(np.int64),
        "record_count": np.maximum(1, np.rint(rows[of_file] / np.repeat(number, number))).astype(np.int64),
    }
    for field_id in sorted(info.recorded_field_ids):
        if field_id in info.schema.field_ids:
            statistics = _Statistics(live, field_id, info.schema.find_type(field_id), pieces, owner, len(partitions))
            time_axes = (
                (axis, codes)
                for axis, codes in zip(axes, pieces.codes, strict=True)
                if isinstance(axis, _TimeAxis) and axis.column.field_id == field_id
            )
            columns |= statistics.columns(of_file, np.repeat(number, number), next(time_axes, None))
    return columns


def _raw_partition(codes: Ints, axes: list[_Axis], info: TableInfo, spec: PartitionSpec) -> list[bytes | None]:
    raw: list[bytes | None] = []
    for code, axis, field in zip(codes.tolist(), axes, spec.fields, strict=False):
        kind = result_type(field.transform, info.schema.find_type(field.source_id))
        value = None if code == _NULL else axis.value(code)
        raw.append(None if value is None else to_bytes(kind, value))  # type: ignore[arg-type]
    return raw


class _Statistics:
    """One column's statistics in each new partition: what its parts bring along."""

    def __init__(
        self, live: pa.Table, field_id: int, kind: IcebergType, pieces: _Pieces, owner: Ints, partitions: int
    ) -> None:
        self._field_id, self._kind = field_id, kind
        self._pieces, self._owner, self._partitions = pieces, owner, partitions
        self._counts = {
            name: self._sum(live[f"{name}.{field_id}"])
            for name in ("value_count", "null_value_count", "nan_value_count")
        }
        nulls = np.asarray(live[f"null_value_count.{field_id}"].fill_null(0).to_numpy(), dtype=np.float64)
        self._valued = np.maximum(0, np.asarray(live["record_count"].to_numpy(), dtype=np.float64) - nulls)
        lower, upper = live[f"lower_bound.{field_id}"].to_pylist(), live[f"upper_bound.{field_id}"].to_pylist()
        self._lower, self._upper = [decode(raw, kind) for raw in lower], [decode(raw, kind) for raw in upper]

    def _sum(self, column: Any) -> tuple[Floats, Mask]:
        known = np.asarray(column.is_valid().to_numpy(), dtype=np.bool_)
        values = np.asarray(column.fill_null(0).to_numpy(), dtype=np.float64)
        weights = self._pieces.share * values[self._pieces.file]
        total: Floats = np.asarray(np.bincount(self._owner, weights, self._partitions), dtype=np.float64)
        return total, ~self._any(~known[self._pieces.file])

    def _any(self, of_pieces: Mask) -> Mask:
        """The partitions with such a piece."""
        found: Mask = np.bincount(self._owner, weights=of_pieces, minlength=self._partitions) > 0
        return found

    def columns(self, of_file: Ints, shared_by: Ints, axis: tuple[_TimeAxis, Ints] | None) -> dict[str, Any]:
        """Return the statistics columns of the new files.

        Args:
            of_file: each new file's partition.
            shared_by: among how many files this partition is shared out.
            axis: the time axis that is made of the column, with its code of each piece.
        """
        result: dict[str, Any] = {}
        for name, (total, known) in self._counts.items():
            per_file = np.ceil(total[of_file] / shared_by).astype(np.int64).tolist()
            column = [v if ok else None for v, ok in zip(per_file, known[of_file].tolist(), strict=True)]
            result[f"{name}.{self._field_id}"] = column
        low, high = self._drawn(axis) if isinstance(self._kind, NUMBER_TYPES) else self._widest()
        result[f"lower_bound.{self._field_id}"] = [self._raw(low[partition]) for partition in of_file.tolist()]
        result[f"upper_bound.{self._field_id}"] = [self._raw(high[partition]) for partition in of_file.tolist()]
        return result

    def _drawn(self, axis: tuple[_TimeAxis, Ints] | None) -> tuple[list[Any], list[Any]]:
        """Each partition's bounds, drawn from its parts' bounds; None where a part has none."""
        file = self._pieces.file
        (low, has_low), (high, has_high) = numbers(self._lower, self._kind), numbers(self._upper, self._kind)
        part_low, part_high, unknown = low[file], high[file], ~(has_low & has_high)[file]
        if axis is not None:  # a part lies in its partition's stretch of time, or holds nulls alone
            first, last = axis[0].clip(axis[1])
            part_low, part_high = np.maximum(part_low, first), np.minimum(part_high, last)
            unknown |= axis[1] == _NULL
        rows = self._pieces.share * self._valued[file]
        part_high = np.maximum(part_low, part_high)
        drawn = drawn_extremes(part_low, part_high, rows, self._owner, self._partitions, self._field_id)
        known = (~self._any(unknown)).tolist()
        new_low, new_high = (
            [value if ok else None for value, ok in zip(side.tolist(), known, strict=True)] for side in drawn
        )
        return new_low, new_high

    def _widest(self) -> tuple[list[Any], list[Any]]:
        """Each partition's bounds, the extremes of its parts' bounds; None where a part has none."""
        ranks, by_rank = _ranks([*self._lower, *self._upper])
        sides = ranks[: len(self._lower)], ranks[len(self._lower) :]
        low, high = (
            [by_rank[rank] if rank >= 0 else None for rank in self._extreme(side, ufunc).tolist()]
            for side, ufunc in zip(sides, (np.minimum, np.maximum), strict=True)
        )
        return low, high

    def _extreme(self, ranks: Ints, ufunc: Any) -> Ints:
        """Return the extreme rank in each partition; -1 where a part has no bound."""
        start = np.iinfo(np.int64).max if ufunc is np.minimum else -1
        result = np.full(self._partitions, start, dtype=np.int64)
        of_pieces = ranks[self._pieces.file]
        ufunc.at(result, self._owner, of_pieces)
        return np.where(self._any(of_pieces < 0), -1, result)

    def _raw(self, value: Any) -> bytes | None:
        return None if value is None else to_bytes(self._kind, value)  # type: ignore[arg-type]


def _ranks(values: list[Any]) -> tuple[Ints, list[Any]]:
    """Rank values, -1 for None and NaN; return them and the value of each rank."""
    present = {_sort_key(value): value for value in values if value is not None and value == value}
    ordered = sorted(present)
    position = {key: index for index, key in enumerate(ordered)}
    ranks = [position.get(_sort_key(value), -1) if value is not None else -1 for value in values]
    return np.array(ranks, dtype=np.int64), [present[key] for key in ordered]


def _manifested(metadata: PlanningMetadata, columns: dict[str, Any], spec: PartitionSpec) -> PlanningMetadata:
    """Put the new files into manifests of the target size, in the order of their partitions."""
    info = metadata.info
    count = len(columns["partition"])
    per_entry, header = _entry_bytes(metadata)
    target = int(info.properties.get("commit.manifest.target-size-bytes", 8 * 1024 * 1024))
    manifests = max(1, -(-int(count * per_entry) // target)) if count else 0
    ordinal = np.arange(count) * manifests // max(1, count)
    fixed = {
        "manifest_ordinal": ordinal,
        "position": np.arange(count),
        "status": 1,
        "spec_id": spec.spec_id,
        "snapshot_id": info.snapshot_id,
        "sequence_number": 1,
        "file_sequence_number": 1,
        "content": 0,
        "file_path": [f"predicted-{index}" for index in range(count)],
        "file_format": "PARQUET",
    }
    schema = files_schema(info.recorded_field_ids)
    arrays = [_arrow(columns.get(field.name, fixed.get(field.name)), field.type, count) for field in schema]
    files = pa.Table.from_arrays(arrays, schema=schema)
    rows = [
        _manifest_row(files.filter(pc.equal(files["manifest_ordinal"], number)), number, spec, info, per_entry, header)
        for number in range(manifests)
    ]
    return replace(
        metadata,
        manifests=pa.Table.from_pylist(rows, schema=MANIFESTS_SCHEMA),
        data_files=files,
        delete_files=metadata.delete_files.slice(0, 0),
    )


def _arrow(values: Any, kind: pa.DataType, count: int) -> pa.Array:
    if values is None:
        return pa.nulls(count, kind)
    if isinstance(values, list):
        return pa.array(values, type=kind)
    return pa.array(np.broadcast_to(values, count).tolist(), type=kind)


def _entry_bytes(metadata: PlanningMetadata) -> tuple[float, int]:
    """Return (bytes that an entry takes among others, bytes of a manifest's header).

    Of the real entries that the recording holds, encoded together; without any, from today's data manifests.
    """
    sampled, per_entry = metadata.samples.first(None, DATA), metadata.samples.bytes_per_entry(None, DATA)
    if sampled is not None and per_entry is not None:
        return per_entry, sampled.header_bytes
    data = metadata.manifests.filter(pc.equal(metadata.manifests["content"], DATA))
    if not len(data):
        return 0.0, 0
    header = header_bytes(metadata.info, int(pc.min(data["length"]).as_py()))
    entries = sum(pc.sum(data[f"entries_{kind}"]).as_py() or 0 for kind in ("added", "existing", "deleted"))
    body = (pc.sum(data["length"]).as_py() or 0) - header * len(data)
    return max(0, body) / max(1, entries), header


def _manifest_row(
    files: pa.Table, number: int, spec: PartitionSpec, info: TableInfo, per_entry: float, header: int
) -> dict[str, Any]:
    length = header + round(per_entry * len(files))
    partitions = list(zip(*files["partition"].to_pylist(), strict=True))
    return {
        "ordinal": number,
        "path": f"predicted-{number}",
        "length": length,
        "file_size": length,
        "partition_spec_id": spec.spec_id,
        "content": DATA,
        "sequence_number": 1,
        "min_sequence_number": 1,
        "added_snapshot_id": info.snapshot_id,
        "added_files_count": len(files),
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "partitions": [
            _summary(values, result_type(field.transform, info.schema.find_type(field.source_id)))
            for values, field in zip(partitions, spec.fields, strict=True)
        ],
        "entries_added": len(files),
        "entries_existing": 0,
        "entries_deleted": 0,
    }


def _summary(raws: Sequence[bytes | None], kind: IcebergType) -> dict[str, Any]:
    values = {raw: decode(raw, kind) for raw in raws if raw is not None}
    ordered = sorted(values, key=lambda raw: _sort_key(values[raw]))
    return {
        "contains_null": None in raws,
        "contains_nan": False,
        "lower_bound": ordered[0] if ordered else None,
        "upper_bound": ordered[-1] if ordered else None,
    }
