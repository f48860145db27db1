"""A whole plan in columns: its tasks in their total order, the deletes they reference, and their residual filters.

A response is cut from it. Columns instead of objects make a plan small and its size exactly known, which is what
bounds the cache.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pydantic_core import to_json

from planning_health.metadata.model import (
    DELETE_FILE_PATH_ID,
    EQUALITY_DELETES,
    STATISTICS,
    PlanningMetadata,
)
from planning_health.plan_tasks.batching import TaskTable, total_order
from planning_health.plan_tasks.service.content_files import PartitionTypes, content_file
from planning_health.planning.comparable import Ints
from planning_health.planning.expressions import Expression, to_iceberg_json
from planning_health.planning.scan import SimulatedScan

_FILE_COLUMNS: Final = (
    "spec_id",
    "content",
    "file_path",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "split_offsets",
    "equality_ids",
    "sort_order_id",
    "first_row_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
    "partition",
)
_DATA_COLUMNS: Final = tuple(
    name
    for name in _FILE_COLUMNS
    if name not in ("equality_ids", "referenced_data_file", "content_offset", "content_size_in_bytes")
)


@dataclass(frozen=True)
class Plan:
    """Everything that the tasks of one scan consist of; row i is the i-th task.

    Attributes:
        files: the data files in total order.
        deletes: the delete files that at least one task references.
        delete_offsets: the deletes of task i are rows ``delete_rows[delete_offsets[i]:delete_offsets[i + 1]]``.
        delete_rows: rows of ``deletes``.
        residuals: the distinct residual filters as JSON text.
        residual_of: for each task the number of its residual.
        types: the partition types of all specs.
        stats: field ids whose statistics travel with the data files.
    """

    files: pa.Table
    deletes: pa.Table
    delete_offsets: Ints
    delete_rows: Ints
    residuals: tuple[bytes, ...]
    residual_of: Ints
    types: PartitionTypes
    stats: tuple[int, ...]

    def __len__(self) -> int:
        """Number of tasks."""
        return len(self.files)

    @property
    def held_bytes(self) -> int:
        """Bytes that the columns take in memory."""
        arrays = self.delete_offsets.nbytes + self.delete_rows.nbytes + self.residual_of.nbytes
        return int(self.files.nbytes + self.deletes.nbytes + arrays + sum(map(len, self.residuals)))

    def tasks_json(self, part: slice) -> bytes:
        """The members ``delete-files`` (when there are some) and ``file-scan-tasks`` of a response, without braces.

        The delete files are those that this part's tasks reference, and the references count from 0 in this response.
        """
        start, end, _ = part.indices(len(self))
        bounds = self.delete_offsets[start : end + 1]
        referenced, local = np.unique(self.delete_rows[bounds[0] : bounds[-1]], return_inverse=True)
        references = [local[a:b].tolist() for a, b in zip(bounds - bounds[0], bounds[1:] - bounds[0], strict=False)]
        members = []
        if len(referenced):
            rows = self.deletes.take(pa.array(referenced)).to_pylist()
            files = [content_file(row, self.types, _delete_stats(row)) for row in rows]
            members.append(b'"delete-files":' + to_json(files))
        tasks = [
            self._task_json(row, deletes, residual)
            for row, deletes, residual in zip(
                self.files.slice(start, end - start).to_pylist(),
                references,
                self.residual_of[start:end].tolist(),
                strict=True,
            )
        ]
        members.append(b'"file-scan-tasks":[' + b",".join(tasks) + b"]")
        return b",".join(members)

    def _task_json(self, row: dict[str, Any], deletes: list[int], residual: int) -> bytes:
        references = b',"delete-file-references":' + to_json(deletes) if deletes else b""
        file = to_json(content_file(row, self.types, self.stats))
        return b'{"data-file":' + file + references + b',"residual-filter":' + self.residuals[residual] + b"}"


def _delete_stats(row: dict[str, Any]) -> list[int]:
    """Of a delete file Iceberg sends the statistics that say which data files it can concern."""
    return list(row["equality_ids"] or ()) if row["content"] == EQUALITY_DELETES else [DELETE_FILE_PATH_ID]


def build_plan(metadata: PlanningMetadata, scan: SimulatedScan, stats: frozenset[int]) -> Plan:
    """Puts a simulated scan in total order.

    Args:
        metadata: what was planned from.
        scan: the plan.
        stats: field ids whose statistics travel with the data files.
    """
    order = total_order(_task_table(metadata, scan.data_rows))
    counts = np.diff(scan.delete_offsets)[order]
    offsets = np.concatenate(([0], np.cumsum(counts)))
    source = np.repeat(scan.delete_offsets[:-1][order] - offsets[:-1], counts) + np.arange(offsets[-1])
    referenced, delete_rows = np.unique(scan.delete_rows[source], return_inverse=True)
    residuals, residual_of = _distinct(scan.residuals())
    info = metadata.info
    return Plan(
        files=_taken(metadata.data_files, scan.data_rows[order], _DATA_COLUMNS, stats),
        deletes=_taken(metadata.delete_files, referenced, _FILE_COLUMNS, None),
        delete_offsets=offsets,
        delete_rows=delete_rows.reshape(-1).astype(np.int64),
        residuals=residuals,
        residual_of=residual_of[order],
        types={spec_id: info.partition_types(spec) for spec_id, spec in info.specs.items()},
        stats=tuple(sorted(stats)),
    )


def _task_table(metadata: PlanningMetadata, rows: Ints) -> TaskTable:
    columns = ("file_path", "file_size_in_bytes", "sequence_number", "file_sequence_number", "position")
    taken = metadata.data_files.select([*columns, "manifest_ordinal"]).take(pa.array(rows)).combine_chunks()
    values = {name: _one_array(taken[name]) for name in taken.column_names}
    paths = _one_array(metadata.manifests["path"])
    return TaskTable(
        locations=values["file_path"],
        starts=pa.array(np.zeros(len(rows), dtype=np.int64)),
        lengths=values["file_size_in_bytes"],
        data_sequence_numbers=values["sequence_number"],
        file_sequence_numbers=values["file_sequence_number"],
        manifest_locations=paths.take(values["manifest_ordinal"]),
        manifest_positions=values["position"].cast(pa.int64()),
    )


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) if chunks else pa.array([], column.type)


def _taken(table: pa.Table, rows: Ints, columns: Sequence[str], stats: frozenset[int] | None) -> pa.Table:
    """Rows of chosen columns, with the statistics of some fields (``None``: of all recorded ones), as own memory."""
    statistics = [
        name
        for name in table.column_names
        if name.partition(".")[0] in STATISTICS and (stats is None or int(name.partition(".")[2]) in stats)
    ]
    return table.select([*columns, *statistics]).take(pa.array(rows)).combine_chunks()


def _distinct(expressions: Sequence[Expression]) -> tuple[tuple[bytes, ...], Ints]:
    """Each residual once as JSON text; equal ones of one spec are one object already."""
    numbers: dict[int, int] = {}
    texts: list[bytes] = []
    of_task = np.zeros(len(expressions), dtype=np.int64)
    for place, expression in enumerate(expressions):
        number = numbers.get(id(expression))
        if number is None:
            number = numbers[id(expression)] = len(texts)
            texts.append(json.dumps(to_iceberg_json(expression), separators=(",", ":"), allow_nan=False).encode())
        of_task[place] = number
    return tuple(texts), of_task
