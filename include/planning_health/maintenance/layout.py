"""A table's manifest layout in numbers: what maintenance predicts, and what it compares before and after."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.types import IcebergType

from planning_health.metadata.model import DATA, DELETED, PlanningMetadata
from planning_health.metadata.single_values import decode, decode_array


@dataclass(frozen=True)
class FieldOverlap:
    """What an equality lookup on one partition field opens, over the field's distinct live values.

    Attributes:
        values: the number of distinct values; with none the rest is ``None``, not measured.
        mean: data manifests of the spec that hold a value, on average.
        worst: the same for the value that lies in most of them.
        mean_bytes: the size of these manifests, on average.
    """

    spec_id: int
    field: str
    values: int
    mean: float | None = None
    worst: int | None = None
    mean_bytes: float | None = None


@dataclass(frozen=True)
class Layout:
    """The manifests of one snapshot: how many, how large, and how much they overlap.

    Attributes:
        manifests: data and delete manifests.
        metadata_bytes: their sizes, summed.
        manifests_by_spec: the number of them, by spec id.
        overlap: one value for each partition field of each spec that has data manifests.
    """

    manifests: int
    data_manifests: int
    delete_manifests: int
    metadata_bytes: int
    manifests_by_spec: dict[int, int]
    overlap: tuple[FieldOverlap, ...]

    def as_json(self) -> dict[str, Any]:
        """The layout as a result file holds it."""
        return asdict(self)


def layout_of(metadata: PlanningMetadata) -> Layout:
    """Measures a recorded or predicted snapshot."""
    manifests = metadata.manifests
    contents = manifests["content"].to_pylist()
    spec_ids = manifests["partition_spec_id"].to_pylist()
    data = sum(content == DATA for content in contents)
    return Layout(
        manifests=len(contents),
        data_manifests=data,
        delete_manifests=len(contents) - data,
        metadata_bytes=sum(manifests["length"].to_pylist()),
        manifests_by_spec={spec_id: spec_ids.count(spec_id) for spec_id in sorted(set(spec_ids))},
        overlap=tuple(
            _overlap(metadata, spec, position, field)
            for spec_id, spec in sorted(metadata.info.specs.items())
            if spec_id in spec_ids
            for position, field in enumerate(spec.fields)
        ),
    )


def live_files(files: pa.Table) -> pa.Table:
    """The entries that are not DELETED."""
    return files.filter(pc.not_equal(files["status"], DELETED))


def partition_values(files: pa.Table, position: int) -> pa.Array:
    """The raw values of one partition field; all rows must be of the spec that the position belongs to."""
    if not len(files):
        return pa.array([], pa.binary())
    return pc.list_element(files["partition"].combine_chunks(), position)


def _overlap(metadata: PlanningMetadata, spec: PartitionSpec, position: int, field: PartitionField) -> FieldOverlap:
    field_type = metadata.info.partition_types(spec)[position]
    if field_type is None:
        return FieldOverlap(spec.spec_id, field.name, 0)
    files = live_files(metadata.data_files)
    files = files.filter(pc.equal(files["spec_id"], spec.spec_id))
    values = _distinct(pc.unique(partition_values(files, position)), field_type)
    if not values:
        return FieldOverlap(spec.spec_id, field.name, 0)
    lowers, uppers = _bounds(metadata, spec.spec_id, position, field_type)
    begun, begun_bytes = _running(lowers, values, bisect_right)
    ended, ended_bytes = _running(uppers, values, bisect_left)
    depths = begun - ended
    return FieldOverlap(
        spec.spec_id,
        field.name,
        len(values),
        float(depths.mean()),
        int(depths.max()),
        float((begun_bytes - ended_bytes).mean()),
    )


def _running(
    bounds: list[tuple[Any, int]], values: list[Any], bisect: Callable[[list[Any], Any], int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For each value the number, and the summed lengths, of the manifests whose bound lies before it."""
    keys = [bound for bound, _ in bounds]
    lengths = np.concatenate([[0], np.cumsum([length for _, length in bounds], dtype=np.int64)])
    before = np.array([bisect(keys, value) for value in values], dtype=np.int64)
    return before, lengths[before]


def _distinct(raw: pa.Array, field_type: IcebergType) -> list[Any]:
    values, known = decode_array(raw, field_type)
    return [value for value in values[known].tolist() if value == value]  # NaN lies in no range


def _bounds(
    metadata: PlanningMetadata, spec_id: int, position: int, field_type: IcebergType
) -> tuple[list[tuple[Any, int]], list[tuple[Any, int]]]:
    """Sorted lower and upper bounds, with the lengths, of the spec's data manifests that hold any value."""
    lowers, uppers = [], []
    columns = ("content", "partition_spec_id", "partitions", "length")
    for content, manifest_spec, summaries, length in zip(
        *(metadata.manifests[name].to_pylist() for name in columns), strict=True
    ):
        if content != DATA or manifest_spec != spec_id or not summaries:
            continue
        lower = decode(summaries[position]["lower_bound"], field_type)
        upper = decode(summaries[position]["upper_bound"], field_type)
        if lower is not None and upper is not None:
            lowers.append((lower, length))
            uppers.append((upper, length))
    return sorted(lowers), sorted(uppers)
