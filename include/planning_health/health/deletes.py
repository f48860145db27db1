"""What merge-on-read deletes cost planning: how many delete files there are, where, and which are needed no more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planning_health.health.columns import Ints
from planning_health.health.dangling import dangling_deletes
from planning_health.health.partition_fields import fields_of, partition_groups, values_by_field
from planning_health.health.picture import Picture
from planning_health.metadata.model import DELETES


@dataclass(frozen=True)
class DeleteFiles:
    """The live delete files of a snapshot.

    Attributes:
        files: live delete files (each deletion vector counts as one).
        rows: the rows in them.
        dangling: those that certainly apply to nothing.
        data_files: live data files, for the ratios.
        most_in_a_partition: delete files of the partition that has most.
        manifests: the delete manifests' ordinals, the fullest first.
        files_of_manifest: live delete files, by manifest ordinal.
    """

    files: int
    rows: int
    dangling: int
    data_files: int
    most_in_a_partition: int
    manifests: list[int]
    files_of_manifest: Ints

    @property
    def files_per_data_file(self) -> float | None:
        """Delete files / data files; ``None`` without data files."""
        return self.files / self.data_files if self.data_files else None

    @property
    def rows_per_data_file(self) -> float | None:
        """Delete rows / data files; ``None`` without data files."""
        return self.rows / self.data_files if self.data_files else None

    @property
    def dangling_ratio(self) -> float | None:
        """Dangling / all delete files; ``None`` without delete files."""
        return self.dangling / self.files if self.files else None


def delete_files(picture: Picture) -> DeleteFiles:
    """Measures the live delete files."""
    live = picture.deletes.live
    per_manifest = np.bincount(picture.deletes.manifest[live], minlength=len(picture.manifests.length))
    ordinals = np.flatnonzero(picture.manifests.of(DELETES))
    fullest = ordinals[np.argsort(-per_manifest[ordinals], kind="stable")]
    return DeleteFiles(
        files=int(live.sum()),
        rows=int(picture.deletes.records[live].sum()),
        dangling=int(dangling_deletes(picture).sum()) if live.any() else 0,
        data_files=int(picture.data.live.sum()),
        most_in_a_partition=_most_in_a_partition(picture),
        manifests=fullest.tolist(),
        files_of_manifest=per_manifest,
    )


def _most_in_a_partition(picture: Picture) -> int:
    most = 0
    for spec_id in np.unique(picture.deletes.spec_id[picture.deletes.live]).tolist():
        rows = np.flatnonzero(picture.deletes.live & (picture.deletes.spec_id == spec_id))
        spec = picture.info.specs.get(spec_id)
        keys = fields_of(picture.info, spec) if spec else []
        values = values_by_field(keys, picture.delete_partitions.take(rows)) if keys else []
        most = max(most, int(np.bincount(partition_groups(values, len(rows))).max()))
    return most
