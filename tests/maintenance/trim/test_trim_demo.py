"""The demonstration's 94-column table: setting properties and rewriting changes nothing that exists, a trim does."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.maintenance.trim.tables import Table

from planning_health.identifiers import TableName
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.metadata import PlanningMetadata
from planning_health.metadata.record_spark import record_with_spark
from planning_health.metadata.store import load
from planning_health.settings import Query, TableRule

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

pytestmark = pytest.mark.spark

NAMESPACE = "test_trim_demo"
KEPT = ("captured_at", "device_id", "site", "status", "counter_00", "reading_00")
METRICS = {"metrics_default": "none", "metrics_columns": dict.fromkeys(KEPT, "truncate(16)")}
QUERIES = [
    Query(name="from an hour on", where="captured_at >= TIMESTAMP '2026-01-03 20:00:00Z'"),
    Query(name="a device", where="device_id = 77"),
    Query(name="a counter", where="counter_00 > 9000000000000000000"),
    Query(name="a reading on a day", where="reading_00 < -9000000 AND captured_at < TIMESTAMP '2026-01-02 00:00:00Z'"),
]
WHERES = [query.where for query in QUERIES]


@pytest.fixture
def table(spark: SparkSession, settings: SettingsDocument, demo_lake: list[TableName]) -> Table:
    """A table of its own over the demonstration's files."""
    demo = next(name for name in demo_lake if name.name == "sensor_readings")
    name = TableName("lake", (NAMESPACE,), "sensor_readings")
    rules = [TableRule(match=str(name), queries=QUERIES), *settings.tables]
    spark.sql(f"CREATE NAMESPACE lake.{NAMESPACE}")
    own = Table(spark, settings.model_copy(update={"tables": rules}), name)
    location = Table(spark, settings, demo).java().operations().current().metadataFileLocation()
    own.sql(f"CALL lake.system.register_table(table => '{NAMESPACE}.sensor_readings', metadata_file => '{location}')")
    return own


def record(table: Table, tmp_path: Path) -> PlanningMetadata:
    record_with_spark(table.spark, table.name, str(tmp_path / "recorded"))
    return load(str(tmp_path / "recorded"))


def bytes_per_entry(metadata: PlanningMetadata) -> float:
    columns = [item for row in metadata.manifests["statistics_bytes"].to_pylist() for item in row]
    return sum(item["bytes"] for item in columns) / len(metadata.data_files)


def planning_ms(table: Table) -> float:
    """The median milliseconds of planning all queries in Iceberg Java, warm."""
    expressions, times = table.expressions(WHERES), []
    for _ in range(9):
        started = time.perf_counter()
        table.planned(expressions)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def test_only_a_trim_takes_statistics_from_entries_that_exist(
    table: Table, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    before = record(table, tmp_path)
    rows = table.sql("SELECT count(*), sum(level_00) FROM {t}")
    lesson: dict[str, Any] = table.act(
        MaintenanceRequest(actions=["set_properties", "rewrite_manifests"], dry_run=False, **METRICS)
    )
    assert lesson["state"] == "done"
    rewritten = record(table, tmp_path)
    assert bytes_per_entry(rewritten) == bytes_per_entry(before)

    files, milliseconds = table.planned_files(WHERES), planning_ms(table)
    result = table.act(MaintenanceRequest(actions=["trim_statistics"], dry_run=False))
    assert result["state"] == "done"
    trimmed = record(table, tmp_path)
    assert bytes_per_entry(trimmed) < bytes_per_entry(before) / 10
    predicted, actual = result["predicted"], result["actual"]
    assert actual["metadata_bytes_after"] * 10 <= actual["metadata_bytes_before"]
    assert predicted["metadata_bytes_after"] == pytest.approx(actual["metadata_bytes_after"], rel=0.05)
    assert predicted["queries"] == actual["queries"]
    assert table.planned_files(WHERES) == files
    record_property("planning_ms", (milliseconds, planning_ms(table)))
    assert table.sql("SELECT count(*), sum(level_00) FROM {t}") == rows
