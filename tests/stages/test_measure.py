"""Measuring writes a recording or a reason for each table, and times Iceberg's own planning of the queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planning_health.identifiers import TableName
from planning_health.run_folder import RunFolder
from planning_health.settings import Query, SettingsDocument, TableRule
from planning_health.stages.diagnose import diagnose
from planning_health.stages.measure import measure
from planning_health.stages.simulate_planning import simulate_planning
from planning_health.stages.table_stage import MEASUREMENT

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TABLE = TableName.parse("lake.test_measure.`by day`")
MISSING = TableName.parse("lake.test_measure.missing")
WHERE = "d = DATE'2026-01-02' AND id > 3"


@pytest.fixture(scope="module")
def asked(spark: SparkSession, settings: SettingsDocument) -> SettingsDocument:
    spark.sql("CREATE NAMESPACE lake.test_measure")
    spark.sql(f"CREATE TABLE {TABLE.sql} (id BIGINT, d DATE) USING iceberg PARTITIONED BY (days(d))")
    for shift in range(3):
        spark.sql(
            f"INSERT INTO {TABLE.sql} "
            f"SELECT id, date_add(DATE'2026-01-01', CAST(id % 4 + {shift} AS INT)) FROM range(20)"
        )
    rule = TableRule(match="*", queries=[Query(name="one_day", where=WHERE)])
    return settings.model_copy(update={"tables": [rule]})


def test_iceberg_counts_what_the_simulation_predicts(
    spark: SparkSession, asked: SettingsDocument, tmp_path: Path
) -> None:
    folder = RunFolder(str(tmp_path), "cli", "with-spark")
    envelope = measure(asked, folder, [TABLE], spark=spark)
    assert envelope.headline == {"tables": 1, "tables_failed": 0}
    (time,) = folder.require_result(MEASUREMENT, TABLE).data["planning_times"]
    assert time["name"] == "one_day"
    assert time["median_ms"] > 0
    simulate_planning(asked, folder, TABLE)
    (predicate,) = folder.require_result("planning", TABLE).data["predicates"]
    counters = predicate["measured"]["counters"]
    assert predicate["data_manifests"]["scanned"] == counters["scanned-data-manifests"]
    assert predicate["data_files"]["result"] == counters["result-data-files"]
    diagnose(asked, folder, TABLE)
    (first, *_) = folder.require_result("health", TABLE).data["steps"]
    assert first["level"] == "ok"
    assert "one_day" in first["evidence"]


def test_without_spark_planning_is_not_measured(asked: SettingsDocument, spark: SparkSession, tmp_path: Path) -> None:
    folder = RunFolder(str(tmp_path), "cli", "without-spark")
    measure(asked, folder, [TABLE])
    simulate_planning(asked, folder, TABLE)
    diagnose(asked, folder, TABLE)
    assert folder.require_result("planning", TABLE).data["predicates"][0]["measured"] is None
    assert folder.require_result("health", TABLE).data["steps"][0]["level"] == "not_measured"


def test_one_missing_table_does_not_stop_the_others(
    spark: SparkSession, asked: SettingsDocument, tmp_path: Path
) -> None:
    folder = RunFolder(str(tmp_path), "cli", "partly")
    envelope = measure(asked, folder, [MISSING, TABLE], spark=spark)
    assert envelope.status == "ok"
    assert envelope.headline["tables_failed"] == 1
    assert folder.require_result(MEASUREMENT, MISSING).status == "failed"
    assert "does not exist" in str(folder.require_result(MEASUREMENT, MISSING).reason)
    assert folder.require_result(MEASUREMENT, TABLE).status == "ok"
