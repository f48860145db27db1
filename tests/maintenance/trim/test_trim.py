"""Trim on real tables: statistics go, nothing else changes, and everything works afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from planning_health.identifiers import TableName
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.metadata.record_spark import load_java_table
from planning_health.run_folder import RunFolder
from planning_health.stages.act import act
from planning_health.stages.measure import measure
from planning_health.stages.propose import propose

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

pytestmark = pytest.mark.spark

NAMESPACE = "test_trim"


@pytest.fixture(scope="module", autouse=True)
def _namespace(spark: SparkSession) -> None:
    spark.sql(f"CREATE NAMESPACE lake.{NAMESPACE}")


def test_statistics_are_trimmed_and_manifests_clustered_as_predicted(
    spark: SparkSession, settings: SettingsDocument
) -> None:
    name = TableName("lake", (NAMESPACE,), "first")
    spark.sql(
        f"CREATE TABLE {name.sql} (id BIGINT, d DATE, s STRING, x DOUBLE) USING iceberg PARTITIONED BY (days(d)) "
        "TBLPROPERTIES ('commit.manifest-merge.enabled'='false', 'commit.manifest.target-size-bytes'='16384')"
    )
    for commit in range(6):
        spark.range(commit * 60, commit * 60 + 60, 1, 1).selectExpr(
            "id",
            "date_add(DATE'2024-01-01', CAST(id % 30 AS INT)) AS d",
            "sha1(CAST(id AS STRING)) AS s",
            "id / 7 AS x",
        ).writeTo(name.sql).option("distribution-mode", "none").option("fanout-enabled", "true").append()
    rows = sorted(map(tuple, spark.table(name.sql).collect()))
    run = RunFolder(settings.home, "table_maintenance", f"manual__{uuid4()}")
    request = MaintenanceRequest(
        actions=["set_properties", "trim_statistics"],
        metrics_default="none",
        metrics_columns={"id": "counts", "s": "truncate(3)", "d": "full"},
        dry_run=False,
    )
    measure(settings, run, [name], spark=spark)
    envelope = propose(settings, run, name, request)
    assert envelope.status == "ok", envelope.reason
    acted = act(settings, run, name, request, spark)
    data: dict[str, Any] = run.require_result("action", name).data
    assert acted.status == "ok", acted.reason
    assert data["state"] == "done"
    assert data["predicted"] == data["actual"]
    assert sorted(map(tuple, spark.table(name.sql).collect())) == rows
    assert load_java_table(spark, name).currentSnapshot().operation() == "replace"
