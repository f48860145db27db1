"""What-ifs over a recorded picture: change it as an action would change the table, and plan the queries again.

A what-if is a function from picture to picture; :func:`compare` plans the same predicates on both. The rewrite of
manifests is predicted in ``planning_health.maintenance.prediction``, the other changes are

* statistics dropped or truncated (``planning_health.planning.fewer_statistics``), and
* another partition spec with rewritten data (``planning_health.planning.respec``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from planning_health.metadata.model import PlanningMetadata
from planning_health.planning.report import plan_where
from planning_health.planning.scan import ScanPlanner, SimulatedScan


@dataclass(frozen=True, slots=True)
class Reads:
    """What planning one predicate reads."""

    data_manifests: int
    delete_manifests: int
    data_files: int
    bytes: int
    metadata_bytes: int

    @property
    def manifests(self) -> int:
        """Data and delete manifests that are opened."""
        return self.data_manifests + self.delete_manifests

    @classmethod
    def of(cls, scan: SimulatedScan) -> Reads:
        """Take the numbers from a simulated scan."""
        report = scan.report
        return cls(
            report.scanned_data_manifests,
            report.scanned_delete_manifests,
            report.result_data_files,
            report.total_file_size_in_bytes,
            report.metadata_bytes,
        )


@dataclass(frozen=True, slots=True)
class Effect:
    """One predicate before and after a change."""

    where: str
    before: Reads
    after: Reads

    @property
    def loses_file_pruning(self) -> bool:
        """More data files are read than before."""
        return self.after.data_files > self.before.data_files

    def document(self) -> dict[str, Any]:
        """The effect as JSON."""
        return {
            "where": self.where,
            "before": asdict(self.before),
            "after": asdict(self.after),
            "loses_file_pruning": self.loses_file_pruning,
        }


def compare(
    before: PlanningMetadata, after: PlanningMetadata, wheres: Iterable[str], *, now: dt.datetime | None = None
) -> list[Effect]:
    """Plan predicates on two pictures of a table.

    Args:
        before: the recorded picture.
        after: the changed one.
        wheres: predicates in Spark SQL.
        now: the current time for both; that of the first recording by default.

    Raises:
        InputError: a predicate does not parse or does not fit the table.
    """
    moment = now or dt.datetime.fromisoformat(before.info.measured_at)
    planners = ScanPlanner(before), ScanPlanner(after)
    return [
        Effect(where, *(Reads.of(plan_where(planner, where, now=moment)) for planner in planners)) for where in wheres
    ]
