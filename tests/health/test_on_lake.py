"""On real tables: what the demonstration lake's tables are found to suffer from, and Spark reading the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.health.test_history import NOW, ORDERS, row

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.health.analysis import analyse
from planning_health.health.expectations import Validator
from planning_health.health.history import append_rows, read_history
from planning_health.health.thresholds import resolve_thresholds
from planning_health.identifiers import TableName
from planning_health.metadata import record_with_pyiceberg
from planning_health.settings.models import HistorySettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

pytestmark = pytest.mark.spark

FOUND = {
    "lake.sales.orders": {"wide_manifests:0.ordered_on_day", "overlapping_manifests:0.ordered_on_day"},
    "lake.ops.tickets": {"high_deleted_ratio", "many_delete_files", "dangling_deletes"},
    "lake.ops.sensor_readings": {"heavy_statistics"},
    "lake.ops.sessions": {"many_delete_files"},
    "lake.ops.page_views": {"wide_manifests:0.viewed_at_month"},
    "lake.sales.customers": {"overlapping_manifests:0.customer_id_bucket"},
    "lake.ops.audit_log": {"high_deleted_ratio"},
    "lake.ops.uploads": {"skewed_files"},
}
HEALTHY = ("lake.sales.daily_totals", "lake.sales.returns")


def diagnose(settings: SettingsDocument, name: str) -> dict[str, Any]:
    metadata = record_with_pyiceberg(load_pyiceberg_catalog(settings, "lake"), TableName.parse(name))
    return analyse(metadata, resolve_thresholds(None))


@pytest.mark.parametrize("name", FOUND)
def test_each_demonstration_table_is_found_to_have_its_trouble(
    demo_lake: list[TableName], settings: SettingsDocument, name: str
) -> None:
    health = diagnose(settings, name)
    assert FOUND[name] <= {finding["id"] for finding in health["findings"]}
    assert health["state"] in ("warning", "critical")


@pytest.mark.parametrize("name", HEALTHY)
def test_the_healthy_and_the_empty_table_are_ok(
    demo_lake: list[TableName], settings: SettingsDocument, name: str
) -> None:
    health = diagnose(settings, name)
    assert (health["state"], health["findings"]) == ("ok", [])


def test_no_demonstration_table_contradicts_itself(demo_lake: list[TableName], settings: SettingsDocument) -> None:
    validator, catalog = Validator(), load_pyiceberg_catalog(settings, "lake")
    for table in demo_lake:
        if table.namespace != ("broken",):
            validation = validator.validate(record_with_pyiceberg(catalog, table), resolve_thresholds(None), [])
            assert validation.reason is None, table


def test_spark_reads_the_history_that_pyiceberg_wrote(spark: SparkSession, settings: SettingsDocument) -> None:
    history = HistorySettings(catalog="lake", table="test_history.history")
    mine = settings.model_copy(update={"history": history})
    append_rows(mine, "first", [row("first"), row("first", value=None)])
    append_rows(mine, "second", [row("second")])
    append_rows(mine, "second", [row("second", value=4.5)])
    shown = spark.sql(
        f"SELECT run_id, value, measured_at FROM {history.table_name.sql} ORDER BY run_id, value"
    ).collect()
    assert [(item["run_id"], item["value"]) for item in shown] == [("first", None), ("first", 3.0), ("second", 4.5)]
    assert {item["measured_at"].timestamp() for item in shown} == {NOW.timestamp()}
    assert read_history(mine, ORDERS).num_rows == 3
