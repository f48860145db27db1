"""Maintenance on real tables: what is predicted happens, nothing else changes, and failures are told as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from planning_health.identifiers import TableName
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.metadata import load
from planning_health.metadata.record_spark import load_java_table
from planning_health.run_folder import RunFolder
from planning_health.stages.act import act
from planning_health.stages.measure import measure
from planning_health.stages.propose import propose

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

pytestmark = pytest.mark.spark

NAMESPACE = "test_maintenance"
UNMERGED = "'commit.manifest-merge.enabled'='false'"
REWRITE = MaintenanceRequest(dry_run=False)


@pytest.fixture(scope="module", autouse=True)
def _namespace(spark: SparkSession) -> None:
    spark.sql(f"CREATE NAMESPACE lake.{NAMESPACE}")


class Table:
    """A table under test, with what the tests ask of it."""

    def __init__(self, spark: SparkSession, settings: SettingsDocument, name: str) -> None:
        self.spark, self.settings = spark, settings
        self.name = TableName("lake", (NAMESPACE,), name)

    def sql(self, statement: str) -> list[Any]:
        rows: list[Any] = self.spark.sql(statement.format(t=self.name.sql)).collect()
        return rows

    @property
    def java(self) -> Any:
        return load_java_table(self.spark, self.name)

    def snapshots(self) -> list[int]:
        return [row.snapshot_id for row in self.sql("SELECT snapshot_id FROM {t}.snapshots ORDER BY committed_at")]

    def entries(self) -> set[tuple[Any, ...]]:
        """Identity, sequence numbers, statistics of all live entries, as Spark SQL sees them."""
        rows = self.sql(
            "SELECT snapshot_id, sequence_number, file_sequence_number, to_json(struct(data_file.*)) AS f "
            "FROM {t}.entries WHERE status < 2"
        )
        return {tuple(row) for row in rows}

    def run(self, run_id: str | None = None) -> RunFolder:
        return RunFolder(self.settings.home, "table_maintenance", run_id or f"manual__{uuid4()}")

    def propose(self, request: MaintenanceRequest, run: RunFolder) -> dict[str, Any]:
        measure(self.settings, run, [self.name], spark=self.spark)
        envelope = propose(self.settings, run, self.name, request)
        assert envelope.status == "ok", envelope.reason
        data: dict[str, Any] = run.require_result("proposal", self.name).data
        return data

    def act(self, request: MaintenanceRequest, run: RunFolder) -> dict[str, Any]:
        envelope = act(self.settings, run, self.name, request, self.spark)
        data: dict[str, Any] = run.require_result("action", self.name).data
        assert (envelope.status == "ok") == (data["state"] in {"done", "planned", "no_op"})
        return data | {"reason": envelope.reason}


Make = Callable[..., Table]


@pytest.fixture
def make(spark: SparkSession, settings: SettingsDocument) -> Make:
    def create(name: str, partitioned_by: str = "days(d)", properties: str = UNMERGED, version: int = 2) -> Table:
        table = Table(spark, settings, name)
        table.sql(
            "CREATE TABLE {t} (id BIGINT, d DATE, s STRING) USING iceberg "
            + (f"PARTITIONED BY ({partitioned_by}) " if partitioned_by else "")
            + f"TBLPROPERTIES ('format-version'='{version}', {properties})"
        )
        return table

    return create


def append_wide(table: Table, commits: int, days: int = 30, rows: int = 60, first: int = 0) -> None:
    """Each commit writes to many days: the manifests overlap."""
    for commit in range(first, first + commits):
        frame = table.spark.range(commit * rows, (commit + 1) * rows, 1, 1).selectExpr(
            "id", f"date_add(DATE'2024-01-01', CAST(id % {days} AS INT)) AS d", "sha1(CAST(id AS STRING)) AS s"
        )
        frame.writeTo(table.name.sql).option("distribution-mode", "none").option("fanout-enabled", "true").append()


def test_wide_manifests_are_repaired_as_predicted_and_nothing_else_changes(make: Make) -> None:
    table = make("wide", properties=UNMERGED + ", 'commit.manifest.target-size-bytes'='16384'")
    append_wide(table, 8)
    rows, entries = table.sql("SELECT * FROM {t} ORDER BY id"), table.entries()
    run = table.run()
    proposal = table.propose(REWRITE, run)
    assert [p["action"] for p in proposal["proposals"]] == ["rewrite_manifests"]
    result = table.act(REWRITE, run)
    assert result["state"] == "done", result
    assert result["verification"]["success"]
    predicted, actual = result["predicted"], result["actual"]
    print(predicted, actual)
    assert predicted["manifests_before"] == 8
    assert abs(predicted["manifests_after"] - actual["manifests_after"]) <= 1
    assert predicted["metadata_bytes_after"] == pytest.approx(actual["metadata_bytes_after"], rel=0.1)
    (overlap,) = actual["overlap"]
    assert overlap["mean_before"] == 8
    assert overlap["mean_after"] < 2
    assert overlap["mean_after"] == pytest.approx(predicted["overlap"][0]["mean_after"], rel=0.05)
    assert table.sql("SELECT * FROM {t} ORDER BY id") == rows
    assert table.entries() == entries
