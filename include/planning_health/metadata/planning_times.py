"""Measures how long Iceberg itself plans a query: the planning duration and counters of its own ScanReport."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS: Final = 3
ENOUGH_MS: Final = 5_000.0
"""A query that took this long is not planned again: the median of less than ``RUNS`` runs is good enough."""


@dataclass(frozen=True)
class PlanningTime:
    """Iceberg's own planning of one query.

    Attributes:
        name: the query's name.
        first_ms: planning time of the first run, in milliseconds.
        median_ms: median of all runs.
        runs: how often the query was planned.
        counters: the first run's ScanReport counters, by Iceberg's names.
    """

    name: str
    first_ms: float
    median_ms: float
    runs: int
    counters: Mapping[str, int]

    def as_json(self) -> dict[str, Any]:
        """The measurement as the result file holds it."""
        return asdict(self)


def measure_planning(
    spark: SparkSession, java_table: Any, filters: Sequence[tuple[str, dict[str, Any] | bool]]
) -> list[PlanningTime]:
    """Plans each filter on the table's current snapshot and reads Iceberg's ScanReports.

    Args:
        spark: the session that loaded the table.
        java_table: Iceberg's ``Table``.
        filters: name and filter of each query, in Iceberg's JSON form.
    """
    return [_measure(spark, java_table, name, filter_json) for name, filter_json in filters]


def _measure(spark: SparkSession, java_table: Any, name: str, filter_json: dict[str, Any] | bool) -> PlanningTime:
    reports = [_plan(spark, java_table, filter_json)]
    while len(reports) < RUNS and sum(map(_planning_ms, reports)) < ENOUGH_MS:
        reports.append(_plan(spark, java_table, filter_json))
    times = [_planning_ms(report) for report in reports]
    counters = {key: metric["value"] for key, metric in reports[0].items() if "value" in metric}
    return PlanningTime(name, times[0], median(times), len(times), counters)


def _plan(spark: SparkSession, java_table: Any, filter_json: dict[str, Any] | bool) -> dict[str, Any]:
    iceberg: Any = spark._jvm.org.apache.iceberg
    reporter = iceberg.metrics.InMemoryMetricsReporter()
    parsed = iceberg.expressions.ExpressionParser.fromJson(json.dumps(filter_json))
    tasks = java_table.newScan().caseSensitive(False).filter(parsed).metricsReporter(reporter).planFiles()
    try:
        iceberg.relocated.com.google.common.collect.Iterables.size(tasks)  # plans everything, keeps nothing
    finally:
        tasks.close()  # the report is sent on closing
    report = reporter.scanReport()
    metrics: dict[str, Any] = json.loads(iceberg.metrics.ScanReportParser.toJson(report))["metrics"]
    return metrics


def _planning_ms(metrics: Mapping[str, Any]) -> float:
    return float(metrics["total-planning-duration"]["total-duration"]) / 1e6
