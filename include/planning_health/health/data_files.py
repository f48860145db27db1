"""Small and uneven data files: every file is an entry that planning reads and a task that it makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from planning_health.health.columns import Ints
from planning_health.health.partition_fields import partition_groups
from planning_health.health.picture import Picture

TARGET_PROPERTY: Final = "write.target-file-size-bytes"
TARGET_DEFAULT: Final = 536_870_912
SMALL_BELOW: Final = 0.75
"""Iceberg's ``rewrite_data_files`` takes files below this part of the target for too small."""


FEWEST_COMPACTED: Final = 5
"""Iceberg's ``rewrite_data_files`` leaves groups of fewer files alone (``min-input-files``)."""


@dataclass(frozen=True)
class FileSizes:
    """The sizes of a snapshot's live data files.

    Attributes:
        files: live data files.
        bytes: their sizes, summed.
        target: the table's target file size.
        small: files below 75 % of the target.
        excess: files more than their partitions' bytes need at the target size: what compaction could save.
        skew: largest / mean size; ``None`` without bytes.
        largest_partition_files: files of the partition that has most.
    """

    files: int
    bytes: int
    target: int
    small: int
    excess: int
    skew: float | None
    largest_partition_files: int

    @property
    def small_share(self) -> float | None:
        """Small files / all; ``None`` without files."""
        return self.small / self.files if self.files else None

    @property
    def excess_share(self) -> float | None:
        """Excess files / all; ``None`` without files."""
        return self.excess / self.files if self.files else None


def file_sizes(picture: Picture) -> FileSizes:
    """Measures the live data files."""
    target = positive_property(picture.info.properties, TARGET_PROPERTY, TARGET_DEFAULT)
    sizes = picture.data.size[picture.data.live]
    counts, sums = _by_partition(picture)
    needed = np.where(counts >= FEWEST_COMPACTED, np.maximum(1, -(-sums // target)), counts)
    total = int(sizes.sum())
    return FileSizes(
        files=len(sizes),
        bytes=total,
        target=target,
        small=int((sizes < target * SMALL_BELOW).sum()),
        excess=int(np.maximum(counts - needed, 0).sum()),
        skew=int(sizes.max()) * len(sizes) / total if total else None,
        largest_partition_files=int(counts.max(initial=0)),
    )


def _by_partition(picture: Picture) -> tuple[Ints, Ints]:
    """Live data files and bytes of each partition of each spec."""
    counts, sums = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for spec in picture.specs:
        groups = partition_groups(spec.values, len(spec.rows))[spec.live]
        if len(groups):
            by_group = np.bincount(groups)
            used = by_group > 0
            bytes_by_group = np.zeros(len(by_group), dtype=np.int64)
            np.add.at(bytes_by_group, groups, picture.data.size[spec.rows[spec.live]])
            counts.append(by_group[used])
            sums.append(bytes_by_group[used])
    return np.concatenate(counts), np.concatenate(sums)


def positive_property(properties: dict[str, str], name: str, default: int) -> int:
    """A whole-number property; the default where it is absent, no number, or not positive."""
    try:
        value = int(properties.get(name, default))
    except ValueError:
        return default
    return value if value > 0 else default
