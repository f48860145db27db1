"""The work units of a scan: the files, or parts of files, that survive pruning.

Source of the rules (limit, exactness, order): planned files of the Rust project datafusion-distributed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from planning_health.errors import InputError, WorkFailedError

PLANNING_MAX_FILES = 100_000
"""How many units one scan may keep while it is planned."""

MAX_U64 = 2**64 - 1
"""Where ``planned_bytes`` stops growing."""


class PlanningLimitError(WorkFailedError):
    """A scan has more units than the planning limit allows. Nothing is truncated."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the scan has more than planning_max_files={limit} files; raise the limit or narrow the scan")


@dataclass(frozen=True)
class UnitTable:
    """The units of one scan as columns; row i is the unit discovered i-th.

    Attributes:
        paths: immutable file paths, a string array.
        starts: first byte of the unit in its file, uint64.
        lengths: bytes of the unit, uint64.
        record_counts: rows of the unit, nullable int64; null means not known.
        costs: what balancing compares, uint64; candidate bytes unless told otherwise.
    """

    paths: pa.StringArray
    starts: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.uint64]
    record_counts: pa.Int64Array
    costs: npt.NDArray[np.uint64]

    @classmethod
    def from_arrays(
        cls,
        paths: pa.Array | pa.ChunkedArray | Sequence[str],
        lengths: npt.ArrayLike,
        *,
        starts: npt.ArrayLike | None = None,
        record_counts: pa.Array | pa.ChunkedArray | Sequence[int | None] | None = None,
        costs: npt.ArrayLike | None = None,
        planning_max_files: int = PLANNING_MAX_FILES,
    ) -> UnitTable:
        """Builds the table from columns of equal length.

        Raises:
            PlanningLimitError: there are more than ``planning_max_files`` units.
            InputError: the columns differ in length.
        """
        path_array = _one_chunk(paths, pa.string())
        count = len(path_array)
        if count > planning_max_files:
            raise PlanningLimitError(planning_max_files)
        length_array = np.asarray(lengths, dtype=np.uint64)
        start_array = np.zeros(count, np.uint64) if starts is None else np.asarray(starts, dtype=np.uint64)
        rows = pa.nulls(count, pa.int64()) if record_counts is None else _one_chunk(record_counts, pa.int64())
        cost_array = length_array if costs is None else np.asarray(costs, dtype=np.uint64)
        sizes = {len(length_array), len(start_array), len(rows), len(cost_array)}
        if sizes - {count}:
            raise InputError(f"columns of {sorted(sizes | {count})} values: expected columns of equal length")
        return cls(path_array, start_array, length_array, rows, cost_array)

    def __len__(self) -> int:
        return len(self.paths)

    def stable_order(self) -> npt.NDArray[np.int64]:
        """Row indexes by (path as UTF-8 bytes, start, length, row): independent of how manifests are enumerated."""
        columns = {
            "path": self.paths,
            "start": pa.array(self.starts),
            "length": pa.array(self.lengths),
            "row": pa.array(np.arange(len(self), dtype=np.int64)),
        }
        keys = [(name, "ascending") for name in columns]
        return np.asarray(pc.sort_indices(pa.table(columns), sort_keys=keys), dtype=np.int64)


@dataclass(frozen=True)
class PlannedWork:
    """What planning knows of a scan's size before it runs.

    Attributes:
        files: number of units.
        bytes: their lengths, saturating at 2^64 - 1.
        rows: their rows; None when one of them is not known.
        exact: whether rows and bytes are what the scan will return, and not an upper estimate.
    """

    files: int
    bytes: int
    rows: int | None
    exact: bool


def collect_units(
    files: Iterable[tuple[str, int, int | None]], planning_max_files: int = PLANNING_MAX_FILES
) -> UnitTable:
    """Collects whole files one by one, as a planner streams them, and never truncates.

    Args:
        files: (path, length in bytes, record count or None) per file.
        planning_max_files: exactly this many files pass.

    Raises:
        PlanningLimitError: one more file arrived.
    """
    collected: list[tuple[str, int, int | None]] = []
    for file in files:
        if len(collected) >= planning_max_files:
            raise PlanningLimitError(planning_max_files)
        collected.append(file)
    paths, lengths, rows = zip(*collected, strict=True) if collected else ((), (), ())
    return UnitTable.from_arrays(paths, lengths, record_counts=rows, planning_max_files=planning_max_files)


def planned_work(units: UnitTable, *, has_predicate: bool, has_delete_files: bool) -> PlannedWork:
    """Sizes a scan: an empty plan has exactly 0 rows, a predicate or a delete file makes the counts estimates."""
    if not len(units):
        return PlannedWork(files=0, bytes=0, rows=0, exact=True)
    total_bytes = min(MAX_U64, sum(units.lengths.tolist()))
    rows = None if units.record_counts.null_count else sum(units.record_counts.to_pylist())
    return PlannedWork(len(units), total_bytes, rows, exact=not (has_predicate or has_delete_files))


def _one_chunk(values: pa.Array | pa.ChunkedArray | Sequence[object], kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    array = values if isinstance(values, pa.Array) else pa.array(values, kind)
    return array if array.type == kind else array.cast(kind)
