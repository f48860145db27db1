"""What Iceberg Java plans, and the comparison with the simulation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planning_health.planning.expressions import Expression, to_iceberg_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.planning.scan import SimulatedScan
    from planning_health.planning.splits import SplitOptions

COUNTERS = {
    "result_data_files": "result-data-files",
    "result_delete_files": "result-delete-files",
    "total_data_manifests": "total-data-manifests",
    "total_delete_manifests": "total-delete-manifests",
    "scanned_data_manifests": "scanned-data-manifests",
    "skipped_data_manifests": "skipped-data-manifests",
    "scanned_delete_manifests": "scanned-delete-manifests",
    "skipped_delete_manifests": "skipped-delete-manifests",
    "skipped_data_files": "skipped-data-files",
    "skipped_delete_files": "skipped-delete-files",
    "indexed_delete_files": "indexed-delete-files",
    "equality_delete_files": "equality-delete-files",
    "positional_delete_files": "positional-delete-files",
    "dvs": "dvs",
    "total_file_size_in_bytes": "total-file-size-in-bytes",
    "total_delete_file_size_in_bytes": "total-delete-file-size-in-bytes",
}


@dataclass(frozen=True)
class Planned:
    """A plan in comparable form: the deletes of each file by path, and the counters."""

    files: dict[str, list[str]]
    counters: dict[str, int]


class JavaPlanner:
    """Plans with Iceberg Java and reads its ScanReport."""

    def __init__(self, spark: SparkSession, table: Any) -> None:
        self._jvm: Any = spark._jvm
        self._table = table
        iceberg = self._jvm.org.apache.iceberg
        self._lists = iceberg.relocated.com.google.common.collect.Lists
        self._parser = iceberg.expressions.ExpressionParser
        self._reports = iceberg.metrics.ScanReportParser

    def tasks(self, expr: Expression, *, case_sensitive: bool = True, **choice: Any) -> tuple[Any, dict[str, int]]:
        """Return (Java list of file scan tasks, counters); everything is materialised inside Java."""
        reporter = self._jvm.org.apache.iceberg.metrics.InMemoryMetricsReporter()
        scan = self._table.newScan()
        if "ref" in choice:
            scan = scan.useRef(choice["ref"])
        if "snapshot_id" in choice:
            scan = scan.useSnapshot(choice["snapshot_id"])
        filter_ = self._parser.fromJson(json.dumps(to_iceberg_json(expr)))
        scan = scan.caseSensitive(case_sensitive).filter(filter_).metricsReporter(reporter)
        iterable = scan.planFiles()
        tasks = self._lists.newArrayList(iterable)
        iterable.close()
        metrics = json.loads(self._reports.toJson(reporter.scanReport()))["metrics"]
        return tasks, {ours: metrics.get(theirs, {}).get("value", 0) for ours, theirs in COUNTERS.items()}

    def plan(self, expr: Expression, *, case_sensitive: bool = True, **choice: Any) -> Planned:
        tasks, counters = self.tasks(expr, case_sensitive=case_sensitive, **choice)
        files = {}
        for task in tasks:
            files[task.file().location()] = sorted(delete.location() for delete in task.deletes())
        return Planned(files, counters)

    def residuals(self, tasks: Any) -> dict[str, Any]:
        """Return the residual of each task in Iceberg's JSON form."""
        return {task.file().location(): json.loads(self._parser.toJson(task.residual())) for task in tasks}

    def combined(self, tasks: Any, order: list[str], options: SplitOptions) -> list[list[tuple[str, int, int]]]:
        """Pack file scan tasks, put into the given order of paths, as ``planTasks`` does."""
        by_path = {task.file().location(): task for task in tasks}
        ordered = self._jvm.java.util.ArrayList()
        for path in order:
            ordered.add(by_path[path])
        util = self._jvm.org.apache.iceberg.util.TableScanUtil
        groups = util.planTaskGroups(ordered, options.target_size, options.lookback, options.open_file_cost)
        return [
            [
                (part.file().location(), part.start(), part.length())
                for part in self._lists.newArrayList(group.tasks().iterator())
            ]
            for group in self._lists.newArrayList(groups.iterator())
        ]


def simulated(scan: SimulatedScan) -> Planned:
    """A simulated scan in the same form."""
    files = {path: sorted(deletes) for path, deletes in zip(scan.paths(), scan.deletes(), strict=True)}
    return Planned(files, {name: getattr(scan.report, name) for name in COUNTERS})
