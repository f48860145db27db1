"""The planners that are compared: the simulation, Iceberg Java and PyIceberg."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pyiceberg.expressions import BooleanExpression

from planning_health.planning.expressions import Expression, to_iceberg_json

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

    from planning_health.planning.scan import ScanReport, SimulatedScan

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

COUNTERS = {
    "result_data_files": "result-data-files",
    "result_delete_files": "result-delete-files",
    "total_data_manifests": "total-data-manifests",
    "scanned_data_manifests": "scanned-data-manifests",
    "skipped_data_manifests": "skipped-data-manifests",
    "skipped_data_files": "skipped-data-files",
    "total_file_size_in_bytes": "total-file-size-in-bytes",
}
_PATH = re.compile(r"file=(\S+?\.parquet)")


def timed(work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> tuple[float, Result]:
    started = time.perf_counter()
    result = work(*args, **kwargs)
    return time.perf_counter() - started, result


@dataclass(frozen=True)
class JavaPlan:
    """What Iceberg Java planned; ``tasks`` is a Java list."""

    seconds: float
    tasks: Any
    counters: dict[str, int]


class JavaPlanner:
    """Plans in a warm session; a plan is complete when all its tasks stand in a Java list."""

    def __init__(self, spark: SparkSession, table: Any) -> None:
        self._jvm: Any = spark._jvm
        iceberg = self._jvm.org.apache.iceberg
        guava = iceberg.relocated.com.google.common
        self._table = table
        self._lists = guava.collect.Lists
        self._joiner = guava.base.Joiner.on("\n")
        self._parser = iceberg.expressions.ExpressionParser
        self._reports = iceberg.metrics.ScanReportParser
        self._reporter = iceberg.metrics.InMemoryMetricsReporter
        self._workers = iceberg.util.ThreadPools.getWorkerPool()

    def plan(self, expression: Expression, *, pool: bool, snapshot_id: int | None = None) -> JavaPlan:
        """Plan one filter, reading manifests in Iceberg's worker pool (its default) or one after another."""
        reporter = self._reporter()
        filter_ = self._parser.fromJson(json.dumps(to_iceberg_json(expression)))
        scan = self._table.newScan().filter(filter_).metricsReporter(reporter)
        if snapshot_id is not None:
            scan = scan.useSnapshot(snapshot_id)
        if pool:
            scan = scan.planWith(self._workers)
        seconds, tasks = timed(lambda: self._listed(scan.planFiles()))
        metrics = json.loads(self._reports.toJson(reporter.scanReport()))["metrics"]
        counters = {ours: metrics.get(theirs, {}).get("value", 0) for ours, theirs in COUNTERS.items()}
        return JavaPlan(seconds, tasks, counters)

    def _listed(self, iterable: Any) -> Any:
        tasks = self._lists.newArrayList(iterable)
        iterable.close()
        return tasks

    def combined(self, expression: Expression, *, pool: bool) -> float:
        """Return the seconds that ``planTasks()`` takes: planning and packing."""
        filter_ = self._parser.fromJson(json.dumps(to_iceberg_json(expression)))
        scan = self._table.newScan().filter(filter_)
        if pool:
            scan = scan.planWith(self._workers)
        return timed(lambda: self._listed(scan.planTasks()))[0]

    def paths(self, plan: JavaPlan) -> list[str]:
        return sorted(_PATH.findall(self._joiner.join(plan.tasks)))


def pyiceberg_plan(table: Table, expression: Expression) -> list[str]:
    """Plan with PyIceberg; its tasks are complete when they stand in a list."""
    row_filter = BooleanExpression.model_validate_json(json.dumps(to_iceberg_json(expression)))
    return [task.file.file_path for task in table.scan(row_filter=row_filter).plan_files()]


def counters(report: ScanReport) -> dict[str, int]:
    return {name: getattr(report, name) for name in COUNTERS}


def same_plan(scan: SimulatedScan, paths: list[str]) -> bool:
    return sorted(scan.paths()) == paths
