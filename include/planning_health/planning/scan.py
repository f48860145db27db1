"""The scan-planning simulation: which manifests and files a filter reads, exactly as Iceberg would plan it.

``ScanPlanner`` decodes a recorded picture once and answers any number of filters over its columns. The steps
and counters are those of ``DataTableScan``, ``ManifestGroup`` and ``ScanMetrics`` of Iceberg 1.12.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from planning_health.errors import NotMeasurableError
from planning_health.metadata.model import DATA, DELETED, DELETES
from planning_health.planning.comparable import Ints, Mask
from planning_health.planning.delete_index import DeleteFileIndex, FileColumns
from planning_health.planning.expressions import (
    ALWAYS_TRUE,
    AlwaysTrue,
    Expression,
    bind,
    rewrite_not,
    visit,
)
from planning_health.planning.manifest_evaluator import ManifestEvaluator
from planning_health.planning.metrics_evaluator import InclusiveMetricsEvaluator, MetricsColumns
from planning_health.planning.partitions import PartitionTuples
from planning_health.planning.projection import BoundSpec, inclusive_projection
from planning_health.planning.residual import ResidualEvaluator
from planning_health.planning.splits import CombinedTasks, SplitOptions, Splits, SplittableFiles, combine

if TYPE_CHECKING:
    from pyiceberg.types import NestedField

    from planning_health.metadata.model import PlanningMetadata


@dataclass(frozen=True, slots=True)
class ScanReport:
    """The counters of Iceberg's ScanReport, in its own terms; sizes in bytes.

    ``skipped_data_files`` counts live entries rejected in scanned manifests only, so that total ≠ result + skipped.
    ``skipped_*_manifests`` includes manifests without a live entry. Position, equality and DV counters count indexed
    files, ``result_delete_files`` counts attachments. ``metadata_bytes`` (not Iceberg's) are the scanned manifests'.
    """

    result_data_files: int = 0
    result_delete_files: int = 0
    total_data_manifests: int = 0
    total_delete_manifests: int = 0
    scanned_data_manifests: int = 0
    skipped_data_manifests: int = 0
    scanned_delete_manifests: int = 0
    skipped_delete_manifests: int = 0
    skipped_data_files: int = 0
    skipped_delete_files: int = 0
    indexed_delete_files: int = 0
    equality_delete_files: int = 0
    positional_delete_files: int = 0
    dvs: int = 0
    total_file_size_in_bytes: int = 0
    total_delete_file_size_in_bytes: int = 0
    metadata_bytes: int = 0


@dataclass(frozen=True)
class SimulatedScan:
    """What planning one filter gives.

    Attributes:
        filter: the filter that was pushed down.
        report: the counters.
        data_rows: rows of ``PlanningMetadata.data_files`` that match, in recorded order.
        delete_offsets: the deletes of ``data_rows[i]`` are ``delete_rows[delete_offsets[i]:delete_offsets[i + 1]]``.
        delete_rows: rows of ``PlanningMetadata.delete_files``.
        scanned_manifests: ordinals of the manifests that are opened, data and delete.
        not_recorded: columns of the filter without recorded metrics: they might match in every file.
        not_pushed_down: parts of the query that Iceberg is not given, as text.
    """

    filter: Expression
    report: ScanReport
    data_rows: Ints
    delete_offsets: Ints
    delete_rows: Ints
    scanned_manifests: Ints
    not_recorded: tuple[str, ...]
    _planner: ScanPlanner = field(repr=False)
    _bound: Expression = field(repr=False)
    not_pushed_down: tuple[str, ...] = ()

    def residuals(self) -> list[Expression]:
        """Return for each matched file what of the filter must still be checked row by row (bound)."""
        return self._planner.residuals(self._bound, self.data_rows)

    @property
    def live_data_files(self) -> int:
        """Number of the snapshot's data files."""
        return self._planner.live_data_files

    def file_sizes(self) -> Ints:
        """Return the matched files' sizes in bytes."""
        return self._planner.file_sizes[self.data_rows]

    def paths(self) -> list[str]:
        """Return the matched files' paths."""
        paths: list[str] = self._planner.metadata.data_files["file_path"].take(pa.array(self.data_rows)).to_pylist()
        return paths

    def deletes(self) -> list[list[str]]:
        """Return for each matched file the paths of its delete files."""
        table = self._planner.metadata.delete_files
        paths = table["file_path"].take(pa.array(self.delete_rows)).to_pylist()
        bounds = self.delete_offsets.tolist()
        return [paths[start:end] for start, end in pairwise(bounds)]

    def splits(self, options: SplitOptions | None = None) -> Splits:
        """Split the matched files; without options by the table's ``read.split.*`` properties."""
        chosen = options or self._planner.split_options
        return self._planner.splittable_files.split(self.data_rows, chosen.target_size)

    def combined_tasks(self, options: SplitOptions | None = None) -> CombinedTasks:
        """Pack the splits into combined tasks as ``planTasks()`` does, files in recorded order."""
        chosen = options or self._planner.split_options
        return combine(self.splits(chosen), np.diff(self.delete_offsets), self._delete_bytes(), chosen)

    def _delete_bytes(self) -> Ints:
        sizes = self._planner.delete_content_bytes[self.delete_rows]
        totals = np.concatenate(([0], np.cumsum(sizes)))
        result: Ints = totals[self.delete_offsets[1:]] - totals[self.delete_offsets[:-1]]
        return result


class _Side:
    """The manifests and files of one content (data or deletes), decoded on demand and kept."""

    def __init__(self, planner: ScanPlanner, content: int, files: pa.Table) -> None:
        self._planner = planner
        manifests = planner.metadata.manifests
        chosen = np.flatnonzero(_numbers(manifests["content"]) == content)
        self.ordinals: Ints = _numbers(manifests["ordinal"])[chosen]
        self._manifests = manifests.take(pa.array(chosen)).combine_chunks()
        self.manifest_specs: Ints = _numbers(self._manifests["partition_spec_id"])
        self.manifest_bytes: Ints = _numbers(self._manifests["length"])
        self.has_live: Mask = self._may_have("added_files_count") | self._may_have("existing_files_count")
        self.files = files
        self.manifest_of_row: Ints = _numbers(files["manifest_ordinal"])
        self.live: Mask = _numbers(files["status"]) != DELETED
        self.spec: Ints = _numbers(files["spec_id"])
        self.metrics = MetricsColumns(files, planner.metadata.info.recorded_field_ids)
        self._evaluators: dict[int, ManifestEvaluator] = {}

    def _may_have(self, column: str) -> Mask:
        return np.asarray(self._manifests[column].fill_null(1).to_numpy() > 0, dtype=np.bool_)

    @cached_property
    def sequence(self) -> Ints:
        return _numbers(self.files["sequence_number"])

    def matching_manifests(self, projections: dict[int, Expression]) -> Mask:
        """Return which manifests might match, each by its own spec's projection."""
        matching = np.zeros(len(self.ordinals), dtype=np.bool_)
        for spec_id, projection in projections.items():
            rows = np.flatnonzero(self.manifest_specs == spec_id)
            if len(rows):
                matching[rows] = self._evaluator(spec_id, rows).eval(projection)
        return matching

    def _evaluator(self, spec_id: int, rows: Ints) -> ManifestEvaluator:
        if spec_id not in self._evaluators:
            summaries = _array(self._manifests["partitions"].take(pa.array(rows)))
            self._evaluators[spec_id] = ManifestEvaluator(self._planner.specs[spec_id], summaries)
        return self._evaluators[spec_id]

    @cached_property
    def _ordered(self) -> bool:
        return bool(np.all(self.manifest_of_row[1:] >= self.manifest_of_row[:-1]))

    def span_of(self, scanned: Mask) -> slice:
        """Return a span of rows with all entries of the scanned manifests; neighbours make a short one."""
        if not scanned.any() or not self._ordered:
            return slice(0, len(self.files) if scanned.any() else 0)
        opened = self.ordinals[scanned]
        start = np.searchsorted(self.manifest_of_row, opened.min(), side="left")
        end = np.searchsorted(self.manifest_of_row, opened.max(), side="right")
        return slice(int(start), int(end))

    def live_in(self, scanned: Mask, span: slice) -> Mask:
        """Return which entries of the span are live and in a scanned manifest."""
        if scanned.all():
            return self.live[span]
        opened = np.zeros(len(self._planner.metadata.manifests) + 1, dtype=np.bool_)
        opened[self.ordinals[scanned]] = True
        return self.live[span] & opened[self.manifest_of_row[span]]


class ScanPlanner:
    """Plans any number of filters over one recorded picture.

    Args:
        metadata: the picture; it is decoded lazily and only for the columns that filters ask for.

    Attributes:
        specs: the table's specs as the scan's schema sees them.
        split_options: the table's ``read.split.*`` properties.
    """

    def __init__(self, metadata: PlanningMetadata) -> None:
        self.metadata = metadata
        info = metadata.info
        self.specs = {spec_id: BoundSpec(spec, info.schema) for spec_id, spec in info.specs.items()}
        self.split_options = SplitOptions.of_properties(info.properties)
        self._data = _Side(self, DATA, metadata.data_files)
        self._deletes = _Side(self, DELETES, metadata.delete_files)
        unknown = set(np.unique(np.concatenate([self._data.manifest_specs, self._deletes.manifest_specs])).tolist())
        if unknown - self.specs.keys():
            raise NotMeasurableError(f"manifests use partition specs {sorted(unknown - self.specs.keys())}, unknown")
        self._index: tuple[bytes, DeleteFileIndex] | None = None

    def plan(self, filter_: Expression = ALWAYS_TRUE, *, case_sensitive: bool = True) -> SimulatedScan:
        """Plan one filter.

        Args:
            filter_: an unbound expression.
            case_sensitive: whether column names match by case.

        Raises:
            InputError: an unknown column, or a literal that does not fit its column.
            NotMeasurableError: the delete files contradict the data files.
        """
        simplified = visit(filter_, lambda leaf: leaf)
        bound = bind(simplified, self.metadata.info.schema, case_sensitive=case_sensitive)
        pushed = rewrite_not(bound)
        projections = {spec_id: inclusive_projection(pushed, spec) for spec_id, spec in self.specs.items()}
        unfiltered = isinstance(simplified, AlwaysTrue)
        data = self._select(self._data, pushed, projections, unfiltered=unfiltered)
        deletes = self._select(self._deletes, pushed, projections, unfiltered=unfiltered)
        data_rows = data.rows
        index = self._delete_index(deletes.rows[self._deletes.sequence[deletes.rows] > 0])
        offsets, delete_rows = index.attach(self._data_columns, data_rows) if index else _no_deletes(len(data_rows))
        return SimulatedScan(
            filter=simplified,
            report=self._report(data, deletes, data_rows, delete_rows, index),
            data_rows=data_rows,
            delete_offsets=offsets,
            delete_rows=delete_rows,
            scanned_manifests=np.sort(
                np.concatenate([self._data.ordinals[data.scanned], self._deletes.ordinals[deletes.scanned]])
            ),
            not_recorded=tuple(sorted(data.unrecorded)),
            _planner=self,
            _bound=bound,
        )

    def _select(
        self, side: _Side, pushed: Expression, projections: dict[int, Expression], *, unfiltered: bool
    ) -> _Selection:
        scanned = side.matching_manifests(projections) & side.has_live
        span = side.span_of(scanned)
        candidates = side.live_in(scanned, span)
        if unfiltered:
            return _Selection(scanned, np.flatnonzero(candidates) + span.start, 0, frozenset())
        matched = candidates
        if not all(isinstance(projection, AlwaysTrue) for projection in projections.values()):
            matched = matched & self._matching_partitions(side, projections, span)
        evaluator = InclusiveMetricsEvaluator(pushed, side.metrics)
        rows = np.flatnonzero(matched & evaluator.eval(span)) + span.start
        skipped = int(np.count_nonzero(candidates)) - len(rows)
        return _Selection(scanned, rows, skipped, frozenset(evaluator.unrecorded))

    def _matching_partitions(self, side: _Side, projections: dict[int, Expression], span: slice) -> Mask:
        matching = np.concatenate(
            [tuples.eval(projections[spec_id]) for spec_id, tuples in self._tuples.by_spec.items()]
            or [np.zeros(0, dtype=np.bool_)]
        )
        partition = self._tuples.data if side is self._data else self._tuples.deletes
        result: Mask = matching[partition[span]]
        return result

    @cached_property
    def live_data_files(self) -> int:
        """Number of data files of the snapshot (entries that are not DELETED)."""
        return int(np.count_nonzero(self._data.live))

    def live_partition_values(self, spec_id: int, position: int) -> list[bytes | None]:
        """Return the distinct raw values of one partition field among the live data files of a spec."""
        tuples = self._tuples.by_spec.get(spec_id)
        if tuples is None:
            return []
        used = np.unique(self._tuples.data[self._data.live & (self._data.spec == spec_id)])
        local = used - self._tuples.start[spec_id]
        values: list[bytes | None] = tuples.raw[position].take(pa.array(local)).unique().to_pylist()
        return values

    @cached_property
    def _tuples(self) -> _AllTuples:
        return _AllTuples.of(self.specs, self._data, self._deletes)

    @cached_property
    def _data_columns(self) -> FileColumns:
        side = self._data
        return FileColumns(side.files, side.metrics, side.sequence, side.spec, self._tuples.data)

    @cached_property
    def _delete_columns(self) -> FileColumns:
        side = self._deletes
        return FileColumns(side.files, side.metrics, side.sequence, side.spec, self._tuples.deletes)

    def _delete_index(self, rows: Ints) -> DeleteFileIndex | None:
        """Index delete files; the last index is kept, because many filters keep the same ones."""
        if not len(rows):
            return None
        key = rows.tobytes()
        if self._index is None or self._index[0] != key:
            unpartitioned = frozenset(i for i, spec in self.specs.items() if spec.is_unpartitioned)
            index = DeleteFileIndex(self._delete_columns, rows, unpartitioned, self._equality_field)
            self._index = (key, index)
        return self._index[1]

    @cached_property
    def _fields_by_id(self) -> dict[int, NestedField]:
        fields: dict[int, NestedField] = {}
        for schema in sorted(self.metadata.info.metadata.schemas, key=lambda schema: schema.schema_id):
            fields |= {field_id: schema.find_field(field_id) for field_id in schema.field_ids}
        return fields

    def _equality_field(self, field_id: int) -> NestedField | None:
        return self._fields_by_id.get(field_id)

    @cached_property
    def file_sizes(self) -> Ints:
        """Sizes of all data files in bytes."""
        return _numbers(self.metadata.data_files["file_size_in_bytes"])

    @cached_property
    def splittable_files(self) -> SplittableFiles:
        """How the data files can be split."""
        files = self.metadata.data_files
        return SplittableFiles(self.file_sizes, files["file_format"], _array(files["split_offsets"]))

    @cached_property
    def delete_content_bytes(self) -> Ints:
        """Bytes that reading each delete file costs: a deletion vector's content, else the whole file."""
        table = self.metadata.delete_files
        sizes = _numbers(table["file_size_in_bytes"])
        content = np.asarray(table["content_size_in_bytes"].fill_null(0).to_numpy(), dtype=np.int64)
        puffin = np.asarray(table["file_format"].to_numpy() == "PUFFIN", dtype=np.bool_)
        return np.where(puffin, content, sizes)

    def _report(
        self,
        data: _Selection,
        deletes: _Selection,
        data_rows: Ints,
        delete_rows: Ints,
        index: DeleteFileIndex | None,
    ) -> ScanReport:
        return ScanReport(
            result_data_files=len(data_rows),
            result_delete_files=len(delete_rows),
            total_data_manifests=len(data.scanned),
            total_delete_manifests=len(deletes.scanned),
            scanned_data_manifests=int(data.scanned.sum()),
            skipped_data_manifests=int((~data.scanned).sum()),
            scanned_delete_manifests=int(deletes.scanned.sum()),
            skipped_delete_manifests=int((~deletes.scanned).sum()),
            skipped_data_files=data.skipped,
            skipped_delete_files=deletes.skipped,
            indexed_delete_files=len(index.rows) if index else 0,
            equality_delete_files=index.equalities if index else 0,
            positional_delete_files=index.positions if index else 0,
            dvs=index.dvs if index else 0,
            total_file_size_in_bytes=int(self.file_sizes[data_rows].sum()),
            total_delete_file_size_in_bytes=int(self.delete_content_bytes[delete_rows].sum()),
            metadata_bytes=int(self._data.manifest_bytes[data.scanned].sum())
            + int(self._deletes.manifest_bytes[deletes.scanned].sum()),
        )

    def residuals(self, bound: Expression, rows: Ints) -> list[Expression]:
        """Return the residual of a bound filter for each data file row."""
        result: list[Expression] = [bound] * len(rows)
        for spec_id, tuples in self._tuples.by_spec.items():
            members = np.flatnonzero(self._data.spec[rows] == spec_id)
            if not len(members) or self.specs[spec_id].is_unpartitioned:
                continue
            residuals, of_tuple = ResidualEvaluator(self.specs[spec_id], bound).residuals(tuples)
            local = self._tuples.data[rows[members]] - self._tuples.start[spec_id]
            for member, index in zip(members.tolist(), of_tuple[local].tolist(), strict=True):
                result[member] = residuals[index]
        return result


@dataclass(frozen=True, slots=True)
class _Selection:
    """What one side's pruning left: scanned manifests, matched rows, number of rejected live entries."""

    scanned: Mask
    rows: Ints
    skipped: int
    unrecorded: frozenset[str]


@dataclass(frozen=True)
class _AllTuples:
    """Partition tuples of all specs under one numbering, shared by data and delete files.

    Attributes:
        by_spec: the distinct tuples of each spec, in numbering order.
        start: number of each spec's first tuple.
        data: tuple number of each data file.
        deletes: tuple number of each delete file.
    """

    by_spec: dict[int, PartitionTuples]
    start: dict[int, int]
    data: Ints
    deletes: Ints

    @classmethod
    def of(cls, specs: dict[int, BoundSpec], data: _Side, deletes: _Side) -> _AllTuples:
        """Number the tuples of all files."""
        spec_of_row = np.concatenate([data.spec, deletes.spec])
        partitions = pa.concat_arrays([_array(data.files["partition"]), _array(deletes.files["partition"])])
        numbers = np.zeros(len(spec_of_row), dtype=np.int64)
        by_spec: dict[int, PartitionTuples] = {}
        start: dict[int, int] = {}
        total = 0
        for spec_id in np.unique(spec_of_row).tolist():
            rows = np.flatnonzero(spec_of_row == spec_id)
            tuples = PartitionTuples(specs[spec_id], partitions.take(pa.array(rows)))
            by_spec[spec_id], start[spec_id] = tuples, total
            numbers[rows] = tuples.tuple_of_row + total
            total += len(tuples)
        return cls(by_spec, start, numbers[: len(data.spec)], numbers[len(data.spec) :])


def _no_deletes(data_files: int) -> tuple[Ints, Ints]:
    return np.zeros(data_files + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)


def _numbers(column: pa.ChunkedArray) -> Ints:
    return np.asarray(column.to_numpy(), dtype=np.int64)


def _array(column: Any) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        return pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], type=array.type)
    return array


def simulate_scan(
    metadata: PlanningMetadata, filter_: Expression = ALWAYS_TRUE, *, case_sensitive: bool = True
) -> SimulatedScan:
    """Plan one filter over a recorded picture; for many filters keep one :class:`ScanPlanner`."""
    return ScanPlanner(metadata).plan(filter_, case_sensitive=case_sensitive)
