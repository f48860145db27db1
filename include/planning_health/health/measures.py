"""All measurements of one snapshot, each computed once and when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from planning_health.health.column_statistics import ColumnStatistics
from planning_health.health.data_files import FileSizes, file_sizes
from planning_health.health.deletes import DeleteFiles, delete_files
from planning_health.health.integrity import Integrity
from planning_health.health.picture import Picture
from planning_health.metadata.model import PlanningMetadata


class Measures:
    """The measurements that signals, findings and expectations share.

    Args:
        metadata: the recorded snapshot.
        filter_columns: columns of the workload's queries, in any case.
    """

    def __init__(self, metadata: PlanningMetadata, filter_columns: Iterable[str] = ()) -> None:
        self.picture = Picture(metadata)
        self.columns = ColumnStatistics(self.picture, filter_columns)
        self.integrity = Integrity(self.picture)

    @cached_property
    def deletes(self) -> DeleteFiles:
        """Merge-on-read deletes."""
        return delete_files(self.picture)

    @cached_property
    def files(self) -> FileSizes:
        """Data file sizes."""
        return file_sizes(self.picture)
