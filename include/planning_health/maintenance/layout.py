"""A table's manifest layout in numbers: what maintenance predicts, and what it compares before and after."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from planning_health.health.picture import Picture
from planning_health.metadata.model import DATA, DELETED, PlanningMetadata


@dataclass(frozen=True)
class FieldOverlap:
    """Data manifests of a spec that an equality lookup on one partition field opens.

    Attributes:
        values: the field's distinct live values; with none the rest is ``None``, not measured.
        mean: manifests that hold a value, on average over the values.
        worst: the same for the value that lies in most of them.
    """

    spec_id: int
    field: str
    values: int
    mean: float | None
    worst: int | None


@dataclass(frozen=True)
class Layout:
    """The manifests of one snapshot: how many, how large, and how much they overlap.

    Attributes:
        manifests: data and delete manifests.
        metadata_bytes: their sizes, summed.
        statistics_bytes: what column statistics take of their content before compression.
        deleted_entries: entries of files that the snapshot removed.
        manifests_by_spec: the number of them, by spec id.
        overlap: one value for each partition field of each spec that has manifests.
    """

    snapshot_id: int | None
    manifests: int
    data_manifests: int
    delete_manifests: int
    metadata_bytes: int
    statistics_bytes: int
    deleted_entries: int
    manifests_by_spec: dict[int, int]
    overlap: tuple[FieldOverlap, ...]

    def as_json(self) -> dict[str, Any]:
        """The layout as a result file holds it."""
        return asdict(self)


def layout_of(metadata: PlanningMetadata) -> Layout:
    """Measures a recorded or predicted snapshot."""
    manifests = metadata.manifests
    data = int(pc.sum(pc.equal(manifests["content"], DATA)).as_py() or 0)
    return Layout(
        snapshot_id=metadata.info.snapshot_id,
        manifests=len(manifests),
        data_manifests=data,
        delete_manifests=len(manifests) - data,
        metadata_bytes=metadata.metadata_bytes,
        statistics_bytes=_statistics_bytes(manifests),
        deleted_entries=pc.sum(manifests["entries_deleted"]).as_py() or 0,
        manifests_by_spec=dict(sorted(Counter(manifests["partition_spec_id"].to_pylist()).items())),
        overlap=tuple(
            FieldOverlap(spec.spec_id, depth.key.name, depth.values, depth.mean, depth.worst)
            for spec in Picture(metadata).specs
            for depth in spec.overlap
        ),
    )


def _statistics_bytes(manifests: pa.Table) -> int:
    columns = pc.list_flatten(manifests["statistics_bytes"])
    return int(pc.sum(pc.struct_field(columns, "bytes")).as_py() or 0)


def live_files(files: pa.Table) -> pa.Table:
    """The entries that are not DELETED."""
    return files.filter(pc.not_equal(files["status"], DELETED))
