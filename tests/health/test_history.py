"""The history table: created when missing, replaced by run, dropped by whole months, read back by table."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.errors import InputError, WorkFailedError
from planning_health.health.history import HistoryRow, append_rows, read_history
from planning_health.identifiers import TableName
from planning_health.settings import SettingsDocument

ORDERS = TableName.parse("lake.sales.orders")
NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def settings(tmp_path: Path) -> SettingsDocument:
    SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/warehouse")
    properties = {"type": "jdbc", "uri": "jdbc:sqlite:${home}/catalog.db", "warehouse": "${home}/warehouse"}
    return SettingsDocument.model_validate(
        {"home": str(tmp_path), "catalogs": {"lake": {"properties": properties}}, "history": {"catalog": "lake"}}
    )


def row(run_id: str = "run 'one'", value: float | None = 3.0, measured_at: datetime = NOW) -> HistoryRow:
    return HistoryRow(
        run_id=run_id,
        measured_at=measured_at,
        catalog="lake",
        namespace="sales",
        table_name="orders",
        table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1",
        snapshot_id=77,
        scope="table",
        scope_key="",
        signal="manifests",
        value=value,
        unit="manifests",
        level="ok",
        product_version="0.1.0",
    )


def values(settings: SettingsDocument) -> list[tuple[str, float | None]]:
    return [(item["run_id"], item["value"]) for item in read_history(settings, ORDERS).to_pylist()]


def test_no_history_yet_reads_as_empty(settings: SettingsDocument) -> None:
    assert values(settings) == []


def test_a_retried_run_replaces_its_own_rows_only(settings: SettingsDocument) -> None:
    other = replace(row("another"), measured_at=NOW - timedelta(days=7))
    append_rows(settings, "another", [other])
    for value in (1.0, 2.0):
        append_rows(settings, "run 'one'", [row(value=value), row(value=None)])
    assert values(settings) == [("another", 3.0), ("run 'one'", 2.0), ("run 'one'", None)]


def test_the_table_is_partitioned_by_month_in_format_version_2(settings: SettingsDocument) -> None:
    append_rows(settings, "r", [row("r")])
    table = load_pyiceberg_catalog(settings, "lake").load_table(("planning_health", "history"))
    assert table.format_version == 2
    assert [str(field.transform) for field in table.spec().fields] == ["month"]


def test_months_beyond_the_retention_are_dropped_whole(settings: SettingsDocument) -> None:
    old = NOW - timedelta(days=settings.retention.history_days + 40)
    assert append_rows(settings, "old", [row("old", measured_at=old)]) is False
    assert append_rows(settings, "new", [row("new")]) is True
    assert values(settings) == [("new", 3.0)]
    table = load_pyiceberg_catalog(settings, "lake").load_table(("planning_health", "history"))
    assert [str(snapshot.summary.operation.value) for snapshot in table.snapshots() if snapshot.summary] == [
        "append",
        "delete",
        "append",
    ]
    assert append_rows(settings, "newer", [row("newer")]) is False


def test_other_tables_and_earlier_values_are_left_out(settings: SettingsDocument) -> None:
    rows = [row("r"), replace(row("r"), table_name="customers"), replace(row("r"), namespace="ops")]
    append_rows(settings, "r", rows)
    assert len(values(settings)) == 1
    assert read_history(settings, ORDERS, since=NOW + timedelta(seconds=1)).num_rows == 0
    assert read_history(settings, ORDERS, since=NOW).num_rows == 1


def test_a_run_without_rows_leaves_the_others(settings: SettingsDocument) -> None:
    append_rows(settings, "r", [row("r")])
    append_rows(settings, "empty", [])
    assert values(settings) == [("r", 3.0)]


def test_a_foreign_table_of_that_name_is_not_written_to(settings: SettingsDocument) -> None:
    catalog = load_pyiceberg_catalog(settings, "lake")
    catalog.create_namespace("planning_health")
    catalog.create_table(("planning_health", "history"), pa.schema([("run_id", pa.string())]))
    with pytest.raises(WorkFailedError, match=r"history exists with other columns: it lacks catalog"):
        append_rows(settings, "r", [row("r")])


def test_a_catalog_that_needs_spark_is_bad_input(settings: SettingsDocument) -> None:
    hadoop = {"properties": {"type": "hadoop", "warehouse": "/nowhere"}}
    document = settings.model_dump() | {"catalogs": {"lake": hadoop}}
    with pytest.raises(InputError, match="needs Spark"):
        append_rows(SettingsDocument.model_validate(document), "r", [row("r")])


def test_without_a_configured_history_there_is_nothing_to_read(settings: SettingsDocument) -> None:
    with pytest.raises(InputError, match="no history table is configured"):
        read_history(settings.model_copy(update={"history": None}), ORDERS)
